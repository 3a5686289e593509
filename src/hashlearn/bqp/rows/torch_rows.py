"""Rows of a float32 or float64 tensor on any device. Small matrices come back to the host, arrays of n rows stay.

Products run in the tensor's own dtype (sweeps over samples, draws and flips in TF32). Sums over rows are added in
float64 over blocks. Everything behind a proof or a reported value is computed in float64. `image` reads P twice.
Methods without a docstring have that of `Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.rows import Mixing, Rows
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.bqp.rows.torch_steps import BlockMixing, CudaGraphs, flip_descent
from hashlearn.core.arrays import EPS, FloatArray, Tensor, to_float64
from hashlearn.linalg.tensors import (
    ALIGNED,
    BLOCK,
    CHUNK,
    GRAM_CHUNK,
    SHORT_BLOCK,
    allow_tf32,
    block_products,
    buffer,
    chunks,
    float64_gram,
    forbid_tf32,
    thin_product,
    transposed_product,
    with_padding,
)


class TorchRows(Rows):
    """The passes over a tensor, which is not copied. A sample gets the ``graphs`` of the rows it is taken from."""

    xp, on_host = torch, False

    def __init__(self, P: Tensor, graphs: CudaGraphs | None = None) -> None:
        super().__init__(P)
        self._is_sample = graphs is not None
        self.graphs = graphs or CudaGraphs()
        # On a device the cost of a pass over a sample is its launch, and larger samples save passes over all rows.
        on_cpu = P.device.type == "cpu"
        self.start_rows = 4_000 if on_cpu else 16_384
        self.jacobian_rows = 20_000 if on_cpu else 40_000
        self.swept_rows = 20_000 if on_cpu else 262_144
        # With more than 65,536 rows, short sums are rounded in the dtype of P.
        self._sums_short = self.n > CHUNK
        self.sum_rounding = self.n * EPS + (SHORT_BLOCK * torch.finfo(P.dtype).eps if self._sums_short else 0.0)
        # Each entry is a sum of n products of float64 numbers, added within blocks and then over blocks.
        self.gram_rounding = (2 * BLOCK + self.n / BLOCK + 16) * EPS

    def blocks(self, function: Callable[[slice, Any], Any]) -> Iterator[Any]:
        return (function(rows, self.P[rows]) for rows in chunks(self.n, GRAM_CHUNK))

    def thin_product(self, P: Tensor, B: Tensor) -> Tensor:
        return thin_product(P, B)

    def transposed_product(self, P: Tensor, V: Tensor) -> Tensor:
        return transposed_product(P, V)

    def dots(self, U: Tensor, V: Tensor) -> Tensor:
        return (U * V).sum(dim=1)

    def norms(self, V: Tensor) -> Tensor:
        return torch.linalg.vector_norm(V, dim=1)

    def divided_gram(self, divisor: Tensor | None) -> Tensor:
        return float64_gram(self.P, divisor)

    def mixing(self, weights: FloatArray, V: Tensor) -> Mixing:
        """Steps of whole blocks of rows; on a CPU of one row after the other, as for NumPy."""
        if self.P.device.type == "cpu":
            return NumpyRows(self.to_host()).mixing(weights, self.to_numpy(V))
        graphs = self.graphs if self._is_sample else CudaGraphs()  # the next mixing overwrites P
        return graphs.begun(BlockMixing, self.P, weights, V)

    def draw(self, B: FloatArray, normals: FloatArray) -> Tensor:
        with allow_tf32(self.P):
            return super().draw(B, normals)

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        with allow_tf32(self.P):
            return super().draw_products(B, normals)

    def flip_descent(self, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int) -> Tensor:
        """Single flips in every column of X (signs) until none helps, or ``passes`` are made: no column gets worse.

        Of P diag(weights) Pᵀ, batches of rows together, each kept only where the value fell.
        """
        with allow_tf32(self.P):
            return flip_descent(self.P, weights, X, between, passes, self.graphs)

    def transposed(self, X: Tensor) -> FloatArray:
        """Accurate to float64. With more than 65,536 rows, sums of 128 rows are in the dtype of P, never in TF32."""
        dtype = self.P.dtype if self._sums_short else torch.float64
        wide = X.reshape(self.n, -1).to(dtype)
        with forbid_tf32():
            parts = (block_products(self.P[r].to(dtype), wide[r], SHORT_BLOCK) for r in chunks(self.n))
            return to_float64(sum(parts)).reshape(self.rank, *X.shape[1:])

    def product(self, B: FloatArray) -> Tensor:
        return self.P @ self.from_numpy(B)

    def sample(self, count: int, rng: np.random.Generator) -> TorchRows:
        """One at random from each of ``count`` stretches of equal length; it stays on the device."""
        if 2 * count >= self.n:
            return self
        device = self.P.device
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
        places = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
        places += torch.arange(count, device=device)
        index = places.mul_(self.n / count).long().clamp_max_(self.n - 1)
        P = with_padding(self.P).index_select(0, index)
        aligned = P.shape[1] % ALIGNED == 0
        return TorchRows(P[:, : self.rank] if aligned else buffer(count, self.rank, self.P).copy_(P), self.graphs)
