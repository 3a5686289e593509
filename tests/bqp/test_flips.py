"""Single flips: eq. (21) as a plain loop says it, for every kind of operator."""

import numpy as np
import pytest

from hashlearn.bqp import Dense, Operator, Sparse, as_operator, flips
from hashlearn.bqp.flips import Descent
from tests.bqp.problems import complete, random_low_rank, random_sparse, random_symmetric, some_signs

KINDS = {
    "dense": lambda n: Dense(random_symmetric(n, 1)),
    "sparse": lambda n: Sparse(random_sparse(n, 2)),
    "low rank": lambda n: random_low_rank(n, 4, 3),
    "sparse plus low rank": lambda n: as_operator(random_sparse(n, 4)) + random_low_rank(n, 3, 5),
}


@pytest.fixture(params=KINDS)
def A(request) -> Operator:
    return KINDS[request.param](23)


def as_printed(array: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x_i ← −sgn(Σ_{j≠i} a_ij x_j), one after the other."""
    x = x.copy()
    for i in range(len(x)):
        pull = array[i] @ x - array[i, i] * x[i]
        x[i] = -np.sign(pull)
    return x


def test_binarize_is_equation_21(A):
    x = np.random.default_rng(0).standard_normal(A.n)
    np.testing.assert_array_equal(Descent(A).binarize(x), as_printed(A.toarray(), x))


def test_descent_ends_where_no_flip_helps_and_never_worse(A):
    for seed in range(5):
        x = some_signs(A.n, seed)
        end = Descent(A).descend(x)
        assert A.value(end) <= A.value(x)
        assert A.flip_gains(end).min() >= -1e-10
        assert set(np.unique(end)) <= {-1.0, 1.0}


def test_pieces_change_nothing_but_call_between(A, monkeypatch):
    x = some_signs(A.n)
    whole = Descent(A).descend(x)
    monkeypatch.setattr(flips, "PIECE", 200)
    calls = []
    np.testing.assert_array_equal(Descent(A).descend(x, between=lambda: calls.append(1)), whole)
    assert len(calls) > 5


@pytest.mark.parametrize(
    "kind", [lambda a: Dense(a), lambda a: as_operator(a) + random_low_rank(len(a), 2, 0).scaled(0.0)]
)
def test_ties_keep_the_sign_they_have(kind):
    zero = kind(np.zeros((6, 6)))
    x = some_signs(6, 3)
    np.testing.assert_array_equal(Descent(zero).descend(x), x)
    # From 0 a tie becomes +1, so that signs come out.
    np.testing.assert_array_equal(Descent(zero).binarize(np.zeros(6)), np.ones(6))
    np.testing.assert_array_equal(Descent(zero).binarize(0.3 * x), x)


def test_noise_flips_end():
    """Weights of 0.1 do not add up to zero exactly; the descent must end all the same."""
    for seed in range(20):
        A = Dense(0.1 * complete(20))
        calls = []
        Descent(A).descend(some_signs(20, seed), between=lambda calls=calls: calls.append(1))
        assert len(calls) < 50
