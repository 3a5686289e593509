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
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.exact_numbers import ExactForm, float_at_most
from hashlearn.bqp.operators import Operator, Structured
from hashlearn.bqp.rows import Array
from hashlearn.core.arrays import EPS, FloatArray, is_tensor, tensor_like
from hashlearn.core.checks import LARGEST_ENTRY
from hashlearn.core.threads import map_row_blocks
from hashlearn.core.thresholds import HOST_ROWS, LARGEST_TREE, LOOK_AT_COLUMNS, LOOK_AT_FIRST

# With more than `HOST_ROWS` rows a copy of P pays only if merging removes at least this fraction of them.
WORTHWHILE = 0.05
# Problems of other sizes are scaled by a power of two.
SAFE_SIZES = (1e-60, 1e60)
# Binary exponents of the largest entry: values below lose digits, values above may overflow.
LEAST_EXPONENT, LARGEST_EXPONENT = -960, 900
HASHED_ROWS = 1 << 14  # of a tensor at once


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


# Identical rows: hash every row, sort the hashes, compare rows of equal hash. A tensor stays on its device.


def merge_rows(P: Any, weights: FloatArray, worthwhile: float) -> tuple[Any, Any] | None:
    """Merge m identical rows p to one row m · p. Returns the new rows, and for each old row its new index.

    Returns None if merging would remove less than the fraction ``worthwhile`` of the rows. Rows with pᵀWp > 0 are not
    merged.
    """
    xp, (n, rank) = _module(P), P.shape
    most = (1.0 - worthwhile) * n
    if worthwhile > 0.0 and n > 10 * LOOK_AT_FIRST:
        sample = P[:: n // LOOK_AT_FIRST]
        if len(xp.unique(_hashes(sample))) == len(sample):
            return None
    if rank > 2 * LOOK_AT_COLUMNS and len(xp.unique(_hashes(P[:, -LOOK_AT_COLUMNS:]))) > most:
        return None
    first, groups = _first_of_each(_hashes(P))
    if len(first) > most:
        return None
    alone = _not_mergeable(P, weights, first, groups)
    if bool(alone.any()):
        first, groups = _first_of_each(xp.where(alone, len(first) + xp.arange(n, device=P.device), groups))
    if len(first) == n:
        return None
    merged = xp.asarray(P[first], dtype=xp.float64) * xp.bincount(groups)[:, None]
    if len(first) > HOST_ROWS:  # smaller problems are solved in float64
        exact, merged = merged, xp.asarray(merged, dtype=P.dtype)
        if not bool((merged == exact).all()):
            return None  # rounded to the dtype of P it would be another problem, whose bound proves nothing here
    return merged, groups


def _first_of_each(labels: Any) -> tuple[Any, Any]:
    """The first place of each label, in that order, and for each row the index of its label."""
    xp = _module(labels)
    order = xp.argsort(labels, stable=True)
    ordered = labels[order]
    starts = xp.concatenate([xp.ones_like(ordered[:1], dtype=xp.bool), ordered[1:] != ordered[:-1]])
    first = order[starts]
    by_place = xp.argsort(first)
    place, groups = xp.empty_like(first), xp.empty_like(order)
    place[by_place] = xp.arange(len(first), device=labels.device)
    groups[order] = place[xp.cumsum(starts, 0) - 1]
    return first[by_place], groups


def _not_mergeable(P: Any, weights: FloatArray, first: Any, groups: Any) -> Any:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry may be positive."""
    repels = _by_blocks(lambda a, b: _may_repel(P[first[a:b]], weights), P[: len(first)])

    def check(a: int, b: int) -> Any:
        differs = (P[a:b] != P[first[groups[a:b]]]).any(axis=1)
        return differs | repels[groups[a:b]]

    return _by_blocks(check, P)


def _may_repel(rows: Any, weights: FloatArray) -> Any:
    """Whether pᵀWp could be positive in exact arithmetic: rounding decides against merging, unless all are integers."""
    xp = _module(rows)
    rows, w = (xp.asarray(values, dtype=xp.float64, device=rows.device) for values in (rows, weights))
    squares = rows * rows
    rounding = (len(weights) + 2) * EPS * (squares @ abs(w))
    exact = (rows == rows.round()).all(axis=1) & bool((weights == np.rint(weights)).all()) & (rounding < 1.0)
    return squares @ w > xp.where(exact, 0.0, -rounding)


def _hashes(P: Any) -> Any:
    """64 bits for each row; −0.0 hashes as 0.0. For tensors a random combination of the bits, modulo 2⁶⁴."""
    if not is_tensor(P):
        P = np.ascontiguousarray(P)
        return _by_blocks(lambda a, b: _hash_rows(P[a:b]), P)
    torch = _module(P)
    # In pieces of 32 bits, because the low bits of a product do not depend on the high bits of its factors.
    odd = np.random.default_rng(0).integers(-(2**62), 2**62, P.shape[1] * P.element_size() // 4) * 2 + 1
    factors = tensor_like(odd, P, torch.int64)
    return _by_blocks(lambda a, b: ((P[a:b] + 0.0).view(torch.int32).long() * factors).sum(dim=1), P)


def _by_blocks(function: Callable[[int, int], Any], P: Any) -> Any:
    """``function(first, last)`` of all blocks of rows of P, joined."""
    if not is_tensor(P):
        return np.concatenate(map_row_blocks(function, *P.shape))
    ends = range(0, len(P), HASHED_ROWS)
    return _module(P).cat([function(first, min(first + HASHED_ROWS, len(P))) for first in ends])


def _module(P: Any) -> Any:
    """``torch`` for a tensor, else ``numpy``."""
    return sys.modules["torch"] if is_tensor(P) else np


@njit(cache=True, nogil=True)
def _hash_rows(P):  # type: ignore[no-untyped-def]
    """64-bit hash of the bits of each row; −0.0 hashes as 0.0."""
    n, rank = P.shape
    out = np.empty(n, np.uint64)
    scratch = np.empty(1)
    bits = scratch.view(np.uint64)
    for i in range(n):
        h = np.uint64(14695981039346656037)
        for j in range(rank):
            scratch[0] = P[i, j] + 0.0
            h = (h ^ bits[0]) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        out[i] = h
    return out
