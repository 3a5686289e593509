"""The problem in exact integers: which bound proves optimality, and what a dual point proves exactly.

Every dual point that ends in a proof is rounded to integers here, and its bound is computed by the functions of the
verifier itself. So an accepted leaf is one that the verifier accepts.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hashlearn.bqp.branch_and_bound.tree import Leaf, Node, exact_dual
from hashlearn.bqp.error_bounds import below
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof_check import Dual, Lattice, exact_matrix, leaf_bound
from hashlearn.core.arrays import FloatArray

# With values of arbitrary real numbers a bound this close to the value proves it: half of what `solve` asks for,
# relative to the value or to a thousandth of the scale.
CLOSE = 5e-10
FEWEST_DIGITS, MOST_DIGITS = 30, 50  # binary digits of the dual point


class ExactProblem:
    """A = N · 2^exponent, written out."""

    def __init__(self, A: Operator) -> None:
        self.array = A.toarray()
        self.N, self.exponent = exact_matrix(self.array)
        self.lattice = Lattice.of(self.N)
        # What writing out a low-rank A may have changed any value by.
        self._rounding = 0.0 if A.is_exact() else float(A.entry_error().sum())
        self._scale = A.scale()
        self._digits = self._digits_for(A.n)

    def integer_value(self, x: FloatArray) -> int:
        """xᵀNx."""
        signs = np.array([int(s) for s in x], dtype=object)
        return int(signs @ self.N @ signs)

    def claim(self, value: int) -> int:
        """The bound to prove for signs of this value: the value itself unless possible values are too dense."""
        tolerance = self._tolerance(self.real(value))
        if self.lattice.step == 0 or self.real(self.lattice.step) > tolerance:
            return value
        return value - math.ceil(Fraction(tolerance) / Fraction(2) ** self.exponent)

    def above(self, value: int) -> int:
        """A node whose bound is above this holds nothing below `claim`."""
        return self.lattice.ceiling(self.claim(value)) - max(self.lattice.step, 1)

    def real(self, integer: int | Fraction) -> float:
        """A value in units of A."""
        return float(Fraction(integer) * Fraction(2) ** self.exponent)

    def float_bound(self, bound: Fraction) -> float:
        """A float64 bound for A as it was given."""
        exact = Fraction(self.lattice.ceiling(bound)) * Fraction(2) ** self.exponent - Fraction(self._rounding)
        nearest = float(exact)
        return nearest if Fraction(nearest) <= exact else below(nearest)

    def certified(self, node: Node, leaf: Leaf) -> tuple[Dual, Fraction]:
        """The dual point in integers, and the bound that it proves."""
        dual = exact_dual(node, leaf, self.exponent, self._digits)
        return dual, leaf_bound(self.N, node.groups, dual)

    def _tolerance(self, value: float) -> float:
        return CLOSE * max(abs(value), 1e-3 * self._scale)

    def _digits_for(self, n: int) -> int:
        """Binary digits behind the point such that rounding costs little of the distance between two values."""
        largest = math.frexp(float(np.abs(self.array).sum(axis=1).max()))[1]
        distance = max(self.real(self.lattice.step), self._tolerance(0.0))
        wanted = 8 + math.frexp(n / distance)[1]
        return min(max(wanted, FEWEST_DIGITS - largest), MOST_DIGITS - largest)
