"""A sparse PyTorch tensor (COO or CSR, on any device) as an operator. Only "sdr" takes it.

Methods without a docstring have that of `Operator`. Everything behind a bound or a value that is reported is float64.
It needs IEEE arithmetic and products whose sums may be in any order.
"""

# ruff: noqa: D102

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.operators import Structured
from hashlearn.bqp.rows.torch_rows import TorchRows
from hashlearn.core.arrays import FloatArray, Tensor, to_float64

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
        (self._row, self._column), data, self.n = coo.indices(), coo.values(), matrix.shape[0]
        counts = torch.bincount(self._row, minlength=self.n)
        self.sparse = _csr(counts, self._column, data, self.n)
        self._most = int(counts.max())  # entries in a row
        self.rows = TorchRows(data.new_empty((self.n, 0), dtype=torch.float32))
        self.weights = np.empty(0)

    def _with_data(self, data: Tensor) -> TorchSparse:
        """Other entries in the same places."""
        A = TorchSparse.__new__(TorchSparse)
        A.__dict__ = self.__dict__ | {"sparse": self._tensor(data)}
        A.__dict__.pop("coloring", None)
        return A

    def _tensor(self, data: Tensor) -> Tensor:
        S = self.sparse
        return torch.sparse_csr_tensor(S.crow_indices(), S.col_indices(), data, S.shape, check_invariants=False)

    @property
    def _entries(self) -> Tensor:
        return self.sparse.values()

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
        on = self._row == self._column
        zeros = torch.zeros(self.n, dtype=torch.float64, device=on.device)
        return zeros.index_add_(0, self._row[on], self.sparse.values()[on])

    def congruent(self, C: Tensor) -> TorchSparse:
        """Diag(C) A Diag(C)."""
        return self._with_data(self.sparse.values() * C[self._row] * C[self._column])

    def absolute_product(self, u: Tensor) -> Tensor:
        return (self._tensor(self.sparse.values().abs()) @ u[:, None])[:, 0]

    def magnitudes(self) -> Tensor:
        return self.absolute_product(torch.ones(self.n, dtype=torch.float64, device=self.sparse.device))

    def product_roundings(self) -> float:
        return 3.0 + self._most

    def toarray(self) -> FloatArray:
        return to_float64(self.sparse.to_dense())

    def exponent(self) -> int | None:
        largest = float(self._entries.abs().max()) if len(self._entries) else 0.0
        return math.frexp(largest)[1] if largest > 0.0 else None

    def scaled_by_power(self, exponent: int) -> TorchSparse:
        return self._with_data(math.ldexp(1.0, exponent) * self._entries)

    def scaled(self, factor: float) -> TorchSparse:
        return self._with_data(factor * self.sparse.values())

    @cached_property
    def coloring(self) -> Coloring:
        """Its nodes by colors."""
        return Coloring(self._row, self._column, self.sparse.values(), self.n)


class Coloring:
    """Nodes of a graph by colors: nodes of one color have no edge between them, so they may move at the same time."""

    def __init__(self, row: Tensor, column: Tensor, data: Tensor, n: int) -> None:
        off = row != column
        row, column, data = row[off], column[off], data[off]
        colors = _colors(row, column, n)
        by_color = torch.argsort(colors[row], stable=True)
        ends = torch.bincount(colors[row], minlength=int(colors.max()) + 1).cumsum(0).tolist()
        degrees = torch.bincount(row, minlength=n)
        column, data = column[by_color], data[by_color]
        self._n, self._parts = n, []
        for color, (first, last) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            nodes = torch.nonzero(colors == color)[:, 0]
            self._parts.append((nodes, degrees[nodes], column[first:last], data[first:last]))

    def parts(self, dtype: Any) -> list[tuple[Tensor, Tensor]]:
        """For each color its nodes, and their rows of A without the diagonal."""
        return [(nodes, _csr(counts, column, data.to(dtype), self._n)) for nodes, counts, column, data in self._parts]

    def descend(self, X: Tensor, max_passes: int, check_time: Callable[[], Any]) -> Tensor:
        """Single flips in every column of the signs X, in place, until none helps; no value rises."""
        parts = self.parts(X.dtype)
        for _ in range(max_passes):
            check_time()
            flips = 0
            for nodes, part in parts:
                field, x = part @ X, X[nodes]
                new = torch.where(field > 0, -1.0, torch.where(field < 0, 1.0, x))
                flips += (new != x).sum()
                X[nodes] = new
            if int(flips) == 0:
                break
        return X


def _csr(counts: Tensor, columns: Tensor, data: Tensor, n: int) -> Tensor:
    """A matrix with n columns and ``counts`` entries in each row."""
    index = torch.int32 if len(data) < 2**31 else torch.int64
    pointers = torch.zeros(len(counts) + 1, dtype=index, device=data.device)
    pointers[1:] = counts.cumsum(0)
    return torch.sparse_csr_tensor(pointers, columns.to(index), data, (len(counts), n), check_invariants=False)


def _colors(rows: Tensor, columns: Tensor, n: int) -> Tensor:
    """Each color is a maximal independent set of what is left (Luby 1986), so there are at most max degree + 1."""
    generator = torch.Generator(device=rows.device).manual_seed(0)
    colors = torch.full((n,), -1, dtype=torch.int64, device=rows.device)
    color = 0
    while bool((colors < 0).any()):
        candidates = colors < 0
        while bool(candidates.any()):
            priority = torch.rand(n, generator=generator, device=rows.device, dtype=torch.float64)
            priority = torch.where(candidates, priority + 1e-3, 0.0)
            largest = torch.zeros_like(priority).scatter_reduce_(0, rows, priority[columns], "amax")
            maxima = candidates & (priority > largest)
            near = torch.zeros(n, device=rows.device).scatter_reduce_(0, rows, maxima[columns].float(), "amax") > 0
            colors[maxima] = color
            candidates = candidates & ~maxima & ~near
        color += 1
    return colors
