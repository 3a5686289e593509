"""Reads a sparse matrix that `scipy.sparse.save_npz` wrote: CSR, CSC, COO, BSR or DIA. The result is CSR.

Every part is checked before scipy sees it: sizes before data are read, and indices before anything is converted. All
formats but CSR can claim any number of rows in a small file, and an empty row costs memory too. Their number of rows is
therefore limited by the number of stored entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.checks import (
    checked_csr,
    checked_shape,
    plain_integers,
    require_compressed,
    require_integers,
    require_within,
)
from hashlearn.streams.numpy_files import numpy_array, numpy_header
from hashlearn.streams.rows import NUMBERS, described

SPARSE_PARTS = {"data", "shape", "format"}  # of what scipy.sparse.save_npz writes, whatever the layout
PARTS = {
    "csr": ("indices", "indptr"),
    "csc": ("indices", "indptr"),
    "bsr": ("indices", "indptr"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
MOST_SMALL = 64  # bytes of "format", numbers of "shape"
ROWS_ANYWAY, ROWS_PER_ENTRY = 2**20, 64


def read_sparse(path: Path, names: Collection[str]) -> sp.csr_array:
    """The matrix, from a file with these arrays. Errors are a ValueError that names the file."""
    try:
        for part in ("format", "shape"):
            header = numpy_header(path, part)
            if math.prod(header.shape) > MOST_SMALL or header.dtype.itemsize > MOST_SMALL:
                raise ValueError(f"{part} is too long")
        layout = _text(numpy_array(path, "format"))
        if layout not in PARTS:
            raise ValueError(f"format must be one of {', '.join(PARTS)}, got {layout!r}")
        shape = checked_shape(np.atleast_1d(numpy_array(path, "shape")).tolist())
        absent = [part for part in PARTS[layout] if part not in names]
        if absent:
            raise ValueError(f"a matrix of format {layout!r} must have the part {absent[0]!r}")
        dtype = numpy_header(path, "data").dtype
        if dtype.kind not in NUMBERS:
            raise ValueError(f"data holds {described(dtype)}; features must be numbers")
        _require_sizes(layout, shape, {part: numpy_header(path, part).shape for part in ("data", *PARTS[layout])})
        data = numpy_array(path, "data")
        # Sums of entries in one place must not wrap around, and scipy's kernels know native numbers only.
        data = data.astype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64, copy=False)
        parts = [numpy_array(path, part) for part in PARTS[layout]]
        for part, numbers in zip(PARTS[layout], parts, strict=True):
            require_integers(numbers, part)
        return LAYOUTS[layout](data, *parts, shape)
    except ValueError as error:
        text = " ".join(str(error).split())
        before = f"{path}: cannot be read as a sparse matrix: "
        raise ValueError(text if text.startswith(str(path)) else before + text) from None


def _require_sizes(layout: str, shape: tuple[int, int], sizes: dict[str, tuple[int, ...]]) -> None:
    """What the headers alone can tell; ``sizes`` are the shapes of the parts."""
    data = sizes["data"]
    dimensions = {"bsr": 3, "dia": 2}.get(layout, 1)
    if len(data) != dimensions or any(len(sizes[part]) != 1 for part in PARTS[layout]):
        raise ValueError(f"data must have {dimensions} dimension(s), and {' and '.join(PARTS[layout])} one")
    if layout == "bsr" and (data[1] < 1 or data[2] < 1 or shape[0] % data[1] or shape[1] % data[2]):
        raise ValueError(f"blocks of {data[1]} × {data[2]} do not fill a matrix of shape {shape}")
    n_major = shape[1] if layout == "csc" else shape[0] // (data[1] if layout == "bsr" else 1)
    for part in PARTS[layout]:
        wanted = n_major + 1 if part == "indptr" else data[0]
        if sizes[part] != (wanted,):
            raise ValueError(f"{part} must have {wanted} entries, got {sizes[part][0]}")
    most = ROWS_ANYWAY + ROWS_PER_ENTRY * math.prod(data)
    if layout != "csr" and shape[0] > most:
        raise ValueError(
            f"it claims {shape[0]:,} rows, and as {layout} with so few entries it may have {most:,}; save it as csr"
        )


def _csc(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array(checked_csr(data, indices, indptr, shape[::-1]).T)


def _bsr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    _, height, width = data.shape
    require_compressed(indices, indptr, shape[0] // height, shape[1] // width)
    return sp.csr_array(sp.bsr_array((data, plain_integers(indices), plain_integers(indptr)), shape=shape))


def _coo(data: NDArray[Any], row: NDArray[Any], col: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    require_within(row, "row", shape[0])
    require_within(col, "col", shape[1])
    return sp.csr_array(sp.coo_array((data, (plain_integers(row), plain_integers(col))), shape=shape))


def _dia(data: NDArray[Any], offsets: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    """Entry j of diagonal k lies in column j and row j − offsets[k]; entries outside the matrix stand for nothing."""
    if len(np.unique(offsets)) != len(offsets):
        raise ValueError("offsets must be distinct")
    if offsets.size and not (int(offsets.min()) > -shape[0] and int(offsets.max()) < shape[1]):
        raise ValueError(f"offsets must lie from {1 - shape[0]} to {shape[1] - 1}")
    data = data[:, : shape[1]]
    col = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    row = col - offsets.astype(np.int64)[:, None]
    inside = (row >= 0) & (row < shape[0]) & (data != 0)
    return _coo(data[inside], row[inside], col[inside], shape)


LAYOUTS: dict[str, Callable[..., Any]] = {"csr": checked_csr, "csc": _csc, "bsr": _bsr, "coo": _coo, "dia": _dia}


def _text(value: NDArray[Any]) -> str:
    """The name of a format, which scipy stores as bytes; old versions stored text."""
    item = value.ravel()[0] if value.size == 1 else ""
    return item.decode("ascii", "replace") if isinstance(item, bytes) else str(item)
