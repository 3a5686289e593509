"""One rule for zero rows and one limit for huge entries, for arrays, tensors and blocks of rows."""

import numpy as np
import pytest

from hashlearn import TwoStepHasher, distributed
from hashlearn.distributed.moments import moments
from hashlearn.linalg.unit_rows import scale_to_unit, typical_norm
from hashlearn.targets import centered_unit_rows

RNG = np.random.default_rng(0)


def zero_rows(unit):
    return np.flatnonzero(np.linalg.norm(np.asarray(unit), axis=1) == 0.0).tolist()


def with_a_mean_row(n=40):
    """Rows whose mean is known exactly: pairs ±x around 8, and one row at the mean."""
    half = RNG.standard_normal((n // 2, 5)).round(3)
    return np.vstack([8.0 + half, 8.0 - half, np.full((1, 5), 8.0)])


def test_a_row_at_the_mean_is_zero_in_arrays_tensors_and_blocks():
    rows = with_a_mean_row()
    assert zero_rows(centered_unit_rows(rows, True)) == [40]
    known = moments(rows)
    assert zero_rows(scale_to_unit(rows - known.mean, known.typical_norm)) == [40]
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.float64):
        assert zero_rows(centered_unit_rows(torch.tensor(rows, dtype=dtype), True).numpy()) == [40]


def test_equal_rows_are_all_zero():
    rows = np.full((9, 3), 0.1)
    assert zero_rows(centered_unit_rows(rows, True)) == list(range(9))
    known = moments(rows)
    assert zero_rows(scale_to_unit(rows - known.mean, known.typical_norm)) == list(range(9))


def test_a_small_row_far_from_the_mean_keeps_its_direction():
    rows = np.array([[1e-9, 0.0], [1.0, 1.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(centered_unit_rows(rows, False)[0], [1.0, 0.0])


def test_the_typical_norm_is_that_of_all_rows_however_they_are_held():
    rows = with_a_mean_row()
    expected = np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    assert typical_norm(rows) == pytest.approx(expected, rel=1e-14)
    assert moments(rows).typical_norm == pytest.approx(expected, rel=1e-12)
    torch = pytest.importorskip("torch")
    assert typical_norm(torch.tensor(rows)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("entry", "accepted"), [(9e17, True), (2e18, False), (1e20, False)])
def test_one_limit_for_huge_entries(entry, accepted):
    rows = RNG.standard_normal((30, 4))
    rows[3, 2] = entry
    torch = pytest.importorskip("torch")
    hasher = TwoStepHasher(4, target="distance", hash_function="linear_ridge", n_sweeps=1, random_state=0)
    for held in (rows, rows.astype(np.float32), torch.tensor(rows), torch.tensor(rows, dtype=torch.float32)):
        if accepted:
            hasher.fit(held).encode(held)
        else:
            with pytest.raises(ValueError, match=r"X has an entry of size (1e\+20|2e\+18)"):
                hasher.fit(held)
    if accepted:
        distributed.fit(rows, n_bits=4, n_workers=0, n_sweeps=1, random_state=0)
    else:
        with pytest.raises(ValueError, match=r"has an entry of size (1e\+20|2e\+18)"):
            distributed.fit(rows, n_bits=4, n_workers=0, n_sweeps=1, random_state=0)
