"""Data sets as a list of row blocks of known lengths, each of which a worker can load by itself.

A block is at most ``chunk_rows`` rows of one file, one slice of an array, or one partition of a Dask collection. Codes
depend on where the blocks are cut, and on nothing else of how the rows are stored: see `hashlearn.distributed.fit`.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.core.packages import require
from hashlearn.core.rows import require_finite
from hashlearn.files import open_rows
from hashlearn.files.numpy_files import described, require_matrix

BLOCK_BYTES = 2**26  # of float32 features, unless chunk_rows says otherwise
FILES = (".parquet", ".npy")
TOO_FEW = "at least two rows and one column are needed to learn from"


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that a worker can read by itself."""

    name: str  # for messages
    n_rows: int
    n_features: int
    read: Callable[[], Any]
    delayed: Any = None  # one piece of a Dask collection, which the scheduler can compute where it is needed

    def load(self) -> NDArray[Any]:
        """The rows, checked."""
        return checked_rows(self.read(), self.name, self.n_features)


@dataclass(frozen=True, eq=False)
class Table:
    """Blocks, and the names of their columns where there are any."""

    blocks: tuple[Block, ...]
    names: tuple[str, ...] | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of every block."""
        return tuple(block.n_rows for block in self.blocks)

    @property
    def n(self) -> int:
        """Rows in all."""
        return sum(self.lengths)

    @property
    def n_features(self) -> int:
        """Columns of every block."""
        return self.blocks[0].n_features

    def edges(self) -> Iterator[tuple[int, int]]:
        """First row and one past the last, of every block."""
        return pairwise(accumulate(self.lengths, initial=0))

    def sample(self, count: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
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
    for name, count in Counter(columns or ()).items():
        if count > 1:
            raise ValueError(f"columns must name each column once, got {name!r} {count} times")
    items, names = data if isinstance(data, list | tuple) and len(data) else [data], None
    if all(isinstance(item, str | os.PathLike) for item in items):
        blocks, names = _of_files(list_files(data), chunk_rows, columns)
    elif type(data).__module__.partition(".")[0] in ("dask", "dask_expr"):
        blocks, names = _of_dask(data, columns)
    else:
        array = np.asarray(data)
        require_matrix(array.shape, array.dtype, "data")
        if array.size == 0:
            raise ValueError(f"data has shape {array.shape}; {TOO_FEW}")
        width = array.shape[1]
        blocks = [
            Block(f"data, rows {first} to {last - 1}", last - first, width, partial(identity, array[first:last]))
            for first, last in _cuts(len(array), width, chunk_rows)
        ]
    table = Table(tuple(block for block in blocks if block.n_rows), names)
    if table.n < 2 or table.n_features < 1:
        raise ValueError(f"data: {TOO_FEW}")
    return table


def list_files(data: Any) -> list[Path]:
    """The files of a path, folder, pattern or list of paths, sorted by name except in a list.

    Parquet files without rows, which Spark writes for empty partitions, are left out.
    """
    if isinstance(data, list | tuple):
        files = [Path(item) for item in data]
    elif Path(data).is_dir():
        files = sorted(file for file in Path(data).rglob("*") if file.suffix in FILES and file.name[0] not in "._")
    else:
        files = [Path(data)] if Path(data).exists() else sorted(map(Path, glob.glob(os.fspath(data), recursive=True)))
    if not files:
        raise FileNotFoundError(f"{data}: no Parquet or npy file is there")
    with_rows = [file for file in files if not has_no_rows(file)]
    if not with_rows:
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


def _cuts(n: int, n_features: int, chunk_rows: int | Sequence[int] | None) -> Iterator[tuple[int, int]]:
    """First row and one past the last, of every block."""
    if chunk_rows is None:
        chunk_rows = max(1, BLOCK_BYTES // (4 * n_features))
    if isinstance(chunk_rows, int | np.integer) and not isinstance(chunk_rows, bool):
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be positive, got {chunk_rows}")
        return pairwise([*range(0, n, int(chunk_rows)), n])
    lengths = [int(length) for length in chunk_rows]  # type: ignore[union-attr]
    if sum(lengths) != n or min(lengths, default=0) < 0:
        raise ValueError(f"chunk_rows must be lengths that add up to the {n} rows of data, got a sum of {sum(lengths)}")
    return pairwise(accumulate(lengths, initial=0))


def _of_files(
    files: Sequence[Path], chunk_rows: Any, columns: Sequence[str] | None
) -> tuple[list[Block], tuple[str, ...] | None]:
    if not (chunk_rows is None or isinstance(chunk_rows, int)):
        raise ValueError("chunk_rows must be one number for files, each of which is cut by itself")
    columns = None if columns is None else tuple(columns)
    like = open_rows(files[0], names=columns)
    if columns is not None and like.names not in (None, columns):
        raise ValueError(f"{files[0]}: has no columns {', '.join(columns)}")
    blocks = []
    for file in files:
        source = like if file is files[0] else open_rows(file, names=like.names)
        if source.n_features != like.n_features or (source.names and source.names != like.names):
            raise ValueError(f"{file}: its columns are not those of {files[0]}")
        for first, last in _cuts(source.n_rows, source.n_features, chunk_rows):
            read = partial(_rows_of_file, str(file.absolute()), first, last, like.names)
            blocks.append(Block(f"{file}, rows {first} to {last - 1}", last - first, source.n_features, read))
    return blocks, like.names


def _of_dask(data: Any, columns: Sequence[str] | None) -> tuple[list[Block], tuple[str, ...] | None]:
    names = None
    if hasattr(data, "to_dask_array"):  # a dataframe
        data = data if columns is None else data[list(columns)]
        lengths, pieces = data.map_partitions(len).compute(), data.to_delayed()
        names = tuple(map(str, data.columns))
    else:
        if data.ndim != 2:
            raise ValueError(f"data has {data.ndim} dimension(s); features must have 2, a row a sample")
        if any(np.isnan(length) for length in data.chunks[0]):
            data = data.compute_chunk_sizes()
        data = data.rechunk({1: -1})
        lengths, pieces = data.chunks[0], data.to_delayed()[:, 0]
    width = data.shape[1]
    blocks = [
        Block(f"chunk {number} of data", int(length), width, partial(piece.compute, scheduler="synchronous"), piece)
        for number, (length, piece) in enumerate(zip(lengths, pieces, strict=True))
    ]
    return blocks, names


def identity(value: Any) -> Any:
    """Return the value. Submitted to Dask once, so that tasks can share its future."""
    return value


def _rows_of_file(path: str, first: int, last: int, names: Sequence[str] | None) -> Any:
    (rows,) = open_rows(path, names=names).batches(last - first, first, last)
    return rows
