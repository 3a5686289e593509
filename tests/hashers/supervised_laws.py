"""Digits, and checks that tests of several supervised hashers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import bits, metrics

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 300), slice(300, 600)


def indicators() -> np.ndarray:
    """Twelve labels for the training digits: the digit, odd, and one that nobody has."""
    columns = np.zeros((300, 12), dtype=int)
    columns[np.arange(300), Y[TRAIN]] = 1
    columns[:, 10] = Y[TRAIN] % 2
    return columns


def mean_average_precision(hasher: Any) -> float:
    return metrics.mean_average_precision(hasher.encode(X[TEST]), hasher.encode(X[TRAIN]), Y[TEST], Y[TRAIN])


def check_training_codes(hasher: Any) -> None:
    """The hash functions give the training samples the codes that fit left behind."""
    assert hasher.codes_.dtype == np.int8
    np.testing.assert_array_equal(bits.bits_to_signs(hasher.transform(X[TRAIN])), hasher.codes_)


def check_bad_parameters_are_named(make: Callable[[], Any], **bad: Any) -> None:
    for name, value in bad.items():
        with pytest.raises(ValueError, match=name):
            make().set_params(**{name: value}).fit(X[TRAIN], Y[TRAIN])
