"""Passes over the rows of P (n × rank): everything that solvers of low-rank problems compute with n rows.

``interface`` holds the passes · ``numpy_rows`` and ``torch_rows`` hold what differs between arrays and tensors.
The algorithms keep their small matrices (rank × k, rank × rank) in float64 NumPy, so each algorithm is written once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.bqp.rows.interface import ArrayBackend, Mixing, ProofGram, Rows, TallArray
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import finite_float64

__all__ = ["ArrayBackend", "Mixing", "NumpyRows", "ProofGram", "Rows", "TallArray", "checked_matrix", "rows_of"]


def rows_of(P: Any) -> Rows:
    """`Rows` of a NumPy array or a tensor; a `Rows` object is returned as it is."""
    if isinstance(P, Rows):
        return P
    if is_tensor(P):
        from hashlearn.bqp.rows.torch_rows import TorchRows

        return TorchRows(P)
    return NumpyRows(P)


def checked_matrix(P: Any, name: str) -> Any:
    """P as `rows_of` needs it: a `Rows` object, a finite float tensor, or a finite C-contiguous float64 array."""
    if isinstance(P, Rows):
        return P
    if is_tensor(P):
        from hashlearn.linalg.tensors import checked_tensor

        return checked_tensor(P, name, ndim=2)
    return np.ascontiguousarray(finite_float64(P, name, ndim=2))
