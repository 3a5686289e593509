"""Reads a CSR matrix that `scipy.sparse.save_npz` wrote; every part is checked before scipy indexes with it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from hashlearn.core.checks import checked_csr
from hashlearn.files.numpy_files import numpy_array
from hashlearn.files.rows import NUMBERS, described

SPARSE_PARTS = {"data", "shape", "format"}  # of what scipy.sparse.save_npz writes, whatever the format


def read_sparse(path: Path, names: Collection[str]) -> sp.csr_array:
    """The matrix, from a file with these arrays. Errors are a ValueError that names the file."""
    try:
        layout = np.atleast_1d(numpy_array(path, "format").astype(bytes)).tolist()
        if layout != [b"csr"]:
            shown = b" ".join(layout).decode("ascii", "replace")
            raise ValueError(f"its format is {shown!r}; save it as CSR, scipy.sparse.save_npz(file, X.tocsr())")
        absent = [part for part in ("indices", "indptr") if part not in names]
        if absent:
            raise ValueError(f"it must have the part {absent[0]!r}")
        data = numpy_array(path, "data")
        if data.dtype.kind not in NUMBERS:
            raise ValueError(f"data holds {described(data.dtype)}; features must be numbers")
        # Sums of entries in one place must not wrap around, and scipy's kernels know native numbers only.
        kind = np.float32 if data.dtype.kind == "f" and data.dtype.itemsize == 4 else np.float64
        shape = np.atleast_1d(numpy_array(path, "shape")).tolist()
        return checked_csr(
            data.astype(kind, copy=False), numpy_array(path, "indices"), numpy_array(path, "indptr"), shape
        )
    except ValueError as error:
        text = " ".join(str(error).split())
        before = f"{path}: cannot be read as a sparse matrix: "
        raise ValueError(text if text.startswith(str(path)) else before + text) from None
