"""Rows of a float32 or float64 tensor on any device. Small matrices come back to the host, arrays of n rows stay.

Products run in the tensor's own dtype (sweeps over samples, draws and flips in TF32). Sums over rows are added in
float64 over blocks. Everything behind a proof or a reported value is computed in float64. `image` reads P twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hashlearn.bqp.rows.inertia import ProofGram
from hashlearn.bqp.rows.interface import Linearized, Mixing, Rows
from hashlearn.bqp.rows.merging import merge_rows
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.bqp.rows.torch.cuda_graphs import CudaGraphs
from hashlearn.bqp.rows.torch.steps import BlockMixing, flip_descent
from hashlearn.bqp.rows.torch.tall import TorchTall
from hashlearn.core.arrays import EPS, FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import (
    ALIGNED,
    BLOCK,
    CHUNK,
    GRAM_CHUNK,
    SHORT_BLOCK,
    block_products,
    buffer,
    chunks,
    full_products,
    gram64,
    rough_products,
    sums_of_squares,
    thin_product,
    thin_sum,
    whole_rows,
)


class TorchRows(TorchTall, Rows):
    """The passes over a tensor, which is not copied. A sample gets the ``graphs`` of the rows it is taken from."""

    def __init__(self, P: Tensor, graphs: CudaGraphs | None = None) -> None:
        super().__init__(P)
        self.P = P
        self._is_sample = graphs is not None
        self.graphs = graphs or CudaGraphs()
        self.n, self.rank = P.shape
        # On a device the cost of a pass over a sample is its launch, and larger samples save passes over all rows.
        on_cpu = P.device.type == "cpu"
        self.start_rows = 4_000 if on_cpu else 16_384
        self.jacobian_rows = 20_000 if on_cpu else 40_000
        self.swept_rows = 20_000 if on_cpu else 262_144

    def image(self, B: FloatArray) -> tuple[FloatArray, Tensor]:
        V, norms = _unit_rows(self.P, tensor_like(B, self.P))
        return to_float64(thin_sum(self.P, V)), norms

    def linearized(self, B: FloatArray) -> Linearized:
        return _Linearized(self.P, B)

    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        """Steps of whole blocks of rows; on a CPU of one row after the other, as for NumPy."""
        if self.P.device.type == "cpu":
            return NumpyRows(to_float64(self.P)).mixing(weights, B, V)
        if V is not None:
            unit = tensor_like(V, self.P)
        else:
            assert B is not None
            with rough_products(self.P):
                unit = _unit_rows(self.P, tensor_like(B, self.P))[0]
        if self._is_sample:
            return self.graphs.begun(BlockMixing, self.P, weights, unit)
        return BlockMixing(self.P, weights, unit)  # the next one would overwrite P

    def proof_gram(self, d: Tensor) -> ProofGram:
        # Each entry is a sum of n products of float64 numbers, added within blocks and then over blocks.
        d = d.double()
        mean = float(d.mean())
        d = d.clamp_min(1e-9 * mean) if mean > 0.0 else torch.ones_like(d)
        total = float(d.sum()) * (1.0 + self.n * EPS)
        return ProofGram(gram64(self.P, d), total, (2 * BLOCK + self.n / BLOCK + 16) * EPS)

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        small = tensor_like(B @ normals, self.P)
        total = torch.zeros((self.rank, small.shape[1]), dtype=torch.float64, device=self.P.device)
        with rough_products(self.P):
            for rows in chunks(self.n, GRAM_CHUNK):
                total += thin_sum(self.P[rows], _drawn(self.P[rows], small))
        return to_float64(total)

    def draw(self, B: FloatArray, normals: FloatArray) -> Tensor:
        small = tensor_like(B @ normals, self.P)
        with rough_products(self.P):
            return torch.cat([_drawn(self.P[rows], small) for rows in chunks(self.n, GRAM_CHUNK)])

    def flip_descent(self, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int) -> Tensor:
        """Batches of rows together, each kept only where the value fell."""
        with rough_products(self.P):
            return flip_descent(self.P, weights, X, between, passes, self.graphs)

    @property
    def _sums_short(self) -> bool:
        return self.n > CHUNK

    @property
    def sum_rounding(self) -> float:
        """Short sums are rounded in the dtype of P."""
        short = SHORT_BLOCK * torch.finfo(self.P.dtype).eps if self._sums_short else 0.0
        return short + self.n * EPS

    def transposed(self, X: Tensor) -> FloatArray:
        """Accurate to float64. With more than 65,536 rows, sums of 128 rows are in the dtype of P, never in TF32."""
        dtype = self.P.dtype if self._sums_short else torch.float64
        wide = (X[:, None] if X.dim() == 1 else X).to(dtype)
        with full_products():
            parts = (block_products(self.P[r].to(dtype), wide[r], SHORT_BLOCK) for r in chunks(self.n))
            total = to_float64(sum(parts))
        return total[:, 0] if X.dim() == 1 else total

    def product(self, B: FloatArray) -> Tensor:
        return self.P @ tensor_like(B, self.P)

    def gram(self) -> FloatArray:
        return to_float64(gram64(self.P, None))

    def with_scaled_columns(self, factors: FloatArray) -> TorchRows:
        """A copy, unless all factors are 1."""
        return self if bool((factors == 1.0).all()) else TorchRows(self.P * tensor_like(factors, self.P))

    def diagonal(self, weights: FloatArray) -> Tensor:
        return sums_of_squares(self.P, weights)[0][:, 0]

    def sample(self, count: int, rng: np.random.Generator) -> TorchRows:
        """One at random from each of ``count`` stretches of equal length; it stays on the device."""
        if 2 * count >= self.n:
            return self
        device = self.P.device
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
        places = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
        places += torch.arange(count, device=device)
        index = places.mul_(self.n / count).long().clamp_max_(self.n - 1)
        some = whole_rows(self.P).index_select(0, index)
        aligned = some.shape[1] % ALIGNED == 0
        return TorchRows(some[:, : self.rank] if aligned else buffer(count, self.rank, self.P).copy_(some), self.graphs)

    def take(self, index: NDArray[np.intp]) -> FloatArray:
        return to_float64(self.P.index_select(0, torch.as_tensor(index, device=self.P.device)))

    def absolute_sums(self) -> FloatArray:
        return to_float64(sum(self.P[rows].abs().sum(dim=0, dtype=torch.float64) for rows in chunks(self.n)))

    def with_columns(self, kept: NDArray[np.bool_]) -> TorchRows:
        return TorchRows(self.P[:, torch.as_tensor(kept, device=self.P.device)].contiguous())

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, Tensor] | None:
        found = merge_rows(self.P, weights, worthwhile)
        return None if found is None else (TorchRows(found[0]), found[1])


class _Linearized:
    def __init__(self, P: Tensor, B: FloatArray) -> None:
        self._P = P
        self._V, norms = _unit_rows(P, tensor_like(B, P))
        self._norms = norms
        self._factor = -1.0 / norms.clamp_min(torch.finfo(P.dtype).tiny)[:, None]

    def change(self, dB: FloatArray) -> FloatArray:
        G = thin_product(self._P, tensor_like(dB, self._P))
        along = (G * self._V).sum(dim=1, keepdim=True)
        G.addcmul_(along, self._V, value=-1.0).mul_(self._factor)
        return to_float64(thin_sum(self._P, G))

    def gram(self) -> FloatArray:
        return to_float64(gram64(self._P, self._norms.clamp_min(1e-3 * float(self._norms.mean()))))


def _unit_rows(P: Tensor, B: Tensor) -> tuple[Tensor, Tensor]:
    """Rows −g/‖g‖ and the ‖g‖; a row with g = 0 is 0."""
    G = thin_product(P, B)
    norms = torch.linalg.vector_norm(G, dim=1)
    return G.div_(norms.clamp_min(torch.finfo(P.dtype).tiny).neg_()[:, None]), norms


def _drawn(P: Tensor, B: Tensor) -> Tensor:
    # A row's length does not change the sign of −gᵀz.
    return torch.where(thin_product(P, B) > 0.0, -1.0, 1.0).to(P.dtype)
