"""Inference on tensors: the objective of NumPy's, codes of the same kind, monotone."""

import numpy as np
import pytest

from hashlearn import bqp, inference
from hashlearn.core import thresholds
from hashlearn.inference import PRESETS
from hashlearn.inference.objective import objective

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def unit_rows(n: int, n_features: int) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((n, n_features)) * np.linspace(1.0, 0.1, n_features)
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("solver", ["auto", "sweeps"])
def test_objective_of_numpy(solver):
    X = unit_rows(1500, 12)
    ours, theirs = bqp.LowRank(torch.from_numpy(X), np.ones(12)), bqp.LowRank(X, np.ones(12))
    found = []
    for target in (ours, theirs):
        start = inference.start_codes("auto", target.P, 4, np.random.default_rng(0), target)
        codes, report = inference.infer_codes(target, start, solver=solver, rng=np.random.default_rng(1))
        found.append((codes, report))
        assert all(np.diff([report.start_objective, *report.objectives]) <= 1e-9)
    (codes, report), (_, numpy_report) = found
    assert codes.dtype == torch.int8
    assert report.final_objective == pytest.approx(numpy_report.final_objective, rel=1e-4 if solver == "auto" else 1e-2)
    assert report.final_objective == pytest.approx(objective(theirs, codes.double().numpy()), rel=1e-6)
    if solver == "auto":
        for bit in report.bits:
            assert bit.bound <= bit.value


@pytest.mark.parametrize("init", ["pca", "itq", "auto"])
def test_starts_of_numpy(init):
    X = unit_rows(1200, 9)
    ours, theirs = bqp.LowRank(torch.from_numpy(X), np.ones(9)), bqp.LowRank(X, np.ones(9))
    codes = inference.start_codes(init, ours.P, 5, np.random.default_rng(3), ours)
    expected = inference.start_codes(init, theirs.P, 5, np.random.default_rng(3), theirs)
    assert (codes.numpy() != expected).mean() < 0.002


def test_labels_end_with_one_code_a_class():
    labels = np.random.default_rng(0).integers(0, 4, 1600)
    P = np.hstack([np.ones((1600, 1)), np.eye(4)[labels]]).astype(np.float32)
    target = bqp.LowRank(torch.from_numpy(P), [-1.0, 2.0, 2.0, 2.0, 2.0])
    start = inference.start_codes("random", target.P, 6, np.random.default_rng(0))
    codes, report = inference.infer_codes(target, start, rng=np.random.default_rng(0))
    for label in range(4):
        assert len(np.unique(codes.numpy()[labels == label], axis=0)) == 1
    assert report.final_objective < report.start_objective


def test_a_start_of_another_kind_is_refused():
    target = bqp.LowRank(torch.from_numpy(unit_rows(50, 3)), np.ones(3))
    with pytest.raises(TypeError, match="start must be a tensor"):
        inference.infer_codes(target, np.ones((50, 2)))
    with pytest.raises(ValueError, match=r"start must have shape \(50, any\)"):
        inference.infer_codes(target, torch.ones((49, 2)))


def test_the_looser_relaxations_of_a_device_end_where_tight_ones_do():
    X = unit_rows(2500, 24)
    target = bqp.LowRank(torch.from_numpy(X), np.ones(24))
    start = inference.start_codes("auto", target.P, 8, np.random.default_rng(0), target)
    loose, tight = (
        inference.infer_codes(target, start, solver=solver, rng=np.random.default_rng(1))[1]
        for solver in (PRESETS["sampled_sdr"], "quick_sdr")
    )
    assert loose.final_objective == pytest.approx(tight.final_objective, rel=5e-3)
    assert np.mean([bit.gap for bit in loose.bits]) < np.mean([bit.gap for bit in tight.bits]) + 0.04
    assert all(bit.bound <= bit.value and bit.status == "converged" for bit in loose.bits)


def device_problem():
    target = bqp.LowRank(torch.from_numpy(unit_rows(2500, 24)), np.ones(24))
    return target, inference.start_codes("auto", target.P, 8, np.random.default_rng(0), target)


def test_a_device_proves_the_bits_of_the_last_sweep_and_finds_the_same_codes(monkeypatch):
    monkeypatch.setattr(thresholds, "DEVICE_SAMPLE_ROWS", 1000)
    target, start = device_problem()
    (codes, report), (same, every) = (
        inference.infer_codes(target, start, solver=solver, n_sweeps=2, rng=np.random.default_rng(1))
        for solver in ("auto", PRESETS["sampled_sdr"])  # an object proves every bit
    )
    assert torch.equal(codes, same)
    for bit, proven in zip(report.bits, every.bits, strict=True):
        assert bit.bound == (proven.bound if bit.sweep == 2 else -np.inf)
        assert bit.status == "converged"
        assert np.isfinite(proven.gap)
    assert "–" in str(report).splitlines()[3]


def test_a_sweep_without_change_is_followed_by_one_with_proofs(monkeypatch):
    monkeypatch.setattr(thresholds, "DEVICE_SAMPLE_ROWS", 1000)
    target, start = device_problem()
    best = start
    for _ in range(40):  # until nothing moves any more
        best, report = inference.infer_codes(
            target, best.float(), solver="auto", n_sweeps=1, rng=np.random.default_rng(2)
        )
        if not any(bit.changed for bit in report.bits):
            break
    _, report = inference.infer_codes(target, best.float(), solver="auto", n_sweeps=9, rng=np.random.default_rng(2))
    last = max(bit.sweep for bit in report.bits)
    assert all(np.isfinite(bit.gap) for bit in report.bits if bit.sweep == last)
    assert report.stopped_early == (last < 9)
