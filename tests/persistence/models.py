"""Every hasher of the registry, fitted on a few digits, once for all tests."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from hashlearn.hashers import HASHERS

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 120), slice(120, 520)
N_BITS = 11  # two bytes, the second one padded

QUICK: dict[str, dict[str, Any]] = {
    "ranking": {"n_steps": 5, "hidden": 16, "batch_size": 32},
    "fasthash": {"n_trees": 5},
    "ksh": {"n_anchors": 40},
    "sdh": {"n_anchors": 40},
    "bre": {"n_anchors": 10, "n_pairs": 20, "n_sweeps": 1},
    "alm_hashing": {"max_iter": 2},
    "nmf_hashing": {"max_iter": 10},
}


def unfitted(name: str, **parameters: Any) -> Any:
    return HASHERS[name](N_BITS, **QUICK.get(name, {})).set_params(**{"random_state": 0, **parameters})


@cache
def fitted(name: str, dtype: str = "float64") -> Any:
    return unfitted(name).fit(X[TRAIN].astype(dtype), Y[TRAIN])


def assert_same_codes(one: Any, other: Any, rows: Any = None) -> None:
    """Bit for bit, margins too."""
    rows = X[TEST] if rows is None else rows
    np.testing.assert_array_equal(one.encode(rows), other.encode(rows))
    np.testing.assert_array_equal(one.decision_function(rows), other.decision_function(rows))


def assert_same(one: Any, other: Any) -> None:
    """Values of parameters and fitted attributes, however nested."""
    if hasattr(one, "state"):
        one, other = one.state(), other.state()
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, list | tuple):
        assert type(one) is type(other)
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, float) and np.isnan(one):
        assert np.isnan(other)
    else:
        assert one == other
