"""Inference over groups of equal rows: its numbers are those of all rows, and no codes go below its floor."""

import itertools
import time

import numpy as np
import pytest

from hashlearn import TwoStepHasher, bqp
from hashlearn.inference import infer_codes, infer_group_codes
from hashlearn.inference.all_rows import WholeBits
from hashlearn.inference.groups import GroupBits
from hashlearn.inference.objective import objective, objective_floor
from hashlearn.targets import Groups, Labels, SharedLabels

RNG = np.random.default_rng


def class_groups(y):
    return Labels().groups(None, np.asarray(y), RNG(0))


def label_sets(n, n_labels, seed, share=0.3):
    return (RNG(seed).random((n, n_labels)) < share).astype(int)


def some_targets():
    """Name -> Y over all rows, and its groups: classes, a class of one row, label sets, some of them empty."""
    y = RNG(0).integers(0, 5, 60)
    one_row = np.r_[y, 9]
    sets = label_sets(60, 4, 1)
    assert (sets.sum(axis=1) == 0).sum() > 1
    return {
        "classes": (Labels().build(None, y, RNG(0)), class_groups(y)),
        "a class of one row": (Labels().build(None, one_row, RNG(0)), class_groups(one_row)),
        "label sets": (SharedLabels().build(None, sets, RNG(0)), SharedLabels().groups(None, sets, RNG(0))),
    }


TARGETS = some_targets()


@pytest.mark.parametrize("name", TARGETS)
def test_groups_are_the_rows_that_the_target_does_not_tell_apart(name):
    Y, groups = TARGETS[name]
    dense = Y.toarray()
    expected = groups.similarity[np.ix_(groups.member, groups.member)]
    np.testing.assert_allclose(dense, expected, atol=1e-9)
    assert set(np.unique(groups.similarity)) <= {-1.0, 1.0}  # whole, not rounded
    assert groups.counts.sum() == Y.n
    assert np.all(groups.counts[np.diag(groups.similarity) < 0.0] == 1.0)  # rows that repel their like are alone


@pytest.mark.parametrize("name", TARGETS)
def test_values_and_the_objective_are_those_of_all_rows(name):
    Y, groups = TARGETS[name]
    rng, K, n_bits = RNG(1), len(groups.counts), 5
    words = rng.choice([-1.0, 1.0], (K, n_bits))
    rows = words[groups.member]
    whole = WholeBits(Y, rows, bqp.Spectral(), bqp.Spectral(), monotone=True, rng=rng)
    bits = GroupBits(groups, words, rng)
    assert bits.objective() == pytest.approx(objective(Y, rows), rel=1e-12)
    for bit in (0, 3):
        x = rng.choice([-1.0, 1.0], K)
        assert bits.problem(bit).value(x) == pytest.approx(whole.problem(bit).value(x[groups.member]), rel=1e-12)


@pytest.mark.parametrize("solver", ["auto", "sdr"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_report_speaks_of_all_rows(name, solver):
    Y, groups = TARGETS[name]
    words, report = infer_group_codes(groups, 6, solver=solver, n_sweeps=20, rng=RNG(2))
    rows = words[groups.member].astype(float)
    assert words.dtype == np.int8
    assert np.all(np.diff([report.start_objective, *report.objectives]) <= 1e-12)
    assert report.final_objective == pytest.approx(objective(Y, rows), rel=1e-12)
    assert report.floor <= report.final_objective
    assert all(record.changed <= Y.n // 2 for record in report.bits)
    assert report.stopped_early  # so every record of the last sweep is of these codes
    whole = WholeBits(Y, rows, bqp.Spectral(), bqp.Spectral(), monotone=True, rng=RNG(0))
    for record in report.bits[-6:]:
        A = whole.problem(record.bit)
        assert record.value == pytest.approx(A.value(rows[:, record.bit]), rel=1e-9)
        assert record.bound <= record.value
        by_rows = bqp.solve(A, "sdr", random_state=0)
        assert record.bound <= by_rows.value + 1e-9 * abs(by_rows.value)
        if "exact" in report.method:
            assert record.gap == 0.0
            assert record.value <= by_rows.value + 1e-9 * abs(by_rows.value)


def test_a_walk_counts_the_rows_that_change():
    groups = class_groups(np.repeat(np.arange(4), [50, 3, 2, 1]))
    words = np.ones((4, 3))
    bits = GroupBits(groups, words, RNG(0))
    before = bits.problem(1).value(words[:, 1])
    record = bits.one_bit(1, 1, np.inf, False)
    assert record.changed == groups.counts[bits.codes[:, 1] < 0.0].sum() == 6
    assert record.value == bits.problem(1).value(bits.codes[:, 1]) < before
    assert record.bound == -np.inf


def smallest_objective(Y, n_bits):
    """Over all codes of n rows, equal within groups or not. The first row may be all +1."""
    n = len(Y)
    codes = np.array(list(itertools.product((1.0, -1.0), repeat=(n - 1) * n_bits))).reshape(-1, n - 1, n_bits)
    Z = np.concatenate([np.ones((len(codes), 1, n_bits)), codes], axis=1)
    return float((((Z @ Z.transpose(0, 2, 1)) / n_bits - Y) ** 2).mean(axis=(1, 2)).min())


@pytest.mark.parametrize("n_bits", [1, 2, 3])
@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 0, 1, 2],
        [0, 1, 2, 3, 3],
        [0, 0, 1, 1, 2, 2],
        [0, 0, 0, 0, 0],
        [[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]],
        [[1, 0], [0, 0], [0, 0], [0, 0], [1, 1]],
        [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0]],
    ],
)
def test_no_codes_go_below_the_floor(labels, n_bits):
    labels = np.array(labels)
    if labels.size > 5 and labels.ndim == 1 and n_bits == 3:
        labels = labels[:5]
    target = Labels() if labels.ndim == 1 else SharedLabels()
    Y = target.build(None, labels, RNG(0)).toarray().round()
    np.fill_diagonal(Y, np.where(labels.reshape(len(labels), -1).any(axis=1) | (labels.ndim == 1), 1.0, -1.0))
    floor, least = objective_floor(target.groups(None, labels, RNG(0)), n_bits), smallest_objective(Y, n_bits)
    assert floor <= least + 1e-12
    assert floor >= 0.3 * least - 1e-12  # it says something


def test_the_floor_is_reached_by_opposite_and_by_orthogonal_codewords():
    two = class_groups([0, 0, 1])
    assert objective_floor(two, 4) == 0.0
    # 16 equal classes, 8 bits: rows of a matrix with orthogonal columns have mean squared product 1/8.
    sixteen = class_groups(np.repeat(np.arange(16), 3))
    words, report = infer_group_codes(sixteen, 8, rng=RNG(0))
    assert report.floor == pytest.approx(1.0 + 1.0 / 8.0 - 4.0 / 16.0, rel=1e-9)
    assert sixteen.objective(words.astype(float)) == pytest.approx(report.floor, rel=1e-9)
    assert report.excess == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n_classes", [3, 7, 20])
def test_with_more_bits_than_classes_the_floor_is_that_of_free_unit_vectors(n_classes):
    expected = (n_classes - 2) ** 2 / (n_classes * (n_classes - 1))
    assert objective_floor(class_groups(np.arange(2 * n_classes) % n_classes), 64) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_floor_is_at_least_the_bound_by_trace_and_rank(seed):
    groups = class_groups(RNG(seed).integers(0, 30, 200))
    assert objective_floor(groups, 8) >= 1.0 + 1.0 / 8.0 - 4.0 * float(groups.shares @ groups.shares) - 1e-12


def test_more_groups_than_are_enumerated_are_proven_by_a_relaxation():
    groups = class_groups(np.arange(100) % 25)
    words, report = infer_group_codes(groups, 8, rng=RNG(0))
    assert report.method.startswith("tabu walks from 8 starts, then bounds")
    assert all(0.0 <= record.gap < 0.3 for record in report.bits[-8:])
    assert len(np.unique(words, axis=0)) == 25


def test_threads_change_no_code(monkeypatch):
    groups, results = class_groups(np.arange(120) % 30), []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", count)
        results.append(infer_group_codes(groups, 8, rng=RNG(5))[0])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_short_time_limit_is_kept_and_reported():
    groups = class_groups(np.arange(2_000) % 400)
    infer_group_codes(groups, 2, n_sweeps=1, rng=RNG(0))
    began = time.perf_counter()
    words, report = infer_group_codes(groups, 64, rng=RNG(0), time_limit=0.05)
    assert time.perf_counter() - began < 10.0
    assert report.out_of_time
    assert set(np.unique(words)) == {-1, 1}
    assert report.final_objective <= report.start_objective


@pytest.mark.parametrize("n_sweeps", [1, 2, 4])
def test_no_more_sweeps_than_asked_for(n_sweeps):
    for solver, proving_sweeps in (("auto", 1), ("al", 0)):
        report = infer_group_codes(class_groups(np.arange(60) % 12), 6, solver=solver, n_sweeps=n_sweeps, rng=RNG(0))[1]
        assert 1 <= len(report.objectives) <= n_sweeps + proving_sweeps


def test_a_bit_of_a_group_is_that_of_most_of_its_rows():
    groups = class_groups(np.array([0, 1, 0, 1, 0]))
    codes = np.array([[1, -1], [1, 1], [-1, -1], [-1, 1], [-1, 1]], dtype=np.int8)
    np.testing.assert_array_equal(groups.majority(codes), [[-1, -1], [1, 1]])


X = RNG(3).standard_normal((90, 6)) + 3.0 * RNG(4).standard_normal((6, 6))[np.arange(90) % 6]
Y = np.arange(90) % 6


@pytest.mark.parametrize(
    ("parameters", "method"),
    [
        ({}, "tabu walks from 8 starts, then exact, one row for each group"),
        ({"solver": "sdr"}, "sdr, one row for each group"),
        ({"solver": bqp.AugmentedLagrangian(max_iter=9)}, "al, max iter 9, one row for each group"),
        ({"solver": "passes"}, "local_search, n starts 1, max iter 30, one row for each group"),
        ({"solver": "spectral"}, "spectral, all rows"),
        ({"solver": "nopt"}, "nopt, all rows"),
        ({"init": "pca"}, "sdr, tol 0.0001, all rows"),
        ({"init": np.ones((90, 8))}, "sdr, tol 0.0001, all rows"),
        ({"monotone": False}, "sdr, tol 0.0001, all rows"),
    ],
)
def test_groups_stand_in_for_rows_where_start_and_solver_allow(parameters, method):
    hasher = TwoStepHasher(8, hash_function="linear_ridge", random_state=0, **parameters).fit(X, Y)
    report = hasher.inference_report_
    assert report.method == method
    groups = class_groups(Y)
    assert report.floor == objective_floor(groups, 8)
    assert report.final_objective == pytest.approx(objective(Labels().build(X, Y, RNG(0)), hasher.codes_.astype(float)))
    assert "above what any codes can reach" in str(report)


def test_the_paper_goes_over_all_rows():
    report = TwoStepHasher.paper("al", 4, n_sweeps=1, hash_function="linear_ridge").fit(X, Y).inference_report_
    assert report.method == "al, all rows"


def test_a_floor_of_zero_is_not_divided_by():
    groups = class_groups([0, 1, 0])
    report = infer_group_codes(groups, 2, rng=RNG(0))[1]
    assert np.isnan(report.excess)
    assert "above" not in str(report)


def test_one_class_and_one_row():
    for y in ([0, 0, 0], [0]):
        words, report = infer_group_codes(class_groups(y), 3, rng=RNG(0))
        assert words.shape == (1, 3)
        assert report.final_objective == 0.0
    with pytest.raises(ValueError, match="only one class"):
        TwoStepHasher(2).fit(X, np.zeros(90))


def test_every_row_a_group_of_its_own():
    words, report = infer_group_codes(class_groups(np.arange(40)), 8, rng=RNG(0))
    assert words.shape == (40, 8)
    assert report.floor <= report.final_objective
    with pytest.raises(ValueError, match="a class needs two rows"):
        TwoStepHasher(2).fit(X, np.arange(90))
    sets = label_sets(90, 12, 0, 0.4)
    assert len(np.unique(sets, axis=0)) > 80
    codes = TwoStepHasher(8, hash_function="linear_ridge", random_state=0).fit(X, sets).codes_
    assert set(np.unique(codes)) == {-1, 1}


def test_two_thousand_classes():
    groups = class_groups(np.arange(4_000) % 2_000)
    began = time.perf_counter()
    words, report = infer_group_codes(groups, 8, n_sweeps=2, rng=RNG(0))
    assert time.perf_counter() - began < 120.0
    assert words.shape == (2_000, 8)
    assert report.excess < 0.01


def test_too_many_groups_are_rows(monkeypatch):
    monkeypatch.setattr("hashlearn.targets.labels.MOST_GROUPS", 5)
    assert Labels().groups(None, Y, RNG(0)) is None
    assert SharedLabels().groups(None, np.eye(6, dtype=int)[Y], RNG(0)) is None
    report = TwoStepHasher(4, hash_function="linear_ridge", random_state=0).fit(X, Y).inference_report_
    assert report.method.endswith("all rows")
    assert np.isnan(report.floor)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_labels_are_refused(missing):
    y = Y.astype(object)
    y[3] = missing
    with pytest.raises(ValueError, match="every sample needs a label"):
        TwoStepHasher(2).fit(X, y)


def test_classes_in_two_dimensions_are_refused():
    with pytest.raises(ValueError, match="needs one class for each sample"):
        TwoStepHasher(2, target="labels").fit(X, np.eye(6, dtype=int)[Y])


def test_huge_classes_stay_finite():
    """Counts whose squares have 18 digits."""
    groups = class_groups(Y)
    groups.__dict__["counts"] = np.array([1e9, 1.0, 1e9, 5e8, 2.0, 1e8])
    words, report = infer_group_codes(Groups(groups.member, groups.similarity), 8, rng=RNG(0))
    bits = GroupBits(groups, words.astype(float), RNG(0))
    record = bits.one_bit(1, 0, np.inf, False)
    assert np.isfinite(record.value)
    assert np.isfinite(report.final_objective)


def test_ctrl_c_is_passed_on():
    class Interrupted(bqp.Spectral):
        def solve(self, A, state, rng, x0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer_group_codes(class_groups(Y), 4, solver=Interrupted(), rng=RNG(0))


def test_rows_and_groups_end_at_the_same_objective():
    rows = Labels().build(X, Y, RNG(0))
    start = RNG(0).choice([-1.0, 1.0], (90, 8))
    by_rows = infer_codes(rows, start, solver="sdr", n_sweeps=5, rng=RNG(0))[1]
    by_groups = infer_group_codes(class_groups(Y), 8, rng=RNG(0))[1]
    assert by_groups.final_objective <= by_rows.final_objective + 1e-12
