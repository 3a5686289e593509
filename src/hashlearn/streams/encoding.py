"""Rows of a file → packed codes: into an array, or into a file, shard by shard and resumable.

A shard is one batch of rows. Its codes are stored, under a checksum, in a folder beside the output as soon as they are
known; when all are there they are put together in one file, which takes its place at once. After a kill the same call
goes on where the last one stopped. The output is a matter of the codes alone: batches and kills leave no trace in it.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hashlearn
from hashlearn.streams.code_files import npy_bytes, parquet_bytes
from hashlearn.streams.rows import RowSource
from hashlearn.streams.shards import Shards
from hashlearn.system.atomic import write_atomically

BATCH_BYTES = 2**26  # of features in float64
MOST_BATCH_ROWS = 65_536

Progress = Callable[[int, int], Any]


class Encoded(NamedTuple):
    """What `encode_file` did."""

    rows: int
    resumed_rows: int  # of them found, from a call that did not end
    n_bits: int
    bytes: int  # of the file
    sha256: str


def encode_rows(
    hasher: Any, source: RowSource, *, batch_rows: int | None = None, progress: Progress | None = None
) -> NDArray[np.uint8]:
    """Packed codes of all rows, in memory; the rows themselves come in batches."""
    require_columns(hasher, source)
    size = default_batch_rows(source.n_features) if batch_rows is None else batch_rows
    codes = np.empty((source.n_rows, -(-hasher.n_bits // 8)), np.uint8)
    done = 0
    for batch in source.batches(size):
        codes[done : done + batch.shape[0]] = _encoded(hasher, batch, source, done)
        done += batch.shape[0]
        if progress is not None:
            progress(done, source.n_rows)
    return codes


def encode_file(
    hasher: Any,
    source: RowSource,
    output: str | os.PathLike[str],
    *,
    batch_rows: int | None = None,
    identity: str = "",
    first_id: int = 0,
    progress: Progress | None = None,
) -> Encoded:
    """Write the packed codes of all rows to ``output``.

    Parameters
    ----------
    hasher : fitted
    source : rows, from `open_rows`
    output : an npy file, uint8 (n, ⌈n_bits/8⌉), or a Parquet file with columns id (the row) and code
    batch_rows : rows encoded at a time, and kept when the next ones are interrupted; None: 64 MB of features
    identity : tells the hasher from others, such as the SHA-256 of its file; shards of another one are not taken up
    first_id : of the first row in a Parquet file, where the rows are a part of a larger whole
    progress : called with (rows done, rows in all)
    """
    require_columns(hasher, source)
    path = Path(output)
    whole = {".npy": npy_bytes, ".parquet": parquet_bytes}.get(path.suffix.lower())
    if whole is None:
        raise ValueError(f"{path}: codes are written as .npy or .parquet, got {path.suffix or 'no ending'!r}")
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be a positive integer, got {batch_rows!r}")
    size = default_batch_rows(source.n_features) if batch_rows is None else batch_rows
    n, width, before = source.n_rows, -(-hasher.n_bits // 8), source.identity()
    work = {"hasher": identity, "input": before, "n_bits": hasher.n_bits, "version": hashlearn.__version__}
    with Shards(path, work, n, width, size) as shards:
        resumed = done = shards.n_rows_done()
        try:
            for first_shard, last_shard in shards.missing():
                first, last = first_shard * size, min(last_shard * size, n)
                for shard, batch in enumerate(source.batches(size, first, last), start=first_shard):
                    shards.store(shard, _encoded(hasher, batch, source, shard * size))
                    done += batch.shape[0]
                    if progress is not None:
                        progress(done, n)
            if source.identity() != before:
                raise ValueError(f"{source.name}: changed while it was encoded; run again when it is complete")
        except ValueError:  # the input must change before this can end, and then all shards are another input's
            shards.discard()
            raise
        digest, counted = hashlib.sha256(), _Counted()
        write_atomically(path, _watched(whole(shards.codes(), n, hasher.n_bits, first_id), digest, counted))
        shards.discard()
    return Encoded(n, resumed, int(hasher.n_bits), counted.bytes, digest.hexdigest())


def default_batch_rows(n_features: int) -> int:
    """Rows that take 64 MB as float64, at most 65,536.

    >>> default_batch_rows(784), default_batch_rows(2)
    (10699, 65536)
    """
    return min(MOST_BATCH_ROWS, max(1, BATCH_BYTES // (8 * n_features)))


def require_columns(hasher: Any, source: RowSource) -> None:
    """Refuse rows with other columns than those that the hasher learned from."""
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


class _Counted:
    bytes = 0


def _watched(parts: Iterator[Any], digest: Any, counted: _Counted) -> Iterator[Any]:
    for part in parts:
        digest.update(part)
        counted.bytes += memoryview(part).nbytes
        yield part
