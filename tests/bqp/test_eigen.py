"""Eigenpairs of every kind of operator, against numpy.linalg.eigh on the same matrix written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.bqp import Dense, LowRank, Operator, Sparse, Structured, diagonal_operator, eigen
from hashlearn.bqp.eigen import largest_eigenvalue, smallest_eigenpair, smallest_weighted_eigenpair
from hashlearn.linalg.gram import gram


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_sparse(n: int, seed: int, density: float = 0.05) -> Structured:
    M = sp.random_array((n, n), density=density, rng=rng(seed), data_sampler=rng(seed).standard_normal)
    return Sparse(sp.csr_array(M + M.T))


def random_dense(n: int, seed: int) -> Dense:
    M = rng(seed).standard_normal((n, n))
    return Dense(M + M.T)


def random_low_rank(n: int, rank: int, seed: int) -> Structured:
    return LowRank(rng(seed).standard_normal((n, rank)), rng(seed + 1).standard_normal(rank))


OPERATORS = {
    "dense": random_dense(120, 1),
    "sparse": random_sparse(200, 3),
    "sparse, tiny": random_sparse(20, 4, density=0.3),
    "low rank": random_low_rank(300, 7, 5),
    "low rank, negative": LowRank(rng(6).standard_normal((150, 4)), [-1.0, -2.0, -0.5, -3.0]),
    "low rank, rank above n": random_low_rank(30, 50, 7),
    "low rank, dependent columns": LowRank(
        np.repeat(rng(8).standard_normal((90, 3)), 2, axis=1), [1, -2, 3, 1, -1, -1]
    ),
    "sparse plus low rank": random_sparse(150, 9) + random_low_rank(150, 5, 10),
    "sparse plus low rank, tiny": random_sparse(12, 11, density=0.5) + random_low_rank(12, 2, 12),
    "n = 1": Dense([[-3.0]]),
    "n = 2": Dense([[1.0, 2.0], [2.0, -1.0]]),
    "n = 2, low rank": LowRank([[1.0], [2.0]], [-1.0]),
    "identity": diagonal_operator(np.ones(100)),
    "negative identity": diagonal_operator(-np.ones(100)),
    "zero, sparse": Sparse(sp.csr_array((100, 100))),
    "zero, dense": Dense(np.zeros((5, 5))),
    "zero, low rank": LowRank(np.zeros((70, 2)), [1.0, 1.0]),
    "few distinct eigenvalues": Sparse(sp.csr_array(np.kron(np.ones((2, 2)) - np.eye(2), np.ones((60, 60))))),
    "disconnected": Sparse(sp.block_diag([random_sparse(70, 13).sparse, 3.0 * random_sparse(80, 14).sparse])),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_smallest_eigenpair_is_numpys(name: str) -> None:
    A = OPERATORS[name]
    reference = np.linalg.eigvalsh(A.toarray())
    norm = np.abs(reference).max()
    value, u = smallest_eigenpair(A, rng())
    assert value == pytest.approx(reference[0], abs=1e-10 * norm + 1e-300)
    assert np.linalg.norm(u) == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.norm(A @ u - value * u) <= 2e-7 * norm
    assert u[np.argmax(np.abs(u))] > 0.0


@pytest.mark.parametrize("name", OPERATORS)
def test_largest_eigenvalue_is_numpys(name: str) -> None:
    A = OPERATORS[name]
    reference = np.linalg.eigvalsh(A.toarray())
    assert largest_eigenvalue(A, rng()) == pytest.approx(reference[-1], abs=1e-10 * np.abs(reference).max() + 1e-300)


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
@pytest.mark.parametrize("name", ["dense", "sparse", "low rank", "sparse plus low rank"])
def test_scale_changes_only_the_value(name: str, scale: float) -> None:
    A = OPERATORS[name]
    value, u = smallest_eigenpair(A, rng())
    scaled_value, scaled_u = smallest_eigenpair(A.scaled(scale), rng())
    assert scaled_value == pytest.approx(scale * value, rel=1e-9)
    np.testing.assert_allclose(scaled_u, u, atol=1e-5)


def test_columns_of_very_different_size() -> None:
    P = rng(1).standard_normal((50, 3))
    balanced = LowRank(P, [1.0, -2.0, 3.0])
    lopsided = LowRank(P * [1e40, 1e-40, 1.0], [1e-80, -2e80, 3.0])
    expected, _ = smallest_eigenpair(balanced, rng())
    value, u = smallest_eigenpair(lopsided, rng())
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(balanced @ u, value * u, atol=1e-9)


def test_large_dense_goes_through_lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigen, "LAPACK_UP_TO", 50)
    monkeypatch.setattr(eigen, "_lapack", None)
    test_smallest_eigenpair_is_numpys("dense")
    test_smallest_eigenpair_is_numpys("low rank")  # 7 columns: by its Gram matrix still


def test_large_rank_goes_through_lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigen, "LAPACK_UP_TO", 5)
    monkeypatch.setattr(eigen, "_lapack", None)
    monkeypatch.setattr(eigen, "_from_gram", None)
    test_smallest_eigenpair_is_numpys("low rank")


def test_lanczos_gives_its_best_when_products_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 400  # a path: the eigenvalues at its ends lie 1e-4 apart
    A = Sparse(sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]))
    monkeypatch.setattr(eigen, "MAX_PRODUCTS", 30)
    calls: list[None] = []
    value, u = smallest_eigenpair(A, rng(), lambda: calls.append(None))
    assert len(calls) < 60
    exact = -2.0 * np.cos(np.pi / (n + 1))
    assert exact - 1e-12 <= value < 0.95 * exact
    assert value == pytest.approx(u @ (A @ u), abs=1e-12)


def test_tick_is_called_and_may_stop() -> None:
    class Stop(Exception):
        pass

    calls = 0

    def check_time() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Stop

    with pytest.raises(Stop):
        smallest_eigenpair(OPERATORS["sparse"], rng(), check_time)


@pytest.mark.parametrize(
    "name", ["dense", "sparse", "low rank", "sparse plus low rank", "sparse, tiny", "zero, low rank"]
)
def test_weighted_pair_solves_the_generalised_problem(name: str) -> None:
    A: Operator = OPERATORS[name]
    d = rng(9).uniform(0.2, 3.0, A.n)
    value, x = smallest_weighted_eigenpair(A, d, rng())
    slack = np.linalg.eigvalsh(A.toarray() - value * np.diag(d))
    norm = np.abs(A.toarray()).sum(axis=1).max()
    assert abs(slack[0]) <= 1e-9 * norm
    assert np.linalg.norm(A @ x - value * d * x) <= 1e-5 * norm
    assert x @ (d * x) == pytest.approx(d.sum(), rel=1e-9)


def test_gram_over_several_blocks() -> None:
    P = rng(3).standard_normal((20_000, 3))
    np.testing.assert_allclose(gram(P), P.T @ P, rtol=1e-12)
