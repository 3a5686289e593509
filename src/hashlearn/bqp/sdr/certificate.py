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
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from hashlearn.bqp.eigen import orthogonalize
from hashlearn.bqp.error_bounds import below, sum_below
from hashlearn.bqp.operators import Operator, Structured
from hashlearn.bqp.rows import ProofGram, TallArray
from hashlearn.bqp.rows.inertia import Inertia, is_positive_definite
from hashlearn.bqp.sdr.chebyshev import COLUMNS, chebyshev_test, metric, shifted_sum
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import all_blas_threads, map_row_blocks
from hashlearn.core.thresholds import ARPACK_SCALING, DENSE_CERTIFICATE_LIMIT, LAPACK_SHIFT, THREADED_CHOLESKY_RANK

BISECTIONS = 3  # between a bound that is enough and the value
WEAKER = (4.0, 32.0, 256.0, 2048.0)  # gaps to try if the gap that is enough fails, as multiples of it

# The test of `chebyshev_test` may lose this share of the gap that is allowed, and never has to lose less than this.
LOSS_SHARE, LEAST_LOSS = 0.6, 1e-7
LANCZOS_STEPS, LANCZOS_CHECK = 160, 20  # to expect a bound, and to look how well it is known
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
    check_time: Callable[[], None] | None = None,
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
    elif is_factored(A.n, proof_limit, seconds):
        certificate = shifted_bound(A, y, rng, check_time)
    else:
        tested = chebyshev_test(A, y, rng, _loss(y, enough), check_time, seconds)
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


def is_factored(n: int, proof_limit: int, seconds: float = np.inf) -> bool:
    """Whether an A of n rows is factored for its proof, in the ``seconds`` that there are.

    A few factorizations of n³/3 operations are expected to run at the rate of a small one.
    """
    if n > proof_limit or n <= MEASURED_FACTOR or seconds == np.inf:
        return n <= proof_limit
    S = np.eye(MEASURED_FACTOR)
    started = time.perf_counter()
    la.cholesky(S, overwrite_a=True, check_finite=False)
    return 4.0 * (time.perf_counter() - started) * (n / MEASURED_FACTOR) ** 3 < seconds


def verified_bound(A: Operator, y: FloatArray, enough: float) -> float:
    """``enough`` or slightly less, if one Cholesky factorization proves it from y; else −inf."""
    scale = 1.0 / np.sqrt(metric(A, y))
    shift = (sum_below(y) - enough) / float((1.0 / (scale * scale)).sum())
    return shifted_sum(A, y, scale, shift) if _shift_holds(*_scaled_rows(A, y, scale), shift) else -np.inf


def shifted_bound(
    A: Operator, y: FloatArray, rng: np.random.Generator, check_time: Callable[[], None] | None = None
) -> Certificate:
    """Σy − ε·Σd, where D^{-½}(A − Diag(y))D^{-½} + εI was factored by Cholesky, for d near A_ii − y_i and a small ε."""
    scale = 1.0 / np.sqrt(metric(A, y))
    M, size = _scaled_rows(A, y, scale)
    if A.n <= LAPACK_SHIFT:
        value, vectors = la.eigh(M, subset_by_index=[0, 0], overwrite_a=True, check_finite=False)
        least, doubt = float(value[0]), 1e-11 * size
    else:
        least, vectors, doubt = _lowest(A, y, scale, rng, 0.0, check_time)
        doubt = max(doubt, 1e-9 * size)
    for widening in 4.0 ** np.arange(32):
        shift = doubt * widening - least
        if _shift_holds(*_scaled_rows(A, y, scale), shift):
            break
        shift = size * (1.0 + 8.0 * EPS)
    return Certificate(shifted_sum(A, y, scale, shift), scale[:, None] * vectors, "cholesky")


def expected_bound(
    A: Operator, y: FloatArray, enough: float, rng: np.random.Generator, check_time: Callable[[], None] | None = None
) -> tuple[float, FloatArray]:
    """Σy − ε·Σd for the ε that Lanczos steps expect, a guess and no proof, and directions of negative curvature.

    The steps end when they can tell whether the bound is ``enough``.
    """
    scale = 1.0 / np.sqrt(metric(A, y))
    total = float((1.0 / (scale * scale)).sum())
    least, vectors, _ = _lowest(A, y, scale, rng, (float(y.sum()) - enough) / total, check_time)
    return float(y.sum()) - max(-least, 0.0) * total, scale[:, None] * vectors


def _lowest(
    A: Operator,
    y: FloatArray,
    scale: FloatArray,
    rng: np.random.Generator,
    allowed: float,
    check_time: Callable[[], None] | None,
) -> tuple[float, FloatArray, float]:
    """The smallest Ritz value of D^{-½}(A − Diag(y))D^{-½}, vectors of the negative ones, the residual of the first."""
    M, diagonal = A.congruent(scale), -y * scale * scale
    basis = np.empty((min(LANCZOS_STEPS, A.n) + 1, A.n))
    basis[0] = rng.standard_normal(A.n)
    basis[0] /= np.linalg.norm(basis[0])
    alphas, betas = [], []
    for step in range(len(basis) - 1):
        z = M @ basis[step] + diagonal * basis[step]
        alphas.append(float(orthogonalize(z, basis[: step + 1])[step]))
        betas.append(float(np.linalg.norm(z)))
        basis[step + 1] = z / max(betas[-1], 1e-300)
        if step % LANCZOS_CHECK == LANCZOS_CHECK - 1 or betas[-1] <= 1e-12 * abs(alphas[0]):
            if check_time is not None:
                check_time()
            values, vectors = la.eigh_tridiagonal(np.array(alphas), np.array(betas[:-1]))
            residual = betas[-1] * abs(float(vectors[-1, 0]))
            if residual <= 0.2 * max(abs(allowed + values[0]), allowed, -1e-2 * values[0]):
                break
    negative = vectors[:, : max(1, min(int((values < 0.0).sum()), COLUMNS))]
    return float(values[0]), basis[: len(alphas)].T @ negative, residual


def _loss(y: FloatArray, enough: float | None) -> float:
    """What the test of `chebyshev_test` may lose."""
    least = LEAST_LOSS * float(np.abs(y).sum())
    return least if enough is None else max(LOSS_SHARE * (float(y.sum()) - enough), least)


def _scaled_rows(A: Operator, y: FloatArray, scale: FloatArray) -> tuple[FloatArray, float]:
    """M = D^{-½}(A − Diag(y))D^{-½} written out, and a number ≥ ‖M‖₂."""
    M = np.empty((A.n, A.n))

    def rows(a: int, b: int) -> float:
        block = M[a:b]
        if A.is_dense:
            block[:] = A.array[a:b]
        else:
            np.matmul(A.P[a:b] * A.weights, A.P.T, out=block)
        if A.sparse is not None:
            matrix = A.sparse
            first, last = matrix.indptr[a], matrix.indptr[b]
            places = np.repeat(np.arange(b - a), np.diff(matrix.indptr[a : b + 1])), matrix.indices[first:last]
            block[places] += matrix.data[first:last]
        block[np.arange(b - a), np.arange(a, b)] -= y[a:b]
        block *= scale
        block *= scale[a:b, None]
        return float(np.abs(block).sum(axis=1).max())

    return M, max(map_row_blocks(rows, A.n, A.n)) * (1.0 + A.n * EPS)


def _shift_holds(M: FloatArray, size: float, shift: float) -> bool:
    """Whether M + shift·I provably is positive semidefinite, up to the rounding of M's entries; M is overwritten."""
    M[np.diag_indices(len(M))] += shift
    with all_blas_threads() if len(M) > THREADED_CHOLESKY_RANK else nullcontext():
        return is_positive_definite(M, 8.0 * EPS * size + 2.0 * EPS * abs(shift))
