"""A lower bound on λ_min of S = A − Diag(y) relative to a positive diagonal D, by products alone, in O(n) memory.

S + εD ⪰ 0 proves Σy − ε·Σd for every d > 0 (`shifted_sum`). With M = D^{-½} S D^{-½}, d_i near the diagonal of S,
the spectrum of M is of size 1 whatever the weights of A are.

The Chebyshev polynomial T_k, moved to an interval [0, top], is at most 1 there and grows fast below 0. For a standard
normal b and a unit eigenvector u, ‖T_k(M)b‖ ≥ |T_k(λ)| · |uᵀb|, and uᵀb is a standard normal number. With several
independent b, all |uᵀb| ≤ t has probability erf(t/√2)^columns. So the norms that come out bound |T_k(λ_min)|, and with
it λ_min, except with that probability. ``top`` is an estimate. If it is too low, the norms grow and the
bound is weaker, but still valid. The test then starts again with a larger ``top``, read off the grown vectors.

Rounding: the computed recurrence is that of M with an error e_j in every step, of norm at most η ‖z_j‖. It adds
Σ_j U_{k−1−j}(M) e_j to the result, U being the polynomials of the second kind. At |x| = cosh θ > 1 the quotient
|U_{k−1−j}(x)| / |T_k(x)| is at most e^{−jθ} min(1/sinh θ, 2(k − j)). So rounding adds η Σ_j ‖z_j‖ e^{−jθ} min(…) to
what |uᵀb| can be (`growth_bound`); the norms are those that were computed.
"""

from __future__ import annotations

import time
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hashlearn.bqp.eigen import CheckTime, Krylov, no_check
from hashlearn.bqp.exact_numbers import below
from hashlearn.bqp.flips import FAST
from hashlearn.bqp.operators import Operator, Structured
from hashlearn.bqp.rows import Array
from hashlearn.bqp.sdr.steps import normals
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import map_threads

# One relaxation makes this many of these tests at most, and one solve at most eight relaxations. Each restart of a
# test draws new vectors, and any of them may be the last. Together they fail with probability 1e-9 at most.
MOST_TESTS = 128
MOST_RESTARTS = 3  # of a test that began with too low an estimate of the largest eigenvalue
FAILURE_PROBABILITY = 1e-9 / (8 * MOST_TESTS * MOST_RESTARTS)
COLUMNS = 8  # random starts: one cache line for each row
# t: all |uᵀb| are below it with probability `FAILURE_PROBABILITY`, since P(|g| ≤ t) = 2Φ(t) − 1.
COMPONENT = NormalDist().inv_cdf(0.5 * (1.0 + FAILURE_PROBABILITY ** (1.0 / COLUMNS)))
LEAST_WEIGHT = 1e-3  # entries of d are raised to this fraction of their mean
LEAST_STEPS, MOST_STEPS = 30, 20_000
LARGEST_GROWTH = 1e8  # a recurrence stops here, as the test has failed
TOP_STEPS = 20  # Lanczos steps for the upper end of the spectrum
ENTRIES_PER_PIECE = 200_000  # matrix entries in one piece of threaded work
CUT_ROUNDING = 1e-8  # relative to the size that a low-rank part is cut to: the rounding of its new factor
SMALLEST_SHARE = 1e-3  # of a cut part: smaller eigenvalues, relative to the largest, are left out


class Tested(NamedTuple):
    """S + shift · D ⪰ 0, the bound on min xᵀAx that follows, and columns that amplify the negative part of S."""

    shift: float
    bound: float
    columns: Array


def chebyshev_test(
    A: Operator,
    y: Array,
    rng: np.random.Generator,
    loss: float,
    check_time: CheckTime = no_check,
    seconds: float = np.inf,
) -> Tested:
    """A bound on min xᵀAx from any dual y, which fails with at most `FAILURE_PROBABILITY` over ``rng``.

    If A − Diag(y) is semidefinite the bound is Σy − ``loss``, or less tight if ``seconds`` end the recurrence early.
    """
    scale = scaling_weights(A, y) ** -0.5
    M, diagonal, lowered = A.congruent(scale), -y * scale * scale, 0.0
    if _has_background(M):
        sparse = Structured.unchecked(M.sparse)
        largest = _top(sparse, diagonal, _size(sparse, diagonal), rng)
        M = _cut(M, largest)
        lowered = (CUT_ROUNDING + 8.0 * A.n * EPS / SMALLEST_SHARE) * largest
    size = _size(M, diagonal)
    top, started = _top(M, diagonal, size, rng), time.perf_counter()
    for _ in range(MOST_RESTARTS):
        half = 0.5 * top
        steps = _steps_for(A.n, loss / (half * _total(scale)))
        left = seconds - (time.perf_counter() - started)
        Z, history = _recurrence(M, diagonal, half, normals(A, rng, COLUMNS), steps, check_time, left)
        squares = (Z * Z).sum(axis=0)
        if len(history) == steps:
            break
        # Vectors that have grown at the upper end have Rayleigh quotients near that end.
        quotient = float(((Z * (M @ Z + diagonal[:, None] * Z)).sum(axis=0) / squares).max())
        if quotient <= top:
            break
        top = min(quotient + 1e-3 * size, size)
    rounding = EPS * ((M.product_roundings() + 10.0) * 2.0 * (size + half) / half + 4.0)
    norm = float(squares.max()) ** 0.5 * (1.0 + A.n * EPS)
    shift = growth_bound(norm, rounding * (1.0 + A.n * EPS) * history) * half
    shift = min(shift * (1.0 + 1e-12), size * (1.0 + 8.0 * EPS)) + lowered
    return Tested(shift, shifted_sum(A, y, scale, shift), scale[:, None] * Z)


def shifted_sum(A: Operator, y: Array, scale: Array, shift: float) -> float:
    """Σy − shift·Σd for d = 1/scale², rounded down. It bounds min xᵀAx if A − Diag(y) + shift·D ⪰ 0.

    For signs x the errors of A's entries change xᵀAx by no more than their sum.
    """
    total, change = float(y.sum()), shift * _total(scale)
    rounding = (A.n + 16) * EPS * (float(abs(y).sum()) + abs(change))
    errors = A.entry_error() * (1.0 + A.n * EPS)
    return below(below(total - change) - rounding - errors)


def _total(scale: Array) -> float:
    """Σd."""
    return float((1.0 / (scale * scale)).sum())


def scaling_weights(A: Operator, y: Array) -> Array:
    """d: positive weights that bring the diagonal of A − Diag(y) to about 1.

    For a sparse A with a positive low-rank part, what the sparse part alone needs: the other only raises eigenvalues.
    """
    d = abs(A.diagonal() - y)
    if _has_background(A):
        d = np.minimum(d, abs(A.sparse).sum(axis=1))
    mean = float(d.mean())
    return d.clip(LEAST_WEIGHT * mean) if mean > 0.0 else A.rows.xp.ones_like(d)


def _has_background(A: Operator) -> bool:
    """Whether A is sparse plus a positive low-rank part, which only raises eigenvalues."""
    return A.sparse is not None and A.rank > 0 and bool((A.weights > 0.0).all())


def _size(M: Operator, diagonal: Array) -> float:
    """At least ‖|M| + |Diag|‖₂: the largest quotient (Ku)_i/u_i of K = |M| + |Diag| for any positive u.

    A few steps of the power method make u better than the vector of ones.
    """
    u = M.rows.xp.ones_like(diagonal)
    least = np.inf
    for _ in range(6):
        product = M.absolute_product(u) + abs(diagonal) * u
        least = min(least, float((product / u).max()))
        u = product / product.max() + 1e-3
    return max(least, 1e-300) * (1.0 + 2.0 * (M.product_roundings() + 4.0) * EPS)


def _top(M: Operator, diagonal: Array, size: float, rng: np.random.Generator) -> float:
    """The largest eigenvalue of M + Diag, estimated from above by a few Lanczos steps; never above ``size``."""
    start = normals(M, rng, 1)[:, 0]
    space = Krylov(lambda v: M @ v + diagonal * v, start / float(start @ start) ** 0.5, min(TOP_STEPS, M.n))
    space.extend(TOP_STEPS)
    values, _, residuals = space.ritz()
    return max(min(float(values[-1] + residuals[-1]), size), 1e-3 * size)


def _recurrence(
    M: Operator, diagonal: Array, half: float, Z: Array, steps: int, check_time: CheckTime, seconds: float
) -> tuple[Array, FloatArray]:
    """(T_k((M + Diag − mid)/half) Z, the norm of the block before each of the k steps) with mid = half.

    A device is waited for only now and then.
    """
    started = time.perf_counter()
    shifted, previous = diagonal - half, 0.0 * Z
    squares = [(Z * Z).sum()]
    between = 1 if M.rows.on_host and M.n > 100_000 else 16
    for step in range(1, steps + 1):
        Z, previous, square = _step(M, shifted, Z, previous, (1.0 if step == 1 else 2.0) / half)
        squares.append(square)
        if step % between == 0:
            check_time()
            grown = float(square) > LARGEST_GROWTH**2 * float(squares[0])
            if grown or time.perf_counter() - started > seconds:
                break
    # The error of a step is measured against both blocks that it reads, so the norms are made to rise.
    return Z, np.maximum.accumulate(np.sqrt([float(square) for square in squares[:-1]]))


def _step(M: Operator, shifted: Array, Z: Array, previous: Array, factor: float) -> tuple[Array, Array, Any]:
    """``(factor · (M + Diag(shifted)) Z − previous, Z, the sum of the squares of the first)``."""
    if not (M.is_sparse and M.rows.on_host):
        result = M @ Z
        result += shifted[:, None] * Z
        result *= factor
        result -= previous
        return result, Z, (result * result).sum()
    matrix = M.sparse
    rows = max(1, int(ENTRIES_PER_PIECE / (1.0 + matrix.nnz / M.n)))
    parts = (matrix.data, matrix.indices, matrix.indptr, shifted, Z, previous, factor)
    edges = [(a, min(a + rows, M.n)) for a in range(0, M.n, rows)]
    mapped: Any = map_threads if len(edges) > 1 else map
    return previous, Z, sum(mapped(lambda edge: _sparse_step(*parts, *edge), edges))


@njit(cache=True, nogil=True, fastmath=FAST)  # a bound rests on it, so NaN and infinity must show
def _sparse_step(data, indices, indptr, shifted, Z, previous, factor, first, last):  # type: ignore[no-untyped-def]
    """The rows first…last of `_step`, in place of ``previous``; returns the sum of their squares."""
    total = 0.0
    for i in range(first, last):
        out, z, a = previous[i], Z[i], factor * shifted[i]
        for c in range(COLUMNS):
            out[c] = a * z[c] - out[c]
        for q in range(indptr[i], indptr[i + 1]):
            a, z = factor * data[q], Z[indices[q]]
            for c in range(COLUMNS):
                out[c] += a * z[c]
        for c in range(COLUMNS):
            total += out[c] * out[c]
    return total


def _cut(A: Operator, size: float) -> Operator:
    """A with the eigenvalues of its positive low-rank part above ``size`` lowered to it, which can only lower λ_min.

    A large positive eigenvalue, as of the constant background of a neighbor graph, would make the interval longer.
    """
    root = A.P * np.sqrt(A.weights)
    values, vectors = np.linalg.eigh(root.T @ root)
    large = values > SMALLEST_SHARE * values[-1]  # leaving out the others only lowers A, and the rest is accurate
    U = root @ (vectors[:, large] / np.sqrt(values[large]))
    # Rounding of U must not raise an eigenvalue: a little less than what is allowed.
    weights = np.minimum(values[large], size) * (1.0 - 1e-9)
    return Structured.unchecked(A.sparse, np.ascontiguousarray(U), weights)


def _steps_for(n: int, growth: float) -> int:
    """Steps after which an eigenvalue at 1 + ``growth`` beyond [−1, 1] would have been seen."""
    steps = np.log(2.0 * np.sqrt(n) / COMPONENT) / np.sqrt(2.0 * max(growth, 1e-12))
    return int(min(max(steps + 2.0, LEAST_STEPS), MOST_STEPS))


def growth_bound(norm: float, errors: FloatArray) -> float:
    """The largest δ for which an eigenvalue at 1 + δ beyond [−1, 1] could have left ``norm``; inf: any δ could.

    ``errors`` bounds the local errors of all steps. The result belongs to the root of
    norm / T_k(cosh θ) + Σ_j errors_j · |U_{k−1−j}| / T_k = t, with T_k ≥ ½ e^{kθ}.
    """
    steps = len(errors)
    j = np.arange(steps)

    def possible(theta: float) -> bool:
        grown = 2.0 * norm * np.exp(-min(steps * theta, 700.0))
        quotients = np.exp(-np.minimum(j * theta, 700.0)) * np.minimum(1.0 / np.sinh(theta), 2.0 * (steps - j))
        return bool(grown + errors @ quotients >= COMPONENT)

    low, high = 0.0, 20.0
    if possible(high):
        return np.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    return float(2.0 * np.sinh(0.5 * high) ** 2)
