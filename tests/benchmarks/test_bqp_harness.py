"""The benchmark harness on tiny sizes: are the instances what they claim, do limits hold, do the tables come out?

Speed is not asserted. Peers that are not installed are skipped, and so is what needs files that are not there.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hashlearn import bqp

ROOT_HINT = "benchmarks/ is not importable: run python -m pytest from the repository root"
instances = pytest.importorskip("benchmarks.bqp.instances", reason=ROOT_HINT)

from benchmarks.bqp import growth, quality, race  # noqa: E402
from benchmarks.bqp.certificate import certified_bound, certified_gap  # noqa: E402
from benchmarks.bqp.mnist import IMAGES, LABELS  # noqa: E402
from benchmarks.bqp.peers import PEERS, NotInstalled  # noqa: E402
from benchmarks.bqp.task import Task, measure  # noqa: E402

L = 16


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


@pytest.fixture
def small_mnist(tmp_path, monkeypatch):
    """Ten classes of noisy images in the place and form of MNIST."""
    rng = np.random.default_rng(0)
    labels = np.tile(np.arange(10), 40)
    images = np.clip(rng.integers(0, 200, (10, 28, 28))[labels] + rng.integers(0, 55, (400, 28, 28)), 0, 255)
    (tmp_path / "mnist").mkdir()
    write_idx(tmp_path / "mnist" / IMAGES, images)
    write_idx(tmp_path / "mnist" / LABELS, labels)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path))
    return images.reshape(400, -1), labels


def other_bits(X: np.ndarray) -> np.ndarray:
    """Bits 2 … L of the PCA start by another route: the singular vectors of the centered data."""
    centered = X - X.mean(axis=0)
    projections = centered @ np.linalg.svd(centered, full_matrices=False)[2][:L].T
    return np.where(projections >= projections.mean(axis=0), 1.0, -1.0)[:, 1:]


def check_supervised(A: bqp.Structured, Z: np.ndarray, labels: np.ndarray) -> None:
    target = np.where(labels[:, None] == labels, L, -L)
    np.testing.assert_allclose(A.toarray(), Z @ Z.T - target, atol=1e-9)


def check_unsupervised(A: bqp.Structured, Z: np.ndarray, X: np.ndarray) -> None:
    np.testing.assert_allclose(A.toarray(), Z @ Z.T - L * X @ X.T, atol=1e-9)
    np.testing.assert_allclose(A.diagonal(), -1.0, atol=1e-9)


def test_mnist_bit_is_the_formula(small_mnist):
    pixels, labels = small_mnist
    n = len(labels)  # all of them: only their order is drawn
    order = instances.balanced_draw(labels, n, np.random.default_rng(0))
    X = pixels[order] / 255.0
    check_supervised(instances.mnist_bit(n, supervised=True), other_bits(X), labels[order])
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    check_unsupervised(instances.mnist_bit(n, supervised=False), other_bits(X), X)


def test_mixture_bit_is_the_formula(monkeypatch):
    n = 120
    monkeypatch.setattr(instances, "ROWS_PER_BLOCK", 50)  # several blocks, the last one short
    parts = list(instances._Mixture(n, 64, 10, seed=3))
    X, labels = np.vstack([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    check_supervised(instances.mixture_bit(n, supervised=True, seed=3), other_bits(X), labels)
    check_unsupervised(instances.mixture_bit(n, supervised=False, seed=3), other_bits(X), X)


@pytest.mark.parametrize("rank", [3, 20])
def test_certificate_is_below_every_value_for_any_dual_point(rank):
    rng = np.random.default_rng(rank)
    A = bqp.LowRank(rng.standard_normal((8, rank)), rng.standard_normal(rank))
    best = min(A.value(x) for x in itertools.product([-1, 1], repeat=8))
    for _ in range(20):
        assert certified_bound(A, rng.exponential(size=8)) <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("supervised", [True, False], ids=["supervised", "unsupervised"])
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.filterwarnings("ignore")  # theirs, not ours
def test_peer_agrees_with_our_relaxation(name, supervised):
    peer = PEERS[name]
    try:
        peer.version()
    except NotInstalled as reason:
        pytest.skip(f"{name}: {reason}")
    A = instances.mixture_bit(24, supervised=supervised)
    begun = []
    answer = peer.solve(A, 1e-6, 60.0, lambda: begun.append(True))
    bound = certified_bound(A, answer.dual)
    reference = bqp.solve(A, "sdr", random_state=0).details["relaxation_value"]
    assert begun
    assert answer.seconds > 0.0
    assert abs(certified_gap(answer.value, bound)) <= 2e-6
    assert bound == pytest.approx(reference, rel=5e-6)


def test_a_worker_measures():
    outcome = measure(Task("mixture", {"n": 80, "supervised": True}, "sdr", limit=60.0, product=True))
    assert outcome.status == "ok"
    assert outcome.result["relaxation_gap"] <= 1e-6
    assert outcome.peak_bytes >= outcome.result["baseline_bytes"] > 0
    assert outcome.result["factor_bytes"] == 8 * 80 * outcome.result["factor_rank"]


def test_a_worker_is_ended_at_the_limits():
    slow = Task(
        "mixture", {"n": 1500, "supervised": False}, "local_search", limit=0.1, time_limit=30.0, warm_up_rows=20
    )
    assert measure(slow).status.startswith("time limit")
    assert measure(slow, memory_limit=10 * 2**20).status.startswith("memory over")


def statuses(path: Path) -> set[str]:
    return {result["status"] for result in json.loads(path.read_text(encoding="utf-8"))["results"]}


def test_race_and_growth_come_out(small_mnist, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = ["--settings", "supervised", "--repeats", "1", "--sizes"]
    race.main([*small, "60", "--methods", "sdr", "graph_cut", "--peers"])
    growth.main([*small, "100", "200", "--methods", "sdr"])
    for name in ("race", "growth"):
        assert statuses(tmp_path / "results" / "bqp" / f"{name}.json") == {"ok"}
        assert "| supervised" in (tmp_path / "results" / "bqp" / f"{name}.md").read_text(encoding="utf-8")
    assert "Where each gave up" in capsys.readouterr().out


def test_quality_of_a_file(tmp_path, monkeypatch, capsys):
    folder = os.environ.get("HASHLEARN_DATA")
    if not folder or not (Path(folder) / "bqp" / "reference.csv").exists():
        pytest.skip("HASHLEARN_DATA is not set or has no bqp/reference.csv")
    monkeypatch.chdir(tmp_path)
    quality.main(["--only", "files", "--files", "bqp50-1.sparse"])
    assert statuses(tmp_path / "results" / "bqp" / "quality.json") == {"ok"}
    assert "| bqp50-1.sparse" in capsys.readouterr().out
