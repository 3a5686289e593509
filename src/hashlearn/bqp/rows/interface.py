"""The passes over the rows of P that solvers ask for, for NumPy arrays and tensors alike.

Small matrices (B, T, normals, Gram matrices) are float64 NumPy arrays in every call. Arrays with n entries or n rows
(norms, signs, unit rows) have the type of P and stay on its device. Solvers hand them on without reading them.
Every method is one pass over blocks of rows: a sum in a fixed order, or one result for each row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.rows.merging import merge_rows
from hashlearn.core.arrays import EPS, FloatArray, is_tensor, tensor_like, to_float64
from hashlearn.core.checks import signs

TallArray: TypeAlias = Any  # an n-vector or n × k array of the type that P has

TINY = 1e-300


class ArrayBackend:
    """Operations on n-vectors and n × k arrays: NumPy arrays, or tensors on the device of ``like``, in its dtype."""

    def __init__(self, like: Any) -> None:
        self.like = like
        self.on_host = not is_tensor(like)  # whether these arrays are NumPy arrays
        self.xp: Any = np
        if not self.on_host:
            import torch

            self.xp = torch

    def signs(self, x: Any, n: int, name: str = "x0") -> TallArray:
        """A copy of the n signs that the user gave as a start, checked."""
        if self.on_host:
            return signs(x, n, name)
        from hashlearn.linalg.tensors import checked_signs

        return checked_signs(x, (n,), self.like, name)

    def ones(self, n: int) -> TallArray:
        """The signs +1, n of them."""
        return self.from_numpy(np.ones(n))

    def copy(self, x: TallArray) -> TallArray:
        """A copy of the signs x in the dtype that solvers use; also the inverse of `as_int8`."""
        return np.array(x, dtype=np.float64) if self.on_host else x.to(self.like.dtype, copy=True)

    def as_int8(self, x: TallArray) -> TallArray:
        """Signs as the user gets them."""
        return x.astype(np.int8) if self.on_host else x.to(self.xp.int8)

    def dot(self, x: TallArray, y: TallArray) -> float:
        """The inner product xᵀy."""
        return float((x * y).sum(dtype=self.xp.float64))

    def joined(self, X: TallArray, x: TallArray) -> TallArray:
        """X with x as one more column."""
        return self.xp.column_stack([X, x])

    def to_numpy(self, x: TallArray) -> FloatArray:
        """x as a float64 NumPy array, for small n."""
        return x if self.on_host else to_float64(x)

    def from_numpy(self, x: FloatArray) -> TallArray:
        """The inverse of `to_numpy`."""
        return x if self.on_host else tensor_like(x, self.like)

    def group_signs(self, x: TallArray, groups: TallArray, n_groups: int) -> TallArray:
        """For each group of `Rows.merged` the sign of the sum of x over the group; +1 for a tie."""
        sums = self.xp.bincount(groups, x, n_groups)  # whole numbers, exact in any order
        return self.copy(self.xp.where(sums < 0.0, -1.0, 1.0))


class Mixing(Protocol):
    """Coordinate steps v_i ← −g_i/‖g_i‖ on unit rows V, which the object holds."""

    def sweep(self) -> float:
        """One pass over all rows; returns the mean squared movement of a row, weighted by ‖g_i‖."""

    def image(self) -> FloatArray:
        """PᵀV of the present V, computed from scratch."""


class ProofGram(NamedTuple):
    """PᵀD⁻¹P for a proof, on the host or on a device, and what is known about its rounding."""

    gram: Any  # rank × rank
    total: float  # ≥ Σd
    rounding: float  # the spectral norm of the error of ``gram`` is at most this · its trace


class Rows(ArrayBackend, ABC):
    """The rows p_i of P (n × rank). With B = W T, row i has the gradient g_i = p_iᵀB and the unit row −g_i/‖g_i‖."""

    start_rows: int = 4_000  # sample size for the start of the relaxation when n is more than twice that
    jacobian_rows: int = 20_000  # sample size that stands for all rows in the derivative
    swept_rows: int | None = None  # largest sample that `mixing` gets; None: all rows
    sum_rounding: float  # an entry of `transposed` of signs is off by at most this · its `absolute_sums`
    gram_rounding: float  # an entry of `gram` is off by at most this · the product of the columns' norms

    def __init__(self, P: Any) -> None:
        super().__init__(P)
        self.P = P
        self.n, self.rank = P.shape

    # What differs between arrays and tensors.

    @abstractmethod
    def blocks(self, function: Callable[[slice, Any], Any]) -> Iterator[Any]:
        """``function(rows, P[rows])`` of all blocks of rows, in order."""

    @abstractmethod
    def empty(self, *shape: int) -> TallArray:
        """An array to be filled."""

    @abstractmethod
    def thin_product(self, P: Any, B: Any) -> TallArray:
        """P B for a block of rows and a B with few columns, for searching."""

    @abstractmethod
    def thin_sum(self, P: Any, V: TallArray) -> Any:
        """PᵀV for a block of rows and a V with few columns, added in float64."""

    @abstractmethod
    def norms(self, V: TallArray) -> TallArray:
        """The norms of the rows of V."""

    @abstractmethod
    def divided_gram(self, divisor: TallArray | None) -> Any:
        """Pᵀ Diag(divisor)⁻¹ P of exactly this P in float64, where P is; None divides by 1."""

    @abstractmethod
    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        """Coordinate steps from the unit rows of B, or from V (a NumPy array, n × k); see ``swept_rows``."""

    @abstractmethod
    def transposed(self, X: TallArray) -> FloatArray:
        """PᵀX for X of shape (n,) or (n, c), with the accuracy of float64."""

    @abstractmethod
    def product(self, B: FloatArray) -> TallArray:
        """P B for small B, (rank,) or (rank, c)."""

    @abstractmethod
    def diagonal(self, weights: FloatArray) -> TallArray:
        """Diagonal of P diag(weights) Pᵀ."""

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """``count`` random rows in order; ``self`` when that would be half of them or more."""

    # The passes of the relaxation, its certificate and its rounding.

    def image(self, B: FloatArray) -> tuple[FloatArray, TallArray]:
        """``(T, norms)``: T = PᵀV for the unit rows V of B, and all ‖g_i‖."""
        small, norms = self.from_numpy(B), self.empty(self.n)

        def block(rows: slice, P: Any) -> Any:
            V = self.thin_product(P, small)
            norms[rows] = self.make_unit(V)
            return self.thin_sum(P, V)

        return self.total(block), norms

    def all_unit_rows(self, B: FloatArray) -> tuple[TallArray, TallArray]:
        """``(V, norms)``: the unit rows of B, stored, and all ‖g_i‖."""
        small, norms, V = self.from_numpy(B), self.empty(self.n), self.empty(self.n, B.shape[1])

        def block(rows: slice, P: Any) -> None:
            V[rows] = self.thin_product(P, small)
            norms[rows] = self.make_unit(V[rows])

        list(self.blocks(block))
        return V, norms

    def make_unit(self, G: TallArray) -> TallArray:
        """Divide rows g by −‖g‖, in place; returns the ‖g‖. A row with g = 0 stays 0."""
        norms = self.norms(G)
        G /= -norms.clip(float(self.xp.finfo(G.dtype).tiny))[:, None]
        return norms

    def linearized(self, B: FloatArray) -> Linearized:
        """The derivative of `image` at B. Solvers call it on samples, and on P itself when n is small."""
        return Linearized(self, B)

    def proof_gram(self, d: TallArray) -> ProofGram:
        """PᵀD⁻¹P of exactly this P in float64, for a proof. Entries of d are raised to at least 1e-9 of their mean."""
        d = d.astype(np.float64) if self.on_host else d.double()
        mean = float(d.mean())
        d = d.clip(1e-9 * mean) if mean > 0.0 else self.xp.ones_like(d)
        total = float(d.sum()) * (1.0 + self.n * EPS)
        return ProofGram(self.divided_gram(d), total, self.gram_rounding)

    def draw(self, B: FloatArray, normals: FloatArray) -> TallArray:
        """Signs S = sgn(V normals), n × draws, V the unit rows of B; sgn(0) = +1."""
        return self.xp.concatenate(list(self.blocks(self._drawn(B, normals))))

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        """PᵀS for the signs S of `draw`, without storing S."""
        drawn = self._drawn(B, normals)
        return self.total(lambda rows, P: self.thin_sum(P, drawn(rows, P)))

    def _drawn(self, B: FloatArray, normals: FloatArray) -> Callable[[slice, Any], TallArray]:
        small, z = self.from_numpy(B), self.from_numpy(normals)
        # A row's length does not change the sign of −gᵀz.
        return lambda _, P: self.copy(self.xp.where(self.thin_product(P, small) @ z > 0.0, -1.0, 1.0))

    # Sums, rows and columns.

    def total(self, function: Callable[[slice, Any], Any]) -> FloatArray:
        """The sum of ``function(rows, P[rows])`` over all blocks of rows."""
        total = None
        for part in self.blocks(function):
            total = part if total is None else total.__iadd__(part)
        return self.to_numpy(total)

    def gram(self) -> FloatArray:
        """PᵀP, accurate to float64."""
        return self.to_numpy(self.divided_gram(None))

    def absolute_sums(self) -> FloatArray:
        """The sums of the columns of |P|."""
        return self.total(lambda _, P: abs(P).sum(axis=0, dtype=self.xp.float64))

    def with_scaled_columns(self, factors: FloatArray) -> Rows:
        """P diag(factors); a copy, unless all factors are 1."""
        return self if bool((factors == 1.0).all()) else type(self)(self.P * self.from_numpy(factors))

    def with_columns(self, counts: NDArray[np.bool_]) -> Rows:
        """P with these columns only."""
        P = self.P[:, np.flatnonzero(counts)]
        return type(self)(np.ascontiguousarray(P) if self.on_host else P.contiguous())

    def take(self, index: NDArray[np.intp]) -> FloatArray:
        """A few rows as a float64 NumPy array."""
        return self.to_numpy(self.P[index])

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, TallArray] | None:
        """Merge m identical rows p to one row m · p. Returns the new rows, and for each old row its new index.

        Returns None if merging would remove less than the fraction ``worthwhile`` of the rows. Rows with pᵀWp > 0 are
        not merged. See `hashlearn.bqp.presolve`.
        """
        merged = merge_rows(self.P, weights, worthwhile)
        return None if merged is None else (type(self)(merged[0]), merged[1])

    def to_host(self) -> FloatArray:
        """All of P as a float64 NumPy array, for small n."""
        return self.to_numpy(self.P)


class Linearized:
    """The map B ↦ PᵀV(B) of `Rows.image` near one point."""

    def __init__(self, rows: Rows, B: FloatArray) -> None:
        self._rows = rows
        self._V, self._norms = rows.all_unit_rows(B)

    def change(self, dB: FloatArray) -> FloatArray:
        """Its derivative in the direction dB: Σ_i p_i dv_iᵀ with dv_i = −(I − v_i v_iᵀ)(p_iᵀ dB)/‖g_i‖."""
        rows, small = self._rows, self._rows.from_numpy(dB)
        divisor = -self._norms.clip(float(rows.xp.finfo(self._norms.dtype).tiny))[:, None]

        def block(index: slice, P: Any) -> Any:
            G, V = rows.thin_product(P, small), self._V[index]
            G -= (G * V).sum(axis=1)[:, None] * V
            G /= divisor[index]
            return rows.thin_sum(P, G)

        return rows.total(block)

    def gram(self) -> FloatArray:
        """PᵀD⁻¹P, where D holds the ‖g_i‖, raised to at least a thousandth of their mean."""
        d = self._norms.clip(1e-3 * float(self._norms.mean()))
        return self._rows.to_numpy(self._rows.divided_gram(d))
