"""Rows of a float32 or float64 tensor on any device. What is small comes back to the host, what is tall stays.

Products run in the tensor's own dtype (sweeps over samples, draws and flips as TF32), sums over rows in blocks that add
up in float64; what a proof or a reported value rests on is float64 throughout. Two reads of P for `image`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hashlearn.bqp.rows.inertia import EPS
from hashlearn.bqp.rows.interface import Linearised, Mixing, Rows
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.bqp.rows.torch.flips import flip_descent
from hashlearn.bqp.rows.torch.inertia import TorchProofGram
from hashlearn.bqp.rows.torch.merging import merge_rows
from hashlearn.bqp.rows.torch.mixing import block_mixing
from hashlearn.bqp.rows.torch.products import rough_products, thin_product, thin_sum
from hashlearn.bqp.rows.torch.tall import TorchTall
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import (
    ALIGNED,
    BLOCK,
    CHUNK,
    GRAM_CHUNK,
    SHORT_BLOCK,
    block_products,
    buffer,
    chunks,
    gram64,
    sums_of_squares,
    whole_rows,
)


class TorchRows(TorchTall):
    """Around a tensor, which is not copied."""

    def __init__(self, P: Tensor, origin: Tensor | None = None) -> None:
        self.P = P
        self._origin = origin  # whose rows these are a sample of
        self.n, self.rank = P.shape
        # On a device a pass over a sample costs its launch: larger samples save passes over all rows.
        on_cpu = P.device.type == "cpu"
        self.start_rows = 4_000 if on_cpu else 16_384
        self.jacobian_rows = 20_000 if on_cpu else 40_000
        self.swept_rows = 20_000 if on_cpu else 262_144

    def image(self, B: FloatArray) -> tuple[FloatArray, Tensor]:
        """Two products."""
        V, norms = _unit_rows(self.P, tensor_like(B, self.P))
        return to_float64(thin_sum(self.P, V)), norms

    def linearised(self, B: FloatArray) -> Linearised:
        """Keeps V, n × k."""
        return _Linearised(self.P, B)

    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        """Blocks of rows together; on a CPU one row after the other, as in NumPy."""
        if self.P.device.type == "cpu":
            return NumpyRows(to_float64(self.P)).mixing(weights, B, V)
        if V is not None:
            return block_mixing(self.P, weights, tensor_like(V, self.P), self._origin)
        assert B is not None
        with rough_products(self.P):
            unit = _unit_rows(self.P, tensor_like(B, self.P))[0]
        return block_mixing(self.P, weights, unit, self._origin)

    def proof_gram(self, d: Tensor) -> TorchProofGram:
        """Each entry is a sum of n products of float64 numbers, added within blocks and then over blocks."""
        d = d.double()
        mean = float(d.mean())
        d = d.clamp_min(1e-9 * mean) if mean > 0.0 else torch.ones_like(d)
        total = float(d.sum()) * (1.0 + self.n * EPS)
        return TorchProofGram(gram64(self.P, d), total, (2 * BLOCK + self.n / BLOCK + 16) * EPS)

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        """In chunks of rows."""
        small = tensor_like(B @ normals, self.P)
        total = torch.zeros((self.rank, small.shape[1]), dtype=torch.float64, device=self.P.device)
        with rough_products(self.P):
            for rows in chunks(self.n, GRAM_CHUNK):
                total += thin_sum(self.P[rows], _drawn(self.P[rows], small))
        return to_float64(total)

    def draw(self, B: FloatArray, normals: FloatArray) -> Tensor:
        """In chunks of rows."""
        small = tensor_like(B @ normals, self.P)
        with rough_products(self.P):
            return torch.cat([_drawn(self.P[rows], small) for rows in chunks(self.n, GRAM_CHUNK)])

    def flip_descent(self, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int) -> Tensor:
        """Batches of rows together, each kept only where the value fell."""
        with rough_products(self.P):
            return flip_descent(self.P, weights, X, between, passes)

    @property
    def _sums_short(self) -> bool:
        return self.n > CHUNK and torch.get_float32_matmul_precision() == "highest"

    @property
    def sum_rounding(self) -> float:
        """Short sums round as the dtype of P does."""
        short = SHORT_BLOCK * torch.finfo(self.P.dtype).eps if self._sums_short else 0.0
        return short + self.n * EPS

    def transposed(self, X: Tensor) -> FloatArray:
        """In float64; of many rows a few at a time in the dtype of P, if its products are not set to round more."""
        dtype = self.P.dtype if self._sums_short else torch.float64
        wide = (X[:, None] if X.dim() == 1 else X).to(dtype)
        parts = (block_products(self.P[r].to(dtype), wide[r], SHORT_BLOCK) for r in chunks(self.n))
        total = to_float64(sum(parts))
        return total[:, 0] if X.dim() == 1 else total

    def product(self, B: FloatArray) -> Tensor:
        """In the dtype of P."""
        return self.P @ tensor_like(B, self.P)

    def gram(self) -> FloatArray:
        """In float64."""
        return to_float64(gram64(self.P, None))

    def with_scaled_columns(self, factors: FloatArray) -> TorchRows:
        """A copy, unless all factors are 1."""
        return self if bool((factors == 1.0).all()) else TorchRows(self.P * tensor_like(factors, self.P))

    def diagonal(self, weights: FloatArray) -> Tensor:
        """In the dtype of P."""
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
        return TorchRows(some[:, : self.rank] if aligned else buffer(count, self.rank, self.P).copy_(some), self.P)

    def take(self, index: NDArray[np.intp]) -> FloatArray:
        """To the host."""
        return to_float64(self.P.index_select(0, torch.as_tensor(index, device=self.P.device)))

    def absolute_sums(self) -> FloatArray:
        """In chunks of rows."""
        return to_float64(sum(self.P[rows].abs().sum(dim=0, dtype=torch.float64) for rows in chunks(self.n)))

    def with_columns(self, kept: NDArray[np.bool_]) -> TorchRows:
        """A copy."""
        return TorchRows(self.P[:, torch.as_tensor(kept, device=self.P.device)].contiguous())

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, Tensor] | None:
        """By hashes of the rows."""
        found = merge_rows(self.P, weights, worthwhile)
        return None if found is None else (TorchRows(found[0]), found[1])


class _Linearised:
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
    """Rows −g/‖g‖ and the ‖g‖; a row that nothing pulls at is 0."""
    G = thin_product(P, B)
    norms = torch.linalg.vector_norm(G, dim=1)
    return G.div_(norms.clamp_min(torch.finfo(P.dtype).tiny).neg_()[:, None]), norms


def _drawn(P: Tensor, B: Tensor) -> Tensor:
    # A row's length does not change the sign of −gᵀz.
    return torch.where(thin_product(P, B) > 0.0, -1.0, 1.0).to(P.dtype)
