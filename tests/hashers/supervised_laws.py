"""Digits, and checks that tests of several supervised hashers share."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import bits, metrics

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 300), slice(300, 600)
CONSTANT = np.ones((40, 3))


def indicators() -> np.ndarray:
    """Twelve labels for the training digits: the digit, odd, and one that nobody has."""
    columns = np.zeros((300, 12), dtype=int)
    columns[np.arange(300), Y[TRAIN]] = 1
    columns[:, 10] = Y[TRAIN] % 2
    return columns


def mean_average_precision(hasher: Any) -> float:
    return metrics.mean_average_precision(hasher.encode(X[TEST]), hasher.encode(X[TRAIN]), Y[TEST], Y[TRAIN])


def check_codes_and_margins(hasher: Any) -> None:
    """Shapes, types, and bits that are the signs of margins."""
    n_bits = hasher.n_bits
    out = hasher.transform(X[TEST])
    margins = hasher.decision_function(X[TEST])
    assert (out.shape, out.dtype, margins.shape) == ((300, n_bits), np.uint8, (300, n_bits))
    np.testing.assert_array_equal(margins >= 0, out)
    np.testing.assert_array_equal(bits.unpack_bits(hasher.encode(X[TEST]), n_bits), out)
    assert hasher.decision_function(X[TEST].astype(np.float32)).dtype == np.float32
    copy = pickle.loads(pickle.dumps(hasher))
    np.testing.assert_array_equal(copy.encode(X[TEST]), hasher.encode(X[TEST]))


def check_training_codes(hasher: Any) -> None:
    """The hash functions give the training samples the codes that fit left behind."""
    assert hasher.codes_.dtype == np.int8
    np.testing.assert_array_equal(bits.bits_to_signs(hasher.transform(X[TRAIN])), hasher.codes_)


def check_bad_parameters_are_named(make: Callable[[], Any], **bad: Any) -> None:
    for name, value in bad.items():
        with pytest.raises(ValueError, match=name):
            make().set_params(**{name: value}).fit(X[TRAIN], Y[TRAIN])
