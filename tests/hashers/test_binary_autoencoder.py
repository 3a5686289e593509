"""Binary autoencoder: no flip improves a code, and no half-step raises the penalized objective."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn.hashers.baselines.binary_autoencoder import (
    BinaryAutoencoder,
    Decoder,
    Encoder,
    flipped_signs,
    sign_values,
)
from hashlearn.inference import start_codes

X, _ = load_digits(return_X_y=True)


def problem(length, n=40, seed=0):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((length, length + 2))
    G = factor @ factor.T + 0.1 * np.eye(length)
    start = rng.choice([-1.0, 1.0], (n, length))
    return G, rng.standard_normal((n, length)) * 6.0, start


def test_flipped_signs_cannot_be_improved_by_one_bit_and_are_near_the_best():
    G, B, start = problem(12)
    signs = flipped_signs(G, B, start)
    value = sign_values(G, B, signs)
    assert (value <= sign_values(G, B, start) + 1e-9).all()
    for bit in range(12):
        other = signs.copy()
        other[:, bit] *= -1.0
        assert (sign_values(G, B, other) >= value - 1e-9).all()
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=12)))
    best = np.array([sign_values(G, np.tile(b, (len(every), 1)), every).min() for b in B])
    assert (value >= best - 1e-9).all()
    assert np.mean(value <= best + 1e-9) > 0.5


@pytest.mark.parametrize("n_bits", [6, 24])
def test_no_half_step_raises_the_objective(n_bits):
    rows = X - X.mean(axis=0)
    rows /= np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    signs, penalty = start_codes("itq", X, n_bits, np.random.default_rng(0)), 0.005 / n_bits
    encoder, decoder = Encoder(rows, 0.03, n_bits), Decoder(rows, signs)
    values = []

    def record():
        values.append(decoder.error(signs) + penalty * np.mean(np.sum((signs - encoder.signs) ** 2, axis=1)))

    for _ in range(5):
        values.clear()
        record()
        encoder.improve(signs)
        record()
        decoder = Decoder(rows, signs)
        record()
        signs = decoder.best_signs(signs, encoder.signs, penalty)
        record()
        assert (np.diff(values) <= 1e-5 * values[0]).all()
        penalty *= 2.0


def test_it_ends_where_codes_are_the_encoder_and_reconstructs_better_than_pca_signs():
    hasher = BinaryAutoencoder(12, random_state=0).fit(X)
    assert int(hasher.hash_functions_.description.split()[2]) < hasher.max_iter  # rounds
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
