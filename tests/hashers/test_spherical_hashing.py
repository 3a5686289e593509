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


def shared(hasher):
    """Share of the rows inside both of two spheres, for every pair of them."""
    inside = hasher.transform(X).astype(float)
    return (inside.T @ inside / len(X))[np.triu_indices(16, 1)]


def test_two_spheres_share_a_quarter(hasher):
    shares = shared(hasher)
    assert np.abs(4 * shares - 1).mean() <= 0.10 + 1e-3
    assert (4 * shares).std() <= 0.15 + 1e-3


def test_bits_say_who_is_inside(hasher):
    spheres = hasher.hash_functions_
    distances = np.linalg.norm(X[:, None] / spheres.scale - spheres.origin - spheres.centers, axis=2)
    np.testing.assert_array_equal(hasher.transform(X), distances <= np.sqrt(spheres.squared_radii))


def test_moves_make_overlaps_even():
    once = SphericalHashing(16, max_iter=1, random_state=0).fit(X)
    many = SphericalHashing(16, mean_tol=0.02, deviation_tol=0.05, random_state=0).fit(X)
    unevenness = [np.abs(4 * shared(hasher) - 1).mean() for hasher in (once, many)]
    assert unevenness[1] < 0.5 * unevenness[0]


def test_not_converging_is_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        SphericalHashing(16, mean_tol=1e-9, max_iter=2, random_state=0).fit(X)
    assert "uneven after 2 moves" in caplog.text


@pytest.mark.parametrize("parameters", [{"mean_tol": 0.0}, {"deviation_tol": -1.0}, {"max_iter": 0}])
def test_refusals(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        SphericalHashing(4, **parameters).fit(X)
