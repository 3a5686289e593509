"""Which kind of rows a matrix is: decided by its type, here and nowhere else, and without importing PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.bqp.rows.interface import Rows
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import finite_float64


def rows_of(P: Any) -> Rows:
    """The passes over a NumPy array, a tensor, or a `Rows` of any other kind (which is its own)."""
    if isinstance(P, Rows):
        return P
    if is_tensor(P):
        from hashlearn.bqp.rows.torch.rows import TorchRows

        return TorchRows(P)
    return NumpyRows(P)


def checked_matrix(P: Any, name: str) -> Any:
    """P as the kinds want it: a `Rows` as it is, a finite floating tensor, or anything that is a finite array."""
    if isinstance(P, Rows):
        return P
    if is_tensor(P):
        from hashlearn.linalg.tensors import checked_tensor

        return checked_tensor(P, name, ndim=2)
    return np.ascontiguousarray(finite_float64(P, name, ndim=2))
