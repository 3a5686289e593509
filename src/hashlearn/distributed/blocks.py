"""Data sets as a list of row blocks of known lengths, each of which a worker can load by itself.

A block is at most ``chunk_rows`` rows of one file, one slice of an array, or one partition of a Dask collection. Codes
depend on where the blocks are cut, and on nothing else of how the rows are stored: see `hashlearn.distributed.fit`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.core.packages import require
from hashlearn.core.rows import require_finite
from hashlearn.files import open_rows
from hashlearn.files.rows import described, require_matrix

BLOCK_BYTES = 2**26  # of float32 features, unless chunk_rows says otherwise
FILES = (".parquet", ".npy")
TOO_FEW = "at least two rows and one column are needed to learn from"


@dataclass(frozen=True)
class FileBlock:
    """Rows first … last of a Parquet or npy file."""

    path: str
    first: int
    last: int
    names: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.path}, rows {self.first} to {self.last - 1}"

    def load(self) -> Any:
        """The rows, in memory."""
        (rows,) = open_rows(self.path, names=self.names).batches(self.last - self.first, self.first, self.last)
        return rows


@dataclass(frozen=True, eq=False)
class ArrayBlock:
    """Some rows of an array in the memory of whoever asked for the fit."""

    rows: NDArray[Any]
    name: str

    def load(self) -> Any:
        """The rows."""
        return self.rows


@dataclass(frozen=True, eq=False)
class LazyBlock:
    """One piece of a Dask collection; the scheduler computes it where it is needed."""

    delayed: Any
    name: str

    def load(self) -> Any:
        """The rows, computed here."""
        return self.delayed.compute(scheduler="synchronous")


Block = FileBlock | ArrayBlock | LazyBlock


@dataclass(frozen=True, eq=False)
class Table:
    """Blocks, and what is known of them before anything is read."""

    blocks: tuple[Block, ...]
    lengths: tuple[int, ...]
    n_features: int
    names: tuple[str, ...] | None = None

    @property
    def n(self) -> int:
        """Rows in all."""
        return sum(self.lengths)

    def edges(self) -> Iterator[tuple[int, int]]:
        """First row and one past the last, of every block."""
        first = 0
        for length in self.lengths:
            yield first, first + length
            first += length

    def drawn(self, count: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """For every block the rows of a random sample, ascending; all of them if there are no more than ``count``."""
        rows = np.arange(self.n) if self.n <= count else np.sort(rng.choice(self.n, count, replace=False))
        return [rows[np.searchsorted(rows, a) : np.searchsorted(rows, b)] - a for a, b in self.edges()]


def as_table(data: Any, chunk_rows: int | Sequence[int] | None = None, columns: Sequence[str] | None = None) -> Table:
    """Blocks of an array, a Dask array or dataframe, or Parquet and npy files (one, a folder, a pattern, a list).

    ``chunk_rows`` is the most rows of a block (None: 64 MB of float32), or for an array the length of each; a Dask
    collection keeps its own chunks. ``columns`` names the features of Parquet files.

    >>> as_table(np.zeros((5, 2)), chunk_rows=2).lengths
    (2, 2, 1)
    """
    wanted = list(columns or ())
    for name in wanted:
        if wanted.count(name) > 1:
            raise ValueError(f"columns must name each column once, got {name!r} {wanted.count(name)} times")
    if _names_files(data):
        return _of_files(found_files(data), chunk_rows, columns)
    if type(data).__module__.partition(".")[0] in ("dask", "dask_expr"):
        return _of_dask(data, columns)
    array = np.asarray(data)
    require_matrix(array.shape, array.dtype, "data")
    if array.size == 0:
        raise ValueError(f"data has shape {array.shape}; {TOO_FEW}")
    lengths = _cut(len(array), array.shape[1], chunk_rows)
    ends = np.cumsum(lengths)
    blocks = tuple(
        ArrayBlock(array[end - length : end], f"data, rows {end - length} to {end - 1}")
        for length, end in zip(lengths, ends.tolist(), strict=True)
    )
    return _table(blocks, lengths, array.shape[1], None)


def found_files(data: Any) -> list[Path]:
    """The files of a path, folder, pattern or list of paths, sorted by name except in a list.

    Parquet files without rows, which Spark writes for empty partitions, are left out.
    """
    files = _named_files(data) if isinstance(data, str | os.PathLike) else [Path(item) for item in data]
    with_rows = [file for file in files if not has_no_rows(file)]
    if files and not with_rows:
        raise ValueError(f"{files[0]}: has no rows" + (f", and so has none of {len(files)} files" if files[1:] else ""))
    return with_rows


def has_no_rows(file: Path) -> bool:
    """Whether this is a whole Parquet file with no rows in it."""
    if file.suffix.lower() != ".parquet" or not file.is_file():
        return False
    parquet = require("pyarrow.parquet", "parquet", "reading Parquet files")
    broken = require("pyarrow", "parquet", "reading Parquet files").ArrowException
    try:
        return parquet.read_metadata(file).num_rows == 0
    except (broken, OSError):  # whoever opens the file says what is wrong
        return False


def _named_files(data: str | os.PathLike[str]) -> list[Path]:
    address = os.fspath(data)
    path = Path(address)
    if path.is_dir():
        files = sorted(
            file for file in path.rglob("*") if file.suffix in FILES and not file.name.startswith((".", "_"))
        )
    else:
        files = [path] if path.exists() else sorted(map(Path, glob.glob(address, recursive=True)))
    if not files:
        raise FileNotFoundError(f"{address}: no Parquet or npy file is there")
    return files


def checked_rows(rows: Any, name: str, n_features: int) -> NDArray[Any]:
    """Rows as finite float32 or float64, C-contiguous; what is wrong with them is said with the block's name."""
    array = rows.to_numpy() if hasattr(rows, "to_numpy") else np.asarray(rows)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name}: holds {described(array.dtype)}; features must be numbers")
    if array.ndim != 2 or array.shape[1] != n_features:
        raise ValueError(f"{name}: has shape {array.shape}; {n_features} features a row were expected")
    array = np.ascontiguousarray(array, dtype=np.float32 if array.dtype == np.float32 else np.float64)
    largest = max(array.max(), -array.min()) if array.size else 0.0
    if not np.isfinite(largest):
        require_finite(array, f"{name}:")
    if largest > LARGEST_FEATURE:
        raise ValueError(f"{name}: has an entry of size {largest:.3g}, whose square overflows; scale the features")
    return array


def _names_files(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | os.PathLike) for item in data)
    return isinstance(data, str | os.PathLike)


def _table(blocks: Sequence[Block], lengths: Sequence[int], n_features: int, names: tuple[str, ...] | None) -> Table:
    kept = [(block, int(length)) for block, length in zip(blocks, lengths, strict=True) if length]
    if sum(length for _, length in kept) < 2 or n_features < 1:
        raise ValueError(f"data: {TOO_FEW}")
    return Table(tuple(block for block, _ in kept), tuple(length for _, length in kept), n_features, names)


def _cut(n: int, n_features: int, chunk_rows: int | Sequence[int] | None) -> list[int]:
    if chunk_rows is None:
        chunk_rows = max(1, BLOCK_BYTES // (4 * n_features))
    if isinstance(chunk_rows, int | np.integer) and not isinstance(chunk_rows, bool):
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be positive, got {chunk_rows}")
        return [min(int(chunk_rows), n - first) for first in range(0, n, int(chunk_rows))]
    lengths = [int(length) for length in chunk_rows]  # type: ignore[union-attr]
    if sum(lengths) != n or min(lengths, default=0) < 0:
        raise ValueError(f"chunk_rows must be lengths that add up to the {n} rows of data, got a sum of {sum(lengths)}")
    return lengths


def _of_files(files: Sequence[Path], chunk_rows: Any, columns: Sequence[str] | None) -> Table:
    if not (chunk_rows is None or isinstance(chunk_rows, int)):
        raise ValueError("chunk_rows must be one number for files, each of which is cut by itself")
    wanted = None if columns is None else tuple(columns)
    blocks: list[Block] = []
    lengths: list[int] = []
    first_source = open_rows(files[0], names=wanted)
    names = first_source.names or wanted
    for path in files:
        source = first_source if path is files[0] else open_rows(path, names=names)
        if source.n_features != first_source.n_features or (source.names and source.names != first_source.names):
            raise ValueError(f"{path}: its columns are not those of {files[0]}")
        if wanted is not None and source.names is not None and source.names != wanted:
            raise ValueError(f"{path}: has no columns {', '.join(wanted)}")
        start = 0
        for length in _cut(source.n_rows, source.n_features, chunk_rows):
            blocks.append(FileBlock(str(path.absolute()), start, start + length, names))
            lengths.append(length)
            start += length
    return _table(blocks, lengths, first_source.n_features, first_source.names)


def _of_dask(data: Any, columns: Sequence[str] | None) -> Table:
    if hasattr(data, "to_dask_array"):  # a dataframe
        frame = data if columns is None else data[list(columns)]
        lengths = [int(length) for length in frame.map_partitions(len).compute()]
        pieces, n_features, names = frame.to_delayed(), frame.shape[1], tuple(map(str, frame.columns))
    else:
        if data.ndim != 2:
            raise ValueError(f"data has {data.ndim} dimension(s); features must have 2, a row a sample")
        if any(np.isnan(length) for length in data.chunks[0]):
            data = data.compute_chunk_sizes()
        data = data.rechunk({1: -1})
        lengths, pieces = list(data.chunks[0]), data.to_delayed()[:, 0]
        n_features, names = data.shape[1], None
    blocks = [LazyBlock(piece, f"chunk {number} of data") for number, piece in enumerate(pieces)]
    return _table(blocks, lengths, n_features, names)
