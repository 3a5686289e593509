"""The two baselines that only classify: equal predicted class, equal code; near scores, near codes."""

import numpy as np
import pytest

from hashlearn import bits
from hashlearn.hashers.baselines.class_scores import ClassScoreLSH, OneHotClass
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TEST, TRAIN, X, Y

KINDS = [OneHotClass, ClassScoreLSH]


@pytest.mark.parametrize("n_bits", [3, 8, 10, 24])
def test_codes_of_equal_predicted_class_are_equal_and_no_others(n_bits):
    hasher = OneHotClass(n_bits, random_state=0).fit(X[TRAIN], Y[TRAIN])
    predicted = hasher.predict(X[TEST])
    assert np.mean(predicted == Y[TEST]) > 0.85
    codes = bits.bits_to_signs(hasher.transform(X[TEST]))
    np.testing.assert_array_equal(codes, hasher.codewords_[predicted])
    assert len(np.unique(hasher.codewords_, axis=0)) == min(10, 2**n_bits)
    laws.check_codes_and_margins(hasher)


def distances(words):
    gaps = (words.shape[1] - words.astype(int) @ words.T.astype(int)) // 2
    return gaps[np.triu_indices(len(words), 1)]


def test_one_hot_codewords():
    words = OneHotClass(10, random_state=0).fit(X[TRAIN], Y[TRAIN]).codewords_
    np.testing.assert_array_equal(words, 2 * np.eye(10) - 1)
    words = OneHotClass(25, codewords="one_hot", random_state=0).fit(X[TRAIN], Y[TRAIN]).codewords_
    np.testing.assert_array_equal((words > 0).sum(axis=0), np.ones(25))
    assert set((words > 0).sum(axis=1)) == {2, 3}


@pytest.mark.parametrize(("n_bits", "least"), [(8, 3), (16, 7), (32, 15)])
def test_spread_codewords_keep_apart(n_bits, least):
    words = OneHotClass(n_bits, random_state=0).fit(X[TRAIN], Y[TRAIN]).codewords_
    assert distances(words).min() >= least


def test_scores_that_are_near_have_near_codes():
    hasher = ClassScoreLSH(64, random_state=0).fit(X[TRAIN], Y[TRAIN])
    laws.check_codes_and_margins(hasher)
    scores = hasher.hash_functions_.decision_function(X[TEST])
    scores = scores - hasher.hash_functions_.decision_function(X[TRAIN]).mean(axis=0)
    unit = scores / np.linalg.norm(scores, axis=1, keepdims=True)
    angles = np.arccos(np.clip(unit @ unit.T, -1, 1)) / np.pi
    codes = bits.bits_to_signs(hasher.transform(X[TEST])).astype(float)
    hamming = 0.5 - 0.5 * codes @ codes.T / 64
    pairs = np.triu_indices(300, 1)
    assert np.corrcoef(angles[pairs], hamming[pairs])[0, 1] > 0.85
    assert abs((hamming - angles)[pairs].mean()) < 0.05
    assert laws.mean_average_precision(hasher) > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_are_named(kind):
    def make(**parameters):
        return kind(**{"n_bits": 8, "random_state": 0, **parameters})

    laws.check_bad_parameters_are_named(make, hash_function="svm")
    with pytest.raises(ValueError, match="one class for each sample"):
        make().fit(X[TRAIN], laws.indicators())


def test_bad_codewords_are_named():
    with pytest.raises(ValueError, match="codewords must be one of 'auto', 'one_hot', 'spread'"):
        OneHotClass(10, codewords="hot").fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="needs n_bits of at least the number of classes, 10, got 8"):
        OneHotClass(8, codewords="one_hot").fit(X[TRAIN], Y[TRAIN])
