"""What solvers ask of the rows of P. To support another kind of array, subclass `Rows` and pass it to `LowRank` as P.

Small matrices (B, T, normals, Gram matrices) are float64 NumPy arrays in every call. Arrays with n entries or n rows
(norms, signs, unit rows) have the type of P and stay on its device. Solvers hand them on without reading them.
Every method is one pass over blocks of rows: a sum in a fixed order, or one result for each row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.rows.inertia import ProofGram
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.checks import signs

TallArray: TypeAlias = Any  # an n-vector or n × k array of the type that P has

TINY = 1e-300


class Linearized(Protocol):
    """The map B ↦ PᵀV(B) of `Rows.image` near one point."""

    def change(self, dB: FloatArray) -> FloatArray:
        """Its derivative in the direction dB."""

    def gram(self) -> FloatArray:
        """PᵀD⁻¹P, where D holds the ‖g_i‖, raised to at least a thousandth of their mean."""


class Mixing(Protocol):
    """Coordinate steps v_i ← −g_i/‖g_i‖ on unit rows V, which the object holds."""

    def sweep(self) -> float:
        """One pass over all rows; returns the mean squared movement of a row, weighted by ‖g_i‖."""

    def image(self) -> FloatArray:
        """PᵀV of the present V, computed from scratch."""


class Tall:
    """Operations on n-vectors and n × k arrays, here for NumPy. Other kinds of rows override what differs."""

    on_host: bool = True  # whether these arrays are NumPy arrays

    def signs(self, x: Any, n: int, name: str = "x0") -> TallArray:
        """A copy of the n signs that the user gave as a start, checked."""
        return signs(x, n, name)

    def ones(self, n: int) -> TallArray:
        """The signs +1, n of them."""
        return np.ones(n)

    def copy(self, x: TallArray) -> TallArray:
        """A copy of the signs x in the dtype that solvers use; also the inverse of `as_int8`."""
        return np.array(x, dtype=np.float64)

    def as_int8(self, x: TallArray) -> TallArray:
        """Signs as the user gets them."""
        return x.astype(np.int8)

    def dot(self, x: TallArray, y: TallArray) -> float:
        """The inner product xᵀy."""
        return float(x @ y)

    def joined(self, X: TallArray, x: TallArray) -> TallArray:
        """X with x as one more column."""
        return np.column_stack([X, x])

    def to_numpy(self, x: TallArray) -> FloatArray:
        """x as a float64 NumPy array, for small n."""
        return x

    def from_numpy(self, x: FloatArray) -> TallArray:
        """The inverse of `to_numpy`."""
        return x

    def group_signs(self, x: TallArray, groups: TallArray, n_groups: int) -> TallArray:
        """For each group of `Rows.merged` the sign of the sum of x over the group; +1 for a tie."""
        return np.where(np.bincount(groups, weights=x, minlength=n_groups) < 0.0, -1.0, 1.0)


class Rows(Tall, ABC):
    """The rows p_i of P (n × rank). With B = W T, row i has the gradient g_i = p_iᵀB and the unit row −g_i/‖g_i‖."""

    P: Any  # the array or tensor itself
    n: int
    rank: int
    start_rows: int = 4_000  # sample size for the start of the relaxation when n is more than twice that
    jacobian_rows: int = 20_000  # sample size that stands for all rows in the derivative
    swept_rows: int | None = None  # largest sample that `mixing` gets; None: all rows

    # The passes of the relaxation, its certificate and its rounding.

    @abstractmethod
    def image(self, B: FloatArray) -> tuple[FloatArray, TallArray]:
        """``(T, norms)``: T = PᵀV for the unit rows V of B, and all ‖g_i‖."""

    @abstractmethod
    def linearized(self, B: FloatArray) -> Linearized:
        """The derivative of `image` at B. Solvers call it on samples, and on P itself when n is small."""

    @abstractmethod
    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        """Coordinate steps from the unit rows of B, or from V (a NumPy array, n × k); see ``swept_rows``."""

    @abstractmethod
    def proof_gram(self, d: TallArray) -> ProofGram:
        """PᵀD⁻¹P of exactly this P in float64, for a proof. Entries of d are raised to at least 1e-9 of their mean."""

    @abstractmethod
    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        """PᵀS for the signs S of `draw`, without storing S."""

    @abstractmethod
    def draw(self, B: FloatArray, normals: FloatArray) -> TallArray:
        """Signs S = sgn(V normals), n × draws, V the unit rows of B; sgn(0) = +1."""

    def flip_descent(self, weights: FloatArray, X: TallArray, between: Callable[[], Any], passes: int) -> TallArray:
        """Single flips in every column of X (signs) until none helps, or ``passes`` are made: no column gets worse.

        Of P diag(weights) Pᵀ; X may be overwritten. ``between`` is called now and then. Only rows on a device need it:
        `hashlearn.bqp.flips` has the descents of the others.
        """
        raise NotImplementedError

    # Products.

    @property
    def sum_rounding(self) -> float:
        """An entry of `transposed` of signs is off by at most this · its `absolute_sums`."""
        return self.n * EPS

    @abstractmethod
    def transposed(self, X: TallArray) -> FloatArray:
        """PᵀX for X of shape (n,) or (n, c), with the accuracy of float64."""

    @abstractmethod
    def product(self, B: FloatArray) -> TallArray:
        """P B for small B, (rank,) or (rank, c)."""

    @abstractmethod
    def gram(self) -> FloatArray:
        """PᵀP, accurate to float64."""

    @abstractmethod
    def with_scaled_columns(self, factors: FloatArray) -> Rows:
        """P diag(factors)."""

    @abstractmethod
    def diagonal(self, weights: FloatArray) -> TallArray:
        """Diagonal of P diag(weights) Pᵀ."""

    # Rows and columns.

    @abstractmethod
    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """``count`` random rows in order; ``self`` when that would be half of them or more. May be of NumPy's kind."""

    @abstractmethod
    def take(self, index: NDArray[np.intp]) -> FloatArray:
        """A few rows as a float64 NumPy array."""

    @abstractmethod
    def absolute_sums(self) -> FloatArray:
        """The sums of the columns of |P|."""

    @abstractmethod
    def with_columns(self, kept: NDArray[np.bool_]) -> Rows:
        """P with these columns only."""

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, TallArray] | None:
        """Merge m identical rows p to one row m · p. Returns the new rows, and for each old row its new index.

        Returns None if merging would remove less than the fraction ``worthwhile`` of the rows, or if this kind of rows
        does not implement it. Rows with pᵀWp > 0 are not merged. See `hashlearn.bqp.presolve`.
        """
        return None

    def to_host(self) -> FloatArray:
        """All of P as a float64 NumPy array, for small n."""
        return self.take(np.arange(self.n))
