"""Rows of a file → packed codes, in an array or in a file; writing a file can be resumed.

A shard is one batch of rows. Its codes are stored with a checksum in a folder beside the output as soon as they are
computed. When all shards are complete they are joined in one file, which replaces the output in one step. After a kill,
or when a bad row is mended, the same call reads the rows again and encodes only those without stored codes: shards are
named by the content of the hasher and of all rows up to their last one. Names, sizes and times of files play no part.
The output does not depend on the batch size or on interruptions.

.codes.npy.shards/3b37…d652      the codes of one batch, and their SHA-256
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import hashlearn
from hashlearn.core.atomic_files import UNFINISHED, bytes_of, output_place, replacing, write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.rows import require_same_columns
from hashlearn.files.code_files import describe_codes, is_whole, write_npy, write_parquet
from hashlearn.files.row_source import RowSource
from hashlearn.files.table_files import GROUP_ROWS
from hashlearn.persistence.values import fingerprint
from hashlearn.search.arrow import to_arrow

BATCH_BYTES = 2**26  # of features in float64
MOST_BATCH_ROWS = 65_536
CHECKSUM_BYTES = 32
SHARD = re.compile(r"[0-9a-f]{64}|\..*" + re.escape(UNFINISHED))


class Encoded(NamedTuple):
    """The result of `encode_file`."""

    rows: int
    resumed_rows: int  # rows whose codes an earlier call had stored
    n_bits: int
    bytes: int  # of the file
    sha256: str
    work_sha256: str  # of the hasher, all rows, their ids and kept columns; equal digests mean equal codes
    id_column: str | None = None  # whose ids the file has; None: rows are numbered


def encode_rows(
    hasher: Any, source: RowSource, *, batch_rows: int | None = None, progress: ProgressCallback | None = None
) -> NDArray[np.uint8]:
    """Packed codes of all rows, in memory; the rows are read in batches."""
    require_columns(hasher, source)
    codes = np.empty((source.n_rows, -(-hasher.n_bits // 8)), np.uint8)
    done = 0
    for batch in source.batches(_batch_size(source, batch_rows)):
        codes[done : done + batch.shape[0]] = _encoded(hasher, batch, source, done)
        done += batch.shape[0]
        tell(progress, f"encoding {source.name}", done, source.n_rows)
    return codes


def codes_table(model: Any, X: Any, *, ids: Any = None, fields: Mapping[str, Any] | None = None) -> Any:
    """The codes of rows in memory as a pyarrow table (id, code, fields), which `export_codes` puts into a store.

    ``model`` is a fitted hasher, or a plan of `hashlearn.compress`. Without ``ids`` rows are numbered. ``fields`` are
    more columns by name.

    >>> from hashlearn.hashers import LSH
    >>> X = np.eye(3)
    >>> table = codes_table(LSH(n_bits=8, random_state=0).fit(X), X, ids=["a", "b", "c"], fields={"year": [7, 8, 9]})
    >>> table.column_names, table.num_rows
    (['id', 'code', 'year'], 3)
    """
    hasher = getattr(model, "hasher", model)
    codes = hasher.encode(X)
    numbers = np.arange(len(codes)) if ids is None else ids
    return to_arrow(codes, numbers, int(hasher.n_bits), model=fingerprint(hasher), fields=fields)


def encode_file(
    hasher: Any,
    source: RowSource,
    output: str | os.PathLike[str],
    *,
    batch_rows: int | None = None,
    identity: str = "",
    first_id: int = 0,
    model_name: str = "",
    input: str = "",
    progress: ProgressCallback | None = None,
) -> Encoded:
    """Write the packed codes of all rows to ``output``, unless it is a whole Parquet file of the same codes already.

    Parameters
    ----------
    hasher : fitted
    source : rows, from `open_rows`
    output : a Parquet file with columns id and code, and the columns that the source keeps; or an npy file, uint8 (n,
        ⌈n_bits/8⌉), which has no place for ids. The metadata of a Parquet file hold the digests of the hasher and of
        all that was encoded
    batch_rows : rows encoded and stored at a time; None: 64 MB of features
    identity : a name for a hasher that cannot be saved, such as one with a classifier of your own. Without a name, a
        later call does not reuse its shards. Every other hasher is identified by its content
    first_id : id of the first row, if the source has no ids and is a part of a larger data set
    model_name, input : name of the hasher's file and path of the rows, for the metadata of a Parquet file
    progress : called with a `hashlearn.core.progress.Progress` after each batch
    """
    require_columns(hasher, source)
    path, size = Path(output), _batch_size(source, batch_rows)
    if path.suffix.lower() not in (".npy", ".parquet"):
        raise ValueError(f"{path}: codes are written as .npy or .parquet, got {path.suffix or 'no ending'!r}")
    is_table = path.suffix.lower() == ".parquet"
    output_place(path)
    work = _Work(hasher, source, identity, first_id, model_name)
    if is_table:
        source.read_ids()  # refuses missing and repeated ids before the work
        if (digest := _finished_digest(path, work)) is not None:
            discard_shards(path)  # of another input, cut short
            return _result(path, work, source.n_rows, digest)
    before = source.path.stat()
    shards, resumed = _encode_batches(work, size, _shard_folder(path), progress)
    digest = work.digest(shards[-1].path.name)
    _require_unchanged(before, source)
    with replacing(path) as unfinished:
        codes = (_stored_codes(shard) for shard in shards)
        if is_table:
            origin = {"model_name": model_name, "input": input, "work_sha256": digest}
            write_parquet(unfinished, codes, source, int(hasher.n_bits), first_id, work.model, origin)
        else:
            write_npy(unfinished, codes, source.n_rows, int(hasher.n_bits))
        _require_unchanged(before, source)  # ids and kept columns were read again
    discard_shards(path)
    return _result(path, work, resumed, digest)


def discard_shards(output: Path) -> None:
    """Remove the shards that a killed process left."""
    folder = _shard_folder(output)
    for path in folder.iterdir() if folder.is_dir() else ():
        if SHARD.fullmatch(path.name):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it has files of somebody else, or is not there
        folder.rmdir()


def require_columns(hasher: Any, source: RowSource, like: RowSource | None = None) -> None:
    """Refuse rows whose columns differ from those that the hasher learned from.

    A hasher without feature names takes columns by position. Then the columns must also be those of ``like``, rows that
    were opened before: if files differ in the order of their columns, at most one order is that of the hasher.
    """
    if source.n_features != hasher.n_features_in_:
        raise ValueError(
            f"{source.name}: has {source.n_features} feature(s) a row, the model takes {hasher.n_features_in_}"
        )
    learned = getattr(hasher, "feature_names_in_", None)
    if learned is not None:
        require_same_columns(source.names, learned, f"{source.name}: its rows", "the model")
    elif like is not None:
        require_same_columns(source.names, like.names, f"{source.name}: its rows", like.name)


class _Work:
    """SHA-256 of a hasher, rows, ids and kept columns; batches of any size give the same digest of dense rows."""

    def __init__(self, hasher: Any, source: RowSource, identity: str, first_id: int, model_name: str) -> None:
        self.hasher, self.source, self.model = hasher, source, fingerprint(hasher)
        # A hasher that nothing identifies gets a random name, so that its shards are never reused.
        named = self.model or (None if identity else secrets.token_hex(32))
        self._start = json.dumps([hashlearn.__version__, named, identity, int(hasher.n_bits)]).encode()
        self._end = json.dumps([first_id, model_name]).encode()

    def batches(self, size: int) -> Iterator[tuple[Any, str]]:
        """Batches, each with the digest of the hasher and of all rows so far."""
        digest, layout = hashlib.sha256(self._start), None
        for batch in self.source.batches(size):
            is_sparse = sp.issparse(batch)
            parts = (batch.indptr, batch.indices, batch.data) if is_sparse else (batch,)
            before, layout = layout, [batch.shape if is_sparse else batch.shape[1], *(part.dtype.str for part in parts)]
            if layout != before:
                digest.update(json.dumps(layout).encode())
            for part in parts:
                digest.update(bytes_of(part))
            yield batch, digest.hexdigest()

    def digest(self, rows: str) -> str:
        """The digest of everything, from that of the hasher and all rows."""
        digest = hashlib.sha256(rows.encode() + self._end)
        for number, table in enumerate(self.source.extra_columns(GROUP_ROWS)):
            if number == 0:
                digest.update(str(table.schema.remove_metadata()).encode())
            for batch in table.to_batches():
                digest.update(batch.serialize())
        return digest.hexdigest()


class _Shard(NamedTuple):
    path: Path  # its name is the digest of the hasher and of all rows up to the last of this batch
    shape: tuple[int, int]  # of its codes


def _encode_batches(
    work: _Work, size: int, folder: Path, progress: ProgressCallback | None
) -> tuple[list[_Shard], int]:
    """A shard for each batch of rows, and how many rows were stored before."""
    shards, resumed, done = [], 0, 0
    source, width = work.source, -(-int(work.hasher.n_bits) // 8)
    for batch, digest in work.batches(size):
        shard = _Shard(folder / digest, (batch.shape[0], width))
        if _read_shard(shard) is None:
            data = _encoded(work.hasher, batch, source, done).tobytes()
            folder.mkdir(exist_ok=True)
            write_atomically(shard.path, [data, _checksum(shard.path, data)])
        else:
            resumed += batch.shape[0]
        shards.append(shard)
        done += batch.shape[0]
        tell(progress, f"encoding {source.name}", done, source.n_rows)
    return shards, resumed


def _read_shard(shard: _Shard) -> bytes | None:
    """The codes; None if they are absent, damaged, or in the place of others."""
    try:
        content = shard.path.read_bytes()
    except FileNotFoundError:
        return None
    data, checksum = content[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
    is_right = len(data) == math.prod(shard.shape) and checksum == _checksum(shard.path, data)
    return data if is_right else None


def _stored_codes(shard: _Shard) -> NDArray[np.uint8]:
    data = _read_shard(shard)
    if data is None:
        raise ValueError(f"{shard.path}: was damaged or removed just now; run again")
    return np.frombuffer(data, np.uint8).reshape(shard.shape)


def _checksum(path: Path, data: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + data).digest()


def _shard_folder(output: Path) -> Path:
    return output.with_name(f".{output.name}.shards")


def _finished_digest(path: Path, work: _Work) -> str | None:
    """The digest in a whole Parquet file that was made of the same; None for any other file."""
    try:
        about = describe_codes(path)
    except (OSError, ValueError):
        return None
    if not about.work_sha256 or (about.rows, about.model) != (work.source.n_rows, work.model) or not is_whole(path):
        return None
    digests = (digest for _, digest in work.batches(_batch_size(work.source, None)))
    return about.work_sha256 if about.work_sha256 == work.digest(deque(digests, maxlen=1).pop()) else None


def _result(path: Path, work: _Work, resumed: int, digest: str) -> Encoded:
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    id_column = work.source.columns.id if path.suffix.lower() == ".parquet" else None
    size = path.stat().st_size
    return Encoded(work.source.n_rows, resumed, int(work.hasher.n_bits), size, sha256, digest, id_column)


def _batch_size(source: RowSource, batch_rows: int | None) -> int:
    """``batch_rows``, or as many rows as take 64 MB as float64, at most 65,536."""
    if batch_rows is not None:
        return whole_number(batch_rows, "batch_rows", least=1)
    return min(MOST_BATCH_ROWS, max(1, BATCH_BYTES // (8 * source.n_features)))


def _encoded(hasher: Any, batch: Any, source: RowSource, first: int) -> NDArray[np.uint8]:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared
            codes: NDArray[np.uint8] = hasher.encode(batch)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source.name}: rows {first} to {first + batch.shape[0] - 1}: {error}") from error
    return codes


def _require_unchanged(before: os.stat_result, source: RowSource) -> None:
    """Refuse a file that another program has changed or replaced."""
    after = source.path.stat()
    parts = ("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
    if any(getattr(after, part) != getattr(before, part) for part in parts):
        raise ValueError(f"{source.name}: changed while it was encoded; run again when it is complete")
