"""K-means hashing: codes are nearest codewords, both errors fall, components are dealt out evenly."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn.hash_functions import every_bit
from hashlearn.hashers.baselines import kmeans_hashing
from hashlearn.hashers.baselines.kmeans_hashing import CodewordMargins, KMeansHashing, affinity_kmeans, even_subspaces

X, _ = load_digits(return_X_y=True)
WEIGHT = 10.0


@pytest.fixture(scope="module")
def clusters():
    scores = (X - X.mean(axis=0)) / 16.0
    return scores @ np.linalg.svd(scores, full_matrices=False)[2][:12].T


def test_updates_of_codewords_never_raise_the_error():
    rng = np.random.default_rng(0)
    codewords, means = rng.standard_normal((2, 16, 12))
    shares = rng.dirichlet(np.ones(16))
    distances = np.sqrt(np.bitwise_count(np.arange(16)[:, None] ^ np.arange(16)))

    def error(C):
        stress = np.outer(shares, shares) * (np.linalg.norm(C[:, None] - C, axis=2) - distances) ** 2
        return shares @ np.sum((C - means) ** 2, axis=1) + WEIGHT * stress.sum()

    values = [error(codewords)]
    for _ in range(5):
        codewords = kmeans_hashing._update(codewords, means, shares, distances, WEIGHT)
        values.append(error(codewords))
    assert np.all(np.diff(values) < 0)


def test_hamming_distances_of_numbers_tell_codeword_distances(clusters):
    held, free = (affinity_kmeans(clusters, 4, w, 50, np.random.default_rng(0)) for w in (WEIGHT, 1e-6))
    numbers = np.arange(16)
    roots = np.sqrt(np.bitwise_count(numbers[:, None] ^ numbers))[np.triu_indices(16, 1)]
    correlation = [
        np.corrcoef(roots, np.linalg.norm(C[:, None] - C, axis=2)[np.triu_indices(16, 1)])[0, 1] for C in (held, free)
    ]
    assert correlation[0] > 0.95
    assert correlation[0] > correlation[1]


def quantization_error(rows, codewords):
    return np.mean(np.linalg.norm(rows[:, None] - codewords, axis=2).min(axis=1) ** 2)


def test_without_affinity_it_is_k_means(clusters):
    once, codewords = (affinity_kmeans(clusters, 3, 1e-9, n, np.random.default_rng(0)) for n in (1, 200))
    nearest = np.linalg.norm(clusters[:, None] - codewords, axis=2).argmin(axis=1)
    means = np.array([clusters[nearest == j].mean(axis=0) for j in range(8)])
    np.testing.assert_allclose(codewords, means, atol=1e-3 * np.abs(codewords).max())
    assert quantization_error(clusters, codewords) < quantization_error(clusters, once)


def test_codes_are_numbers_of_the_nearest_codewords():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((8, 3)), rng.standard_normal((4, 2))
    weights = 2.0 * np.block([[first.T, np.zeros((3, 4))], [np.zeros((2, 8)), second.T]])
    offsets = -np.concatenate([(first**2).sum(axis=1), (second**2).sum(axis=1)])
    rows = rng.standard_normal((50, 5))
    margins = CodewordMargins(weights, offsets, np.array([3, 2]), 1.0, every_bit(5), "").decision_function(rows)
    for part, codewords, columns in ((slice(0, 3), first, slice(0, 3)), (slice(3, 5), second, slice(3, 5))):
        squares = ((rows[:, None, columns] - codewords) ** 2).sum(axis=2)
        size = margins[:, part].shape[1]
        numbers = (margins[:, part] >= 0.0) @ (2 ** np.arange(size - 1, -1, -1))
        np.testing.assert_array_equal(numbers, squares.argmin(axis=1))
        gap = np.partition(squares, 1, axis=1)
        np.testing.assert_allclose(np.abs(margins[:, part]).min(axis=1), gap[:, 1] - gap[:, 0], atol=1e-9)


def test_components_are_dealt_out_evenly():
    variances = 0.9 ** np.arange(40)
    parts = even_subspaces(variances, 4)
    assert sorted(np.concatenate(parts)) == list(range(40))
    assert [len(part) for part in parts] == [10] * 4
    assert np.ptp([np.log(variances[part]).sum() for part in parts]) < 0.5
    assert [part[0] for part in parts] == [0, 1, 2, 3]


@pytest.mark.parametrize(("n_bits", "bits_per_subspace", "sizes"), [(32, 4, [4] * 8), (10, 4, [4, 3, 3]), (3, 8, [3])])
def test_bits_of_subspaces(n_bits, bits_per_subspace, sizes):
    hasher = KMeansHashing(n_bits, bits_per_subspace=bits_per_subspace, n_iter=2).fit(X)
    np.testing.assert_array_equal(hasher.hash_functions_.sizes, sizes)


def test_too_many_bits_for_the_features():
    with pytest.raises(ValueError, match=r"n_bits=40 in 2 subspace\(s\) would need 2\^20 codewords"):
        KMeansHashing(40).fit(X[:, 18:20])
