"""Names of solvers mean one thing each, the report says what ran, and looser relaxations cost no codes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher, bqp
from hashlearn.bqp import sdr
from hashlearn.bqp.sdr import low_rank
from hashlearn.core import thresholds
from hashlearn.inference import PRESETS, Passes, infer_codes, start_codes
from hashlearn.targets import Labels, as_target

N_BITS = 3


def small_target(n=60):
    return as_target("distance", None).build(np.random.default_rng(0).standard_normal((n, 5)), None, None)


def inferred(solver, target=None, **options):
    target = small_target() if target is None else target
    start = np.where(np.random.default_rng(1).random((target.n, N_BITS)) < 0.5, -1.0, 1.0)
    return infer_codes(target, start, solver=solver, n_sweeps=1, rng=np.random.default_rng(2), **options)


@pytest.mark.parametrize("name", ["distance", "thresholded_distance"])
def test_auto_is_as_good_as_sdr_with_its_defaults(name):
    X = load_digits().data[:300]
    Y = as_target(name, None).build(X, None, np.random.default_rng(0))
    start = start_codes("pca", X, 8, np.random.default_rng(0))
    loose, tight = (
        infer_codes(Y, start, solver=solver, n_sweeps=2, rng=np.random.default_rng(1))[1] for solver in ("auto", "sdr")
    )
    assert loose.final_objective == pytest.approx(tight.final_objective, rel=0.02)
    assert loose.final_objective < loose.start_objective
    assert all(record.bound <= record.value for record in loose.bits)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_runs_and_is_the_object_it_stands_for(name):
    codes, report = inferred(name)
    assert report.final_objective <= report.start_objective
    assert len(report.bits) == N_BITS
    same, by_object = inferred(PRESETS[name])
    np.testing.assert_array_equal(codes, same)
    assert (report.solver, by_object.solver) == (name, PRESETS[name].name)
    assert report.method == by_object.method


@pytest.mark.parametrize("name", [name for name in bqp.METHODS if name not in ("auto", "exact", "branch_and_bound")])
def test_a_name_of_a_method_is_its_default_object(name):
    codes, report = inferred(name)
    same, by_object = inferred(bqp.METHODS[name]())
    np.testing.assert_array_equal(codes, same)
    assert report.solver == by_object.solver == name
    assert report.method == by_object.method == f"{name}, all rows"


def test_what_ran_for_auto():
    _, report = inferred("auto")
    assert (report.solver, report.method) == ("auto", "sdr, tol 0.0001, all rows")
    assert str(report).startswith("auto (sdr, tol 0.0001, all rows): 1 sweep(s)")
    _, report = inferred("auto", bqp.Dense(small_target().toarray()))
    assert report.method == "sdr, tol 0.03, rank 4, proof limit 2000, all rows"
    labels = Labels().build(None, np.arange(60) % 3, np.random.default_rng(0))
    assert inferred("auto", labels)[1].method == "sdr, tol 0.0001, all rows"


SINGLE_FLIPS = "single flips, all rows, up to 12 passes of flips a bit"


def test_auto_is_local_search_past_a_number_of_signs(monkeypatch):
    monkeypatch.setattr(thresholds, "RELAXED_SIGNS", 60 * N_BITS - 1)
    assert inferred("auto")[1].method == SINGLE_FLIPS
    dense = bqp.Dense(small_target().toarray())
    assert inferred("auto", dense)[1].method == "local_search, n starts 1, max iter 30, all rows"
    assert inferred("auto", monotone=False)[1].method == "sdr, tol 0.0001, all rows"
    assert inferred("auto", dense, monotone=False)[1].method.startswith("sdr, tol 0.03")
    monkeypatch.setattr(thresholds, "RELAXED_SIGNS", 60 * N_BITS)
    assert inferred("auto")[1].method == "sdr, tol 0.0001, all rows"


def test_auto_relaxes_groups_of_any_number_of_rows(monkeypatch):
    monkeypatch.setattr(thresholds, "RELAXED_SIGNS", 0)
    y = np.arange(60) % 3
    rng = np.random.default_rng(0)
    report = inferred("auto", Labels().build(None, y, rng), groups=Labels().groups(None, y, rng))[1]
    assert report.method == "sdr, tol 0.0001, all rows"
    assert 0.0 < report.floor < report.final_objective


def test_auto_ends_as_low_as_a_relaxation_of_many_signs():
    X = load_digits().data[:1200]
    Y = as_target("distance", None).build(X, None, np.random.default_rng(0))
    start = start_codes("auto", X, 16, np.random.default_rng(0), Y)
    by_flips, relaxed = (
        infer_codes(Y, start, solver=solver, n_sweeps=2, rng=np.random.default_rng(1))[1]
        for solver in ("auto", "quick_sdr")
    )
    assert by_flips.method == SINGLE_FLIPS
    assert by_flips.final_objective == pytest.approx(relaxed.final_objective, rel=5e-3)


def test_sampled_sdr_relaxes_a_sample_in_memory(monkeypatch):
    """The codes are as good as those of all rows, and bounds hold for all rows."""
    target = small_target(900)
    every, report_of_every = inferred("sampled_sdr", target)
    assert report_of_every.method.endswith("max flip passes 3, all rows")
    for module in (low_rank, sdr):
        monkeypatch.setattr(module, "RELAXED_ROWS", 200)
    sampled, report = inferred("sampled_sdr", target)
    assert report.method.endswith("relaxations of sampled rows, rounding and proofs on all rows")
    assert not np.array_equal(every, sampled)
    assert report.final_objective == pytest.approx(report_of_every.final_objective, rel=0.02)
    assert all(-np.inf < bit.bound <= bit.value for bit in report.bits)


def test_what_ran_for_presets_objects_and_passes():
    _, report = inferred("sweeps")
    assert (report.solver, report.method) == ("sweeps", "local_search, n starts 1, max iter 30, all rows")
    _, report = inferred(bqp.AugmentedLagrangian(max_iter=7))
    assert (report.solver, report.method) == ("al", "al, max iter 7, all rows")
    _, report = inferred("passes")
    assert (report.solver, report.method) == ("passes", "single flips, all rows, up to 12 passes of flips a bit")
    _, report = inferred("sampled_al")
    sampled = "on up to 10,000 sampled rows, extended to all rows, up to 12 passes of flips a bit"
    assert (report.solver, report.method) == ("sampled_al", f"al, {sampled}")
    _, report = inferred(Passes("quick_sdr"))
    assert (report.solver, report.method) == ("passes", f"sdr, tol 0.0001, {sampled}")


def test_the_report_names_parameters_that_are_arrays():
    """The blocks of GraphCut are one label for each row."""
    blocks = np.arange(60) // 20
    report = inferred(bqp.GraphCut(blocks=blocks))[1]
    assert (report.solver, report.method) == ("graph_cut", "graph_cut, blocks given, all rows")


@pytest.mark.parametrize(
    ("given", "meant"), [("sampled-al", "sampled_al"), ("quicksdr", "quick_sdr"), ("sweep", "sweeps"), ("aut", "auto")]
)
def test_an_unknown_solver_is_told_the_nearest_method_or_preset(given, meant):
    match = rf"solver must be one of 'auto', 'sdr', 'al', .*'quick_sdr', .*, got '{given}'; did you mean '{meant}'\?"
    with pytest.raises(ValueError, match=match):
        inferred(given)
    with pytest.raises(ValueError, match=match):
        inferred(Passes(given))
    X = np.random.default_rng(0).standard_normal((30, 4))
    with pytest.raises(ValueError, match=match):
        TwoStepHasher(3, solver=given).fit(X)


@pytest.mark.parametrize("solver", [5, None, [], bqp.LocalSearch])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises((TypeError, ValueError), match="solver must be"):
        inferred(solver)
