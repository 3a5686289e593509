"""Operations on n-vectors and n × k arrays that are tensors on the device of ``like``, in its dtype.

Methods without a docstring have that of `Tall`.
"""

from __future__ import annotations

from typing import Any

import torch

from hashlearn.bqp.rows.interface import Tall
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import checked_signs


class TorchTall(Tall):
    """`Tall` for tensors."""

    on_host = False

    def __init__(self, like: Tensor) -> None:
        self.like = like

    def signs(self, x: Any, n: int, name: str = "x0") -> Tensor:
        return checked_signs(x, (n,), self.like, name)

    def ones(self, n: int) -> Tensor:
        return torch.ones(n, dtype=self.like.dtype, device=self.like.device)

    def copy(self, x: Tensor) -> Tensor:
        return x.to(self.like.dtype, copy=True)

    def as_int8(self, x: Tensor) -> Tensor:
        return x.to(torch.int8)

    def dot(self, x: Tensor, y: Tensor) -> float:
        return float((x * y).sum(dtype=torch.float64))

    def joined(self, X: Tensor, x: Tensor) -> Tensor:
        return torch.column_stack([X, x])

    def to_numpy(self, x: Tensor) -> FloatArray:
        return to_float64(x)

    def from_numpy(self, x: FloatArray) -> Tensor:
        return tensor_like(x, self.like)

    def group_signs(self, x: Tensor, groups: Tensor, n_groups: int) -> Tensor:
        # Sums of signs are whole numbers, exact in any order.
        total = torch.zeros(n_groups, dtype=torch.float64, device=x.device).index_add_(0, groups, x.double())
        return torch.where(total < 0.0, -1.0, 1.0).to(x.dtype)
