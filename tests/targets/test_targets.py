"""Every target against the matrix that eq. (3) asks for, computed densely from its definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import targets

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 7)) + 2.0


def built(target, y=None):
    return target.build(X, y, np.random.default_rng(0))


def off_diagonal(M):
    return M - np.diag(np.diag(M))


def test_labels_are_plus_and_minus_one():
    y = RNG.integers(0, 4, 60)
    Y = built(targets.Labels(), y)
    assert Y.is_low_rank
    assert Y.rank == 5
    np.testing.assert_array_equal(Y.toarray(), np.where(y[:, None] == y, 1.0, -1.0))


@pytest.mark.parametrize("limit", [400, 3])
def test_shared_labels_factored_and_sparse(limit, monkeypatch):
    monkeypatch.setattr(targets.labels, "MAX_FACTORED_SETS", limit)
    y = (RNG.random((60, 5)) < 0.3).astype(int)
    Y = built(targets.SharedLabels(), y)
    assert Y.is_low_rank == (limit == 400)
    np.testing.assert_allclose(Y.toarray(), np.where(y @ y.T > 0, 1.0, -1.0), atol=1e-12)


@pytest.mark.parametrize("center", [True, False])
def test_distance_is_one_minus_half_the_squared_distance(center):
    rows = X - X.mean(axis=0) if center else X
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    squared = ((rows[:, None] - rows) ** 2).sum(axis=2)  # s_ij, between 0 and c = 4
    np.testing.assert_allclose(built(targets.Distance(center)).toarray(), 1.0 - squared / 2.0, atol=1e-12)


def test_thresholded_distance_marks_the_nearest_of_each():
    Y = built(targets.ThresholdedDistance(fraction=0.1)).toarray()
    rows = targets.centered_unit_rows(X, center=True)
    squared = ((rows[:, None] - rows) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    near = np.zeros((60, 60), dtype=bool)
    for i in range(60):
        near[i, np.argsort(squared[i])[:6]] = True
    near |= near.T
    np.testing.assert_array_equal(off_diagonal(Y), off_diagonal(np.where(near, 1.0, -1.0)))
    np.testing.assert_array_equal(np.diag(Y), 1.0)


def test_rows_of_zeros_duplicates_and_huge_entries_stay_finite():
    for data in (np.zeros((5, 3)), np.ones((5, 3)), np.eye(5) * 1e200, np.eye(5) * 1e-300, np.tile(X[:2], (3, 1))):
        for target in (targets.Distance(), targets.ThresholdedDistance(0.3)):
            Y = target.build(data, None, np.random.default_rng(0)).toarray()
            assert np.isfinite(Y).all()
            assert np.abs(Y).max() <= 1.0 + 1e-12


def test_own_similarity_dense_sparse_and_with_background():
    S = np.eye(60)
    S[0, 1] = S[1, 0] = 0.5
    np.testing.assert_array_equal(built(targets.Similarity(S)).toarray(), S)
    np.testing.assert_array_equal(built(targets.Similarity(sp.csr_array(S))).toarray(), S)
    with_background = built(targets.Similarity(sp.csr_array(S), background=-1.0)).toarray()
    np.testing.assert_array_equal(with_background, np.where(S == 0.0, -1.0, S))


def test_pairs_named_twice_or_in_both_lists():
    target = targets.Pairs(similar=[(0, 1), (1, 0), (2, 3)], dissimilar=[(2, 3), (4, 5)])
    Y = built(target).toarray()
    assert (Y[0, 1], Y[1, 0], Y[2, 3], Y[4, 5]) == (1.0, 1.0, 0.0, -1.0)
    assert np.count_nonzero(Y) == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: targets.ThresholdedDistance(fraction=0.0), "fraction must be a number above 0 and below 1, got 0.0"),
        (lambda: targets.Similarity(np.eye(3), background=-2.0), r"background must lie in \[-1, 1\]"),
        (lambda: built(targets.Similarity(np.eye(3))), "n = 60, the number of samples, got n = 3"),
        (lambda: built(targets.Similarity(3.0 * np.eye(60))), r"entries in \[-1, 1\], got 3"),
        (lambda: built(targets.Similarity(-1.001 * np.eye(60))), r"entries in \[-1, 1\], got -1.001"),
        (lambda: built(targets.Similarity(np.eye(60), background=-1.0)), "only has a meaning for a sparse"),
        (lambda: built(targets.Pairs()), "at least one"),
        (lambda: built(targets.Pairs(similar=[(0, 60)])), "similar names sample 60, but there are 60"),
        (lambda: built(targets.Pairs(dissimilar=[(3, 3)])), "dissimilar pairs sample 3 with itself"),
        (lambda: built(targets.Pairs(similar=[0, 1])), "similar must be a list of pairs"),
        (lambda: targets.as_target("distances", None), "did you mean 'distance'"),
    ],
)
def test_wrong_targets_are_told_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_as_target_takes_names_objects_and_matrices():
    assert targets.as_target("auto", np.zeros((3, 2))).name == "shared_labels"
    assert targets.as_target(np.eye(3), None).name == "similarity"
    assert targets.as_target(sp.eye_array(3), None).name == "similarity"
    for name in targets.TARGETS:
        assert targets.as_target(name, None).name == name
    with pytest.raises(TypeError, match=r"write Labels\(\)"):
        targets.as_target(targets.Labels, None)
    with pytest.raises(TypeError, match="target must be a name"):
        targets.as_target(3, None)


def test_indicators_are_refused_by_targets_of_classes():
    indicators = np.array([[1, 1], [0, 1], [1, 0]])
    with pytest.raises(ValueError, match="one class for each sample"):
        targets.Labels().build(None, indicators, np.random.default_rng(0))
