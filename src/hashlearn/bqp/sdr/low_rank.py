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

from typing import NamedTuple

import numpy as np

from hashlearn.bqp.eigen import gmres
from hashlearn.bqp.operators import Structured
from hashlearn.bqp.rows import TINY, Array, Linearized, Rows
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance
from hashlearn.bqp.sdr.steps import unit_rows
from hashlearn.bqp.state import SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.thresholds import CHEAP_RANK, RELAXED_ROWS

START_SWEEPS = 30
ESCAPE_SWEEPS = 100
MAX_NEWTON_STEPS = 40
MAX_KRYLOV = 24
# Newton's first target as a multiple of the tolerance. The proven gap was measured as 0.05 to 0.15 of the residual.
# The safer multiple is for large ranks, where a failed certificate costs as much as several steps.
HOPEFUL, SAFE = 8.0, 2.0
SETTLED = 1e-5  # sweeps end when rows move less than this (mean square)

# On samples:
LOOSE = 5e-3  # smaller gaps need more than samples
GROWTH = 4  # factor by which the sample grows from round to round
FIRST_SWEEPS, LATER_SWEEPS = 20, 8
SAMPLE_SETTLED = 1.5e-4  # mean square movement of a row
LEVELED = 0.05  # of their mean is added to the norms, because norms that are small by chance weaken the bound


class _Point(NamedTuple):
    """A matrix T, its image F(T), the ‖g_i‖, the value, and how far T is from a fixed point."""

    T: FloatArray
    image: FloatArray
    norms: Array
    value: float
    residual: float


def relax_low_rank(
    A: Structured, tolerance: Tolerance, rank: int, rng: np.random.Generator, state: SolveState
) -> Relaxation:
    """Solve (10) for A = P diag(w) Pᵀ to a certified gap; see `Relaxation` for the result."""
    steps = _Steps(A, rng, state)
    T = steps.start(rank)
    first_target = (HOPEFUL if A.rank <= CHEAP_RANK else SAFE) * tolerance.relative
    best, bound = None, -np.inf
    target, careful, stalled = first_target, False, False
    for _ in range(tolerance.max_rounds):
        point = steps.newton(A.rows, T, target, careful)
        state.check_time("certificate")
        enough = None if A.rank <= CHEAP_RANK else tolerance.enough(point.value)
        on_the_way = 1e-9 < point.residual <= target
        value = None if A.rows.on_host else point.value  # on a device a trial costs little next to a pass over rows
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
        T = steps.swept(point.image, None if stalled else certificate.direction)
        target, careful = first_target, True
    assert best is not None
    return Relaxation(A, best.value, bound, best.T.shape[1], "cholesky", low_rank_factor=steps.W * best.T)


class _Steps:
    """Sweeps and Newton steps on the T of one problem."""

    def __init__(self, A: Structured, rng: np.random.Generator, state: SolveState) -> None:
        self.rows, self.weights, self.W, self.rng, self.state = A.rows, A.weights, A.weights[:, None], rng, state

    def start(self, rank: int) -> FloatArray:
        """T after sweeps from random unit rows; of many rows a sample is solved roughly."""
        sample = self.rows.sample(self.rows.start_rows, self.rng)
        V = unit_rows(self.rng.standard_normal((sample.n, rank)))
        T = self.sweep(sample, sample.from_numpy(V))
        return T if sample is self.rows else self.newton(sample, T, 3e-3).image * (self.rows.n / sample.n)

    def sweep(self, rows: Rows, V: Array, count: int = START_SWEEPS, settled: float = SETTLED) -> FloatArray:
        """T after at most ``count`` coordinate sweeps from unit rows V, until they have settled."""
        mixing = rows.mixing(self.weights, V)
        for _ in range(count):
            self.state.check_time("sweeps")
            if mixing.sweep() < settled:
                break
        return mixing.image()

    def point(self, rows: Rows, T: FloatArray) -> _Point:
        """T with all that one pass over the rows tells."""
        image, norms = rows.image(self.W * T)
        value = float(self.weights @ np.einsum("jc,jc->j", image, image))
        residual = float(np.linalg.norm(image - T)) / max(float(np.linalg.norm(image)), TINY)
        return _Point(T, image, norms, value, residual)

    def newton(self, rows: Rows, T: FloatArray, target: float, careful: bool = False) -> _Point:
        """Newton steps on F(T) = T until the residual is below ``target`` or no step helps."""
        point = self.point(rows, T)
        sample = rows.sample(rows.jacobian_rows, self.rng)
        for _ in range(MAX_NEWTON_STEPS):
            self.state.check_time("newton")
            residual = point.residual
            if residual <= target:
                break
            # More accuracy would not lower the next residual, or is not needed.
            accuracy = max(min(0.03, residual) if careful else min(0.1, residual**0.75), 0.3 * target / residual)
            step = self._newton_step(sample, point, rows.n / sample.n, accuracy)
            for length in (1.0, 0.5, 0.25, 0.125, 0.0625):
                trial = self.point(rows, point.T + length * step)
                falls = trial.value < point.value - 1e-9 * abs(point.value)
                rises = trial.value > point.value + 1e-7 * abs(point.value)  # towards a saddle
                if falls or (not rises and trial.residual < (1.0 - 0.1 * length) * residual):
                    point = trial
                    break
            else:
                if sample.n == rows.n:
                    break
            if point.residual > 0.3 * residual and sample.n < rows.n:
                sample = rows.sample(4 * sample.n, self.rng)
        return point

    def _newton_step(self, sample: Rows, point: _Point, scale: float, accuracy: float) -> FloatArray:
        """The solution of (I − F'(T)) step = F(T) − T, with ``scale`` times the F' of the sample."""
        shape, local = point.T.shape, Linearized(sample, self.W * point.T)

        def product(x: FloatArray) -> FloatArray:
            direction = x.reshape(shape)
            return (direction - scale * local.change(self.W * direction)).ravel()

        precondition = None
        if len(self.weights) <= CHEAP_RANK:
            inverse = _preconditioner(scale * local.gram(), self.weights, shape[1])
            precondition = lambda x: (inverse @ x.reshape(shape)).ravel()  # noqa: E731
        right = point.image - point.T
        return gmres(product, right.ravel(), accuracy, min(MAX_KRYLOV, right.size), precondition).reshape(shape)

    def swept(self, T: FloatArray, direction: FloatArray | None) -> FloatArray:
        """T after sweeps of all rows or a sample, with a column along ``direction``: Pᵀu for an eigenvector u."""
        if direction is not None:
            column = direction * (0.1 * np.linalg.norm(T) / max(float(np.linalg.norm(direction)), TINY))
            T = np.ascontiguousarray(np.column_stack([T, column]))
        rows = self.rows if self.rows.swept_rows is None else self.rows.sample(self.rows.swept_rows, self.rng)
        # Unit rows depend on the direction of T only, so the T of all rows serves a sample too.
        swept = self.sweep(rows, rows.all_unit_rows(self.W * T)[0], ESCAPE_SWEEPS, settled=0.0)
        return swept if rows.n == self.rows.n else swept * (self.rows.n / rows.n)


def _preconditioner(gram: FloatArray, weights: FloatArray, k: int) -> FloatArray:
    """(I + (1 − 1/k) PᵀD⁻¹P W)⁻¹, the inverse of I − F' with projections replaced by their mean."""
    try:
        inverse = np.linalg.inv(np.eye(len(gram)) + (1.0 - 1.0 / k) * gram * weights)
        return np.asarray(inverse, dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.eye(len(gram))


def relax_on_samples(
    A: Structured, tolerance: Tolerance, rank: int, rng: np.random.Generator, state: SolveState, certify: bool = True
) -> Relaxation:
    """Like `relax_low_rank`, from unit rows of a random T in the columns of negative weight.

    Without ``certify`` only one sample is swept, and nothing is proven.
    """
    rows, attracts, steps = A.rows, A.weights < 0.0, _Steps(A, rng, state)
    T = rng.standard_normal((A.rank, rank))
    T[~attracts & attracts.any()] = 0.0
    sweeps, count, bound = FIRST_SWEEPS, rows.swept_rows or RELAXED_ROWS, -np.inf
    for rounds_left in reversed(range(tolerance.max_rounds)):
        sample = rows.sample(count, rng)
        state.details["relaxed_rows"] = sample.n
        T = steps.sweep(sample, sample.all_unit_rows(steps.W * T)[0], sweeps, SAMPLE_SETTLED) * (A.n / sample.n)
        if not certify:
            value = float(A.weights @ np.einsum("jc,jc->j", T, T))  # an estimate from the sample
            break
        point = steps.point(rows, T)
        value = point.value
        state.check_time("certificate")
        proof = rows.proof_gram(point.norms + LEVELED * point.norms.mean())
        certificate = low_rank_bound(proof, A.weights, tolerance.enough(value), value, with_direction=False)
        bound = max(bound, certificate.bound)
        state.propose_bound(bound)
        if tolerance.met(value, bound) or not rounds_left:
            break
        T, count, sweeps = point.image, GROWTH * count, LATER_SWEEPS
    kind = "cholesky" if certify else "none"
    return Relaxation(A, value, bound, T.shape[1], kind, low_rank_factor=steps.W * T)
