"""Nearest rows in cells: nearly those of the exact search, never the row itself, the same for the same seed."""

import numpy as np
import pytest

from hashlearn.linalg.nearest import nearest_in_cells, nearest_rows


def clouds(n=3000, n_features=12, seed=0):
    rng = np.random.default_rng(seed)
    centers = 2.0 * rng.standard_normal((40, n_features))
    return (centers[rng.integers(40, size=n)] + rng.standard_normal((n, n_features))).astype(np.float32)


def test_cells_find_most_of_the_nearest_rows():
    rows = clouds()
    exact = nearest_rows(rows, rows, 5, own=np.arange(len(rows)))
    found = nearest_in_cells(rows, 5, np.random.default_rng(0))
    shared = [len({*a} & {*b}) for a, b in zip(exact.tolist(), found.tolist(), strict=True)]
    assert np.mean(shared) > 0.9 * 5
    assert all(len({*near}) == 5 for near in found.tolist())
    assert not (found == np.arange(len(rows))[:, None]).any()
    np.testing.assert_array_equal(found, nearest_in_cells(rows, 5, np.random.default_rng(0)))


@pytest.mark.parametrize("k", [1, 19])
def test_few_rows_and_many_neighbors(k):
    """Cells hold fewer rows than are asked for, so more cells are looked at."""
    rows = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    found = nearest_in_cells(rows, k, np.random.default_rng(1))
    assert [len({*near, i}) for i, near in enumerate(found.tolist())] == [k + 1] * 20
