"""What a kind of rows has to offer. To add one, subclass `Rows` and hand an instance to `LowRank` as its P.

Small matrices (B, T, normals, Gram matrices) come and go as float64 NumPy arrays. Arrays with n rows (norms, signs,
unit rows) are *tall*: each kind has its own type for them and keeps them where P is; others pass them on unseen.
Every pass is a sum, in a fixed order, over blocks of rows of a function of the block and small matrices, or leaves
one result for each row in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.rows.inertia import EPS, Proof
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import signs

TallArray: TypeAlias = Any  # n or n × k numbers, of the kind's own type

TINY = 1e-300


class Linearised(Protocol):
    """The map B ↦ PᵀV(B) of `Rows.image` near one point."""

    def change(self, dB: FloatArray) -> FloatArray:
        """Its derivative in the direction dB."""

    def gram(self) -> FloatArray:
        """PᵀD⁻¹P, D holding the ‖g_i‖, none less than a thousandth of their mean."""


class Mixing(Protocol):
    """Coordinate steps v_i ← −g_i/‖g_i‖ over unit rows V that live inside."""

    def sweep(self) -> float:
        """One pass over all rows; returns the mean squared movement of a row, weighted by ‖g_i‖."""

    def image(self) -> FloatArray:
        """PᵀV as V stands, computed afresh."""


class Tall:
    """What is done with tall arrays one by one, here for NumPy; other kinds override what differs."""

    on_host: bool = True  # whether tall arrays are NumPy arrays

    def signs(self, x: Any, n: int, name: str = "x0") -> TallArray:
        """A start given by the user: n checked signs, a copy."""
        return signs(x, n, name)

    def ones(self, n: int) -> TallArray:
        """n times +1."""
        return np.ones(n)

    def copy(self, x: TallArray) -> TallArray:
        """x, safe from later changes."""
        return np.array(x, dtype=np.float64)

    def as_int8(self, x: TallArray) -> TallArray:
        """Signs as they are given to the user."""
        return x.astype(np.int8)

    def as_float(self, x: TallArray) -> TallArray:
        """The inverse of `as_int8`."""
        return x.astype(np.float64)

    def dot(self, x: TallArray, y: TallArray) -> float:
        """xᵀy."""
        return float(x @ y)

    def count_different(self, x: TallArray, y: TallArray) -> int:
        """Places where x and y differ."""
        return int((x != y).sum())

    def negated(self, x: TallArray) -> TallArray:
        """−x."""
        return -x

    def joined(self, X: TallArray, x: TallArray) -> TallArray:
        """X with x as one more column."""
        return np.column_stack([X, x])

    def one_column(self, X: TallArray, j: int) -> TallArray:
        """Column j of X (n × c)."""
        return X[:, j]

    def to_numpy(self, x: TallArray) -> FloatArray:
        """x as NumPy float64: where there are few rows."""
        return x

    def from_numpy(self, x: FloatArray) -> TallArray:
        """The inverse of `to_numpy`."""
        return x

    def spread(self, x: TallArray, groups: TallArray) -> TallArray:
        """x[groups]: what the groups of `Rows.merged` have, for every row."""
        return x[groups]

    def group_signs(self, x: TallArray, groups: TallArray, n_groups: int) -> TallArray:
        """For each group of `Rows.merged` the sign of its sum over x, + for a tie."""
        return np.where(np.bincount(groups, weights=x, minlength=n_groups) < 0.0, -1.0, 1.0)


class Rows(Tall, ABC):
    """The rows p_i of P (n × rank). With B = W T, row i has the gradient g_i = p_iᵀB and the unit row −g_i/‖g_i‖."""

    P: Any  # what `rows_of` gives this back for
    n: int
    rank: int
    start_rows: int = 4_000  # sample size for the start of the relaxation when n is more than twice that
    jacobian_rows: int = 20_000  # sample size that stands for all rows in the derivative
    swept_rows: int | None = None  # most rows that `mixing` is asked to take; None: all of them

    # Passes that the relaxation, its certificate and its rounding are made of.

    @abstractmethod
    def image(self, B: FloatArray) -> tuple[FloatArray, TallArray]:
        """``(T, norms)``: T = PᵀV for the unit rows V of B, and all ‖g_i‖."""

    @abstractmethod
    def linearised(self, B: FloatArray) -> Linearised:
        """The derivative of `image` at B; asked of samples, and of P itself when n is small."""

    @abstractmethod
    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        """Coordinate steps from the unit rows of B, or from V (a NumPy array, n × k); see ``swept_rows``."""

    @abstractmethod
    def proof_gram(self, d: TallArray) -> Proof:
        """PᵀD⁻¹P for a proof: in float64, of exactly this P; entries of d below 1e-9 of the mean are raised to that."""

    @abstractmethod
    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        """PᵀS with S of `draw`, without keeping S."""

    @abstractmethod
    def draw(self, B: FloatArray, normals: FloatArray) -> TallArray:
        """Signs S = sgn(V normals), n × draws, V the unit rows of B; sgn(0) = +1."""

    @abstractmethod
    def flip_descent(self, weights: FloatArray, X: TallArray, between: Callable[[], Any], passes: int) -> TallArray:
        """Single flips in every column of X (signs) until none helps, or ``passes`` are made: no column gets worse.

        Of P diag(weights) Pᵀ; X may be overwritten. ``between`` is called now and then.
        """

    # Products.

    @property
    def sum_rounding(self) -> float:
        """An entry of `transposed` of signs is off by at most this · its `absolute_sums`."""
        return self.n * EPS

    @abstractmethod
    def transposed(self, X: TallArray) -> FloatArray:
        """PᵀX for tall X, (n,) or (n, c), with the accuracy of float64."""

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
        """These few rows, as NumPy float64."""

    @abstractmethod
    def absolute_sums(self) -> FloatArray:
        """The sums of the columns of |P|."""

    @abstractmethod
    def with_columns(self, kept: NDArray[np.bool_]) -> Rows:
        """P with these columns only."""

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, TallArray] | None:
        """Identical rows as one, m · p for m rows p: those rows, and for each old row the number of its new one.

        None where fewer than the fraction ``worthwhile`` of the rows would go, or where nobody looks. Rows with
        pᵀWp > 0 are left alone. See `hashlearn.bqp.merging`.
        """
        return None

    def to_host(self) -> FloatArray:
        """All of P as NumPy float64: for small n."""
        return self.take(np.arange(self.n))
