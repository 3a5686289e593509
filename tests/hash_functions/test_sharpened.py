"""Sharpened scores of codewords: against direct computation, at both ends of sharpness, and where they do not apply."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone

from hashlearn import TwoStepHasher, load
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions import (
    DistinctBits,
    KernelExpansion,
    KernelRidge,
    SharpenedExpansion,
    fitted_from_state,
)
from hashlearn.hash_functions.expansion import MOST_WORDS, Codewords, few_codewords, sharpened
from hashlearn.hash_functions.kernel_ridge import alpha_by_leave_one_out
from hashlearn.hash_functions.kernels import RBFPoints
from tests.hash_functions.digits import ALWAYS, COMPLEMENTARY, NEVER, REPEATED, learn_and_new

GAMMA, ALPHA = 0.3, 0.1


def fit(codes=None, **parameters):
    X, all_codes, _, _ = learn_and_new()
    spec = KernelRidge(**{"gamma": GAMMA, "alpha": ALPHA, **parameters})
    return spec.fit(X, all_codes if codes is None else codes, np.random.default_rng(0))


def direct_scores():
    """Scores of the distinct codewords at new rows, and the codewords, without any of our shortcuts."""
    X, codes, X_new, _ = learn_and_new()
    words, member = np.unique(codes, axis=0, return_inverse=True)
    kernel = [np.exp(-GAMMA * ((rows[:, None] - X) ** 2).sum(axis=2)) for rows in (X, X_new)]
    weights = np.linalg.solve(kernel[0] + ALPHA * np.eye(len(X)), np.eye(len(words))[member.ravel()])
    return kernel[1] @ weights, words


@pytest.mark.parametrize("sharpen", [0.3, 2.0, 50.0])
def test_margins_are_the_softmax_of_scores_times_codewords(sharpen):
    scores, words = direct_scores()
    shares = np.exp(sharpen * scores)
    shares /= shares.sum(axis=1, keepdims=True)
    others = words.sum(axis=0) / (np.exp(sharpen) + len(words) - 1)
    fitted = fit(sharpen=sharpen)
    assert isinstance(fitted, SharpenedExpansion)
    assert f"scores of {len(words)} codewords sharpened by {sharpen:g}" in fitted.description
    margins = fitted.decision_function(learn_and_new()[2])
    varying = [bit for bit in range(8) if bit not in (ALWAYS, NEVER)]
    np.testing.assert_allclose(margins[:, varying], (shares @ words - others)[:, varying], atol=1e-9 * sharpen)
    np.testing.assert_array_equal(margins[:, [ALWAYS, NEVER]], np.tile([1.0, -1.0], (700, 1)))
    np.testing.assert_array_equal(margins[:, REPEATED], margins[:, 1])
    np.testing.assert_array_equal(margins[:, COMPLEMENTARY], -margins[:, 2])


def test_scores_times_codewords_are_the_margins_without():
    scores, words = direct_scores()
    margins = fit().decision_function(learn_and_new()[2])
    np.testing.assert_allclose(margins[:, :6], (scores @ words)[:, :6], atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_sharpest_gives_the_codeword_of_the_best_score(dtype):
    scores, words = direct_scores()
    best_two = np.sort(scores, axis=1)[:, -2:]
    clear = best_two[:, 1] - best_two[:, 0] > 1e-3
    assert clear.mean() > 0.9
    margins = fit(sharpen=1e6).decision_function(learn_and_new()[2].astype(dtype))
    assert margins.dtype == dtype
    np.testing.assert_array_equal(margins[clear], words[scores.argmax(axis=1)][clear])


@pytest.mark.parametrize("sharpen", [0.01, 1.0, 30.0])
def test_one_perfect_score_among_many_gives_its_codeword(sharpen):
    """A bit that one codeword of a hundred has alone: without the offset the others would outvote it."""
    words = 2 * np.eye(100, dtype=np.int8) - 1
    every = DistinctBits(np.arange(100), np.arange(100), np.ones(100, np.int8))
    points = 100.0 * np.eye(100)  # so far from each other that a point scores for itself alone
    fitted = SharpenedExpansion(points, 1.0, np.eye(100), words, sharpen, every, "made up")
    lead = (np.exp(sharpen) - 1.0) / (np.exp(sharpen) + 99.0)
    np.testing.assert_allclose(fitted.decision_function(points), lead * words, rtol=1e-9)


def test_hardly_sharpened_is_as_without():
    scores, words = direct_scores()
    scores[:, 0] += 1.0 - scores.sum(axis=1)
    every = DistinctBits(np.arange(8), np.arange(8), np.ones(8, np.int8))
    made = SharpenedExpansion(np.zeros((1, 1)), 1.0, np.zeros((1, len(words))), words, 1e-4, every, "made up")
    margins = sharpened(scores, made.sharpen) @ made.levels
    np.testing.assert_allclose(margins * len(words) / made.sharpen, scores @ words, atol=1e-2)


def test_without_it_nothing_is_changed():
    X, codes, _, _ = learn_and_new()
    fitted = fit(sharpen=None)
    assert type(fitted) is KernelExpansion
    assert "sharpened" not in fitted.description
    with one_blas_thread():
        K = RBFPoints(X, GAMMA).gram()
        K[np.diag_indices_from(K)] += ALPHA
        wanted = cho_solve(cho_factor(K, lower=True), codes[:, :4].astype(np.float64))
    np.testing.assert_array_equal(fitted.coefficients, wanted)


def test_leave_one_out_judges_the_indicators():
    X, codes, _, _ = learn_and_new()
    words = few_codewords(codes)
    assert isinstance(words, Codewords)
    np.testing.assert_array_equal(words.words[words.member], codes)
    one_hot = np.eye(len(words.words), dtype=np.int8)[words.member]
    np.testing.assert_array_equal(words[:], one_hot)
    assert words.shape == one_hot.shape
    chosen = alpha_by_leave_one_out(X, one_hot, GAMMA, np.random.default_rng(0))
    assert f"alpha={chosen:.4g}," in fit(alpha="loo", sharpen=4.0).description


def test_all_rows_as_landmarks_is_the_gram_matrix():
    X_new = learn_and_new()[2]
    exact = fit(sharpen=4.0).decision_function(X_new)
    landmarks = fit(sharpen=4.0, max_gram_rows=1, n_landmarks=300)
    assert "300 Nyström landmarks because 300 rows are more than 1, scores of" in landmarks.description
    np.testing.assert_allclose(landmarks.decision_function(X_new), exact, atol=1e-2)


def test_many_distinct_codes_are_fitted_bit_by_bit(caplog):
    codes = np.random.default_rng(0).choice([-1, 1], size=(300, 12)).astype(np.int8)
    n_distinct = len(np.unique(codes, axis=0))
    assert n_distinct > 150
    with caplog.at_level(logging.WARNING):
        fitted = fit(codes, sharpen=4.0)
    why = f"not sharpened because {n_distinct} of 300 codes are distinct, more than 150"
    assert type(fitted) is KernelExpansion
    assert why in fitted.description
    assert why in caplog.text
    np.testing.assert_array_equal(fitted.coefficients, fit(codes).coefficients)
    assert "not sharpened because all codes are equal" in fit(codes[:1].repeat(300, axis=0), sharpen=4.0).description


def test_at_most_so_many_codewords():
    numbers = np.arange(4 * MOST_WORDS)[:, None] // 2 >> np.arange(12) & 1
    codes = (2 * numbers - 1).astype(np.int8)
    assert len(few_codewords(codes[: 2 * MOST_WORDS]).words) == MOST_WORDS
    assert few_codewords(codes) == f"{2 * MOST_WORDS} of {4 * MOST_WORDS} codes are distinct, more than {MOST_WORDS}"


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("words", np.zeros((3, 4), np.int8), "codewords of -1 and"),
        ("words", np.ones((0, 4), np.int8), "codewords of -1 and"),
        ("words", np.ones((3, 5), np.int8), "words must have shape"),
        ("words", np.ones((2, 4), np.int8), "coefficients must have shape"),
        ("words", None, "words must be an array of integers"),
        ("sharpen", -1.0, "sharpen must be"),
        ("sharpen", 0.0, "sharpen must be a positive"),
        ("sharpen", 1e300, "sharpen must be at most"),
        ("points", np.ones((3, 64)), "points must have shape"),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(name, value, match):
    with pytest.raises(ValueError, match=match):
        fitted_from_state({**fit(sharpen=4.0).state(), name: value})


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_a_hasher_with_it_clones_saves_and_loads(convert, tmp_path):
    X, _, X_new, _ = learn_and_new()
    labels = np.argsort(X.sum(axis=1)).argsort() // 60
    hasher = TwoStepHasher(8, solver="local_search", hash_function=KernelRidge(sharpen=2.0), random_state=0)
    codes = hasher.fit(convert(X), labels).encode(convert(X_new))
    assert isinstance(hasher.hash_functions_, SharpenedExpansion)
    assert clone(hasher).get_params() == hasher.get_params()
    np.testing.assert_array_equal(clone(hasher).fit(convert(X), labels).encode(convert(X_new)), codes)
    hasher.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.encode(convert(X_new)), codes)
    assert again.hash_function == KernelRidge(sharpen=2.0)
    assert again.hash_functions_.description == hasher.hash_functions_.description


@pytest.mark.parametrize("sparse", [False, True])
def test_tensors_have_the_margins_of_arrays(sparse):
    torch = pytest.importorskip("torch")
    X, codes, X_new, _ = learn_and_new()
    rows = sp.csr_array(X) if sparse else X
    for sharpen in (4.0, 1e6):
        fitted = KernelRidge(sharpen=sharpen).fit(rows, codes, np.random.default_rng(0))
        margins = fitted.decision_function(torch.from_numpy(X_new))
        assert margins.dtype == torch.float64
        np.testing.assert_allclose(margins.numpy(), fitted.decision_function(X_new), atol=1e-6)
        assert torch.isfinite(fitted.decision_function(torch.from_numpy(X_new).float())).all()
