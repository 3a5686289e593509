"""Binary autoencoder: no flip improves a code, and no half-step raises the penalized objective."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from hashlearn.hashers.baselines.binary_autoencoder import BinaryAutoencoder, SquaredHinge
from hashlearn.hashers.baselines.binary_least_squares import code_values, flipped_codes

X, _ = load_digits(return_X_y=True)


def problem(length, n=40, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((length, length + 2))
    G = factor @ factor.T + 0.1 * np.eye(length)
    start = (rng.random((n, length)) < 0.5).astype(np.uint8)
    return G, rng.standard_normal((n, length)) * 3.0 + G.sum(axis=0) / 2, start


def test_flipped_codes_cannot_be_improved_by_one_bit_and_are_near_the_best():
    G, B, start = problem(12)
    found = flipped_codes(G, B, start)
    value = code_values(G, B, found)
    assert (value <= code_values(G, B, start) + 1e-9).all()
    for bit in range(12):
        other = found.copy()
        other[:, bit] ^= 1
        assert (code_values(G, B, other) >= value - 1e-9).all()
    every = np.array(list(itertools.product((0, 1), repeat=12)), dtype=np.uint8)
    best = np.array([code_values(G, np.tile(b, (len(every), 1)), every).min() for b in B])
    assert (value >= best - 1e-9).all()
    assert np.mean(value <= best + 1e-9) > 0.5


def test_squared_hinge_reaches_liblinear():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.standard_normal((300, 6)), np.ones(300)])
    noisy = rows[:, :6] @ rng.standard_normal((6, 3)) + rng.standard_normal((300, 3))
    signs = np.where(noisy > 0.0, 1, -1).astype(np.int8)
    svm = SquaredHinge(rows, C=0.5)
    fitted = svm.fit(signs, np.zeros((7, 3)), 300)
    for bit in range(3):
        reference = LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=100_000, dual=False)
        reference.fit(rows, signs[:, bit])
        np.testing.assert_allclose(fitted[:, bit], reference.coef_[0], atol=1e-4)
    one_step = svm.fit(signs, np.zeros((7, 3)), 1)
    missing = np.maximum(1.0 - signs * svm.margins(one_step), 0.0)
    losses = 0.5 * (one_step**2).sum(axis=0) + 0.5 * (missing**2).sum(axis=0)
    assert (losses < 0.5 * len(rows)).all()  # the loss of weights 0


@pytest.mark.parametrize("n_bits", [6, 24])
def test_no_half_step_raises_the_objective(n_bits):
    hasher = BinaryAutoencoder(n_bits, random_state=0).fit(X)
    for round_ in hasher.rounds_:
        slack = 1e-5 * round_.start
        assert round_.encoder <= round_.start + slack
        assert round_.decoder <= round_.encoder + slack
        assert round_.codes <= round_.decoder + slack
    penalties = [round_.penalty for round_ in hasher.rounds_]
    assert penalties == sorted(penalties)


def test_it_ends_where_codes_are_the_encoder_and_reconstructs_better_than_pca_signs():
    hasher = BinaryAutoencoder(12, random_state=0).fit(X)
    assert hasher.n_iter_ < hasher.max_iter
    assert np.mean((hasher.transform(X) > 0) == (hasher.codes_ > 0)) > 0.999
    centered = X - X.mean(axis=0)
    signs = np.sign(centered @ np.linalg.svd(centered, full_matrices=False)[2][:12].T)
    design = np.column_stack([signs, np.ones(len(X))])
    residual = centered - design @ np.linalg.lstsq(design, centered, rcond=None)[0]
    assert hasher.reconstruction_error_ < np.sum(residual**2) / np.sum(centered**2)


def test_reconstruction_error_is_that_of_least_squares():
    hasher = BinaryAutoencoder(8, random_state=0).fit(X)
    centered = X - X.mean(axis=0)
    design = np.column_stack([hasher.codes_, np.ones(len(X))])
    residual = centered - design @ np.linalg.lstsq(design, centered, rcond=None)[0]
    assert hasher.reconstruction_error_ == pytest.approx(np.sum(residual**2) / np.sum(centered**2), rel=1e-4)


@pytest.mark.parametrize("parameters", [{"penalty": 0.0}, {"penalty_growth": 1.0}, {"max_iter": 0}, {"C": -1.0}])
def test_refusals(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        BinaryAutoencoder(4, **parameters).fit(X)
