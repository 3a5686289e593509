"""Lower bounds on min xᵀAx that hold in floating point: weak duality, then a verified eigenvalue.

Any y with A − Diag(y) ⪰ 0 proves Σy ≤ f_SDR ≤ f_opt, whatever solver proposed it. Only the semidefiniteness has to be
trusted. A Cholesky factorization that runs to its end *verifies* it, with a margin for the rounding of everything
before. An eigenvalue only guesses where to verify.

* low rank (`low_rank_bound`): for d > 0, −c·Σd is a bound if I + D^{-½} A D^{-½}/c ⪰ 0. With Q = D^{-½}P and
  H = |W|^½ QᵀQ |W|^½ this is a statement on the inertia of the rank × rank matrix c·sgn(W) + H. O(n rank²). For tensors
  it is decided on their device by products alone: `hashlearn.bqp.rows.inertia`.
* dense, sparse, mixed (`shifted_bound`): Σy + n·λ with λ ≤ λ_min(A − Diag(y)), by a dense Cholesky. O(n³), small n.
* the same for large n (`lanczos.smallest_eigenvalue_bound`): λ from Lanczos, holds with probability ≥ 1 − 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from hashlearn.bqp.error_bounds import below, sum_below
from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows import TallArray
from hashlearn.bqp.rows.inertia import Inertia, ProofGram, is_positive_definite
from hashlearn.bqp.sdr.lanczos import smallest_eigenvalue_bound
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import all_blas_threads
from hashlearn.core.thresholds import ARPACK_SCALING, ARPACK_SHIFT, DENSE_CERTIFICATE_LIMIT

BISECTIONS = 3  # between a bound that is enough and the value
WEAKER = (4.0, 32.0, 256.0, 2048.0)  # gaps to try if the gap that is enough fails, as multiples of it


class Certificate(NamedTuple):
    """A proven bound, and the direction in which the relaxation could still fall."""

    bound: float
    direction: FloatArray
    kind: str  # "cholesky" is a proof, "lanczos" holds with probability 1 − 1e-9


def low_rank_bound(
    A: LowRank, d: TallArray, enough: float | None = None, value: float | None = None, with_direction: bool = True
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
    inertia = proof.inertia(weights)
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
) -> Certificate:
    """The best bound that y gives, or ``enough`` if that can be verified, by the cheapest proof for this operator.

    Up to ``proof_limit`` rows any A is written out and factored. Beyond, Lanczos bounds an A that is not low rank.
    """
    # Scaling needs all y well below 0, as they are at an optimum if A_ii < 0. Otherwise y is shifted.
    scalable = y.max() < 1e-3 * y.mean() < 0.0 or (A.n > proof_limit and y.mean() < 0.0)
    if isinstance(A, LowRank) and A.n > 2 * A.rank and scalable:
        d = np.maximum(-y, 1e-3 * np.abs(y).mean())
        bound, direction, kind = low_rank_bound(A, np.maximum(-y, 0.0))
        certificate = Certificate(bound, (A.P @ (A.weights * direction)) / d, kind)
    elif A.n <= proof_limit:
        certificate = shifted_bound(A, y, rng, enough)
    else:
        smallest, vector = smallest_eigenvalue_bound(A, y, rng, tick)
        certificate = Certificate(_shifted_sum(sum_below(y), A.n, smallest), vector, "lanczos")
    if isinstance(A, LowRank) and not (A.weights < 0.0).any():
        return certificate._replace(bound=max(certificate.bound, 0.0))  # A ⪰ 0
    return certificate


def shifted_bound(A: Operator, y: FloatArray, rng: np.random.Generator, enough: float | None = None) -> Certificate:
    """Σy + n·λ, where A − Diag(y) − λI was factored by Cholesky; ``direction`` is 0 if ``enough`` was verified."""
    S = A.toarray()
    n = A.n
    S[np.diag_indices(n)] -= y
    size = float(np.abs(S).sum(axis=1).max())  # ≥ ‖S‖₂
    # S is off by the rounding of A's entries, and of the differences on its diagonal.
    rounding = float(A.entry_error().max()) + 2.0 * EPS * size
    total = sum_below(y)
    if enough is not None and n > ARPACK_SHIFT and _shift_holds(S, low := (enough - total) / n, rounding):
        return Certificate(_shifted_sum(total, n, low), np.zeros(n), "cholesky")
    value, vector = _smallest_eigenpair(A, y, S, size, rng)
    for widening in 8.0 ** np.arange(24):
        low = value - max(rounding, 1e-11 * size) * widening
        if _shift_holds(S, low, rounding):
            return Certificate(_shifted_sum(total, n, low), vector, "cholesky")
    return Certificate(_shifted_sum(total, n, -(size * (1.0 + n * EPS) + rounding)), vector, "cholesky")


def _shifted_sum(total: float, n: int, low: float) -> float:
    """total + n · low, rounded down."""
    return below(total + below(n * low))


def _shift_holds(S: FloatArray, low: float, rounding: float) -> bool:
    """Whether S − low·I provably is positive semidefinite, S itself being known up to ``rounding``."""
    shifted = S.copy()
    shifted[np.diag_indices(len(S))] -= low
    with all_blas_threads():
        return is_positive_definite(shifted, rounding)


def _smallest_eigenpair(
    A: Operator, y: FloatArray, S: FloatArray, size: float, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """The smallest eigenpair of S = A − Diag(y). An estimate is enough, because the reported bound is verified."""
    n = A.n
    if n > ARPACK_SHIFT:
        # The smallest eigenvalue sits at 0 in a cluster: flip the spectrum so that Lanczos sees it as the largest.
        flipped = LinearOperator(A.shape, matvec=lambda v: size * v + y * v - A @ v, dtype=np.float64)
        try:
            value, vector = eigsh(flipped, k=1, which="LA", v0=rng.standard_normal(n), tol=1e-9, ncv=40, maxiter=100)
            return size - float(value[0]), vector[:, 0]
        except ArpackNoConvergence:
            pass
    value, vector = la.eigh(S, subset_by_index=[0, 0], check_finite=False)
    return float(value[0]), vector[:, 0]
