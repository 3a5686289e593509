"""Constraints on the signs: fixed variables, and the sum of all signs (`Cardinality`).

All fixed variables are replaced by one, the *anchor*: x_i = s_i · x_anchor. This is exact, and x ↔ −x lets the anchor
be +1, so every solver takes fixed variables. `Contracted` holds the smaller problem and translates signs.

A cardinality stays a constraint. Solvers that take it say so (``takes_cardinality``) and read ``Run.cardinality``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.exact_form import ExactForm
from hashlearn.bqp.operators import Dense, LowRank, Operator, Sparse, SparsePlusLowRank
from hashlearn.core.arrays import EPS, FloatArray


@dataclass(frozen=True)
class Cardinality:
    """Σ x_i = ``total`` over all variables but the ``anchor``, which is +1 itself; None: there is no anchor.

    Without an anchor x and −x are equally good for the objective, and only one of them has the sum.
    """

    total: int
    anchor: int | None = None

    def holds(self, x: FloatArray) -> bool:
        """Whether the signs x, or −x, keep the constraint."""
        return self.oriented(x) is not None

    def oriented(self, x: FloatArray) -> FloatArray | None:
        """x or −x, whichever keeps the constraint; None if neither does."""
        if self.anchor is not None:
            x = x * x[self.anchor]
            return x if x.sum() - 1.0 == self.total else None
        total = x.sum()
        return x if total == self.total else -x if total == -self.total else None

    def some_signs(self, n: int) -> FloatArray:
        """Signs that keep the constraint, the first ones +1."""
        x = np.full(n, -1.0)
        free = np.arange(n) if self.anchor is None else np.delete(np.arange(n), self.anchor)
        x[free[: (len(free) + self.total) // 2]] = 1.0
        if self.anchor is not None:
            x[self.anchor] = 1.0
        return x


@dataclass(frozen=True, eq=False)
class Contracted:
    """A problem without its fixed variables: its last variable, the anchor, stands for all of them."""

    operator: Operator
    free: NDArray[np.intp]  # the original variables that are left, in order
    fixed: NDArray[np.intp]
    signs: FloatArray  # of the fixed variables
    slack: float  # rounding in the sums behind ``operator`` can have moved a value by this much

    @property
    def anchor(self) -> int:
        """The variable that stands for the fixed ones."""
        return len(self.free)

    def exact(self, form: ExactForm) -> ExactForm:
        """The integers of ``operator`` from those of the original A."""
        columns, signs = np.full(form.n, self.anchor), np.ones(form.n)
        columns[self.free] = np.arange(len(self.free))
        signs[self.fixed] = self.signs
        return form.contracted(columns, signs, self.slack)

    def expand(self, x: FloatArray) -> FloatArray:
        """Signs of the original variables."""
        x = x * x[self.anchor]
        full = np.empty(len(self.free) + len(self.fixed))
        full[self.free], full[self.fixed] = x[:-1], self.signs
        return full

    def collapse(self, x: FloatArray) -> FloatArray:
        """The signs x of the original variables, which must agree with the fixed ones, or be their opposite."""
        agreement = x[self.fixed] * self.signs
        if agreement.min() != agreement.max():
            raise ValueError("x0 must have the signs of the fixed variables")
        return np.append(x[self.free] * agreement[0], 1.0)


def contracted(A: Operator, fixed: Mapping[Any, Any]) -> Contracted:
    """The problem in which variable i has the sign ``fixed[i]``."""
    index, signs = _checked_fixed(fixed, A.n)
    free = np.setdiff1d(np.arange(A.n), index)
    columns = np.full(A.n, len(free))
    columns[free] = np.arange(len(free))
    entries = np.ones(A.n)
    entries[index] = signs
    C = sp.csr_array((entries, (np.arange(A.n), columns)), shape=(A.n, len(free) + 1))
    # An entry is a sum of at most len(index)² products, added in two steps.
    slack = 0.0 if A.is_exact() else 8.0 * (len(index) + 8) * EPS * float(A.magnitudes().sum())
    return Contracted(_congruent(A, C), free, index, signs, slack)


def _congruent(A: Operator, C: sp.csr_array) -> Operator:
    """CᵀAC."""
    if isinstance(A, Dense):
        half = np.asarray(C.T @ A.array)
        array = np.asarray(C.T @ half.T)
        return Dense.unchecked(np.ascontiguousarray(0.5 * (array + array.T)))
    if isinstance(A, SparsePlusLowRank):
        sparse, low_rank = _congruent(A.sparse, C), _congruent(A.low_rank, C)
        assert isinstance(sparse, Sparse)
        assert isinstance(low_rank, LowRank)
        return SparsePlusLowRank(sparse, low_rank)
    if isinstance(A, LowRank):
        if not A.rows.on_host:
            raise ValueError("fixed takes problems of NumPy arrays; copy P to the host first")
        return LowRank.unchecked(C.T @ A.P, A.weights)
    assert isinstance(A, Sparse)
    matrix = sp.csr_array(C.T @ A.matrix @ C)
    return Sparse(sp.csr_array(0.5 * (matrix + matrix.T)))


def _checked_fixed(fixed: Mapping[Any, Any], n: int) -> tuple[NDArray[np.intp], FloatArray]:
    """The indices, in order, and their signs."""
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must map variables to +1 or -1, such as {{0: 1, 5: -1}}, got {type(fixed).__name__}")
    for i, sign in fixed.items():
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < n:
            raise ValueError(f"fixed must map variables 0 to {n - 1} to +1 or -1, got the variable {i!r}")
        if isinstance(sign, bool) or sign not in (-1, 1):
            raise ValueError(f"fixed must map variables to +1 or -1, got {sign!r} for variable {i}")
    index = np.array(sorted(int(i) for i in fixed), dtype=np.intp)
    return index, np.array([float(fixed[int(i)]) for i in index])


def checked_cardinality(total: Any, n: int, inner: Contracted | None) -> Cardinality:
    """Σx = ``total`` over all n variables, as a constraint on the variables of the contracted problem."""
    if isinstance(total, bool) or not isinstance(total, int | np.integer):
        raise TypeError(f"cardinality must be a whole number, the sum of all signs, got {total!r}")
    total = int(total)
    if abs(total) > n or (n - total) % 2:
        parity = "even" if n % 2 == 0 else "odd"
        raise ValueError(
            f"cardinality must be the sum of {n} signs, an {parity} number from {-n} to {n}, got {total}; "
            f"for k signs of +1 give 2 · k − {n}"
        )
    if inner is None:
        return Cardinality(total)
    rest = total - int(inner.signs.sum())
    if abs(rest) > len(inner.free):
        raise ValueError(
            f"cardinality is {total}, but the fixed variables sum to {int(inner.signs.sum())} and "
            f"only {len(inner.free)} variables are free; no signs have that sum"
        )
    return Cardinality(rest, inner.anchor)
