"""Tall arrays of tensors: signs and norms in the dtype of P, on its device."""

from __future__ import annotations

from typing import Any

import torch

from hashlearn.bqp.rows.interface import Rows
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import checked_signs


class TorchTall(Rows):
    """The half of `TorchRows` that is about tall arrays."""

    on_host = False

    def signs(self, x: Any, n: int, name: str = "x0") -> Tensor:
        """A tensor on the same device."""
        return checked_signs(x, (n,), self.P, name)

    def ones(self, n: int) -> Tensor:
        """On the device."""
        return torch.ones(n, dtype=self.P.dtype, device=self.P.device)

    def copy(self, x: Tensor) -> Tensor:
        """On the device."""
        return x.to(self.P.dtype, copy=True)

    def as_int8(self, x: Tensor) -> Tensor:
        """On the device."""
        return x.to(torch.int8)

    def as_float(self, x: Tensor) -> Tensor:
        """In the dtype of P."""
        return x.to(self.P.dtype)

    def dot(self, x: Tensor, y: Tensor) -> float:
        """In float64."""
        return float((x * y).sum(dtype=torch.float64))

    def joined(self, X: Tensor, x: Tensor) -> Tensor:
        """On the device."""
        return torch.column_stack([X, x])

    def to_numpy(self, x: Tensor) -> FloatArray:
        """To the host."""
        return to_float64(x)

    def from_numpy(self, x: FloatArray) -> Tensor:
        """To the device."""
        return tensor_like(x, self.P)

    def group_signs(self, x: Tensor, groups: Tensor, n_groups: int) -> Tensor:
        """Sums of signs are whole numbers, exact in any order."""
        total = torch.zeros(n_groups, dtype=torch.float64, device=x.device).index_add_(0, groups, x.double())
        return torch.where(total < 0.0, -1.0, 1.0).to(x.dtype)
