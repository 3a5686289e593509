"""The cluster target: clusters that are plain to see are found, and awkward data does no harm."""

import numpy as np
import pytest

from hashlearn import TwoStepHasher, targets
from hashlearn.hash_functions import KernelRidge


def blobs(n_blobs=6, n_each=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_blobs), n_each)
    return 8.0 * np.eye(n_blobs, 8)[y] + rng.standard_normal((len(y), 8)), y


def test_members_are_the_blobs_and_y_is_that_of_their_labels():
    X, y = blobs()
    target = targets.Clusters(6)
    found = target.members(X, np.random.default_rng(0))
    same = y[:, None] == y
    np.testing.assert_array_equal(found[:, None] == found, same)
    Y = target.build(X, None, np.random.default_rng(0)).toarray()
    np.testing.assert_array_equal(Y, np.where(same, 1.0, -1.0))


def test_the_number_of_clusters_follows_the_bits():
    counts = [targets.Clusters().for_bits(bits).n_clusters for bits in (1, 4, 8, 9, 12, 32)]
    assert counts == [2, 4, 16, 16, 64, 64]
    assert targets.Clusters(5).for_bits(8).n_clusters == 5
    assert targets.Clusters().for_bits(8).neighbors == targets.Neighbors().for_bits(8)


def test_codes_of_clusters_keep_three_bits_apart_and_draw_in_what_is_new():
    X, y = blobs(16, 40, seed=1)
    X = 8.0 * np.eye(16)[y] + np.random.default_rng(1).standard_normal((len(y), 16))
    train = np.arange(len(y)) % 2 == 0
    hasher = TwoStepHasher(8, target="clusters", hash_function=KernelRidge(sharpen=4.0), random_state=0)
    codes = hasher.fit(X[train]).codes_.astype(int)
    words = np.unique(codes, axis=0)
    distances = ((8 - words @ words.T) // 2)[np.triu_indices(len(words), 1)]
    assert len(words) == 16
    assert distances.min() >= 2
    assert (distances < 3).mean() < 0.1
    new = 2 * hasher.transform(X[~train]).astype(int) - 1
    assert (new == codes).mean() > 0.98  # rows 2i and 2i + 1 are of one blob


def test_same_seed_same_codes_and_clone_keeps_the_target():
    X, _ = blobs()
    first, again = (TwoStepHasher(4, target="clusters", random_state=3).fit(X).encode(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_awkward_data():
    rng = np.random.default_rng(0)
    assert targets.Clusters(4).build(np.ones((10, 3)), None, rng).n == 10  # one distinct row
    two = np.repeat([[0.0, 1.0], [1.0, 0.0]], 5, axis=0)
    assert len(np.unique(targets.Clusters(8).members(two, rng))) <= 2
    few = rng.standard_normal((9, 3)).astype(np.float32)
    assert TwoStepHasher(8, target="clusters", random_state=0).fit(np.asfortranarray(few)).encode(few).shape == (9, 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: targets.Clusters(1), "n_clusters must be an integer of at least 2, or 'auto', got 1"),
        (lambda: targets.Clusters(True), "n_clusters must be"),
        (lambda: targets.Clusters(2.5), "n_clusters must be"),
        (lambda: targets.Clusters("many"), "n_clusters must be"),
        (lambda: targets.Clusters(4, neighbors="cosine"), "neighbors must be a Neighbors target, got str"),
    ],
)
def test_bad_parameters(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()
