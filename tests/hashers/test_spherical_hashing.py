"""Spherical hashing: balance, independence, and its distance by hand."""

import logging

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn.hashers.baselines.spherical_hashing import SphericalHashing

X, _ = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def hasher():
    return SphericalHashing(16, random_state=0).fit(X)


def test_every_sphere_holds_half(hasher):
    inside = hasher.transform(X).sum(axis=0)
    assert np.abs(inside - len(X) / 2).max() <= 1


def test_two_spheres_share_a_quarter(hasher):
    found = hasher.transform(X).astype(float)
    shares = (found.T @ found / len(X))[np.triu_indices(16, 1)]
    np.testing.assert_allclose(shares, hasher.overlaps_[np.triu_indices(16, 1)], atol=2 / len(X))
    assert hasher.converged_
    assert np.abs(4 * shares - 1).mean() <= 0.10 + 1e-3
    assert (4 * shares).std() <= 0.15 + 1e-3


def test_bits_say_who_is_inside(hasher):
    distances = np.linalg.norm(X[:, None] - hasher.centers_, axis=2)
    np.testing.assert_array_equal(hasher.transform(X), distances <= hasher.radii_)


def test_moves_make_overlaps_even():
    once = SphericalHashing(16, max_iter=1, random_state=0).fit(X)
    many = SphericalHashing(16, mean_tol=0.02, deviation_tol=0.05, random_state=0).fit(X)
    unevenness = [np.abs(4 * h.overlaps_[np.triu_indices(16, 1)] - 1).mean() for h in (once, many)]
    assert unevenness[1] < 0.5 * unevenness[0]


def test_not_converging_is_a_status(caplog):
    with caplog.at_level(logging.WARNING):
        hasher = SphericalHashing(16, mean_tol=1e-9, max_iter=2, random_state=0).fit(X)
    assert not hasher.converged_
    assert hasher.n_iter_ == 2
    assert "uneven" in caplog.text


@pytest.mark.parametrize("parameters", [{"mean_tol": 0.0}, {"deviation_tol": -1.0}, {"max_iter": 0}])
def test_refusals(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SphericalHashing(4, **parameters).fit(X)
