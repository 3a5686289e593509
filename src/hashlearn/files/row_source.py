"""`RowSource`: the rows of a file as a shape and as batches in order, each checked to be finite."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.rows import require_finite
from hashlearn.search.ids import IdArray

READ_ROWS = 65_536


class Columns(NamedTuple):
    """The columns of a table by what they are for."""

    features: list[str]
    id: str | None  # None: rows are numbered
    keep: tuple[str, ...]
    unused: list[str]

    @property
    def extra(self) -> list[str]:
        """The id column and those that are carried along."""
        return [*([] if self.id is None else [self.id]), *self.keep]


class RowSource(ABC):
    """Rows of one file, or of one part of it."""

    columns = Columns([], None, (), [])

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

    def read(self) -> Any:
        """All rows, in memory."""
        batches = list(self.batches(READ_ROWS))
        if len(batches) == 1:
            return batches[0]
        return sp.vstack(batches, format="csr") if sp.issparse(batches[0]) else np.concatenate(batches)

    def pick(self, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[Any]]:
        """These rows, which ascend, in arrays of ``size`` rows. Only the parts of the file that hold them are read."""
        done = 0
        for batch in rebatched(self._picked(rows, size), size):
            require_finite(batch, f"{self.name}:", rows[done:])
            done += len(batch)
            yield batch

    def read_ids(self, *, distinct: bool = True) -> IdArray:
        """The ids of all rows, in memory: those of the id column, or row numbers.

        A row without an id is refused by its number, and so is an id that occurs twice, unless ``distinct`` is False.
        """
        return np.arange(self.n_rows)

    def extra_columns(self, size: int) -> Iterator[Any]:
        """The id column and the kept columns, as tables of Arrow with ``size`` rows, the last one shorter."""
        return iter(())

    @abstractmethod
    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        """Rows ``first`` to ``last`` in order, in arrays of ``size`` rows, the last one shorter."""

    @abstractmethod
    def _picked(self, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[Any]]:
        """These rows, which ascend, in dense arrays of any sizes."""


def require_file(path: Path) -> None:
    """Refuse a name that is not one of a regular file; a pipe could keep a reader waiting."""
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path}: is not a regular file")


def rebatched(pieces: Iterable[Any], size: int, join: Callable[[list[Any]], Any] = np.concatenate) -> Iterator[Any]:
    """The same rows in arrays of ``size`` rows each, the last one shorter.

    >>> [part.tolist() for part in rebatched([np.arange(3), np.arange(3, 8)], 4)]
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    parts: list[Any] = []
    count = 0
    for piece in pieces:
        while len(piece):
            part, piece = piece[: size - count], piece[size - count :]
            parts.append(part)
            count += len(part)
            if count == size:
                yield parts[0] if len(parts) == 1 else join(parts)
                parts, count = [], 0
    if parts:
        yield join(parts)
