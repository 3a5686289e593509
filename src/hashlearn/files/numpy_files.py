"""npy and npz files, which NumPy reads without unpickling anything, and CSR matrices of `scipy.sparse.save_npz`.

``part`` names an array of an npz; None stands for an npy file. An npy is memory-mapped, so it may be larger than
memory. Arrays of an npz are read whole. Every part of a sparse matrix is checked before scipy indexes with it.
"""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.checks import checked_csr
from hashlearn.files.row_source import RowSource

NUMBERS = "fiub"  # kinds of dtype that can be features
SPARSE_PARTS = {"data", "shape", "format"}  # of what scipy.sparse.save_npz writes, whatever the format


class MatrixRows(RowSource):
    """Rows of an array, which may be memory-mapped, or of a CSR matrix."""

    def __init__(self, path: Path, part: str | None) -> None:
        rows: Any
        if path.suffix.lower() == ".npz" and part is None and set(arrays := npz_names(path)) >= SPARSE_PARTS:
            rows = _read_sparse(path, arrays)
        else:
            rows, part = array_of(path, part)
        require_matrix(rows.shape, rows.dtype, str(path) if part is None else f"{path}::{part}")
        super().__init__(path, part, rows.shape)
        self._rows = rows

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        for at in range(first, last, size):
            piece = self._rows[at : min(at + size, last)]
            yield piece if sp.issparse(piece) else np.array(piece, order="C")

    def _picked(self, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[Any]]:
        for at in range(0, len(rows), size):
            piece = self._rows[rows[at : at + size]]
            yield piece.toarray() if sp.issparse(piece) else np.asarray(piece)


def array_of(path: Path, part: str | None) -> tuple[NDArray[Any], str | None]:
    """The array of an npy file, or the named or only one of an npz, and its name in the npz."""
    if path.suffix.lower() == ".npz":
        names = npz_names(path)
        shown = ", ".join(names[:20]) or "nothing"
        if part is None and len(names) != 1:
            raise ValueError(f"{path}: has {len(names)} arrays ({shown}); say which one, as {path}::NAME")
        if part is not None and part not in names:
            raise ValueError(f"{path}: has no array {part!r}; it has {shown}")
        part = part or names[0]
    elif part is not None:
        raise ValueError(f"{path}: has no parts; leave ::{part} out")
    return numpy_array(path, part), part


def numpy_array(path: Path, part: str | None = None) -> NDArray[Any]:
    """The whole array: memory-mapped from an npy, in memory from an npz."""
    with _reading(str(path) if part is None else f"{path}::{part}"):
        if part is None:
            return np.lib.format.open_memmap(path, mode="r")
        with zipfile.ZipFile(path) as archive, archive.open(f"{part}.npy") as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array


def npz_names(path: Path) -> list[str]:
    """The arrays of an npz."""
    with _reading(str(path)), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


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


def _read_sparse(path: Path, names: Collection[str]) -> sp.csr_array:
    """The matrix in a file with these arrays. Errors are a ValueError that names the file."""
    try:
        layout = np.atleast_1d(numpy_array(path, "format").astype(bytes)).tolist()
        if layout != [b"csr"]:
            shown = b" ".join(layout).decode("ascii", "replace")
            raise ValueError(f"its format is {shown!r}; save it as CSR, scipy.sparse.save_npz(file, X.tocsr())")
        for part in ("indices", "indptr"):
            if part not in names:
                raise ValueError(f"it must have the part {part!r}")
        data, indices, indptr = (numpy_array(path, part) for part in ("data", "indices", "indptr"))
        if data.dtype.kind not in NUMBERS:
            raise ValueError(f"data holds {described(data.dtype)}; features must be numbers")
        # Sums of entries in one place must not wrap around, and scipy's kernels know native numbers only.
        kind = np.float32 if data.dtype.kind == "f" and data.dtype.itemsize == 4 else np.float64
        shape = np.atleast_1d(numpy_array(path, "shape")).tolist()
        return checked_csr(data.astype(kind, copy=False), indices, indptr, shape)
    except ValueError as error:
        text = " ".join(str(error).split())
        before = f"{path}: cannot be read as a sparse matrix: "
        raise ValueError(text if text.startswith(str(path)) else before + text) from None


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Name the file in whatever NumPy and zipfile raise when one is damaged."""
    try:
        yield
    except MemoryError:
        words = "does not fit into memory; save it as npy or Parquet, which are read in batches"
        raise MemoryError(f"{name}: {words}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        text = " ".join(str(error).split())
        raise ValueError(f"{name}: cannot be read; it is damaged, or holds Python objects: {text}") from None
