"""Semidefinite relaxation with randomized rounding: the paper's section 2.2, with a certificate and linear cost.

The solver is here. ``interior_point`` solves small problems · ``low_rank`` solves low-rank problems in rank × k
numbers · ``general`` all others, by the ``steps`` for their kind of A, on the host and on devices · ``certificate`` and
``chebyshev`` prove bounds · ``rounding`` rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.flips import Descent
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows import Array
from hashlearn.bqp.sdr.certificate import diagonal_bound
from hashlearn.bqp.sdr.general import GeneralRelaxation
from hashlearn.bqp.sdr.interior_point import relax_small
from hashlearn.bqp.sdr.low_rank import LOOSE, relax_low_rank, relax_on_samples
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance, column_values, expected_rounding_value
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.checks import positive, whole_number
from hashlearn.core.thresholds import DENSE_CERTIFICATE_LIMIT, EXPECTATION_PAIRS, INTERIOR_POINT_ROWS, RELAXED_ROWS

TIGHT, WIDE = 1e-6, 1e-4  # the default gaps
EARLY_DRAWS = 2  # rounded while the relaxation is being solved
EARLY_ROWS = 50_000  # with fewer rows and no time limit nothing is rounded early


@dataclass(frozen=True)
class SemidefiniteRelaxation(Solver):
    """Solves the semidefinite relaxation (10) with a proven bound, rounds it (11), improves the best draws by flips.

    Parameters
    ----------
    n_draws : number of random draws of eq. (11)
    polish : 1-flip descent from this many of the best draws (and from x0, if given); 0 is the paper's way
    tol : relative gap between the relaxation's value and its proven bound at which it counts as solved; None: 1e-6, or
        1e-4 for an A that is not low rank and has more than ``proof_limit`` rows
    rank : columns of the factor to begin with; raised when the certificate fails
    max_iter : rounds of solve, certify, raise the rank
    max_flip_passes : passes of that descent over the rows
    sampled : with more than 8,000 rows, solve the relaxation of a low-rank A on a sample (`relax_on_samples`).
        Rounding, flips and the bound take all rows. On a device a ``tol`` of 5e-3 or more does the same
    certify : whether the bound from sampled rows is proven; without a proof there is no bound
    proof_limit : rows up to which an A that is not low rank is factored to prove its bound, O(n³); beyond, and if the
        time limit is too short for that, products alone bound it (`chebyshev`), with probability 1 − 1e-9

    Notes
    -----
    ``Solution.details`` holds ``relaxation_value`` (of the point that was rounded), ``relaxation_gap`` (that value
    against ``bound``, relative), ``rank``, ``certificate`` ("cholesky": a proof; "chebyshev": see ``proof_limit``;
    "diagonal": the sum of the diagonal minus all other magnitudes, if nothing better came in time; "none": see
    ``certify``),
    ``mean_draw`` and ``best_draw``, ``expected_value``: the closed form (13), None where it would be a sum of over a
    million terms (`expected_rounding_value` gives it for any n), and ``merged_n`` after equal rows were merged.
    ``relaxed_rows`` are the rows of the last sample, if samples were relaxed.

    Deviations
    ----------
    * The paper solves (10) for B = A − λ₁I with an interior-point package. A and B have the same relaxation up to the
      constant nλ₁ (Prop. 1), so A is used, in the factored form X = VVᵀ with unit rows: for low rank linear in n
      instead of O(n^4.5), with the same optimum, proven by the bound.
    * The best draws are improved by single flips. ``polish=0`` switches that off.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    >>> solution = bqp.solve(ring, bqp.SemidefiniteRelaxation(n_draws=20), random_state=0)
    >>> round(solution.details["relaxation_value"], 4)
    -8.0902
    >>> solution.value, solution.bound  # sums of integers cannot lie between −8.09 and −6
    (-6.0, -6.0)
    """

    n_draws: int = 100
    polish: int = 10
    tol: float | None = None
    rank: int = 8
    max_iter: int = 30
    proof_limit: int = DENSE_CERTIFICATE_LIMIT
    max_flip_passes: int = 1000
    certify: bool = True
    sampled: bool = False

    name: ClassVar[str] = "sdr"
    merges = takes_tensors = takes_sparse_tensors = True

    def __post_init__(self) -> None:
        limits = {"n_draws": 1, "polish": 0, "rank": 2, "max_iter": 1, "proof_limit": 0, "max_flip_passes": 1}
        for field, least in limits.items():
            whole_number(getattr(self, field), field, least=least)
        if self.tol is not None:
            positive(self.tol, "tol")

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: Array | None) -> Status:
        """Offers the rounded and improved draws, and the dual bound."""
        on_host, first_bound = A.rows.on_host, -np.inf
        if not A.is_low_rank or (on_host and state.seconds_left < np.inf):
            first_bound = diagonal_bound(A)
            state.propose_bound(first_bound)
            state.details["certificate"] = "diagonal"
        state.check_time("start")
        # A point to return if the time is over before the first rounding.
        if self.polish and (on_host or A.is_sparse):
            start = A.rows.from_numpy(np.where(rng.random((A.n, 1)) < 0.5, -1.0, 1.0))
            _polish(A, start, 2, state)
        tolerance = Tolerance(self._gap(A), A.scale(), self.max_iter, self.proof_limit)
        relaxation = self._relax(A, tolerance, state, rng)
        solved = tolerance.met(relaxation.value, relaxation.bound) or relaxation.certificate == "none"
        state.propose_bound(relaxation.bound)
        state.record(relaxation_value=relaxation.value)
        state.details.update(relaxation_gap=relaxation.gap, rank=relaxation.rank)
        if relaxation.bound >= first_bound or relaxation.certificate == "none":
            state.details["certificate"] = relaxation.certificate
        self._round(relaxation, state, rng, x0)
        state.record(expected_value=_expected_value(relaxation))
        return Status.CONVERGED if solved else Status.ITERATION_LIMIT

    def _gap(self, A: Operator) -> float:
        if self.tol is not None:
            return self.tol
        return TIGHT if A.is_low_rank or (A.n <= self.proof_limit and A.rows.on_host) else WIDE

    def _relax(self, A: Any, tolerance: Tolerance, state: SolveState, rng: np.random.Generator) -> Relaxation:
        on_host = A.rows.on_host
        if on_host and A.n <= INTERIOR_POINT_ROWS:
            return relax_small(A, tolerance, lambda: state.check_time("interior point"))
        if A.is_low_rank and (A.n > A.rank // 4 or not on_host):
            if (self.sampled and A.n > 2 * RELAXED_ROWS) or (tolerance.relative >= LOOSE and not on_host):
                return relax_on_samples(A, tolerance, self.rank, rng, state, self.certify)
            relaxation = relax_low_rank(A, tolerance, self.rank, rng, state)
            if tolerance.met(relaxation.value, relaxation.bound) or not on_host:
                return relaxation
        some = rng.spawn(1)[0]

        def on_the_way(V: Array) -> None:
            draws = Relaxation(A, np.inf, -np.inf, V.shape[1], "none", unit_rows=V)
            _polish(A, draws.draw(some.standard_normal((V.shape[1], EARLY_DRAWS))), self.max_flip_passes, state)

        early = self.polish > 0 and (state.seconds_left < np.inf or A.n >= EARLY_ROWS)
        return GeneralRelaxation(A, tolerance, rng, state, on_the_way if early else None).solve(self.rank)

    def _round(self, relaxation: Relaxation, state: SolveState, rng: np.random.Generator, x0: Array | None) -> None:
        """The draws; the best of each group is proposed at once, as time may be short. Then flips from the best."""
        state.check_time("rounding")
        A = relaxation.operator
        normals = rng.standard_normal((relaxation.rank, self.n_draws))
        parts = []
        for X, values in relaxation.draws(normals):
            parts.append(values)
            if X is not None:
                state.propose(X[:, int(np.argmin(values))], float(values.min()))
                if self.polish and not A.rows.on_host:  # flips cost a device less than draws
                    _polish(A, X, self.max_flip_passes, state)
            state.check_time("rounding")
        values = np.concatenate(parts)
        state.record(mean_draw=float(values.mean()), best_draw=float(values.min()))
        X = relaxation.draw(normals[:, np.argsort(values, kind="stable")[: max(self.polish, 1)]])
        if A.rows.on_host:
            state.propose(X[:, 0], float(values.min()))
        elif self.polish == 0:  # draws were valued in the dtype of P; a proposal without a value is valued in float64
            state.propose(X[:, 0])
        if self.polish:
            _polish(A, X if x0 is None else A.rows.xp.column_stack([X, x0]), self.max_flip_passes, state)


def _polish(A: Any, X: Array, max_passes: int, state: SolveState) -> None:
    """Propose the best result of single flips from every column of X, which may be changed in place."""
    descend = Descent(A).descend_columns if A.rows.on_host or A.is_low_rank else A.coloring.descend
    X = descend(X, max_passes, lambda: state.check_time("polish"))
    values = column_values(A, X)
    best = int(np.argmin(values))
    state.propose(X[:, best], float(values[best]))


def _expected_value(relaxation: Relaxation) -> float | None:
    A = relaxation.operator
    if not A.rows.on_host:
        return None
    pairs = A.sparse.nnz if A.is_sparse else A.n * A.n
    return expected_rounding_value(A, relaxation.rows()) if pairs <= EXPECTATION_PAIRS else None
