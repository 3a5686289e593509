"""Lower bounds on min xᵀAx that hold in floating point: weak duality, then a verified eigenvalue.

Any y with A − Diag(y) ⪰ 0 proves Σy ≤ f_SDR ≤ f_opt, whatever solver proposed it. Only the semidefiniteness has to be
trusted. A Cholesky factorization that runs to its end *verifies* it, with a margin for the rounding of everything
before. An eigenvalue only guesses where to verify.

* low rank (`low_rank_bound`): for d > 0, −c·Σd is a bound if I + D^{-½} A D^{-½}/c ⪰ 0. With Q = D^{-½}P and
  H = |W|^½ QᵀQ |W|^½ this is a statement on the inertia of the rank × rank matrix c·sgn(W) + H. O(n rank²). For tensors
  it is decided on their device by products alone: `hashlearn.bqp.rows.inertia`.
* dense, sparse, mixed (`shifted_bound`): Σy − ε·Σd if A − Diag(y) + εD ⪰ 0, for any d > 0, by a dense Cholesky
  factorization of D^{-½}(A − Diag(y))D^{-½} + εI. O(n³), small n.
* the same for large n (`chebyshev.chebyshev_test`): by products alone, holds with probability ≥ 1 − 1e-9.
* at once, without any dual (`diagonal_bound`): Σ_i (a_ii − Σ_j |a_ij|).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from hashlearn.bqp.error_bounds import below, sum_below
from hashlearn.bqp.operators import Operator, Structured
from hashlearn.bqp.rows import ProofGram, TallArray
from hashlearn.bqp.rows.inertia import Inertia, is_positive_definite
from hashlearn.bqp.sdr.chebyshev import chebyshev_test, metric, shifted_sum
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import all_blas_threads
from hashlearn.core.thresholds import ARPACK_SCALING, DENSE_CERTIFICATE_LIMIT, LAPACK_SHIFT, TRY_ENOUGH

BISECTIONS = 3  # between a bound that is enough and the value
WEAKER = (4.0, 32.0, 256.0, 2048.0)  # gaps to try if the gap that is enough fails, as multiples of it

# The test of `chebyshev_test` may lose this share of the gap that is allowed, and never has to lose less than this.
LOSS_SHARE, LEAST_LOSS = 0.6, 1e-7
MEASURED_FACTOR = 512  # rows of the factorization that is timed, if time is limited


class Certificate(NamedTuple):
    """A proven bound, and the direction in which the relaxation could still fall."""

    bound: float
    direction: FloatArray  # a vector, or several as columns
    kind: str  # "cholesky" is a proof, "chebyshev" holds with probability 1 − 1e-9


def low_rank_bound(
    A: Structured, d: TallArray, enough: float | None = None, value: float | None = None, with_direction: bool = True
) -> Certificate:
    """−c·Σd for the smallest c that could be verified; ``direction`` is Pᵀu for the eigenvector u behind c.

    If the bound ``enough`` can be verified, it is returned with ``direction`` 0. The eigenvalue, half of the cost for a
    large rank, is then not computed. If ``value`` (an upper limit for any bound) is given, bounds between ``enough``
    and ``value`` are tried by bisection. If ``enough`` fails and ``with_direction`` is False, a few weaker bounds are
    tried instead of computing the eigenvalue.

    >>> A = LowRank([[1.0], [1.0]], [-1.0])
    >>> float(round(low_rank_bound(A, np.array([2.0, 2.0])).bound, 9))
    -4.0
    """
    return proven_bound(A.rows.proof_gram(d), A.weights, enough, value, with_direction)


def proven_bound(
    proof: ProofGram,
    weights: FloatArray,
    enough: float | None = None,
    value: float | None = None,
    with_direction: bool = True,
) -> Certificate:
    """`low_rank_bound` from PᵀD⁻¹P and Σd, computed by any kind of rows."""
    rank = len(weights)
    inertia = Inertia(proof.gram, weights)
    rounding, total = proof.rounding * inertia.trace, proof.total

    def holds(bound: float) -> bool:
        c = -bound / total
        return c > 0.0 and inertia.holds(c, _margin(inertia, rank, c, rounding))

    if enough is not None:
        found = enough if holds(enough) else None
        if value is not None and enough < value and (found is not None or not with_direction):
            found = _by_trials(holds, value, enough, found is not None)
        if found is not None:
            return Certificate(_scaled_bound(-found / total, total), np.zeros(rank), "cholesky")
    c, vector = _smallest_scaling(inertia.matrix(), np.sign(weights))
    c = _verified_scaling(inertia, weights > 0, c, rounding)
    return Certificate(_scaled_bound(c, total), vector / np.sqrt(np.abs(weights)), "cholesky")


def _scaled_bound(c: float, total: float) -> float:
    """−c · total, rounded down."""
    return below(-c * total) if c > 0.0 else 0.0


def _by_trials(holds: Callable[[float], bool], value: float, enough: float, is_enough: bool) -> float | None:
    """The best verified bound of a few between ``value`` and ``enough``, or below ``enough`` where that one fails."""

    def between(share: float) -> float:
        return value - share * (value - enough)

    if is_enough:
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if holds(between(middle)) else (middle, high)
        return between(high)
    return next((between(share) for share in WEAKER if holds(between(share))), None)


def _smallest_scaling(H: FloatArray, sign: FloatArray) -> tuple[float, FloatArray]:
    """Estimate of c = −λ_min(Q W Qᵀ), as an eigenvalue of R diag(sign) Rᵀ with RᵀR = H, and Rᵀ times its vector."""
    jitter = 1e-14 * np.trace(H)
    try:
        R = la.cholesky(H + jitter * np.eye(len(H)), check_finite=False)
    except la.LinAlgError:
        values, vectors = la.eigh(H, check_finite=False)
        R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    M = (R * sign) @ R.T
    if len(M) > ARPACK_SCALING:
        try:
            value, vector = eigsh(M, k=1, which="SA", v0=np.ones(len(M)), tol=1e-10)
            return -float(value[0]), R.T @ vector[:, 0]
        except ArpackNoConvergence:
            pass
    value, vector = la.eigh(M, subset_by_index=[0, 0], check_finite=False)
    return -float(value[0]), R.T @ vector[:, 0]


def _verified_scaling(inertia: Inertia, positive: NDArray[np.bool_], c: float, rounding: float) -> float:
    """The smallest of a few c' ≥ c that `Inertia.holds` for."""
    if positive.all():
        return 0.0
    rank = len(positive)
    margin = _margin(inertia, rank, c, rounding)
    for widening in 4.0 ** np.arange(40):
        trial = max(c, 0.0) + 2.0 * margin * widening
        if inertia.holds(trial, _margin(inertia, rank, trial, rounding)):
            return trial
    negative = inertia.matrix()[np.ix_(~positive, ~positive)]
    return float(np.trace(negative)) + margin  # A ⪰ −Q₋W₋Q₋ᵀ: its eigenvalues sum to this


def _margin(inertia: Inertia, rank: int, c: float, rounding: float) -> float:
    """How far rounding can have moved H with c on its diagonal."""
    return 4.0 * rounding + 8.0 * rank * EPS * (abs(c) + inertia.trace)


def dual_bound(
    A: Operator,
    y: FloatArray,
    rng: np.random.Generator,
    tick: Callable[[], None] | None = None,
    enough: float | None = None,
    proof_limit: int = DENSE_CERTIFICATE_LIMIT,
    seconds: float = np.inf,
) -> Certificate:
    """The best bound that y gives, or ``enough`` if that can be verified, by the cheapest proof for this operator.

    Up to ``proof_limit`` rows any A is written out and factored, if that takes less than the ``seconds`` that there
    are. Otherwise `chebyshev_test` bounds an A that is not low rank, and loses 0.6 of Σy − ``enough`` or less.
    """
    # Scaling needs all y well below 0, as they are at an optimum if A_ii < 0. Otherwise y is shifted.
    scalable = y.max() < 1e-3 * y.mean() < 0.0 or (A.n > proof_limit and y.mean() < 0.0)
    if A.is_low_rank and A.n > 2 * A.rank and scalable:
        d = np.maximum(-y, 1e-3 * np.abs(y).mean())
        bound, direction, kind = low_rank_bound(A, np.maximum(-y, 0.0))
        certificate = Certificate(bound, (A.P @ (A.weights * direction)) / d, kind)
    elif A.n <= proof_limit and _seconds_to_factor(A.n, seconds) < seconds:
        certificate = shifted_bound(A, y, rng, enough, tick)
    else:
        tested = chebyshev_test(A, y, rng, _loss(y, enough), tick, seconds)
        certificate = Certificate(tested.bound, tested.columns, "chebyshev")
    if A.is_low_rank and not (A.weights < 0.0).any():
        return certificate._replace(bound=max(certificate.bound, 0.0))  # A ⪰ 0
    return certificate


def diagonal_bound(A: Operator) -> float:
    """Σ_i (a_ii − Σ_{j≠i} |a_ij|), rounded down."""
    diagonal = A.diagonal()
    off = A.magnitudes() - np.abs(diagonal)
    bound = math.fsum(diagonal) - math.fsum(off)
    if A.is_exact():
        return bound
    errors = float(A.entry_error().sum()) + (A.n + 4) * EPS * float(A.magnitudes().sum())
    return below(bound - errors * (1.0 + A.n * EPS))


def _seconds_to_factor(n: int, seconds: float) -> float:
    """About how long `shifted_bound` takes: a few factorizations of n³/3 operations, at the rate of a small one."""
    if n <= MEASURED_FACTOR or seconds == np.inf:
        return 0.0
    S = np.eye(MEASURED_FACTOR)
    started = time.perf_counter()
    la.cholesky(S, overwrite_a=True, check_finite=False)
    return 4.0 * (time.perf_counter() - started) * (n / MEASURED_FACTOR) ** 3


def shifted_bound(
    A: Operator,
    y: FloatArray,
    rng: np.random.Generator,
    enough: float | None = None,
    tick: Callable[[], None] | None = None,
) -> Certificate:
    """Σy − ε·Σd, where M + εI with M = D^{-½}(A − Diag(y))D^{-½} was factored by Cholesky, for d near A_ii − y_i.

    If ``enough`` was verified at once, ``direction`` is 0.
    """
    n = A.n
    scale = 1.0 / np.sqrt(metric(A, y))
    M = A.toarray()
    M[np.diag_indices(n)] -= y
    M *= scale
    M *= scale[:, None]
    size = float(np.abs(M).sum(axis=1).max()) * (1.0 + n * EPS)  # ≥ ‖M‖₂
    rounding = 8.0 * EPS * size  # of the entries of M; those of A itself are in `shifted_sum`
    if enough is not None and n > TRY_ENOUGH:
        shift = (sum_below(y) - enough) / float((1.0 / (scale * scale)).sum())
        if _shift_holds(M, shift, rounding):
            return Certificate(shifted_sum(A, y, scale, shift), np.zeros(n), "cholesky")
    if n <= LAPACK_SHIFT:
        value, vector = la.eigh(M, subset_by_index=[0, 0], check_finite=False)
        shift, direction = -float(value[0]), scale * vector[:, 0]
    else:
        tested = chebyshev_test(A, y, rng, 3.0 * _loss(y, enough), tick)
        shift, direction = tested.shift, tested.columns
    for widening in 8.0 ** np.arange(24):
        low = shift + max(rounding, 1e-11 * size) * widening
        if _shift_holds(M, low, rounding):
            return Certificate(shifted_sum(A, y, scale, low), direction, "cholesky")
    return Certificate(shifted_sum(A, y, scale, size + rounding), direction, "cholesky")


def _loss(y: FloatArray, enough: float | None) -> float:
    """What the test of `chebyshev_test` may lose."""
    least = LEAST_LOSS * float(np.abs(y).sum())
    return least if enough is None else max(LOSS_SHARE * (float(y.sum()) - enough), least)


def _shift_holds(M: FloatArray, shift: float, rounding: float) -> bool:
    """Whether M + shift·I provably is positive semidefinite, M itself being known up to ``rounding``."""
    shifted = M.copy()
    shifted[np.diag_indices(len(M))] += shift
    with all_blas_threads():
        return is_positive_definite(shifted, rounding + 2.0 * EPS * abs(shift))
