"""The relaxation (10) of a low-rank problem, solved in the rank × k matrix T = PᵀV. Linear in n.

At the optimum over unit rows V every row is v_i = −g_i/‖g_i‖ with g_i = p_iᵀ W T. So T is a fixed point of
F(T) = PᵀV(T), which is one pass over P. The equation F(T) = T has rank · k unknowns for any n. It is solved by

1. coordinate sweeps from random rows, on a sample of rows when n is large. They never raise the value and end near the
   optimum;
2. Newton's method on T: GMRES with products by the derivative of F, for a small rank preconditioned by
   (I + (1 − 1/k) PᵀD⁻¹P W)⁻¹, where D holds the ‖g_i‖. A step is taken if the value or the residual falls. For large n
   the derivative comes from a sample of rows (a larger one after a poor step), the residual from all rows. An inexact
   Newton step thus costs little more than one pass over P;
3. the certificate. If it fails at a fixed point, that is a saddle. Then T gets one more column, along the direction of
   negative curvature that the certificate found, and the sweeps begin again.

`relax_on_samples` is for many rows and a loose gap. Sweeps over a sample of rows settle after one or two
dozen. Their T = PᵀV, scaled up, has a gap of some 2 to 6 · rank / (rows in the sample) on all rows, measured for ranks
up to 111. So all rows are read only twice: for the norms d of T, and for the certificate from d. If the gap is too
wide, the next sample is larger. There are no Newton steps: stopped early, they often end at points (probably saddles)
whose d proves little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hashlearn.bqp.eigen import gmres
from hashlearn.bqp.operators import Structured
from hashlearn.bqp.rows import TINY, Array, Mixing, Rows
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance
from hashlearn.bqp.state import SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.thresholds import CHEAP_RANK, RELAXED_ROWS

START_SWEEPS = 30
ESCAPE_SWEEPS = 100
MAX_NEWTON_STEPS = 40
MAX_KRYLOV = 24
# Newton's first target as a multiple of the wanted gap. The proven gap was measured as 0.05 to 0.15 of the residual.
# The safer multiple is for large ranks, where a failed certificate costs as much as several steps.
HOPEFUL, SAFE = 8.0, 2.0
SETTLED = 1e-5  # sweeps end when rows move less than this (mean square)

# On samples:
LOOSE = 5e-3  # smaller gaps need more than samples
GROWTH = 4  # factor by which the sample grows from round to round
FIRST_SWEEPS, LATER_SWEEPS = 20, 8
SAMPLE_SETTLED = 1.5e-4  # mean square movement of a row
LEVELED = 0.05  # of their mean is added to the norms, because norms that are small by chance weaken the bound


@dataclass
class _Point:
    """A matrix T, its image F(T), the ‖g_i‖ and the value."""

    T: FloatArray
    image: FloatArray
    norms: Array
    value: float

    @property
    def residual(self) -> float:
        return float(np.linalg.norm(self.image - self.T)) / max(float(np.linalg.norm(self.image)), TINY)


def relax_low_rank(
    A: Structured, tolerance: Tolerance, rank: int, rng: np.random.Generator, state: SolveState
) -> Relaxation:
    """Solve (10) for A = P diag(w) Pᵀ to a certified gap; see `Relaxation` for the result."""
    rows = A.rows
    sample = rows.sample(rows.start_rows, rng)
    V = rng.standard_normal((sample.n, rank))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    T = sweep(sample.mixing(A.weights, sample.from_numpy(V)), state)
    if sample is not rows:
        T = _newton(sample, A.weights, T, 3e-3, rng, state).image * (A.n / sample.n)

    first_target = (HOPEFUL if A.rank <= CHEAP_RANK else SAFE) * tolerance.relative
    best, bound, kind = None, -np.inf, "cholesky"
    target, careful, stalled = first_target, False, False
    for _ in range(tolerance.max_rounds):
        point = _newton(rows, A.weights, T, target, rng, state, careful)
        state.check_time("certificate")
        enough = None if A.rank <= CHEAP_RANK else tolerance.enough(point.value)
        on_the_way = 1e-9 < point.residual <= target
        value = None if rows.on_host else point.value  # on a device a trial costs little next to a pass over rows
        certificate = low_rank_bound(A.rows.proof_gram(point.norms), A.weights, enough, value, not on_the_way)
        bound = max(bound, certificate.bound)
        state.propose_bound(bound)
        if best is None or point.value < best.value:
            best = point
        if tolerance.met(best.value, bound):
            break
        if on_the_way:
            T, target = point.image, 0.1 * target
            continue
        # If Newton stalled, sweeps continue from its point. A fixed point that is not optimal needs one more column.
        stalled = point.residual > target and not stalled
        T = _swept(A, point, None if stalled else certificate.direction, rng, state)
        target, careful = first_target, True
    assert best is not None
    B = A.weights[:, None] * best.T
    return Relaxation(A, best.value, bound, best.T.shape[1], kind, low_rank_factor=B)


def sweep(mixing: Mixing, state: SolveState, count: int = START_SWEEPS, settled: float = SETTLED) -> FloatArray:
    """At most ``count`` coordinate sweeps, until the rows have settled; returns T = PᵀV, computed from scratch."""
    for _ in range(count):
        state.check_time("sweeps")
        if mixing.sweep() < settled:
            break
    return mixing.image()


def _newton(
    rows: Rows,
    weights: FloatArray,
    T: FloatArray,
    target: float,
    rng: np.random.Generator,
    state: SolveState,
    careful: bool = False,
) -> _Point:
    """Newton steps on F(T) = T until the residual is below ``target`` or no step helps."""
    point = _evaluate(rows, weights, T)
    some = rows.sample(rows.jacobian_rows, rng)
    for _ in range(MAX_NEWTON_STEPS):
        state.check_time("newton")
        residual = point.residual
        if residual <= target:
            break
        # More accuracy would not lower the next residual, or is not wanted.
        accuracy = max(min(0.03, residual) if careful else min(0.1, residual**0.75), 0.3 * target / residual)
        step = _newton_step(some, weights, point, rows.n, accuracy)
        for length in (1.0, 0.5, 0.25, 0.125, 0.0625):
            trial = _evaluate(rows, weights, point.T + length * step)
            falls = trial.value < point.value - 1e-9 * abs(point.value)
            rises = trial.value > point.value + 1e-7 * abs(point.value)  # towards a saddle
            if falls or (not rises and trial.residual < (1.0 - 0.1 * length) * residual):
                point = trial
                break
        else:
            if some.n == rows.n:
                break
        if point.residual > 0.3 * residual and some.n < rows.n:
            some = rows.sample(4 * some.n, rng)
    return point


def _evaluate(rows: Rows, weights: FloatArray, T: FloatArray) -> _Point:
    image, norms = rows.image(weights[:, None] * T)
    return _Point(T, image, norms, _value(weights, image))


def _value(weights: FloatArray, T: FloatArray) -> float:
    return float(weights @ np.einsum("jc,jc->j", T, T))


def _newton_step(some: Rows, weights: FloatArray, point: _Point, n: int, accuracy: float) -> FloatArray:
    """The solution of (I − F'(T)) step = F(T) − T, with F' taken on ``some`` rows and scaled up to all ``n``."""
    W, scale, shape = weights[:, None], n / some.n, point.T.shape
    local = some.linearized(W * point.T)

    def product(x: FloatArray) -> FloatArray:
        direction = x.reshape(shape)
        return (direction - scale * local.change(W * direction)).ravel()

    precondition = None
    if len(weights) <= CHEAP_RANK:
        inverse = _preconditioner(scale * local.gram(), weights, shape[1])
        precondition = lambda x: (inverse @ x.reshape(shape)).ravel()  # noqa: E731
    right = point.image - point.T
    return gmres(product, right.ravel(), accuracy, min(MAX_KRYLOV, right.size), precondition).reshape(shape)


def _preconditioner(gram: FloatArray, weights: FloatArray, k: int) -> FloatArray:
    """(I + (1 − 1/k) PᵀD⁻¹P W)⁻¹, the inverse of I − F' with projections replaced by their mean."""
    try:
        inverse = np.linalg.inv(np.eye(len(gram)) + (1.0 - 1.0 / k) * gram * weights)
        return np.asarray(inverse, dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.eye(len(gram))


def _swept(
    A: Structured, point: _Point, direction: FloatArray | None, rng: np.random.Generator, state: SolveState
) -> FloatArray:
    """T after sweeps, with one more column along ``direction`` (Pᵀu for an eigenvector u) if given.

    The sweeps take all rows, or a sample of ``swept_rows`` rows.
    """
    T = point.image
    if direction is not None:
        length = max(float(np.linalg.norm(direction)), TINY)
        column = direction * (0.1 * np.linalg.norm(T) / length)
        T = np.ascontiguousarray(np.column_stack([T, column]))
    rows = A.rows if A.rows.swept_rows is None else A.rows.sample(A.rows.swept_rows, rng)
    # Unit rows depend on the direction of T only, so the T of all rows serves a sample too.
    mixing = rows.mixing(A.weights, rows.all_unit_rows(A.weights[:, None] * T)[0])
    swept = sweep(mixing, state, ESCAPE_SWEEPS, settled=0.0)
    return swept if rows.n == A.n else swept * (A.n / rows.n)


def relax_on_samples(
    A: Structured, tolerance: Tolerance, rank: int, rng: np.random.Generator, state: SolveState, certify: bool = True
) -> Relaxation:
    """Like `relax_low_rank`, from unit rows of a random T in the columns of negative weight.

    Without ``certify`` only one sample is swept, and nothing is proven.
    """
    rows = A.rows
    attracts = A.weights < 0.0
    T = rng.standard_normal((A.rank, rank))
    T[~attracts & attracts.any()] = 0.0
    sweeps = FIRST_SWEEPS
    count = rows.swept_rows or RELAXED_ROWS
    bound = -np.inf
    for rounds_left in reversed(range(tolerance.max_rounds)):
        sample = rows.sample(count, rng)
        state.details["relaxed_rows"] = sample.n
        mixing = sample.mixing(A.weights, sample.all_unit_rows(A.weights[:, None] * T)[0])
        T = sweep(mixing, state, sweeps, SAMPLE_SETTLED) * (A.n / sample.n)
        if not certify:
            value = _value(A.weights, T)  # an estimate from the sample
            break
        point = _evaluate(rows, A.weights, T)
        value = point.value
        state.check_time("certificate")
        d = point.norms + LEVELED * point.norms.mean()
        bound = max(
            bound,
            low_rank_bound(A.rows.proof_gram(d), A.weights, tolerance.enough(value), value, with_direction=False).bound,
        )
        state.propose_bound(bound)
        if tolerance.met(value, bound) or not rounds_left:
            break
        T, count, sweeps = point.image, GROWTH * count, LATER_SWEEPS
    return Relaxation(
        A, value, bound, T.shape[1], "cholesky" if certify else "none", low_rank_factor=A.weights[:, None] * T
    )
