"""Filtered subspace iteration finds what a dense decomposition finds."""

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.linalg.principal_axes import leading_eigenvectors


def walk(n: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """The normalized weights of a random graph on a ring, and its trivial eigenvector."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    graph = sp.coo_array((np.ones(3 * n), (np.tile(i, 3), np.r_[i + 1, i + 2, rng.integers(n, size=n)] % n)), (n, n))
    graph = sp.csr_array(graph + graph.T)
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    return sp.csr_array(graph.multiply(1 / root[:, None]).multiply(1 / root)), root / np.linalg.norm(root)


@pytest.mark.parametrize(("n", "count"), [(300, 1), (900, 12), (9000, 5)])
def test_values_and_vectors_are_those_of_the_dense_matrix(n, count):
    A, known = walk(n, n)
    values, vectors = leading_eigenvectors(A, count, known, np.random.default_rng(0))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-5)
    np.testing.assert_allclose(known @ vectors, 0.0, atol=1e-5)
    assert (np.diff(values) <= 0.0).all()
    if n < 1000:
        exact = np.linalg.eigvalsh(A.toarray() - np.outer(known, known))[::-1][:count]
        np.testing.assert_allclose(values, exact, atol=3e-3)
    assert np.linalg.norm(A @ vectors - vectors * values, axis=0).max() < 0.05


def test_the_same_seed_gives_the_same_vectors_for_any_number_of_threads(monkeypatch):
    A, known = walk(20_000, 1)
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(leading_eigenvectors(A, 4, known, np.random.default_rng(0))[1])
    np.testing.assert_array_equal(*answers)
