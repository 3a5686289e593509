"""`RowSource`: the rows of a file as a shape and as batches in order, each checked to be finite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.rows import require_finite
from hashlearn.files.columns import Columns, plain_table

NUMBERS = "fiub"  # kinds of dtype that can be features
READ_ROWS = 65_536
PICKED_NUMBERS = 4_000_000  # read at a time where only some rows are wanted


class RowSource(ABC):
    """Rows of one file, or of one part of it. Subclasses know how to read rows ``first`` to ``last`` in pieces."""

    columns = Columns([], None, ())  # of a table: features, ids, and those that are carried along

    def __init__(self, path: Path, part: str | None, shape: tuple[int, int], names: tuple[str, ...] | None = None):
        self.path = path
        self.part = part
        self.n_rows, self.n_features = shape
        self.names = names  # of the columns, where the file has them
        if self.n_rows == 0 or self.n_features == 0:
            raise ValueError(f"{self.name}: has shape {shape}; at least one row and one column are needed")

    @property
    def name(self) -> str:
        """For messages: the file, and the part of it."""
        return str(self.path) if self.part is None else f"{self.path}::{self.part}"

    def batches(self, size: int, first: int = 0, last: int | None = None) -> Iterator[Any]:
        """Rows ``first`` to ``last`` in arrays of ``size`` rows, the last one shorter; NaN and infinity are refused."""
        last = self.n_rows if last is None else last
        for batch in self._pieces(size, first, last):
            require_finite(batch, f"{self.name}:", range(first, last))
            first += batch.shape[0]
            yield batch
        if first != last:
            raise ValueError(f"{self.name}: has {first} rows, and its header says {last}: it is damaged")

    def beside(self, size: int) -> Iterator[Any]:
        """The id column and the kept columns, as tables of Arrow with ``size`` rows, the last one shorter."""
        return iter(())

    def read(self) -> Any:
        """All rows, in memory."""
        batches = list(self.batches(READ_ROWS))
        if len(batches) == 1:
            return batches[0]
        return sp.vstack(batches, format="csr") if sp.issparse(batches[0]) else np.concatenate(batches)

    def pick(self, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[Any]]:
        """These rows, which ascend, in arrays of ``size`` rows. Only the parts of the file that hold them are read."""
        done = 0
        for batch in rebatched(self._picked(rows), size):
            require_finite(batch, f"{self.name}:", rows[done:])
            done += len(batch)
            yield batch

    def _picked(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        at_once = max(1, PICKED_NUMBERS // self.n_features)
        for begin, end in self._parts():
            wanted = rows[slice(*np.searchsorted(rows, (begin, end)))]
            first = begin
            for batch in self._pieces(at_once, first, int(wanted[-1]) + 1) if len(wanted) else ():
                found = batch[wanted[slice(*np.searchsorted(wanted, (first, first + batch.shape[0])))] - first]
                first += batch.shape[0]
                yield found.toarray() if sp.issparse(found) else found

    def _parts(self) -> list[tuple[int, int]]:
        """First row and end of each part of the file that can be read without the others."""
        return [(0, self.n_rows)]

    @abstractmethod
    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        """Arrays (size, n_features) of rows, in order."""


class MatrixRows(RowSource):
    """Rows of an array, which may be memory-mapped, or of a CSR matrix."""

    def __init__(self, path: Path, part: str | None, rows: Any) -> None:
        require_matrix(rows.shape, rows.dtype, str(path) if part is None else f"{path}::{part}")
        super().__init__(path, part, rows.shape)
        self._rows = rows

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        for at in range(first, last, size):
            piece = self._rows[at : min(at + size, last)]
            yield piece if sp.issparse(piece) else np.array(piece, order="C")

    def _picked(self, rows: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        size = max(1, PICKED_NUMBERS // self.n_features)
        for at in range(0, len(rows), size):
            found = self._rows[rows[at : at + size]]
            yield found.toarray() if sp.issparse(found) else np.asarray(found)


def require_file(path: Path) -> None:
    """Refuse a name that is not one of a regular file; a pipe could keep a reader waiting."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path}: is not a regular file")


def require_matrix(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Refuse arrays that cannot be rows of features."""
    if dtype.kind not in NUMBERS:
        raise ValueError(f"{name}: holds {described(dtype)}; features must be numbers")
    if len(shape) != 2:
        advice = " (one row? save X.reshape(1, -1))" if len(shape) == 1 else ""
        raise ValueError(f"{name}: has shape {tuple(shape)}; features must have 2 dimensions, a row a sample{advice}")


def described(dtype: np.dtype[Any]) -> str:
    """A dtype in words.

    >>> described(np.dtype("U7")), described(np.dtype(complex))
    ('text', 'complex numbers')
    """
    words = {"U": "text", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "spans of time", "V": "records"}
    return words.get(dtype.kind, f"dtype {dtype}")


def tables_of(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """The rows of batches of Arrow in tables of ``size`` rows each, the last one shorter."""
    arrow = require("pyarrow", "parquet", "columns of a table")
    tables = (arrow.Table.from_batches([batch]) for batch in batches)
    return map(plain_table, rebatched(tables, size, arrow.concat_tables))


def rebatched(pieces: Iterable[Any], size: int, join: Callable[[list[Any]], Any] = np.concatenate) -> Iterator[Any]:
    """The same rows in arrays of ``size`` rows each, the last one shorter.

    >>> [part.tolist() for part in rebatched([np.arange(3), np.arange(3, 8)], 4)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    held: list[Any] = []
    count = 0
    for piece in pieces:
        while len(piece):
            part, piece = piece[: size - count], piece[size - count :]
            held.append(part)
            count += len(part)
            if count == size:
                yield held[0] if len(held) == 1 else join(held)
                held, count = [], 0
    if held:
        yield join(held)
