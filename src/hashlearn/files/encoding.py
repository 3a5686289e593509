"""Rows of a file → packed codes, in an array or in a file; writing a file can be resumed.

A shard is one batch of rows. Its codes are stored with a checksum in a folder beside the output as soon as they are
computed. When all shards are complete they are joined in one file, which replaces the output in one step. After a kill,
or when a bad row is mended, the same call reads the rows again and encodes only those without stored codes: shards are
identified by the content of the rows and of the hasher. The output does not depend on the batch size or on
interruptions.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import replacing
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.files.code_files import Origin, write_npy, write_parquet
from hashlearn.files.id_columns import digest_beside, read_ids
from hashlearn.files.rows import RowSource
from hashlearn.files.shards import Shards, WorkDigest
from hashlearn.persistence.values import fingerprint
from hashlearn.search.arrow import to_arrow

BATCH_BYTES = 2**26  # of features in float64
MOST_BATCH_ROWS = 65_536


class Encoded(NamedTuple):
    """The result of `encode_file`."""

    rows: int
    resumed_rows: int  # rows whose codes an interrupted call had stored
    n_bits: int
    bytes: int  # of the file
    sha256: str
    work_sha256: str  # of the hasher, all rows, their ids and kept columns; equal digests mean equal files
    id_column: str | None = None  # whose ids the file has; None: rows are numbered


def encode_rows(
    hasher: Any, source: RowSource, *, batch_rows: int | None = None, progress: ProgressCallback | None = None
) -> NDArray[np.uint8]:
    """Packed codes of all rows, in memory; the rows are read in batches."""
    require_columns(hasher, source)
    size = default_batch_rows(source.n_features) if batch_rows is None else batch_rows
    codes = np.empty((source.n_rows, -(-hasher.n_bits // 8)), np.uint8)
    done = 0
    for batch in source.batches(size):
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
    progress: ProgressCallback | None = None,
    origin: str = "",
) -> Encoded:
    """Write the packed codes of all rows to ``output``.

    Parameters
    ----------
    hasher : fitted
    source : rows, from `open_rows`
    output : a Parquet file with columns id and code, and the columns that the source keeps; or an npy file, uint8 (n,
        ⌈n_bits/8⌉), which has no place for ids. The metadata of a Parquet file hold the hasher's digest
    batch_rows : rows encoded and stored at a time; None: 64 MB of features
    identity : a name for a hasher that cannot be saved, such as one with a classifier of your own. Without a name, a
        later call does not reuse its shards. Every other hasher is identified by its content
    first_id : id of the first row, if the source has no ids and is a part of a larger data set
    model_name : name of the hasher's file, which errors about codes of two models show
    progress : called with a `hashlearn.core.progress.Progress` after each batch
    origin : path of the rows, which goes into the metadata of a Parquet file with `Encoded.work_sha256`
    """
    require_columns(hasher, source)
    path = Path(output)
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".parquet"):
        raise ValueError(f"{path}: codes are written as .npy or .parquet, got {path.suffix or 'no ending'!r}")
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be a positive integer, got {batch_rows!r}")
    size = default_batch_rows(source.n_features) if batch_rows is None else batch_rows
    n, work, before = source.n_rows, WorkDigest(hasher, identity), source.path.stat()
    n_bits = int(hasher.n_bits)
    with Shards(path, -(-n_bits // 8)) as shards:
        resumed = done = 0
        digest = b""
        if suffix == ".parquet":
            read_ids(source)  # refuses missing and repeated ids before the work
        columns = digest_beside(source)
        for batch in source.batches(size):
            rows = batch.shape[0]
            digest = work.add(batch)
            if shards.take_up(rows, digest):
                resumed += rows
            else:
                shards.store(_encoded(hasher, batch, source, done), digest)
            done += rows
            tell(progress, f"encoding {source.name}", done, n)
        digest = _joined(digest, columns)
        _require_unchanged(before, source)
        with replacing(path) as beside:
            if suffix == ".npy":
                write_npy(beside, shards.codes(), n, n_bits)
            else:
                made_from = Origin(origin, first_id, digest.hex()) if origin else None
                write_parquet(beside, shards.codes(), source, n_bits, first_id, work.model, model_name, made_from)
            with open(beside, "rb") as file:
                written = hashlib.file_digest(file, "sha256").hexdigest()
            _require_unchanged(before, source)  # ids and kept columns were read again
        shards.discard()
    carried = source.columns.id if suffix == ".parquet" else None
    return Encoded(n, resumed, n_bits, path.stat().st_size, written, digest.hex(), carried)


def work_digest(hasher: Any, source: RowSource, identity: str = "") -> str:
    """`Encoded.work_sha256` without encoding: rows, ids and kept columns are read and hashed."""
    work, digest = WorkDigest(hasher, identity), b""
    for batch in source.batches(default_batch_rows(source.n_features)):
        digest = work.add(batch)
    return _joined(digest, digest_beside(source)).hex()


def _joined(rows: bytes, columns: bytes) -> bytes:
    """One digest of the rows and of the columns beside them. Shards hold codes only, so they depend on the first."""
    return hashlib.sha256(rows + columns).digest() if columns else rows


def default_batch_rows(n_features: int) -> int:
    """Rows that take 64 MB as float64, at most 65,536.

    >>> default_batch_rows(784), default_batch_rows(2)
    (10699, 65536)
    """
    return min(MOST_BATCH_ROWS, max(1, BATCH_BYTES // (8 * n_features)))


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
        _require_names(source, list(learned), "and the model learned from {}")
    elif like is not None:
        advice = "the model has no feature names, so all files need the same columns in the same order"
        _require_names(source, like.names, f"and in {like.name} it is {{}}; {advice}")


def require_same_names(source: RowSource, like: RowSource) -> None:
    """Refuse rows whose named columns are not those of ``like``, in the same order."""
    _require_names(source, like.names, f"and in {like.name} it is {{}}")


def _require_names(source: RowSource, names: Sequence[str] | None, other: str) -> None:
    for column, (here, there) in enumerate(zip(source.names or (), names or (), strict=False)):
        if here != there:
            raise ValueError(f"{source.name}: its column {column} is {here!r}, " + other.format(repr(there)))


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
