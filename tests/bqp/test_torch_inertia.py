"""Certificates on a device: the host's answers, and never a yes that eigenvalues deny."""

import numpy as np
import pytest

from hashlearn.bqp import LowRank
from hashlearn.bqp.sdr.certificate import Inertia, low_rank_bound

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def problem(seed: int, n: int = 60, rank: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(rank) * 10.0 ** rng.uniform(-2, 2, rank)
    weights[0] = -abs(weights[0])
    return rng.standard_normal((n, rank)), weights, rng.uniform(0.1, 3.0, n)


def least_scaling(P: np.ndarray, weights: np.ndarray, d: np.ndarray) -> float:
    """The smallest c with c·D + P W Pᵀ ⪰ 0."""
    Q = P / np.sqrt(d)[:, None]
    return -float(np.linalg.eigvalsh((Q * weights) @ Q.T)[0])


@pytest.mark.parametrize("seed", range(8))
def test_yes_just_above_the_eigenvalue_and_no_just_below(seed):

    P, weights, d = problem(seed)
    if seed % 2:
        weights = -np.abs(weights)  # no positive part
    gram = P.T @ (P / d[:, None])
    c = least_scaling(P, weights, d)
    for inertia in (Inertia(gram, weights), Inertia(torch.from_numpy(gram), weights)):
        assert inertia.holds(c * (1 + 1e-6), 0.0)
        assert not inertia.holds(c * (1 - 1e-6), 0.0)
        assert not inertia.holds(c * (1 + 1e-6), 1e-3 * c)
        scale = np.sqrt(np.abs(weights))
        np.testing.assert_allclose(inertia.matrix(), gram * scale[:, None] * scale, rtol=1e-14)


def test_yes_where_many_columns_share_a_small_trace():
    """c times the number of columns is far above trace H, as for features of slowly falling spectrum."""

    weights = np.r_[np.ones(3), -np.ones(300)]
    inertia = Inertia(torch.eye(303, dtype=torch.float64) / 100.0, weights)
    assert inertia.holds(0.011, 0.0)
    assert inertia.holds(10.0, 0.0)
    assert not inertia.holds(0.0099, 0.0)


@pytest.mark.parametrize("factorisation", ["cholesky_ex", "cholesky_solve"])
def test_a_factorisation_that_lies_proves_nothing(monkeypatch, factorisation):

    P, weights, d = problem(3)
    weights[1] = 5.0
    inertia = Inertia(torch.from_numpy(P.T @ (P / d[:, None])), weights)
    c = 0.9 * least_scaling(P, weights, d)
    if factorisation == "cholesky_ex":
        lie = lambda S: (torch.eye(len(S), dtype=S.dtype), torch.zeros((), dtype=torch.int32))  # noqa: E731
        monkeypatch.setattr(torch.linalg, "cholesky_ex", lie)
    else:
        monkeypatch.setattr(torch, "cholesky_solve", lambda B, L: 100.0 * B)
    assert not inertia.holds(c, 0.0)


def test_trials_in_place_of_the_eigenvalue():
    P, weights, d = problem(5)
    proof = LowRank(torch.from_numpy(P), weights).rows.proof_gram(torch.from_numpy(d))
    tightest = low_rank_bound(LowRank(P, weights).rows.proof_gram(d), weights).bound
    value = 0.999 * tightest
    tighter = low_rank_bound(proof, weights, enough=1.02 * tightest, value=value).bound
    assert 1.02 * tightest < tighter <= tightest
    weaker = low_rank_bound(proof, weights, enough=0.9995 * tightest, value=value, with_direction=False)
    assert 1.01 * tightest < weaker.bound <= tightest
    assert not weaker.direction.any()
    asked = low_rank_bound(proof, weights, enough=0.9995 * tightest, value=value)
    assert asked.direction.any()
    assert asked.bound == pytest.approx(tightest, rel=1e-9)
