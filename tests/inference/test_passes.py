"""Bits by passes over rows in memory: laws that hold whatever the data, with short panels and small samples."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import flips
from hashlearn.bqp.flips import flip_passes
from hashlearn.core import threads, thresholds
from hashlearn.inference import Passes, infer_codes, passes, start_codes
from hashlearn.inference.all_rows import WholeBits
from hashlearn.inference.objective import objective
from hashlearn.inference.passes import Outcome, Proposal, agreed, bits_in_memory
from hashlearn.inference.presets import as_passes
from hashlearn.targets import Distance

N, RANK, N_BITS = 1200, 12, 6
SOLVERS = ["passes", "sampled_al"]


@pytest.fixture(autouse=True)
def short_panels(monkeypatch):
    """Several panels of several blocks, as many rows have."""
    monkeypatch.setattr(flips, "PANEL", 512)
    monkeypatch.setattr(flips, "BLOCK", 128)
    monkeypatch.setattr(passes, "SAMPLED_ROWS", 400)


def some_target(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, RANK)) + 2.0 * rng.standard_normal((8, RANK))[rng.integers(8, size=n)]
    return Distance().build(X, None, rng)


def some_codes(n=N, seed=1, n_bits=N_BITS):
    return np.where(np.random.default_rng(seed).random((n, n_bits)) < 0.5, -1.0, 1.0)


def inferred(target, solver, start=None, **options):
    start = some_codes(target.n) if start is None else start
    return infer_codes(target, start, solver=solver, rng=np.random.default_rng(2), **options)


def by_passes(target, start, solver):
    return bits_in_memory(target, start, as_passes(solver).on_sample(), monotone=True, rng=np.random.default_rng(0))


def problem_of(target, codes, bit):
    solver = bqp.Spectral()
    return WholeBits(target, codes, solver, solver, monotone=True, rng=np.random.default_rng(0)).problem(bit)


@pytest.mark.parametrize("solver", SOLVERS)
def test_objectives_fall_and_are_those_of_the_codes(solver):
    target = some_target()
    codes, report = inferred(target, solver)
    assert codes.dtype == np.int8
    assert report.solver == solver
    assert np.all(np.diff([report.start_objective, *report.objectives]) <= 1e-12)
    assert report.objectives[-1] < 0.9 * report.start_objective
    assert report.start_objective == pytest.approx(objective(target, some_codes()), rel=1e-12)
    assert report.final_objective == pytest.approx(objective(target, codes.astype(float)), rel=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_value_of_every_bit_is_that_of_its_problem(solver):
    target, start = some_target(), some_codes()
    bits = by_passes(target, start, solver)
    bits.objective()
    for bit in range(N_BITS):
        A = problem_of(target, bits.codes.astype(float), bit)
        before = A.value(bits.codes[:, bit])
        record = bits.one_bit(1, bit, np.inf, False)
        assert record.value == pytest.approx(A.value(bits.codes[:, bit]), rel=1e-10)
        assert record.value <= before + 1e-9 * abs(before)
        assert record.changed == np.count_nonzero(bits.codes[:, bit] != start[:, bit])


@pytest.mark.parametrize("solver", SOLVERS)
def test_threads_change_nothing(solver, monkeypatch):
    found = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", count)
        assert threads.n_threads() == int(count)
        found.append(inferred(some_target(), solver)[0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_al_on_a_sample_ends_near_al_on_all_rows():
    target = some_target(4000)
    start = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    sampled, whole = (inferred(target, solver, start)[1] for solver in ("sampled_al", "al"))
    assert sampled.final_objective != whole.final_objective
    assert sampled.final_objective == pytest.approx(whole.final_objective, rel=0.01)


def test_passes_end_near_where_searching_each_bit_ends():
    target = some_target(4000)
    start = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    flipped, searched = (inferred(target, solver, start)[1] for solver in ("passes", "sweeps"))
    assert flipped.final_objective == pytest.approx(searched.final_objective, rel=0.01)


def test_enough_passes_end_where_no_flip_helps():
    target, codes = some_target(), some_codes().astype(np.int8)
    weights = np.r_[0.0, np.ones(N_BITS - 1), np.full(RANK, -float(N_BITS))]
    A = bqp.LowRank(np.hstack([codes, target.P])[:, 1:], weights[1:])
    X = np.stack([codes[:, 0], codes[:, 1]])
    T = X.astype(float) @ np.hstack([codes, target.P])
    count = flip_passes(codes, target.P, weights, A.diagonal(), X, T, max_passes=200, settled=0.0)
    assert 1 < count < 200
    np.testing.assert_allclose(T, X.astype(float) @ np.hstack([codes, target.P]), atol=1e-9)
    for x, start in zip(X, codes.T, strict=False):
        assert A.flip_gains(x).min() > -1e-8
        assert A.value(x) < A.value(start)


def test_a_pass_flips_the_rows_that_help_one_after_the_other():
    """Rows of very different sizes, so that the diagonal decides; all of them in one panel."""
    rng, n = np.random.default_rng(4), 300
    codes = some_codes(n).astype(np.int8)
    factor = rng.standard_normal((n, RANK)) * rng.uniform(0.1, 5.0, (n, 1))
    weights = np.r_[0.0, np.ones(N_BITS - 1), rng.standard_normal(RANK)]
    P = np.hstack([codes, factor])
    A = bqp.LowRank(P, weights)
    X = np.stack([codes[:, 0], codes[:, 1]])
    expected, T = X.copy(), X.astype(float) @ P
    for x in expected:
        for i in np.flatnonzero(A.flip_gains(x) < 0.0):
            if A.flip_gains(x)[i] < 0.0:
                x[i] = -x[i]
    flip_passes(codes, factor, weights, A.diagonal(), X, T, max_passes=1)
    np.testing.assert_array_equal(X, expected)


def test_changes_of_parts_are_taken_together_or_one_by_one_or_replaced_by_the_candidate():
    """The value is −t₀² + 4 t₁²: at t = (1, 0) it is −1."""
    weights, t = np.array([-1.0, 4.0]), np.array([1.0, 0.0])

    def ask(*changes, candidates=None):
        given = candidates or [None] * len(changes)
        parts = [
            Proposal(np.array(c), None if p is None else np.array(p), [1, 1])
            for c, p in zip(changes, given, strict=True)
        ]
        return agreed(parts, t, weights)

    outcomes, after, value = ask([1.0, 1.0], [1.0, -1.0])  # each alone would be worse
    assert outcomes == [Outcome.POLISHED] * 2
    assert value == -9.0
    np.testing.assert_array_equal(after, [3.0, 0.0])
    outcomes, after, value = ask([1.0, 0.0], [0.0, 3.0])  # together worse
    assert outcomes == [Outcome.POLISHED, Outcome.KEEP]
    assert value == -4.0
    np.testing.assert_array_equal(after, [2.0, 0.0])
    outcomes, after, value = ask([0.0, 0.0], [0.0, 0.0])
    assert outcomes == [Outcome.KEEP] * 2
    assert value == -1.0
    outcomes, after, value = ask([1.0, 0.0], [0.0, 0.0], candidates=[[2.0, 0.0], [3.0, 0.0]])
    assert outcomes == [Outcome.CANDIDATE] * 2
    assert value == -25.0
    np.testing.assert_array_equal(after, [5.0, 0.0])
    outcomes, after, value = ask([1.0, 0.0], [0.0, 0.0], candidates=[[1.0, 0.0], [0.5, 0.0]])
    assert outcomes == [Outcome.POLISHED] * 2
    assert value == -4.0


@pytest.mark.parametrize("solver", [*SOLVERS, Passes("sdr")])
def test_passes_refuse_targets_without_a_factor_in_memory(solver):
    for target in (bqp.Dense(np.eye(30)), bqp.Sparse(sp.csr_array(np.eye(30)))):
        with pytest.raises(
            ValueError, match="solver: passes need a target of low rank in a NumPy array; 'sweeps' works"
        ):
            inferred(target, solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_passes_refuse_to_make_bits_worse(solver):
    with pytest.raises(ValueError, match="solver: passes only ever improve a bit; monotone=False needs another solver"):
        inferred(some_target(30), solver, monotone=False)


def test_a_start_that_is_no_signs_is_refused():
    with pytest.raises(ValueError, match="start must hold only -1 and"):
        inferred(some_target(), "passes", np.zeros((N, N_BITS)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_bit_without_time_left_stays_or_improves(solver):
    target = some_target()
    began = time.perf_counter()
    _, report = inferred(target, solver, time_limit=1e-6)
    assert time.perf_counter() - began < 2.0
    assert report.out_of_time
    assert report.final_objective <= report.start_objective
    bits = by_passes(target, some_codes(), solver)
    start = bits.objective()
    assert bits.one_bit(1, 0, 1e-9, True).status == "time_limit"
    assert bits.objective() <= start


def test_negative_weights_of_the_target():
    P = np.random.default_rng(5).standard_normal((N, 3))
    target = bqp.LowRank(P / np.linalg.norm(P, axis=1)[:, None], np.array([1.0, 0.5, -0.5]))
    codes, report = inferred(target, "passes")
    assert report.final_objective == pytest.approx(objective(target, codes.astype(float)), rel=1e-12)
    assert np.all(np.diff([report.start_objective, *report.objectives]) <= 1e-12)


def test_a_start_from_a_sample_is_about_as_good(monkeypatch):
    target = some_target(3000)
    whole = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    monkeypatch.setattr(thresholds, "ROTATION_ROWS", 1000)
    before = target.P.copy()
    sampled = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    np.testing.assert_array_equal(target.P, before)
    assert set(np.unique(sampled)) == {-1.0, 1.0}
    assert objective(target, sampled) == pytest.approx(objective(target, whole), rel=0.05)
