"""Exact minimization of eq. (5) by trying all signs, for up to 24 variables.

x and −x have the same value, so x_0 = +1 is fixed and 2^(n−1) points are left. They are visited in Gray code order,
each one flip away from the last: O(n) a point, O(2ⁿ n) in all, about a tenth of a second at n = 24. Low-rank problems
of any size are possible if merging identical rows of P leaves at most 24 variables. One bit of a supervised code is
such a problem once the other bits are constant inside each class. Equal rows with A_ii > 0 are not merged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numba import njit

from hashlearn.bqp.error_bounds import below
from hashlearn.bqp.exact_form import ExactForm
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import EPS, FloatArray

LIMIT = 24
# A run is 64 flips; each begins with products computed from scratch. The time is checked every 8,192 runs.
FLIPS = 1 << 6
RUNS_PER_PIECE = 1 << 13


@dataclass(frozen=True)
class Exact(Solver):
    """Tries all signs of up to 24 variables, or distinct rows: the optimum, with a bound that proves it.

    An array or a sparse matrix is enumerated in integers (`hashlearn.bqp.exact_form`), so the bound is the value. With
    low-rank parts the bound lies lower by what rounding could have hidden, at most 4e-12 · Σ|a_ij| and mostly a tenth
    of that, measured against the parts where they cancel. Then the status is "optimal" only if the gap is at most 1e-9.

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
    operator: Operator,
    between: Callable[[float], Any] | None = None,
    exact: ExactForm | None = None,
) -> tuple[FloatArray, float | Fraction]:
    """The signs of smallest xᵀAx and a bound that no signs go below, for few variables.

    ``between`` is called with the fraction done. Among points of equal value the first met is returned. With
    ``exact``, the integers of the operator, the bound is the least value, as a fraction.

    >>> from hashlearn.bqp import as_operator
    >>> enumerate_signs(as_operator([[0.0, 1.0], [1.0, 0.0]]))
    (array([ 1., -1.]), -2.0)
    """
    n = operator.n
    if exact is not None and (exact.rounding > 0.0 or not operator.is_exact()):
        return exact.enumerated(between)
    A = operator.toarray()
    total = 1 << (n - 1)
    best_x, best_value = np.ones(n), np.inf
    for first in range(0, total, FLIPS * RUNS_PER_PIECE):
        codes, values = _best_of_runs(A, first, min(total, first + FLIPS * RUNS_PER_PIECE), FLIPS)
        # The few best are computed again, because rounding added up in their values.
        for k in np.argsort(values, kind="stable")[:8]:
            x = _signs_of(int(codes[k]), n)
            value = float(x @ (A @ x))
            if value < best_value:
                best_x, best_value = x, value
        if between is not None:
            between(min(1.0, (first + FLIPS * RUNS_PER_PIECE) / total))
    if operator.is_exact():
        return best_x, best_value
    return best_x, below(best_value - _rounding(A, min(FLIPS, total)) - float(operator.entry_error().sum()))


def _rounding(A: FloatArray, flips: int) -> float:
    """What the sum along a run of flips may be off by, A being known exactly.

    After k flips an entry of A @ x is off by (n + k)·eps of its row's Σ|a_ij| at most, and each flip adds four times
    that, and the rounding of the sum itself, to the value.
    """
    rows, n = np.abs(A).sum(axis=1), len(A)
    return EPS * float(rows.max() * (4 * n * flips + 2 * flips**2) + rows.sum() * 2 * (n + flips))


def _signs_of(code: int, n: int) -> FloatArray:
    """Bit k of the Gray code says whether x_{k+1} is −1; x_0 stays +1."""
    x = np.ones(n)
    x[1:][(code >> np.arange(n - 1)) & 1 == 1] = -1.0
    return x


@njit(cache=True, nogil=True)
def _best_of_runs(A, first, last, flips):  # type: ignore[no-untyped-def]
    """For each run of ``flips`` consecutive Gray codes from ``first`` on: the best code and its value."""
    n = A.shape[0]
    n_runs = (last - first + flips - 1) // flips
    codes = np.empty(n_runs, np.int64)
    values = np.empty(n_runs)
    x = np.empty(n)
    product = np.empty(n)
    for r in range(n_runs):
        begin = first + r * flips
        code = begin ^ (begin >> 1)
        x[0] = 1.0
        for k in range(n - 1):
            x[k + 1] = -1.0 if (code >> k) & 1 else 1.0
        value = 0.0
        for i in range(n):
            product[i] = 0.0
            for j in range(n):
                product[i] += A[i, j] * x[j]
            value += x[i] * product[i]
        best, best_code = value, code
        for step in range(begin + 1, min(begin + flips, last)):
            k = 0
            while not (step >> k) & 1:
                k += 1
            code ^= 1 << k
            i = k + 1
            value += 4.0 * (A[i, i] - x[i] * product[i])
            x[i] = -x[i]
            for j in range(n):
                product[j] += 2.0 * x[i] * A[i, j]
            if value < best:
                best, best_code = value, code
        codes[r], values[r] = best_code, best
    return codes, values
