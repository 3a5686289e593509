"""The steps behind `RankingHasher`: gradients against differences of the loss, arrays against tensors, and endings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from hashlearn import RankingHasher
from hashlearn.hashers.ranking import encoder as ranking_encoder
from hashlearn.hashers.ranking.encoder import OTHER_CLASS, Batch, Network, start_values
from tests.hashers.supervised_laws import X

N, D, N_BITS, HIDDEN = 22, 6, 5, 9
TEMPERATURE, LABEL_WEIGHT = 0.3, 0.2
LABELS = np.array([0, 1, 2, -1] * N)[:N]


class Recorded(Network):
    """Keeps the gradients of its last step."""

    def _adam(self, name: str, part: Any, gradient: Any, rate: float) -> None:
        if not hasattr(self, "gradients"):
            self.gradients = {key: value * 0 for key, value in self.values.items()}
        self.gradients[name][part] = gradient
        super()._adam(name, part, gradient, rate)


def parameters(hidden: int, dtype: Any = np.float64) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    values = start_values(rng.standard_normal((D, N_BITS)), 1.0, hidden, rng)
    return {name: (value + 0.1 * rng.standard_normal(value.shape)).astype(dtype) for name, value in values.items()}


def batch_of(labels: bool, dtype: Any = np.float64) -> Batch:
    """Two rows are the same one, with different noise. With labels there are queries too."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((N, D)).astype(dtype) / D**0.5
    indices = np.arange(N)
    indices[-1], rows[-1] = 0, rows[0]
    noisy = rows + 0.1 * rng.standard_normal((N, D)).astype(dtype)
    return Batch(indices, rows, noisy, *((LABELS, np.arange(N) % 7 == 3) if labels else (None, None)))


def margins_of(p: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    linear = rows @ p["W"] + p["b"]
    return linear + np.maximum(rows @ p["V"] + p["e"], 0.0) @ p["U"] if "V" in p else linear


def loss_of(p: dict[str, np.ndarray], batch: Batch, signs: Any) -> float:
    """The loss of the module docstring, from distances. ``signs`` makes z of u."""
    u = margins_of(p, batch.noisy)
    scores = u @ signs(u).T / np.linalg.norm(u, axis=1, keepdims=True) / N_BITS**0.5 / np.exp(p["log_scale"])
    wanted = -0.5 * np.square(batch.rows[:, None] - batch.rows).sum(axis=2)
    if batch.labels is not None:
        mine, other = batch.labels[:, None], batch.labels
        both = (mine >= 0) & (other >= 0)
        wanted += LABEL_WEIGHT * np.where(both, np.where(mine == other, 1.0, -OTHER_CLASS), 0.0)
    total = 0.0
    for i in range(N):
        others = batch.indices != batch.indices[i]
        if batch.queries is not None:
            others &= ~batch.queries
        total -= softmax(wanted[i, others] / TEMPERATURE) @ log_softmax(scores[i, others])
    return total / N


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("hidden", [0, HIDDEN])
def test_gradients_are_differences_of_the_loss(hidden, labels):
    p, batch = parameters(hidden), batch_of(labels)
    first = margins_of(p, batch.noisy)

    def straight_through(u: np.ndarray) -> np.ndarray:
        """The signs at the point where the gradient is taken; around it they move as tanh does."""
        return np.where(first >= 0, 1.0, -1.0) + np.tanh(u) - np.tanh(first)

    trained = Recorded({name: value.copy() for name, value in p.items()}, TEMPERATURE, LABEL_WEIGHT)
    trained.step(batch, 1.0)
    assert set(trained.gradients) == set(p)
    for name, value in p.items():
        expected = np.empty(value.shape)
        for place in np.ndindex(value.shape):
            moved = []
            for change in (1e-6, -1e-6):
                there = {**p, name: value.copy()}
                there[name][place] += change
                moved.append(loss_of(there, batch, straight_through))
            expected[place] = (moved[0] - moved[1]) / 2e-6
        np.testing.assert_allclose(trained.gradients[name], expected, rtol=1e-5, atol=1e-8, err_msg=name)
        assert np.abs(expected).max() > 1e-4, name
        rate = ranking_encoder.RATES[name] * (D**0.5 if name == "V" else 1.0)  # the first step of Adam has this size
        moves = (value - trained.values[name])[np.abs(expected) > 1e-4]
        np.testing.assert_allclose(np.abs(moves), rate, rtol=1e-2, err_msg=name)


def test_steps_make_the_loss_smaller():
    batch, trained = batch_of(True), Network(parameters(HIDDEN), TEMPERATURE, LABEL_WEIGHT)
    losses = []
    for _ in range(40):
        losses.append(loss_of(trained.values, batch, lambda u: np.where(u >= 0, 1.0, -1.0)))
        trained.step(batch, 1.0)
    assert losses[-1] < losses[0] - 0.1


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("hidden", [0, HIDDEN])
def test_tensors_take_the_steps_of_arrays(hidden, labels):
    torch = pytest.importorskip("torch")
    for dtype, close in ((np.float64, 1e-9), (np.float32, 1e-4)):
        p, batch = parameters(hidden, dtype), batch_of(labels, dtype)
        tensors = {name: torch.tensor(value) for name, value in p.items()}
        theirs = Recorded(tensors, TEMPERATURE, LABEL_WEIGHT)
        ours = Recorded(p, TEMPERATURE, LABEL_WEIGHT)
        moved = Batch(*(None if part is None else torch.tensor(part) for part in batch))
        for _ in range(3):
            ours.step(batch, 0.5)
            theirs.step(moved, 0.5)
        for name, value in p.items():
            assert theirs.values[name].dtype == tensors[name].dtype
            np.testing.assert_allclose(theirs.gradients[name].numpy(), ours.gradients[name], rtol=close, atol=close)
            np.testing.assert_allclose(theirs.values[name].numpy(), value, rtol=close, atol=close, err_msg=name)


@pytest.mark.parametrize("hidden", [0, HIDDEN])
def test_threads_never_change_a_parameter(hidden, monkeypatch):
    answers = []
    for n_threads in ("1", "2", "5"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", n_threads)
        trained = Network(parameters(hidden, np.float32), TEMPERATURE, LABEL_WEIGHT)
        for _ in range(5):
            trained.step(batch_of(True, np.float32), 1.0)
        answers.append(trained.values)
    for name, value in answers[0].items():
        for other in answers[1:]:
            np.testing.assert_array_equal(other[name], value)


def quick(**changes: Any) -> RankingHasher:
    settings = {"encoder": "linear", "n_steps": 40, "hidden": 16, "batch_size": 64, "random_state": 0}
    return RankingHasher(12, **{**settings, **changes})


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_without_a_gain_the_start_is_kept(encoder, monkeypatch):
    monkeypatch.setattr(ranking_encoder, "RATES", dict.fromkeys(ranking_encoder.RATES, 1e3))
    hasher = quick(encoder=encoder).fit(X[:400])
    report = hasher.ranking_report_
    assert (report.kept_step, report.after) == (0, report.before)
    assert report.ending == "no gain since step 0, nothing gained over the start"
    assert 20 <= report.checks[-1].step < 40
    np.testing.assert_array_equal(hasher.encode(X), quick(encoder=encoder, n_steps=0).fit(X[:400]).encode(X))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverges_leaves_the_start():
    hasher = quick(temperature=1e-300).fit(X[:400])
    assert hasher.ranking_report_.kept_step == 0
    assert hasher.ranking_report_.checks[-1].recall == 0.0
    np.testing.assert_array_equal(hasher.encode(X), quick(n_steps=0).fit(X[:400]).encode(X))


@pytest.mark.parametrize(
    ("recalls", "last", "kept", "ending"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.3, 0.4, 0.2, 0.9], 30, 15, "no gain since step 15"),
        ([0.5, 0.1, 0.2, 0.3, 0.4, 0.4, 0.6, 0.5, 0.5, 0.7, 0.7], 50, 45, "all steps done"),  # worse at first
        ([0.5, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.9], 30, 0, "no gain since step 0, nothing gained over the start"),
    ],
)
def test_three_checks_without_a_gain_end_the_second_half_of_training(recalls, last, kept, ending, monkeypatch):
    found = iter(recalls)
    monkeypatch.setattr(ranking_encoder, "CHECKS", 10)
    monkeypatch.setattr(
        ranking_encoder, "_check", lambda network, held_out, step, k: ranking_encoder.Check(step, *[next(found)] * 2)
    )
    report = quick(n_steps=50).fit(X[:400]).ranking_report_
    assert [check.step for check in report.checks] == list(range(0, last + 1, 5))
    assert (report.kept_step, report.ending) == (kept, ending)


def test_time_that_is_up_ends_training():
    hasher = quick(n_steps=10**6, time_limit=0.3).fit(X[:400])
    report = hasher.ranking_report_
    assert report.ending.startswith("ended by the time limit")
    assert report.checks[-1].step < 10**6
    assert report.seconds - report.neighbor_seconds < 30.0
    none = quick(n_steps=10**6, time_limit=1e-9).fit(X[:400]).ranking_report_
    assert [check.step for check in none.checks] == [0, 1]


@pytest.mark.parametrize("fraction", [0.0, 0.03, 0.05, 0.5, 1.0, 7.0])
def test_the_rate_rises_and_falls_to_zero(fraction):
    expected = {0.0: 0.02, 0.03: 0.62, 0.05: 1.0, 0.5: 0.5, 1.0: 0.0, 7.0: 0.0}
    assert ranking_encoder._rate(fraction) == pytest.approx(expected[fraction], abs=0.01)
