"""Roots of features before anything is learned: same codes as from features whose roots were taken by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.hashers.two_step import scaled, settled_scaling

X, Y = (part[:300] for part in load_digits(return_X_y=True))


@pytest.mark.parametrize("y", [None, Y], ids=["without labels", "labels"])
def test_root_is_what_roots_by_hand_give(y):
    ours = TwoStepHasher(8, scaling="root", random_state=0).fit(X, y)
    by_hand = TwoStepHasher(8, scaling="none", random_state=0).fit(np.sqrt(X), y)
    np.testing.assert_array_equal(ours.encode(X), by_hand.encode(np.sqrt(X)))
    assert not np.array_equal(ours.encode(X), by_hand.encode(X))


def test_auto_takes_roots_with_labels_of_features_that_are_not_negative():
    assert TwoStepHasher(8, random_state=0).fit(X, Y).scaling_ == "root"
    assert TwoStepHasher(8, random_state=0).fit(X - 1.0, Y).scaling_ == "none"
    assert TwoStepHasher(8, random_state=0).fit(X).scaling_ == "none"
    assert TwoStepHasher.paper("al", 8, random_state=0).fit(X, Y).scaling_ == "none"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_signs_dtype_and_sparsity_stay(dtype):
    rows = np.array([[4.0, -9.0], [0.0, 0.25]], dtype=dtype)
    rows.flags.writeable = False
    roots = scaled(rows, "root")
    assert roots.dtype == dtype
    np.testing.assert_array_equal(roots, np.array([[2.0, -3.0], [0.0, 0.5]], dtype=dtype))
    sparse = scaled(sp.csr_array(rows), "root")
    assert sparse.nnz == 3
    np.testing.assert_array_equal(sparse.toarray(), roots)
    assert scaled(rows, "none") is rows


@pytest.mark.parametrize("wrong", ["log", None, 2, ["root"]])
def test_unknown_scalings_are_refused(wrong):
    with pytest.raises(ValueError, match="scaling must be one of 'auto', 'none', 'root'"):
        settled_scaling(wrong, X, True)
