"""What only a GPU shows: recorded passes give what they gave when run step by step, and bounds stay below values."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hashlearn import bqp, inference  # noqa: E402
from hashlearn.bqp.rows import torch_rows  # noqa: E402
from hashlearn.bqp.rows.torch_rows import (  # noqa: E402
    BlockMixing,
    CudaGraphs,
    FlipDescent,
    TorchRows,
    flip_descent,
)

DEVICE_SDR = inference.PRESETS["sampled_sdr"]

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
WEIGHTS = np.r_[np.ones(5), np.full(8, -6.0)]


def rows(n=20_000, seed=0):
    P = np.random.default_rng(seed).standard_normal((n, 13)).astype(np.float32)
    P[:, :5] = np.where(P[:, :5] < 0.0, -1.0, 1.0)
    return torch.from_numpy(P).cuda()


def signs(n=20_000, columns=2):
    return torch.where(torch.randn((n, columns), generator=torch.Generator().manual_seed(0)) < 0.0, -1.0, 1.0).cuda()


def never(function, device):
    return None


def test_recorded_flips_are_those_run_step_by_step(monkeypatch):
    P, graphs = rows(), CudaGraphs()
    first, again = (flip_descent(P, WEIGHTS, signs(), lambda: None, 20, graphs) for _ in range(2))
    assert graphs.recorded[FlipDescent]._graph is not None
    torch.testing.assert_close(first, again, rtol=0.0, atol=0.0)
    monkeypatch.setattr(torch_rows, "_recorded", never)
    other = CudaGraphs()
    stepwise = flip_descent(rows(), WEIGHTS, signs(), lambda: None, 20, other)
    assert other.recorded[FlipDescent]._graph is None
    torch.testing.assert_close(first, stepwise, rtol=0.0, atol=0.0)


def test_recorded_sweeps_are_those_run_step_by_step(monkeypatch):
    def after_sweeps():
        P = rows()
        V = torch.nn.functional.normalize(torch.randn((len(P), 6), generator=torch.Generator().manual_seed(1))).cuda()
        mixing = BlockMixing(P, WEIGHTS, V)
        moved = [mixing.sweep() for _ in range(6)]
        return mixing._graph, moved, mixing.image()

    graph, moved, image = after_sweeps()
    assert graph is not None
    assert moved[-1] < moved[0]
    monkeypatch.setattr(torch_rows, "_recorded", never)
    graph, stepwise, expected = after_sweeps()
    assert graph is None
    np.testing.assert_allclose(moved, stepwise, rtol=1e-4)
    np.testing.assert_allclose(image, expected, rtol=1e-4, atol=1e-2)


def test_bits_on_the_gpu_lie_between_their_bounds_and_what_numpy_finds():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((12_000, 24)) @ np.diag(np.linspace(1.0, 0.2, 24))
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    ours, theirs = (bqp.LowRank(M, np.ones(24)) for M in (torch.from_numpy(X).cuda(), X.astype(np.float64)))
    reports = []
    for target in (ours, theirs):
        start = inference.start_codes("auto", target.P, 8, np.random.default_rng(0), target)
        reports.append(inference.infer_codes(target, start, n_sweeps=2, rng=np.random.default_rng(1))[1])
    assert reports[0].final_objective == pytest.approx(reports[1].final_objective, rel=1e-3)
    assert [np.isfinite(bit.gap) for bit in reports[0].bits] == [False] * 8 + [True] * 8
    for bit in range(3):
        A = bqp.LowRank(torch.from_numpy(X[:, : 8 + bit]).contiguous().cuda(), np.full(8 + bit, -1.0))
        found = bqp.solve(A, DEVICE_SDR, random_state=bit)
        x = found.x.cpu().numpy().astype(np.float64)
        exact = -float(np.square(X[:, : 8 + bit].astype(np.float64).T @ x).sum())
        assert found.value == pytest.approx(exact, rel=1e-6)
        assert found.bound <= exact * (1.0 - 1e-9)


def test_a_gpu_is_left_as_it_was():
    before = torch.get_float32_matmul_precision()
    P = TorchRows(rows())
    held = torch.cuda.memory_allocated()
    P.flip_descent(WEIGHTS, signs(), lambda: None, 5)
    assert torch.get_float32_matmul_precision() == before
    del P
    assert torch.cuda.memory_allocated() <= held


def test_the_bits_of_a_code_replay_the_same_graphs(monkeypatch):
    """Samples and flips of one P whose columns change: one recording of each, whatever the number of bits."""
    recorded, record = [], torch_rows._recorded
    monkeypatch.setattr(torch_rows, "_recorded", lambda f, d: recorded.append(f) or record(f, d))
    P = TorchRows(rows(600_000))  # more than twice the largest sample
    found = []
    for bit in range(3):
        P.P[:, 0] = signs(600_000, 3)[:, bit]
        A = bqp.Structured.unchecked(P=P, weights=WEIGHTS)
        assert A.rows is P
        found.append(bqp.solve(A, DEVICE_SDR, random_state=0))
    assert len(recorded) == 2
    fresh = bqp.solve(bqp.LowRank(P.P.clone(), WEIGHTS), DEVICE_SDR, random_state=0)
    assert fresh.value == pytest.approx(found[-1].value, rel=1e-3)
