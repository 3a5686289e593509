"""Lower bounds on min xᵀAx that hold in floating point: weak duality, then a verified eigenvalue.

Any y with A − Diag(y) ⪰ 0 proves Σy ≤ f_SDR ≤ f_opt, whatever solver proposed it. Only the semidefiniteness has to be
trusted. A Cholesky factorization that runs to its end *verifies* it, with a margin for the rounding of everything
before. An eigenvalue only guesses where to verify.

* low rank (`low_rank_bound`): for d > 0, −c·Σd is a bound if I + D^{-½} A D^{-½}/c ⪰ 0. With Q = D^{-½}P and
  H = |W|^½ QᵀQ |W|^½ this is a statement on the inertia of the rank × rank matrix c·sgn(W) + H. O(n rank²). For tensors
  it is decided on their device by products alone (`Inertia`).
* dense, sparse, mixed (`factored_bound`): Σy − ε·Σd if A − Diag(y) + εD ⪰ 0, for any d > 0, by a dense Cholesky
  factorization of D^{-½}(A − Diag(y))D^{-½} + εI. O(n³), small n.
* the same for large n (`chebyshev.chebyshev_test`): by products alone, holds with probability ≥ 1 − 1e-9.
* at once, without any dual (`diagonal_bound`): Σ_i (a_ii − Σ_j |a_ij|).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.eigen import CheckTime, Krylov, lanczos_eigenpair, no_check
from hashlearn.bqp.exact_numbers import below, sum_below
from hashlearn.bqp.operators import Dense, Operator
from hashlearn.bqp.rows import Array, ProofGram
from hashlearn.bqp.sdr.chebyshev import COLUMNS, chebyshev_test, scaling_weights, shifted_sum
from hashlearn.core.arrays import EPS, FloatArray, is_tensor, tensor_like, to_float64
from hashlearn.core.threads import all_blas_threads, map_row_blocks
from hashlearn.core.thresholds import DENSE_CERTIFICATE_LIMIT, LANCZOS_SCALING, THREADED_CHOLESKY_RANK

BISECTIONS = 3  # between a bound that is enough and the value
WEAKER = (4.0, 32.0, 256.0, 2048.0)  # gaps to try if the gap that is enough fails, as multiples of it

# The test of `chebyshev_test` may lose this share of the gap that is allowed, and never has to lose less than this.
LOSS_SHARE, LEAST_LOSS = 0.6, 1e-7
LANCZOS_STEPS, LANCZOS_CHECK = 160, 20  # to expect a bound, and to look how well it is known
FACTORIZATION_RATE = 5e9  # n³ over this: seconds of a few factorizations of n³/3 operations on one core


class Certificate(NamedTuple):
    """A proven bound, and the direction in which the relaxation could still fall."""

    bound: float
    direction: Array  # a vector, or several as columns
    kind: str  # "cholesky" is a proof, "chebyshev" holds with probability 1 − 1e-9


def low_rank_bound(
    proof: ProofGram,
    weights: FloatArray,
    enough: float | None = None,
    value: float | None = None,
    with_direction: bool = True,
) -> Certificate:
    """−c·Σd for the smallest c that PᵀD⁻¹P verifies; ``direction`` is Pᵀu for the eigenvector u behind c.

    If the bound ``enough`` can be verified, it is returned with ``direction`` 0. The eigenvalue, half of the cost for a
    large rank, is then not computed. If ``value`` (an upper limit for any bound) is given, bounds between ``enough``
    and ``value`` are tried by bisection. If ``enough`` fails and ``with_direction`` is False, a few weaker bounds are
    tried instead of computing the eigenvalue.

    >>> from hashlearn.bqp import LowRank
    >>> A = LowRank([[1.0], [1.0]], [-1.0])
    >>> float(round(low_rank_bound(A.rows.proof_gram(np.array([2.0, 2.0])), A.weights).bound, 9))
    -4.0
    """
    inertia = Inertia(proof.gram, weights)
    rounding = proof.rounding * inertia.trace

    def holds(bound: float) -> bool:
        c = -bound / proof.total
        return c > 0.0 and inertia.holds(c, _margin(inertia, len(weights), c, rounding))

    if enough is not None:
        bound = _by_trials(holds, enough, value, with_direction)
        if bound is not None:
            return Certificate(_scaled_bound(-bound / proof.total, proof.total), np.zeros(len(weights)), "cholesky")
    c, vector = _smallest_scaling(inertia.matrix(), np.sign(weights))
    c = _verified_scaling(inertia, weights, c, rounding)
    return Certificate(_scaled_bound(c, proof.total), vector / np.sqrt(np.abs(weights)), "cholesky")


def _scaled_bound(c: float, total: float) -> float:
    """−c · total, rounded down."""
    return below(-c * total) if c > 0.0 else 0.0


def _by_trials(
    holds: Callable[[float], bool], enough: float, value: float | None, with_direction: bool
) -> float | None:
    """The best verified bound of a few; None if there is none, or if a direction is needed to do better."""
    is_enough = holds(enough)
    if value is None or enough >= value or (with_direction and not is_enough):
        return enough if is_enough else None
    width = value - enough
    if not is_enough:
        return next((value - share * width for share in WEAKER if holds(value - share * width)), None)
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(value - middle * width) else (middle, high)
    return value - high * width


def _smallest_scaling(H: FloatArray, sign: FloatArray) -> tuple[float, FloatArray]:
    """Estimate of c = −λ_min(Q W Qᵀ), as an eigenvalue of R diag(sign) Rᵀ with RᵀR = H, and Rᵀ times its vector."""
    jitter = 1e-14 * np.trace(H)
    try:
        R = la.cholesky(H + jitter * np.eye(len(H)), check_finite=False)
    except la.LinAlgError:
        values, vectors = la.eigh(H, check_finite=False)
        R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    M = (R * sign) @ R.T
    if len(M) > LANCZOS_SCALING:
        least, vector = lanczos_eigenpair(Dense.unchecked(M), np.random.default_rng(0))
        return -least, R.T @ vector
    value, vectors = la.eigh(M, subset_by_index=[0, 0], check_finite=False)
    return -float(value[0]), R.T @ vectors[:, 0]


def _verified_scaling(inertia: Inertia, weights: FloatArray, c: float, rounding: float) -> float:
    """The smallest of a few c' ≥ c that `Inertia.holds` for."""
    negative = weights < 0.0
    if not negative.any():
        return 0.0
    margin = _margin(inertia, len(weights), c, rounding)
    for widening in 4.0 ** np.arange(40):
        trial = max(c, 0.0) + 2.0 * margin * widening
        if inertia.holds(trial, _margin(inertia, len(weights), trial, rounding)):
            return trial
    return float(inertia.matrix().diagonal()[negative].sum()) + margin  # A ⪰ −Q₋W₋Q₋ᵀ: its eigenvalues sum to this


def _margin(inertia: Inertia, rank: int, c: float, rounding: float) -> float:
    """How far rounding can have moved H with c on its diagonal."""
    return 4.0 * rounding + 8.0 * rank * EPS * (abs(c) + inertia.trace)


def dual_bound(
    A: Operator,
    y: Array,
    rng: np.random.Generator,
    check_time: CheckTime = no_check,
    enough: float | None = None,
    proof_limit: int = DENSE_CERTIFICATE_LIMIT,
    seconds: float = np.inf,
) -> Certificate:
    """The best bound that y gives, or ``enough`` if that can be verified, by the cheapest proof for this operator.

    Up to ``proof_limit`` rows any A is written out and factored, if that takes less than the ``seconds`` that there
    are. Otherwise `chebyshev_test` bounds an A that is not low rank, and loses 0.6 of Σy − ``enough`` or less.
    """
    if A.is_low_rank and A.n > 2 * A.rank and _is_scalable(y, A.n > proof_limit):
        d = np.maximum(-y, 1e-3 * np.abs(y).mean())
        bound, direction, kind = low_rank_bound(A.rows.proof_gram(np.maximum(-y, 0.0)), A.weights)
        certificate = Certificate(bound, (A.P @ (A.weights * direction)) / d, kind)
    elif is_factored(A, proof_limit, seconds):
        certificate = factored_bound(A, y, rng, check_time, enough)
    else:
        loss = LEAST_LOSS * float(abs(y).sum())
        loss = loss if enough is None else max(LOSS_SHARE * (float(y.sum()) - enough), loss)
        tested = chebyshev_test(A, y, rng, loss, check_time, seconds)
        certificate = Certificate(tested.bound, tested.columns, "chebyshev")
    if A.is_low_rank and not (A.weights < 0.0).any():
        return certificate._replace(bound=max(certificate.bound, 0.0))  # A ⪰ 0
    return certificate


def _is_scalable(y: FloatArray, is_large: bool) -> bool:
    """Whether y is well below 0 everywhere, as it is at an optimum if all a_ii < 0; otherwise y must be shifted."""
    return bool(y.mean() < 0.0 and (is_large or y.max() < 1e-3 * y.mean()))


def diagonal_bound(A: Operator) -> float:
    """Σ_i (a_ii − Σ_{j≠i} |a_ij|), rounded down."""
    diagonal, magnitudes = A.diagonal(), A.magnitudes()
    bound = float((diagonal + abs(diagonal) - magnitudes).sum())
    if A.is_exact():
        return bound
    errors = A.entry_error() + 2.0 * (A.n + 16) * EPS * float(magnitudes.sum())
    return below(bound - errors * (1.0 + A.n * EPS))


def is_factored(A: Operator, proof_limit: int, seconds: float = np.inf) -> bool:
    """Whether A is factored for its proof, in the ``seconds`` that there are."""
    return A.rows.on_host and A.n <= proof_limit and A.n**3 < FACTORIZATION_RATE * seconds


def factored_bound(
    A: Operator, y: FloatArray, rng: np.random.Generator, check_time: CheckTime = no_check, enough: float | None = None
) -> Certificate:
    """Σy − ε·Σd, where D^{-½}(A − Diag(y))D^{-½} + εI was factored by Cholesky, for d near A_ii − y_i and a small ε.

    If one factorization verifies the bound ``enough``, it is returned with ``direction`` 0.
    """
    scale = scaling_weights(A, y) ** -0.5
    M, size = _scaled_rows(A, y, scale)
    if enough is not None:
        shift = (sum_below(y) - enough) / float((1.0 / (scale * scale)).sum())
        if _shift_holds(M, size, shift):
            return Certificate(shifted_sum(A, y, scale, shift), np.zeros(A.n), "cholesky")
    least, vectors, residual = _lowest(A, y, scale, rng, 0.0, check_time)
    doubt = max(residual, 1e-10 * size)
    for widening in 4.0 ** np.arange(32):
        shift = doubt * widening - least
        if _shift_holds(*_scaled_rows(A, y, scale), shift):
            break
        shift = size * (1.0 + 8.0 * EPS)
    return Certificate(shifted_sum(A, y, scale, shift), scale[:, None] * vectors, "cholesky")


def expected_bound(
    A: Operator, y: FloatArray, enough: float, rng: np.random.Generator, check_time: CheckTime = no_check
) -> tuple[float, FloatArray]:
    """Σy − ε·Σd for the ε that Lanczos steps expect, a guess and no proof, and directions of negative curvature.

    The steps end when they can tell whether the bound is ``enough``.
    """
    scale = scaling_weights(A, y) ** -0.5
    total = float((1.0 / (scale * scale)).sum())
    least, vectors, _ = _lowest(A, y, scale, rng, (float(y.sum()) - enough) / total, check_time)
    return float(y.sum()) - max(-least, 0.0) * total, scale[:, None] * vectors


def _lowest(
    A: Operator, y: FloatArray, scale: FloatArray, rng: np.random.Generator, allowed: float, check_time: CheckTime
) -> tuple[float, FloatArray, float]:
    """The smallest Ritz value of D^{-½}(A − Diag(y))D^{-½}, vectors of the negative ones, the residual of the first."""
    M, diagonal = A.congruent(scale), -y * scale * scale
    start = rng.standard_normal(A.n)
    space = Krylov(lambda v: M @ v + diagonal * v, start / np.linalg.norm(start), min(LANCZOS_STEPS, A.n))
    while True:
        space.extend(LANCZOS_CHECK)
        check_time()
        values, vectors, residuals = space.ritz()
        if space.is_complete or residuals[0] <= 0.2 * max(abs(allowed + values[0]), allowed, -1e-2 * values[0]):
            break
    negative = vectors[:, : max(1, min(int((values < 0.0).sum()), COLUMNS))]
    return float(values[0]), space.basis.T @ negative, float(residuals[0])


def _scaled_rows(A: Operator, y: FloatArray, scale: FloatArray) -> tuple[FloatArray, float]:
    """M = D^{-½}(A − Diag(y))D^{-½} written out, and a number ≥ ‖M‖₂."""
    M = np.empty((A.n, A.n))

    def rows(a: int, b: int) -> float:
        block = M[a:b]
        block[:] = A.array[a:b] if A.is_dense else (A.P[a:b] * A.weights) @ A.P.T
        if A.sparse is not None:
            block += A.sparse[a:b].toarray()
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


class Inertia:
    """H = |W|^½ G |W|^½ for G = PᵀD⁻¹P, where G is, and the signs of W. It trusts matrix products in float64 only.

    H has the columns of positive weight first. M = cI + H₊₊ ≻ 0 always holds, so the statement is that the Schur
    complement S = cI − H₋₋ + BᵀM⁻¹B with B = H₊₋ is positive definite. ``margin`` moves every eigenvalue against us
    (Weyl). Textbook error bounds may not cover a vendor's factorizations, so their results are only proposals:

    * BᵀM⁻¹B ⪰ XᵀB + BᵀX − XᵀMX for *any* X, because (X − M⁻¹B)ᵀ M (X − M⁻¹B) ⪰ 0. M may be so ill-conditioned that the
      computed M⁻¹B is mostly rounding: a poor X weakens the bound and keeps it valid.
    * S ⪰ −‖S − LLᵀ‖_F I for *any* L. The residual is computed and compared with the slack left for it.

    What remains is the rounding of products: each entry of a product of inner length m, added in any order, is off by
    at most m·eps/(1 − m·eps) times the product of absolute values (Higham 2002, section 3.1), in the Frobenius norm at
    most that times the factors' norms. IEEE arithmetic, fused or not, is assumed; emulated float64 must not be switched
    on.
    """

    def __init__(self, gram: Any, weights: FloatArray) -> None:
        self._order = np.argsort(weights < 0.0, kind="stable")
        self._p = int((weights > 0.0).sum())
        scale: Any = np.sqrt(np.abs(weights[self._order]))
        scale = tensor_like(scale, gram) if is_tensor(gram) else scale
        self._H = gram[self._order][:, self._order] * scale[:, None] * scale
        self.trace = float(self._H.diagonal().sum())

    def matrix(self) -> FloatArray:
        """H as a NumPy array, its columns in the order of the weights."""
        back = np.argsort(self._order)
        return (to_float64(self._H) if is_tensor(self._H) else self._H)[np.ix_(back, back)]

    def holds(self, c: float, margin: float) -> bool:
        """Whether c·sgn(W) + H' provably has no more than n₊(W) positive eigenvalues, for all H' within ``margin``."""
        p, H = self._p, self._H
        m = len(H) - p
        schur, slack = -H[p:, p:], 0.0
        with all_blas_threads() if len(H) > THREADED_CHOLESKY_RANK and not is_tensor(H) else nullcontext():
            if p:
                M, B = _shifted(H[:p, :p], c + margin), H[:p, p:]
                X = _solution(_factor(M), B)
                Y = 2.0 * B - M @ X  # XᵀB + BᵀX − XᵀMX is the symmetric part of XᵀY
                schur = schur + X.T @ Y
                x = _norm(X)
                rounded = p * _norm(M) * x + 2.0 * _norm(B)  # of Y
                slack = 2.0 * EPS * x * (rounded + p * _norm(Y))
            # For the rounding of S and of LLᵀ, whose Frobenius norm is at most trace S ≤ m·c + trace H.
            left = 4.0 * (m + 4) * EPS * (m * (abs(c) + margin) + self.trace)
            schur = _shifted(0.5 * (schur + schur.T), c - margin - slack - left)
            L = _factor(schur)
            off = _norm(schur - L @ L.T) + (m + 4) * EPS * _norm(L) ** 2
        return bool(off <= left)  # NaN from a factorization that broke down compares false


def _shifted(S: Any, shift: Any) -> Any:
    """S + shift · I, a copy."""
    S, diagonal = S + 0.0, np.arange(len(S))
    S[diagonal, diagonal] += shift
    return S


def _factor(S: Any) -> Any:
    """The Cholesky factor of S, or anything else if there is none."""
    if is_tensor(S):
        import torch

        return torch.linalg.cholesky_ex(S)[0]
    try:
        return la.cholesky(S, lower=True, check_finite=False)
    except la.LinAlgError:
        return np.full_like(S, np.nan)


def _solution(L: Any, B: Any) -> Any:
    """(LLᵀ)⁻¹ B."""
    if is_tensor(B):
        import torch

        return torch.cholesky_solve(B, L)
    return la.cho_solve((L, True), B, check_finite=False)


def _norm(S: Any) -> Any:
    """The Frobenius norm."""
    return (S * S).sum() ** 0.5


def is_positive_definite(S: FloatArray, slack: float) -> bool:
    """Whether every symmetric matrix within ``slack`` of S provably is positive semidefinite; S is overwritten.

    Rump 2006: a Cholesky factorization of S that runs to its end proves λ_min(S) ≥ −(n + 2) EPS · trace S.
    """
    diagonal = np.diag_indices(len(S))
    S[diagonal] -= slack + 2.0 * (len(S) + 2) * EPS * float(np.abs(S[diagonal]).sum())
    try:
        factor = la.cholesky(S.T, lower=False, overwrite_a=True, check_finite=False)  # S.T: no copy is made
    except la.LinAlgError:
        return False
    return bool(np.isfinite(factor.diagonal()).all())  # some libraries do not stop at a NaN
