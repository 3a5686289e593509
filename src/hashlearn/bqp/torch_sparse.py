"""A sparse PyTorch tensor (COO or CSR, on any device) as an operator. Only "sdr" takes it (see `sdr.device`).

Methods without a docstring have that of `Operator`.
"""

# ruff: noqa: D102

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hashlearn.bqp.operators import LARGEST_EXACT, Structured
from hashlearn.bqp.rows.torch_rows import TorchRows
from hashlearn.core.arrays import EPS, FloatArray, Tensor, to_float64

SYMMETRY = 1e-8  # relative to the largest entry


class TorchSparse(Structured):
    """A symmetric sparse tensor, stored as float64 CSR on its device."""

    def __init__(self, matrix: Tensor) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A must be a square matrix, got a sparse tensor of shape {tuple(matrix.shape)}")
        coo = matrix.detach().to_sparse_coo().double().coalesce()
        if not bool(torch.isfinite(coo.values()).all()):
            raise ValueError("A must be finite, but the sparse tensor has entries that are infinite or not a number")
        difference = (coo - coo.transpose(0, 1)).coalesce().values().abs()
        largest = coo.values().abs()
        if len(difference) and float(difference.max()) > SYMMETRY * float(largest.max()):
            raise ValueError(f"A must be symmetric, but A and its transpose differ by {float(difference.max()):.3g}")
        if len(difference) and float(difference.max()) > 0.0:
            coo = (0.5 * (coo + coo.transpose(0, 1))).coalesce()
        self.n = matrix.shape[0]
        self.sparse = coo.to_sparse_csr()
        self.rows = TorchRows(coo.values().new_empty((self.n, 0), dtype=torch.float32))
        self.weights = np.empty(0)

    def __matmul__(self, V: Tensor) -> Tensor:
        V = torch.as_tensor(V, dtype=torch.float64, device=self.sparse.device)
        return self.sparse @ V if V.ndim == 2 else (self.sparse @ V[:, None])[:, 0]

    def value(self, x: Any) -> float:
        """xᵀAx in float64."""
        x = torch.as_tensor(x, device=self.sparse.device).double()
        return float((x * (self @ x)).sum())

    def scale(self) -> float:
        normals = np.random.default_rng(0).standard_normal(self.n)
        return float((self @ torch.as_tensor(normals)).abs().sum())

    def diagonal(self) -> Tensor:
        coo = self.sparse.to_sparse_coo().coalesce()
        rows, columns = coo.indices()
        on = rows == columns
        return torch.zeros(self.n, dtype=torch.float64, device=rows.device).index_add_(0, rows[on], coo.values()[on])

    def magnitudes(self) -> Tensor:
        coo = self.sparse.to_sparse_coo().coalesce()
        total = torch.zeros(self.n, dtype=torch.float64, device=coo.device)
        return total.index_add_(0, coo.indices()[0], coo.values().abs())

    def total_magnitude(self) -> float:
        return float(self.sparse.values().abs().sum())

    def is_exact(self) -> bool:
        data = self.sparse.values()
        return bool((data == data.round()).all()) and self.total_magnitude() < LARGEST_EXACT

    def value_error(self) -> float:
        return 0.0 if self.is_exact() else 2.0 * (self.n + 2) * EPS * self.total_magnitude()

    def toarray(self) -> FloatArray:
        return to_float64(self.sparse.to_dense())

    def scaled(self, factor: float) -> TorchSparse:
        return TorchSparse(self.sparse * factor)
