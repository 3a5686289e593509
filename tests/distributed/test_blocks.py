"""Laws of the block algorithm, in one process: no Dask is needed for any of these."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from hashlearn import bqp, distributed
from hashlearn.bits import unpack_signs
from hashlearn.distributed.distance_codes import propose
from hashlearn.distributed.hash_functions import bit_columns
from hashlearn.distributed.row_blocks import as_table, checked_rows
from hashlearn.hash_functions import KernelRidge, LinearRidge, distinct_bits
from hashlearn.hash_functions.distinct_bits import distinct_columns
from hashlearn.inference import Passes, infer_codes, start_codes
from hashlearn.inference.objective import objective
from hashlearn.inference.passes import Step
from hashlearn.targets import Distance
from tests.distributed.data import clustered, write_files


@pytest.mark.parametrize("solver", ["passes", "sweeps", "auto"])
def test_the_objective_is_that_of_the_target_and_never_rises(solver):
    X, _ = clustered()
    hasher = distributed.fit(X, n_bits=12, solver=solver, chunk_rows=400, n_workers=0, n_components=24, random_state=0)
    report = hasher.inference_report_
    target = Distance().build(X, None, np.random.default_rng(0))
    codes = unpack_signs(hasher.training_codes, 12).astype(np.float64)
    assert report.final_objective == pytest.approx(objective(target, codes), rel=1e-4)
    values = [report.start_objective, *report.objectives]
    assert all(b <= a for a, b in pairwise(values))
    assert values[-1] < values[0]


@pytest.mark.parametrize("solver", ["passes", "sweeps", "auto", "al"])
def test_blocks_lose_little_against_all_rows_at_once(solver):
    X, _ = clustered(1500)
    rng = np.random.default_rng(0)
    target = Distance().build(X, None, rng)
    whole = infer_codes(target, start_codes("auto", X, 12, rng, target), solver=solver, rng=rng)[1].final_objective
    options = {"n_bits": 12, "n_components": 24, "solver": solver, "n_workers": 0, "random_state": 0}
    for chunk_rows in (1500, 150):
        report = distributed.fit(X, chunk_rows=chunk_rows, **options).inference_report_
        assert report.final_objective < 1.05 * whole


def test_one_block_descends_to_a_flip_optimum(monkeypatch):
    monkeypatch.setattr("hashlearn.distributed.distance_codes.MAX_PASSES", 100)
    monkeypatch.setattr("hashlearn.distributed.distance_codes.SETTLED", 0.0)
    X, _ = clustered(400, 6)
    factor = Distance().build(X, None, np.random.default_rng(0)).P.astype(np.float32)
    packed = np.random.default_rng(1).integers(0, 256, (400, 1)).astype(np.uint8)
    codes = 2.0 * np.unpackbits(packed, axis=1) - 1.0
    P = np.hstack([codes, factor])
    weights = np.r_[np.ones(8), np.full(6, -8.0)]
    weights[2] = 0.0
    q = np.random.default_rng(2).standard_normal(14)
    step = Step(2, weights, P.T @ codes[:, 2], q, P.T @ np.where(P @ q < 0.0, -1.0, 1.0))
    proposal = propose(factor, packed, step, 8, repeats=1.0)
    A = bqp.LowRank(P, weights)
    for column in proposal.columns:
        x = 2.0 * np.unpackbits(column, count=400) - 1.0
        assert A.flip_gains(x).min() > -1e-6 * abs(A.value(x)) / 400
    x = 2.0 * np.unpackbits(proposal.columns[0], count=400) - 1.0
    np.testing.assert_allclose(proposal.change, P.T @ (x - codes[:, 2]), atol=1e-9)
    np.testing.assert_allclose(proposal.products, P.T @ (2.0 * np.unpackbits(proposal.columns[1]) - 1.0), atol=1e-9)


def test_bounds_hold_and_are_close():
    X, _ = clustered(1500)
    hasher = distributed.fit(X, n_bits=8, chunk_rows=400, n_workers=0, n_components=24, certify=True, random_state=0)
    records = hasher.inference_report_.bits[-8:]
    codes = unpack_signs(hasher.training_codes, 8).astype(np.float64)
    target = Distance().build(X, None, np.random.default_rng(0))
    for record in records:
        others = np.delete(codes, record.bit, axis=1)
        P, weights = np.hstack([others, target.P]), np.r_[np.ones(7), np.full(24, -8.0)]
        A = bqp.LowRank(P, weights)
        assert record.value == pytest.approx(A.value(codes[:, record.bit]), rel=1e-4)
        exact = bqp.solve(A, bqp.SemidefiniteRelaxation(tol=1e-5), random_state=0)
        assert record.bound <= exact.value * (1.0 - 1e-6)
        assert record.bound == pytest.approx(exact.bound, rel=0.02)
        assert 0.0 <= record.gap < 0.1


def test_distinct_bits_of_packed_blocks():
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((40, 6)) < 0.5, -1, 1).astype(np.int8)
    codes[:, 3], codes[:, 4], codes[:, 5] = codes[:, 1], -codes[:, 0], 1
    packed = np.packbits(codes > 0, axis=1)
    found = distinct_columns(bit_columns([packed[:10], packed[10:]], 6))
    wanted = distinct_bits(codes)
    for part in ("columns", "source", "signs"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))


@pytest.mark.parametrize("spec", [LinearRidge(), KernelRidge(max_gram_rows=1, n_landmarks=50, gamma=0.05)])
def test_hash_functions_are_those_of_a_fit_in_memory(spec):
    X, _ = clustered(900, 8)
    hasher = distributed.fit(
        X, n_bits=6, solver="passes", hash_function=spec, chunk_rows=250, n_workers=0, random_state=0
    )
    codes = unpack_signs(hasher.training_codes, 6)
    if isinstance(spec, KernelRidge):  # landmarks are drawn in another way: as many, from the same rows
        assert (hasher.transform(X) == (codes > 0)).mean() > 0.85
        return
    again = spec.fit(X, codes, np.random.default_rng(0))
    np.testing.assert_allclose(hasher.decision_function(X), again.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "local_search", "passes", "sampled_al"])
def test_labels_give_one_codeword_to_a_class(solver):
    X, y = clustered()
    hasher = distributed.fit(X, y, n_bits=10, solver=solver, chunk_rows=700, n_workers=0, random_state=0)
    for label in range(12):
        assert len(np.unique(hasher.training_codes[y == label], axis=0)) == 1
    assert len(np.unique(hasher.training_codes, axis=0)) == 12


def test_files_are_cut_one_by_one(tmp_path):
    X, y = clustered(1000, 5)
    table = as_table(write_files(tmp_path / "rows", X, y), chunk_rows=150, columns=["x"])
    assert table.lengths == (150, 150, 34, 150, 150, 33, 150, 150, 33)
    np.testing.assert_array_equal(np.concatenate([block.load() for block in table.blocks]), X)


def test_bad_rows_are_named(tmp_path):
    X, _ = clustered(100, 5)
    X[70, 2] = np.nan
    with pytest.raises(ValueError, match=r"part-2\.parquet: contains NaN"):
        distributed.fit(write_files(tmp_path / "rows", X), n_bits=4, n_workers=0)
    with pytest.raises(ValueError, match="data, rows 50 to 99: contains NaN at row 20, column 2"):
        distributed.fit(X, n_bits=4, chunk_rows=50, n_workers=0)
    with pytest.raises(ValueError, match="5 features a row were expected"):
        checked_rows(np.zeros((3, 4)), "block", 5)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_bits": 200}, "at least as many rows"),
        ({"target": "neighbors"}, "target must be"),
        ({"target": "labels"}, "needs y, the labels"),
        ({"hash_function": "rbf_svm"}, "hash_function must be"),
        ({"init": "random"}, "init must be"),
        ({"chunk_rows": 0}, "chunk_rows must be positive"),
        ({"chunk_rows": (3, 4)}, "add up to the 100 rows"),
        ({"y": np.zeros(100)}, "only one class"),
        ({"y": np.zeros(7)}, "inconsistent numbers of samples: 100 and 7"),
        ({"solver": "sweps"}, "solver must be one of 'auto', .*; did you mean 'sweeps'"),
        ({"time_limit": 0.0}, "time_limit must be a positive number of seconds"),
    ],
)
def test_bad_arguments_are_refused(options, match):
    X, _ = clustered(100, 5)
    with pytest.raises(ValueError, match=match):
        distributed.fit(X, **{"n_bits": 4, "n_workers": 0, **options})


def test_missing_files_are_said():
    with pytest.raises(FileNotFoundError, match="no Parquet or npy file"):
        distributed.fit("nowhere/*.parquet")


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        ("auto", "sdr, n draws 20, polish 2, tol 0.001, on up to 10,000 sampled rows, extended to all rows"),
        ("passes", "single flips, all rows"),
        (bqp.AugmentedLagrangian(max_iter=3), "al, max iter 3, on up to 10,000 sampled rows, extended to all rows"),
        (Passes("quick_sdr"), "sdr, tol 0.0001, on up to 10,000 sampled rows, extended to all rows"),
    ],
)
def test_the_report_says_what_ran_in_blocks(solver, words):
    X, _ = clustered(300, 5)
    report = distributed.fit(X, n_bits=3, n_sweeps=1, solver=solver, chunk_rows=100, n_workers=0).inference_report_
    assert report.solver == (solver if isinstance(solver, str) else solver.name)
    assert report.method == f"{words}, up to 4 passes of flips a bit"


@dataclass(frozen=True)
class Endless(bqp.Solver):
    """Works until its time is over."""

    name = "endless"

    def solve(self, A, state, rng, x0):
        while True:
            state.check_time("waiting")


@dataclass(frozen=True)
class Interrupted(bqp.Solver):
    """Meets Ctrl-C."""

    name = "interrupted"

    def solve(self, A, state, rng, x0):
        raise KeyboardInterrupt


@pytest.mark.parametrize("with_labels", [False, True])
def test_a_time_limit_ends_inference_with_usable_codes(with_labels):
    X, y = clustered(300, 5)
    began = time.perf_counter()
    hasher = distributed.fit(
        X, y if with_labels else None, n_bits=4, solver=Endless(), time_limit=0.2, chunk_rows=100, n_workers=0
    )
    assert time.perf_counter() - began < 20.0
    report = hasher.inference_report_
    assert report.out_of_time
    assert len(report.bits) < 12
    assert report.final_objective <= report.start_objective
    assert hasher.encode(X).shape == (300, 1)


@pytest.mark.parametrize("with_labels", [False, True])
def test_ctrl_c_is_passed_on(with_labels):
    X, y = clustered(300, 5)
    with pytest.raises(KeyboardInterrupt):
        distributed.fit(X, y if with_labels else None, n_bits=4, solver=Interrupted(), chunk_rows=100, n_workers=0)
