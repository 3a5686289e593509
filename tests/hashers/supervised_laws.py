"""Laws that every supervised hasher keeps, and the digits to try them on."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
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


def check_nothing_but_the_seed_matters(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, memory order and batch size never change a bit; the same seed gives the same codes."""
    answers = []
    for threads, order in (("1", "C"), ("3", "F")):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        data = np.asarray(X[:600], order=order)
        hasher = make().fit(np.asarray(data[TRAIN], order=order), Y[TRAIN])
        answers.append(hasher.encode(data))
    np.testing.assert_array_equal(answers[0], answers[1])
    for size in (1, 7, 250):
        parts = [hasher.encode(X[a : min(a + size, 400)]) for a in range(200, 400, size)]
        np.testing.assert_array_equal(np.concatenate(parts), answers[0][200:400])


def check_sparse_rows_give_the_same_codes(make: Callable[[], Any]) -> None:
    dense, sparse = make().fit(X[TRAIN], Y[TRAIN]), make().fit(sp.csr_array(X[TRAIN]), Y[TRAIN])
    assert np.mean(dense.transform(X[TEST]) == sparse.transform(sp.csr_array(X[TEST]))) > 0.98


def check_names_and_indicators_are_labels_too(make: Callable[[], Any]) -> None:
    names = np.array([f"digit {label}" for label in Y[TRAIN]])
    reference = make().fit(X[TRAIN], Y[TRAIN]).encode(X[TEST])
    np.testing.assert_array_equal(make().fit(X[TRAIN], names.astype(object)).encode(X[TEST]), reference)
    hasher = make().fit(X[TRAIN], indicators())
    assert len(np.unique(hasher.encode(X[TEST]), axis=0)) > 1


def check_degenerate_features_do_not_crash(make: Callable[[], Any]) -> None:
    for data in (CONSTANT, np.tile(X[:2], (20, 1)), np.eye(40) * 1e15, np.eye(40) * 1e-300):
        hasher = make().set_params(n_bits=4).fit(data, np.arange(40) % 3)
        assert np.isfinite(hasher.decision_function(data)).all()


def check_bad_input_is_told_what_is_wrong(make: Callable[[], Any]) -> None:
    for y, message in (
        (None, "requires y to be passed, but the target y is None"),
        (np.zeros(300), "y holds only one class"),
        (np.full(300, np.nan), "y contains NaN"),
        (Y[:299], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            make().fit(X[TRAIN], y)
    with pytest.raises(ValueError, match="n_bits must be a positive integer"):
        clone(make()).set_params(n_bits=0).fit(X[TRAIN], Y[TRAIN])


def check_bad_parameters_are_named(make: Callable[[], Any], **bad: Any) -> None:
    for name, value in bad.items():
        with pytest.raises(ValueError, match=name):
            make().set_params(**{name: value}).fit(X[TRAIN], Y[TRAIN])
