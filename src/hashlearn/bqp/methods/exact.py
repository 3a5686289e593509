"""Exact minimization of eq. (5) by trying all signs, for up to 24 variables.

x and −x have the same value, so x_0 = +1 is fixed and 2^(n−1) points are left. They are visited in Gray code order,
each one flip away from the last: O(n) a point, O(2ⁿ n) in all, about a tenth of a second at n = 24. Low-rank problems
of any size are possible if merging identical rows of P leaves at most 24 variables. One bit of a supervised code is
such a problem once the other bits are constant inside each class. Equal rows with A_ii > 0 are not merged.

All sums are sums of integers, so none is rounded. Integers that are too large for one word are cut into limbs of 40
bits, so it is exact for numbers of any range, in time proportional to the number of limbs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.exact_numbers import ExactForm, float_at_most
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof.check import IntArray
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray

LIMIT = 24
WORD = 60  # bits of Σ|a_ij| up to which a value, and four times the largest sum of a row, fit into int64
LIMB = 40  # bits; sums of 4 · 24² such numbers stay far below 2⁶³
STEPS_PER_PIECE = 1 << 19  # Gray code steps between two checks of the time


@dataclass(frozen=True)
class Exact(Solver):
    """Tries all signs of up to 24 variables, or distinct rows: the optimum, with a bound that proves it.

    An array or a sparse matrix is enumerated in integers, so the bound is the value. With low-rank parts the bound lies
    lower by what rounding could have hidden in the entries, at most 4e-12 · Σ|a_ij| and mostly far less, measured
    against the parts where they cancel. Then the status is "optimal" only if the gap is at most 1e-9.

    Examples
    --------
    A million samples with two distinct rows are two variables:

    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> rows = np.array([[0.0, 1.0], [1.0, 2.0]])
    >>> P = np.repeat(rows, 500_000, axis=0)
    >>> solution = bqp.solve(bqp.LowRank(P, weights=[1.0, -1.0]), "exact")
    >>> solution.value, solution.status.value
    (-2000000000000.0, 'optimal')
    """

    name: ClassVar[str] = "exact"
    merges = True

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose the optimum and its bound."""
        if A.n > LIMIT:
            size = f"n = {A.n}"
            if A.is_low_rank:
                size += " distinct rows of P (those that repel their like, A_ii > 0, count one by one)"
            raise ValueError(
                f'method "exact" tries all signs and takes at most {LIMIT} variables, but A has {size}; '
                'use method "sdr" for a good point with a proven bound, or "local_search" for a good point alone'
            )
        x, bound = enumerate_signs(A, partial(state.check_time, "enumeration"), state.exact)
        state.propose(x)
        state.propose_bound(bound)
        return Status.CONVERGED


def enumerate_signs(
    A: Operator, between: Callable[[float], Any] = lambda done: None, exact: ExactForm | None = None
) -> tuple[FloatArray, float | Fraction]:
    """The signs of smallest xᵀAx and a bound that no signs go below, for few variables.

    ``between`` is called with the fraction done. Among points of equal value the first met is returned. With
    ``exact``, the integers of A, the bound is the least value, as a fraction where float64 would round it.

    >>> from hashlearn.bqp import as_operator
    >>> enumerate_signs(as_operator([[0.0, 1.0], [1.0, 0.0]]))
    (array([ 1., -1.]), -2.0)
    """
    if A.is_exact() and (exact is None or exact.rounding == 0.0):
        x = _best_signs(A.toarray().astype(np.int64)[None], between)
        return x, A.value(x)
    if exact is not None:
        x = _best_signs(_limbs(exact.N), between)
        return x, exact.value(x)
    # Entries are rounded to integers so large that all rounding together is far below that of the entries themselves.
    array = A.toarray()
    exponent = math.frexp(float(np.abs(array).sum()))[1] - WORD + 1
    scaled = np.ldexp(array, -exponent)
    N = np.rint(scaled).astype(np.int64)
    x = _best_signs(N[None], between)
    least = int(x.astype(np.int64) @ N @ x.astype(np.int64)) - int((scaled != N).sum())
    return x, float_at_most(Fraction(2) ** exponent * least - Fraction(A.entry_error()))


def _best_signs(limbs: NDArray[np.int64], between: Callable[[float], Any]) -> FloatArray:
    """The first signs of smallest value, for integers in limbs, the lowest first."""
    n, total = limbs.shape[1], 1 << (limbs.shape[1] - 1)
    limbs = limbs * (1 - np.eye(n, dtype=np.int64))  # the diagonal adds the same to all values
    x, best_x = np.ones(n), np.ones(n)
    products = limbs.sum(axis=2)
    value = products.sum(axis=1)
    best = value.copy()
    for first in range(0, total, STEPS_PER_PIECE):
        last = min(total, first + STEPS_PER_PIECE)
        _visit(limbs, x, products, value, best_x, best, first, last)
        between(last / total)
    return best_x


def _limbs(N: IntArray) -> NDArray[np.int64]:
    """Integers cut into pieces of `LIMB` bits, the lowest first, each with the sign of its integer."""
    N = N - np.diag(N.diagonal())
    sizes: IntArray = abs(N)
    if int(sizes.sum()).bit_length() <= WORD:
        return N[None].astype(np.int64)
    signs = np.sign(N).astype(np.int64)
    count = -(-int(sizes.max()).bit_length() // LIMB)
    return np.array([((sizes >> (LIMB * k)) & ((1 << LIMB) - 1)).astype(np.int64) * signs for k in range(count)])


@njit(cache=True, nogil=True)
def _visit(limbs, x, products, value, best_x, best, first, last):  # type: ignore[no-untyped-def]
    """The points ``first`` to ``last`` of the Gray code; x, products and value are those of ``first``.

    The state is moved on to the point ``last``.
    """
    n_limbs, n = limbs.shape[0], limbs.shape[1]
    for step in range(first, last):
        carry = 0  # of value − best; what is left of it at the top has the sign of the difference
        for k in range(n_limbs):
            carry = (value[k] - best[k] + carry) >> LIMB
        if carry < 0:
            best_x[:] = x
            best[:] = value
        i, rest = 1, step + 1
        while not rest & 1:
            rest >>= 1
            i += 1
        if i >= n:
            break
        sign = 1 if x[i] > 0.0 else -1
        x[i] = -x[i]
        for k in range(n_limbs):
            value[k] -= 4 * sign * products[k, i]
            for j in range(n):
                products[k, j] -= 2 * sign * limbs[k, i, j]
