"""Steps that make a problem smaller or easier before a solver sees it, and translate the answer back.

Each step replaces A by a B for which xᵀAx = unit · (zᵀBz + constant) with x = expand(z), so the optimum is kept:

* **standardize**: a very large or very small A is divided by a power of two. Few rows on a device are copied to the
  host, which works faster on them.
* **fix**: all variables with given signs are replaced by one, the *anchor*: x_i = s_i · x_anchor. As x ↔ −x lets the
  anchor be +1, every solver takes fixed variables.
* **merge**: samples with equal rows p of P enter xᵀAx only through the sum of their signs. If pᵀWp ≤ 0, the value is
  concave in that sum, so some optimum gives all of them the same sign. The same holds for the unit vectors of the
  relaxation (10). So m equal rows become one row m·p, and value, optimum and SDP bound do not change. Both settings of
  the paper have A_ii = −1. Groups with pᵀWp > 0, or so near 0 that rounding leaves the sign open, are not merged. The
  cost is one pass over P and a sort of n hashes.
* **eliminate**: variables with at most three neighbors of a sparse A (`elimination`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.exact_numbers import ExactForm, float_at_most
from hashlearn.bqp.operators import Operator, Structured
from hashlearn.bqp.rows import Array
from hashlearn.bqp.rows.equal_rows import merge_rows
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.checks import LARGEST_ENTRY
from hashlearn.core.thresholds import HOST_ROWS, LARGEST_TREE

# With more than `HOST_ROWS` rows a copy of P pays only if merging removes at least this fraction of them.
WORTHWHILE = 0.05
# Problems of other sizes are scaled by a power of two.
SAFE_SIZES = (1e-60, 1e60)
# Binary exponents of the largest entry: values below lose digits, values above may overflow.
LEAST_EXPONENT, LARGEST_EXPONENT = -960, 900


@dataclass(frozen=True, eq=False)
class Step:
    """A problem B in place of A: xᵀAx = unit · (zᵀBz + constant) for x = ``expand(z)``, up to ``slack``."""

    problem: Operator
    expand: Callable[[Array], Array] = lambda z: z  # signs of all variables
    collapse: Callable[[Array], Array] = lambda x: x  # signs for ``problem`` that are like the signs x
    constant: float = 0.0
    slack: float = 0.0  # rounding in ``problem`` and ``constant`` moves a value of A by at most this
    unit: float = 1.0
    form: ExactForm | None = None  # ``problem`` in integers

    def bound(self, bound: float) -> float:
        """A lower bound for A from one for ``problem``."""
        if not math.isfinite(bound):
            return bound
        exact = Fraction(self.unit) * (Fraction(bound) + Fraction(self.constant)) - Fraction(self.slack)
        return float_at_most(exact)


def standardize(A: Operator) -> Step:
    """A at a size at which nothing over- or underflows, with its integers, and on the host if it has few rows.

    >>> step = standardize(Structured(P=[[1.0], [2.0]], weights=[2.0**300]))
    >>> step.unit * step.problem.value(np.ones(2)) == 9.0 * 2.0**300
    True
    """
    step = to_host(A) or Step(A)
    problem, exponent = step.problem, 0
    with np.errstate(all="ignore"):
        is_safe = SAFE_SIZES[0] < problem.scale() < SAFE_SIZES[1]
    if not is_safe and (size := problem.exponent()) is not None:  # None: A = 0
        limit = LARGEST_EXPONENT - 2 * A.n.bit_length()
        if not LEAST_EXPONENT <= size <= limit:
            own, least, most = (f"1e{round(e * math.log10(2.0)):+d}" for e in (size, LEAST_EXPONENT, limit))
            raise ValueError(
                f"A has entries of size {own}, but values are computed from {least} to {LARGEST_ENTRY:.0e}, and to "
                f"{most} for products of low-rank factors; multiply A by a constant first"
            )
        problem, exponent = problem.scaled_by_power(-size), size
    form = A.exact_form() if A.n <= LARGEST_TREE else None
    return replace(step, problem=problem, unit=math.ldexp(1.0, exponent), form=form and form.scaled(-exponent))


def fix(A: Operator, fixed: Mapping[Any, Any], form: ExactForm | None = None) -> Step:
    """Variable i gets the sign ``fixed[i]``; the last variable of the smaller problem stands for all of them."""
    index, signs = _checked_fixed(fixed, A.n)
    free = np.setdiff1d(np.arange(A.n), index)
    anchor = len(free)
    columns, entries = np.full(A.n, anchor), np.ones(A.n)
    columns[free], entries[index] = np.arange(anchor), signs
    C = sp.csr_array((entries, (np.arange(A.n), columns)), shape=(A.n, anchor + 1))
    # An entry is a sum of at most len(index)² products, added in two steps.
    slack = 0.0 if A.is_exact() else 8.0 * (len(index) + 8) * EPS * float(A.magnitudes().sum())

    def collapse(x: FloatArray) -> FloatArray:
        agreement = x[index] * signs
        if agreement.min() != agreement.max():
            raise ValueError("x0 must have the signs of the fixed variables")
        return np.append(x[free] * agreement[0], 1.0)

    return Step(
        A.congruent(C),
        lambda z: z[columns] * entries * z[anchor],
        collapse,
        slack=slack,
        form=form and form.contracted(columns, entries, slack),
    )


def merge(A: Operator) -> Step | None:
    """Equal rows of a low-rank A become one; None if too few are equal.

    >>> step = merge(Structured(P=[[1.0], [1.0], [2.0]], weights=[-1.0]))
    >>> step.problem.P.ravel(), step.expand(np.array([1.0, -1.0]))
    (array([2., 2.]), array([ 1.,  1., -1.]))
    """
    if not A.is_low_rank or A.rank == 0:
        return None
    merged = merge_rows(A.P, A.weights, WORTHWHILE if A.n > HOST_ROWS else 0.0)
    if merged is None:
        return None
    P, groups = merged
    return Step(
        Structured(P=P, weights=A.weights),
        lambda z: z[groups],
        lambda x: A.rows.copy(1.0 - 2.0 * (A.rows.xp.bincount(groups, x, len(P)) < 0.0)),  # +1 for a tie
    )


def to_host(A: Operator) -> Step | None:
    """A low-rank problem of few rows on a device as NumPy arrays; None for others."""
    if A.rows.on_host or A.n > HOST_ROWS or not A.is_low_rank:
        return None
    host = Structured.unchecked(P=A.rows.to_host(), weights=A.weights)
    return Step(host, A.rows.from_numpy, A.rows.to_numpy)


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
