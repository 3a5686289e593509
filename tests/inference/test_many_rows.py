"""Bits by passes over many rows: laws that hold whatever the data, on problems made "many" by a low threshold."""

import time

import numpy as np
import pytest
from hashlearn.inference.many_rows import ManyRows, bits_by_passes
from hashlearn.inference.row_flips import CodedRows, flip_rows
from hashlearn.inference.sampled_bit import estimated_products

from hashlearn import bqp
from hashlearn.core import threads
from hashlearn.inference import infer_codes, many_rows, row_flips, start_codes, starts
from hashlearn.inference.objective import BitProblems, objective
from hashlearn.targets import Distance

N, RANK, N_BITS = 1200, 12, 6
SOLVERS = ["local_search", "al"]


@pytest.fixture(autouse=True)
def short_panels(monkeypatch):
    """Several panels of several blocks, as many rows have."""
    monkeypatch.setattr(row_flips, "PANEL", 512)
    monkeypatch.setattr(row_flips, "BLOCK", 128)
    monkeypatch.setattr(many_rows, "SAMPLED_ROWS", 400)
    monkeypatch.setattr(many_rows, "MANY_ROWS", 100)


def some_target(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, RANK)) + 2.0 * rng.standard_normal((8, RANK))[rng.integers(8, size=n)]
    return Distance().build(X, None, rng)


def some_codes(n=N, seed=1, n_bits=N_BITS):
    return np.where(np.random.default_rng(seed).random((n, n_bits)) < 0.5, -1.0, 1.0)


def inferred(target, solver, start=None, **options):
    start = some_codes(target.n) if start is None else start
    return infer_codes(target, start, solver=solver, rng=np.random.default_rng(2), **options)


def by_passes_and_whole(monkeypatch, target, solver, start):
    """Reports of both ways."""
    by_passes = inferred(target, solver, start)[1]
    monkeypatch.setattr(many_rows, "MANY_ROWS", target.n)
    return by_passes, inferred(target, solver, start)[1]


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
    bits = ManyRows(target, start, solver, np.random.default_rng(0))
    bits.objective()
    for bit in range(N_BITS):
        A = BitProblems(target, bits.codes.astype(float)).problem(bit)
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


def test_al_on_a_sample_ends_near_al_on_all_rows(monkeypatch):
    target = some_target(4000)
    start = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    sampled, whole = by_passes_and_whole(monkeypatch, target, "al", start)
    true = inferred(target, bqp.AugmentedLagrangian(), start=start)[1]
    assert whole.final_objective == true.final_objective  # below the threshold, and as an object, it is the method
    assert sampled.final_objective != true.final_objective
    assert sampled.final_objective == pytest.approx(true.final_objective, rel=0.01)


def test_passes_end_near_where_searching_each_bit_ends(monkeypatch):
    target = some_target(4000)
    start = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    passes, searched = by_passes_and_whole(monkeypatch, target, "local_search", start)
    assert passes.final_objective == pytest.approx(searched.final_objective, rel=0.01)


def test_enough_passes_end_where_no_flip_helps():
    target, codes = some_target(), some_codes().astype(np.int8)
    rows = CodedRows(codes, target.P)
    weights = np.r_[0.0, np.ones(N_BITS - 1), np.full(RANK, -float(N_BITS))]
    A = bqp.LowRank(np.hstack([codes, target.P])[:, 1:], weights[1:])
    X = np.stack([codes[:, 0], codes[:, 1]])
    T = X.astype(float) @ np.hstack([codes, target.P])
    passes = flip_rows(rows, weights, A.diagonal(), X, T, most_passes=200, settled=0.0)
    assert 1 < passes < 200
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
    flip_rows(CodedRows(codes, factor), weights, A.diagonal(), X, T, most_passes=1)
    np.testing.assert_array_equal(X, expected)


def test_products_and_signs_of_all_rows():
    target, codes = some_target(), some_codes().astype(np.int8)
    rows, P = CodedRows(codes, target.P), np.hstack([some_codes(), target.P])
    among, cross = rows.products()
    np.testing.assert_allclose(np.hstack([among, cross]), some_codes().T @ P, atol=1e-9)
    q = np.random.default_rng(3).standard_normal(P.shape[1])
    x, t = rows.signs(q)
    np.testing.assert_array_equal(x, np.where(P @ q < 0.0, -1, 1))
    np.testing.assert_allclose(t, P.T @ x, atol=1e-9)


def test_the_estimate_from_all_rows_is_exact():
    P = np.hstack([some_codes(40), some_target(40).P])
    weights = np.r_[0.0, np.ones(N_BITS - 1), np.full(RANK, -float(N_BITS))]
    present = P[:, 0].copy()
    t = estimated_products(P, weights, present, 40, "local_search", np.random.default_rng(0))
    A = (P * weights) @ P.T
    assert weights @ (t * t) <= present @ A @ present
    found = bqp.solve(A, "local_search", random_state=0, x0=present).value
    assert weights @ (t * t) == pytest.approx(found, rel=1e-9)
    np.testing.assert_allclose(estimated_products(P, weights, present, 80, "local_search", 0), 2.0 * t, atol=1e-9)


def test_which_problems_go_by_passes(monkeypatch):
    target, repeated = some_target(300), np.repeat(some_target(300).P[:100], 3, axis=0)

    def goes(solver, target):
        return bits_by_passes(target, some_codes(300), solver, np.random.default_rng(0)) is not None

    assert not goes("sdr", target)
    assert not goes(bqp.AugmentedLagrangian(), target)
    assert not goes("al", bqp.LowRank(repeated, target.weights))
    assert not goes("al", bqp.Dense(np.eye(300)))
    monkeypatch.setattr(many_rows, "MANY_ROWS", 299)
    assert goes("al", target)
    monkeypatch.setattr(many_rows, "MANY_ROWS", 300)
    assert not goes("al", target)


def test_a_start_that_is_no_signs_is_refused():
    with pytest.raises(ValueError, match="start must hold only -1 and"):
        inferred(some_target(), "local_search", np.zeros((N, N_BITS)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_bit_without_time_left_stays_or_improves(solver):
    target = some_target()
    began = time.perf_counter()
    _, report = inferred(target, solver, time_limit=1e-6)
    assert time.perf_counter() - began < 2.0
    assert report.out_of_time
    assert report.final_objective <= report.start_objective
    bits = ManyRows(target, some_codes(), solver, np.random.default_rng(0))
    start = bits.objective()
    assert bits.one_bit(1, 0, 1e-9, True).status == "time_limit"
    assert bits.objective() <= start


def test_negative_weights_of_the_target():
    P = np.random.default_rng(5).standard_normal((N, 3))
    target = bqp.LowRank(P / np.linalg.norm(P, axis=1)[:, None], np.array([1.0, 0.5, -0.5]))
    codes, report = inferred(target, "local_search")
    assert report.final_objective == pytest.approx(objective(target, codes.astype(float)), rel=1e-12)
    assert np.all(np.diff([report.start_objective, *report.objectives]) <= 1e-12)


def test_a_start_from_a_sample_is_about_as_good(monkeypatch):
    target = some_target(3000)
    whole = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    monkeypatch.setattr(starts, "MANY_ROWS", 1000)
    monkeypatch.setattr(starts, "LOOKED_AT", 1000)
    before = target.P.copy()
    sampled = start_codes("auto", target.P, N_BITS, np.random.default_rng(0), target)
    np.testing.assert_array_equal(target.P, before)
    assert set(np.unique(sampled)) == {-1.0, 1.0}
    assert objective(target, sampled) == pytest.approx(objective(target, whole), rel=0.05)
