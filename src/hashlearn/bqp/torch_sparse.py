"""A sparse PyTorch tensor (COO or CSR, on any device) as an operator. Only "sdr" takes it (see `sdr.device`).

Methods without a docstring have that of `Operator` or `Tall`.
"""

# ruff: noqa: D102

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch

from hashlearn.bqp.operators import LARGEST_EXACT, Operator
from hashlearn.bqp.rows import Tall
from hashlearn.bqp.rows.torch.tall import TorchTall
from hashlearn.core.arrays import EPS, FloatArray, Tensor, to_float64

SYMMETRY = 1e-8  # relative to the largest entry


class TorchSparse(Operator):
    """A symmetric sparse tensor, stored as float64 CSR on its device."""

    def __init__(self, matrix: Tensor) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A must be a square matrix, got a sparse tensor of shape {tuple(matrix.shape)}")
        given = matrix.detach().to_sparse_coo().double()
        coo = given.coalesce()
        if not bool(torch.isfinite(coo.values()).all()):
            raise ValueError("A must be finite, but the sparse tensor has entries that are infinite or not a number")
        difference = (coo - coo.transpose(0, 1)).coalesce().values().abs()
        largest = coo.values().abs()
        if len(difference) and float(difference.max()) > SYMMETRY * float(largest.max()):
            raise ValueError(f"A must be symmetric, but A and its transpose differ by {float(difference.max()):.3g}")
        if len(difference) and float(difference.max()) > 0.0:
            coo = (0.5 * (coo + coo.transpose(0, 1))).coalesce()
        # Equal entries were added up, and the mean of A and its transpose taken.
        parts, added = given._values(), given._nnz() - coo._nnz()
        exact = bool((parts == parts.round()).all()) and float(parts.abs().sum()) < LARGEST_EXACT
        self.total_error = 0.0 if exact else (added + 3.0) * EPS * float(parts.abs().sum())
        self.n = matrix.shape[0]
        self.matrix = coo.to_sparse_csr()
        self._tall = TorchTall(coo.values().float())

    @property
    def tall(self) -> Tall:
        return self._tall

    def __matmul__(self, V: Tensor) -> Tensor:
        V = torch.as_tensor(V, dtype=torch.float64, device=self.matrix.device)
        return self.matrix @ V if V.ndim == 2 else (self.matrix @ V[:, None])[:, 0]

    def value(self, x: Any) -> float:
        """xᵀAx in float64."""
        x = torch.as_tensor(x, device=self.matrix.device).double()
        return float((x * (self @ x)).sum())

    def scale(self) -> float:
        normals = np.random.default_rng(0).standard_normal(self.n)
        return float((self @ torch.as_tensor(normals)).abs().sum())

    def diagonal(self) -> Tensor:
        coo = self.matrix.to_sparse_coo().coalesce()
        rows, columns = coo.indices()
        on = rows == columns
        return torch.zeros(self.n, dtype=torch.float64, device=rows.device).index_add_(0, rows[on], coo.values()[on])

    def magnitudes(self) -> Tensor:
        coo = self.matrix.to_sparse_coo().coalesce()
        total = torch.zeros(self.n, dtype=torch.float64, device=coo.device)
        return total.index_add_(0, coo.indices()[0], coo.values().abs())

    def is_exact(self) -> bool:
        data = self.matrix.values()
        return bool((data == data.round()).all()) and float(data.abs().sum()) < LARGEST_EXACT

    def entry_error(self) -> FloatArray:
        return np.full(self.n, self.total_error / self.n)

    def toarray(self) -> FloatArray:
        return to_float64(self.matrix.to_dense())

    def scaled(self, factor: float) -> TorchSparse:
        return TorchSparse(self.matrix * factor)

    def congruent(self, q: Any) -> NoReturn:
        raise TypeError(NO_HOST)

    def restricted(self, index: Any) -> NoReturn:
        raise TypeError(NO_HOST)


NO_HOST = "a sparse tensor is solved by method 'sdr' alone; for other methods pass a scipy.sparse matrix"
