"""Sign codes: what each threshold means."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from hashlearn.hashers.baselines.lsh import SignCodes

X, _ = load_digits(return_X_y=True)
SHIFTED = np.random.default_rng(0).gamma(1.0, size=(1001, 6)) - 0.3


def test_plain_signs_of_the_first_features():
    np.testing.assert_array_equal(SignCodes(4).fit(SHIFTED).transform(SHIFTED), SHIFTED[:, :4] >= 0.0)


def test_a_feature_at_its_threshold_is_1_in_every_form_of_the_code():
    rows = np.array([[0.0, -1.0, 0.0, 2.0], [-0.0, 0.0, -3.0, 0.0]])
    hasher = SignCodes(4).fit(SHIFTED[:, :4])
    np.testing.assert_array_equal(hasher.transform(rows), [[1, 0, 1, 1], [1, 1, 0, 1]])
    np.testing.assert_array_equal(hasher.encode(rows), [[0b10110000], [0b11010000]])


def test_mean_and_median_thresholds():
    found = SignCodes(6, threshold="mean").fit(SHIFTED).transform(SHIFTED)
    np.testing.assert_array_equal(found, SHIFTED.mean(axis=0) <= SHIFTED)
    balance = SignCodes(6, threshold="median").fit(SHIFTED).transform(SHIFTED).sum(axis=0)
    np.testing.assert_array_equal(balance, 501)  # the median itself is on the side of 1


@pytest.mark.parametrize("threshold", ["zero", "mean", "median"])
def test_principal_components(threshold):
    scores = PCA(5).fit_transform(X)
    cut = np.median(scores, axis=0) if threshold == "median" else 0.0
    found = SignCodes(5, features="pca", threshold=threshold).fit(X).transform(X)
    agreement = np.mean(found == (scores >= cut), axis=0)
    np.testing.assert_array_less(0.999, np.maximum(agreement, 1.0 - agreement))  # up to the sign of a component


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 65}, "n_bits=65 needs as many features, got n_features=64"),
        ({"threshold": "mode"}, "threshold must be one of 'zero', 'mean', 'median', got 'mode'"),
        ({"features": "last"}, "features must be one of 'first', 'pca', got 'last'"),
    ],
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        SignCodes(**{"n_bits": 4, **parameters}).fit(X)
