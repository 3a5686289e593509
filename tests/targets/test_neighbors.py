"""The neighbor graph and its embedding: small graphs worked out by hand, and laws on awkward data."""

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import TwoStepHasher, targets
from hashlearn.core import thresholds
from hashlearn.targets import neighbors as graphs
from hashlearn.targets.neighbors import _diffusion, _power

RNG = np.random.default_rng(0)


def blobs(n_each=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    centers = 6.0 * np.eye(3, n_features)
    y = np.repeat(np.arange(3), n_each)
    return centers[y] + rng.standard_normal((len(y), n_features)), y


def test_weights_count_shared_neighbors():
    # On a line 0, 1, 2, …, 5: the two nearest of each, by hand.
    X = np.array([[0.0], [1.0], [2.1], [3.3], [4.6], [6.0]])
    lists = [{1, 2}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 3}]
    W, place = graphs.neighbor_graph(X, 2, "euclidean", np.random.default_rng(0))
    expected = np.zeros((6, 6))
    for i, near in enumerate(lists):
        for j in near:
            expected[i, j] = expected[j, i] = 1 + len(near & lists[j])
    np.testing.assert_array_equal(W.toarray(), expected)
    np.testing.assert_array_equal(place, np.arange(6))


def test_equal_rows_are_one_node():
    X = np.array([[1.0, 2.0], [3.0, -0.0], [1.0, 2.0], [3.0, 0.0], [5.0, 5.0]])
    W, place = graphs.neighbor_graph(X, 1, "euclidean", np.random.default_rng(0))
    assert W.shape == (3, 3)
    assert place.tolist() == [0, 1, 0, 1, 2]
    E = targets.Neighbors(1, 2, 1.0).embedding(X, RNG)
    np.testing.assert_array_equal(E[0], E[2])


def test_many_copies_of_a_row_do_not_hide_its_neighbors():
    X, y = blobs()
    copied = np.concatenate([X, np.repeat(X[:1], 60, axis=0)])
    E = targets.Neighbors(5, 8, 3.0).embedding(copied, np.random.default_rng(0))
    own = E[:120] @ E[0]
    assert own[y == 0][1:].mean() > own[y != 0].mean() + 0.5


def test_blobs_are_told_apart_and_the_same_seed_gives_the_same():
    X, y = blobs(200)
    first, again = (targets.Neighbors(8, 10, 2.0).build(X, None, np.random.default_rng(1)).toarray() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    same = y[:, None] == y
    assert first[same].min() > first[~same].max()
    assert np.abs(first).max() <= 1.0 + 1e-12


def test_parts_of_a_graph_that_is_not_connected_stay_apart():
    X = np.concatenate([RNG.standard_normal((250, 3)) + 100.0 * np.eye(3)[k] for k in range(3)])
    W, _ = graphs.neighbor_graph(X, 4, "euclidean", np.random.default_rng(0))
    assert sp.csgraph.connected_components(W)[0] >= 3
    E = targets.Neighbors(4, 6, 2.0, metric="euclidean").embedding(X, RNG)
    Y = E @ E.T
    part = np.repeat(np.arange(3), 250)
    assert Y[part[:, None] == part].mean() > 0.5
    assert Y[part[:, None] != part].mean() < 0.1


def test_sparse_and_dense_eigenvectors_agree(monkeypatch):
    W, _ = graphs.neighbor_graph(
        np.random.default_rng(3).standard_normal((180, 4)), 6, "cosine", np.random.default_rng(0)
    )
    dense = _diffusion(W, 5, np.random.default_rng(0))
    monkeypatch.setattr("hashlearn.targets.neighbors.MOST_DENSE", 0)
    sparse = _diffusion(W, 5, np.random.default_rng(0))
    np.testing.assert_allclose(sparse[0], dense[0], atol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(sparse[1] * dense[1], axis=0)), 1.0, atol=1e-3)
    degrees = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    np.testing.assert_allclose(degrees @ dense[1], 0.0, atol=1e-9)  # the trivial one is out


def test_a_lanczos_iteration_that_does_not_converge_is_no_error(monkeypatch, caplog):
    X, y = blobs(200)
    expected = targets.Neighbors(n_components=8).embedding(X, np.random.default_rng(0))
    real = graphs.eigsh
    monkeypatch.setattr(graphs, "eigsh", lambda *args, **options: real(*args, **options, maxiter=1))
    E = targets.Neighbors(n_components=8).embedding(X, np.random.default_rng(0))
    np.testing.assert_allclose(E @ E.T, expected @ expected.T, atol=0.05)
    assert "eigenvectors of the neighbor graph come from subspace iteration, because ARPACK error" in caplog.text
    hasher = TwoStepHasher(4, target="neighbors", random_state=0).fit(X)
    assert len(np.unique(hasher.codes_[y == 0], axis=0)) < 20
    n = graphs.MOST_DENSE + 1
    rows = targets.Neighbors(n_components=n - 10).embedding(RNG.standard_normal((n, 5)), np.random.default_rng(0))
    assert rows.shape == (n, n - 10)


def test_power_gives_the_wanted_participation_ratio():
    values = np.linspace(1.0, 0.3, 50)
    weights = values ** (2.0 * _power(values, 7.0))
    assert weights.sum() ** 2 / np.square(weights).sum() == pytest.approx(7.0, rel=1e-6)
    assert _power(np.ones(4), 2.0) == 256.0  # equal eigenvalues stay equal


def test_approximate_search_agrees_where_it_is_easy(monkeypatch):
    X, _ = blobs(100)
    exact, _ = graphs.neighbor_graph(X, 5, "cosine", np.random.default_rng(0))
    monkeypatch.setattr(thresholds, "MOST_EXACT_NEIGHBORS", 10)
    found, _ = graphs.neighbor_graph(X, 5, "cosine", np.random.default_rng(0))
    assert np.mean((exact > 0).toarray() == (found > 0).toarray()) > 0.999


@pytest.mark.parametrize("data", [np.zeros((5, 3)), np.ones((5, 3)), np.eye(5) * 1e200, np.eye(5) * 1e-300])
def test_degenerate_rows_stay_finite(data):
    Y = targets.Neighbors().build(data, None, np.random.default_rng(0)).toarray()
    assert np.isfinite(Y).all()
    assert np.abs(Y).max() <= 1.0 + 1e-12


def test_labels_where_there_are_labels_and_the_graph_elsewhere():
    X, y = blobs()
    partly = np.where(np.arange(len(y)) % 2 == 0, y, -1)
    graph = targets.Neighbors(6, 8, 3.0)
    rng = np.random.default_rng
    Y = targets.LabelsAndNeighbors(graph).build(X, partly, rng(0)).toarray()
    G = graph.build(X, None, rng(0)).toarray()
    known = partly >= 0
    both = known[:, None] & known
    np.testing.assert_allclose(Y[both], np.where(y[:, None] == y, 1.0, -1.0)[both], atol=1e-12)
    np.testing.assert_allclose(Y[~both], G[~both], atol=1e-12)
    half = targets.LabelsAndNeighbors(graph, labels_weight=0.5).build(X, y, rng(0)).toarray()
    np.testing.assert_allclose(half, 0.5 * G + 0.5 * np.where(y[:, None] == y, 1.0, -1.0), atol=1e-12)
    none = targets.LabelsAndNeighbors(graph).build(X, np.full(len(y), -1), rng(0)).toarray()
    np.testing.assert_allclose(none, G, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: targets.Neighbors(n_neighbors=0), "n_neighbors must be an integer of at least 1"),
        (lambda: targets.Neighbors(n_components=True), "n_components must be"),
        (lambda: targets.Neighbors(dimension=0.5), "dimension must be a number of at least 1"),
        (lambda: targets.Neighbors(metric="l1"), "metric must be one of 'cosine', 'euclidean'"),
        (lambda: targets.LabelsAndNeighbors(labels_weight=2.0), "labels_weight must lie in"),
    ],
)
def test_bad_parameters(make, words):
    with pytest.raises(ValueError, match=words):
        make()
