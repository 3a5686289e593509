"""Rows of a file → packed codes, in an array or in a file; writing a file can be resumed.

A shard is one batch of rows. Its codes are stored with a checksum in a folder beside the output as soon as they are
computed. When all shards are complete they are joined in one file, which replaces the output in one step. After a kill
the same call reads the rows again and encodes only those without stored codes: shards are identified by the content of
the rows and of the hasher. The output does not depend on the batch size or on interruptions.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import Hashed, write_atomically
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.search.stores.exports import to_arrow
from hashlearn.streams.rows import RowSource, rebatched
from hashlearn.streams.shards import Shards, WorkDigest

BATCH_BYTES = 2**26  # of features in float64
MOST_BATCH_ROWS = 65_536
GROUP_ROWS = 65_536  # of a Parquet row group, for every size of batches


class Encoded(NamedTuple):
    """The result of `encode_file`."""

    rows: int
    resumed_rows: int  # rows whose codes an interrupted call had stored
    n_bits: int
    bytes: int  # of the file
    sha256: str
    work_sha256: str  # of the hasher and all rows; equal digests mean equal codes


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


def encode_file(
    hasher: Any,
    source: RowSource,
    output: str | os.PathLike[str],
    *,
    batch_rows: int | None = None,
    identity: str = "",
    first_id: int = 0,
    progress: ProgressCallback | None = None,
    finished: Callable[[Encoded], Any] | None = None,
) -> Encoded:
    """Write the packed codes of all rows to ``output``.

    Parameters
    ----------
    hasher : fitted
    source : rows, from `open_rows`
    output : an npy file, uint8 (n, ⌈n_bits/8⌉), or a Parquet file with columns id (the row) and code. The metadata of a
        Parquet file hold the hasher's digest
    batch_rows : rows encoded and stored at a time; None: 64 MB of features
    identity : a name for a hasher that cannot be saved, such as one with a classifier of your own. Without a name, a
        later call does not reuse its shards. Every other hasher is identified by its content
    first_id : id of the first row in a Parquet file, if the rows are a part of a larger data set
    progress : called with a `hashlearn.core.progress.Progress` after each batch
    finished : called with the result when the file is complete, just before it replaces ``output``
    """
    require_columns(hasher, source)
    path = Path(output)
    whole = {".npy": npy_bytes, ".parquet": parquet_bytes}.get(path.suffix.lower())
    if whole is None:
        raise ValueError(f"{path}: codes are written as .npy or .parquet, got {path.suffix or 'no ending'!r}")
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be a positive integer, got {batch_rows!r}")
    size = default_batch_rows(source.n_features) if batch_rows is None else batch_rows
    n, work, before = source.n_rows, WorkDigest(hasher, identity), source.path.stat()
    with Shards(path, -(-hasher.n_bits // 8)) as shards:
        resumed = done = 0
        digest = b""
        try:
            for batch in source.batches(size):
                rows = batch.shape[0]
                digest = work.add(batch)
                if shards.take_up(rows, digest):
                    resumed += rows
                else:
                    shards.store(_encoded(hasher, batch, source, done), digest)
                done += rows
                tell(progress, f"encoding {source.name}", done, n)
            if _changed(before, source, lambda: work_digest(hasher, source, identity) == digest.hex()):
                raise ValueError(f"{source.name}: changed while it was encoded; run again when it is complete")
        except ValueError:  # the input must change, so these shards are useless
            shards.discard()
            raise
        written = Hashed()

        def result() -> Encoded:
            return Encoded(n, resumed, int(hasher.n_bits), written.bytes, written.digest.hexdigest(), digest.hex())

        parts = written.watched(whole(shards.codes(), n, hasher.n_bits, first_id, work.model))
        write_atomically(path, parts, check=lambda _: finished(result()) if finished is not None else None)
        shards.discard()
    return result()


def work_digest(hasher: Any, source: RowSource, identity: str = "") -> str:
    """`Encoded.work_sha256` without encoding: the rows are read and hashed."""
    work, digest = WorkDigest(hasher, identity), b""
    for batch in source.batches(default_batch_rows(source.n_features)):
        digest = work.add(batch)
    return digest.hex()


def default_batch_rows(n_features: int) -> int:
    """Rows that take 64 MB as float64, at most 65,536.

    >>> default_batch_rows(784), default_batch_rows(2)
    (10699, 65536)
    """
    return min(MOST_BATCH_ROWS, max(1, BATCH_BYTES // (8 * n_features)))


def require_columns(hasher: Any, source: RowSource) -> None:
    """Refuse rows whose columns differ from those that the hasher learned from."""
    if source.n_features != hasher.n_features_in_:
        raise ValueError(
            f"{source.name}: has {source.n_features} feature(s) a row, the model takes {hasher.n_features_in_}"
        )
    learned = getattr(hasher, "feature_names_in_", None)
    if learned is None or source.names is None:
        return
    for column, (here, there) in enumerate(zip(source.names, learned, strict=True)):
        if here != there:
            raise ValueError(f"{source.name}: its column {column} is {here!r}, and the model learned from {there!r}")


def _encoded(hasher: Any, batch: Any, source: RowSource, first: int) -> NDArray[np.uint8]:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared
            codes: NDArray[np.uint8] = hasher.encode(batch)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source.name}: rows {first} to {first + batch.shape[0] - 1}: {error}") from error
    return codes


def _changed(before: os.stat_result, source: RowSource, has_same_rows: Callable[[], bool]) -> bool:
    """Whether the file changed. If only its ctime did (a new owner, mode or link), the rows are compared."""
    after = source.path.stat()
    if any(getattr(after, part) != getattr(before, part) for part in ("st_dev", "st_ino", "st_size", "st_mtime_ns")):
        return True
    return after.st_ctime_ns != before.st_ctime_ns and not has_same_rows()


def npy_bytes(
    codes: Iterable[NDArray[np.uint8]], n_rows: int, n_bits: int, first_id: int = 0, model: str | None = None
) -> Iterator[Any]:
    """An npy file, uint8 (n_rows, ⌈n_bits/8⌉). It has no place for ids and the model's digest."""
    header = io.BytesIO()
    shape = (n_rows, -(-n_bits // 8))
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    yield header.getvalue()
    for part in codes:
        yield part.tobytes()


def parquet_bytes(
    codes: Iterable[NDArray[np.uint8]], n_rows: int, n_bits: int, first_id: int = 0, model: str | None = None
) -> Iterator[Any]:
    """A Parquet file as `hashlearn.search.stores.exports.write_parquet` writes it; ids count from first_id."""
    parquet = require("pyarrow.parquet", "parquet", "writing Parquet files")
    sink, writer, first = _Sink(), None, first_id
    for group in rebatched(codes, GROUP_ROWS):
        table = to_arrow(group, np.arange(first, first + len(group)), n_bits, model=model)
        if writer is None:
            writer = parquet.ParquetWriter(sink, table.schema)
        writer.write_table(table, row_group_size=GROUP_ROWS)
        first += len(group)
        yield sink.taken()
    if writer is not None:
        writer.close()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A write-only file whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._before = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self._before + len(self._held)

    def taken(self) -> bytes:
        data, self._held = bytes(self._held), bytearray()
        self._before += len(data)
        return data
