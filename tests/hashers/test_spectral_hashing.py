"""Spectral hashing on boxes whose eigenfunctions are known."""

import numpy as np
import pytest

from hashlearn.hashers.baselines.spectral_hashing import SpectralHashing, smoothest_modes


@pytest.fixture(scope="module")
def box():
    return np.random.default_rng(0).random((4000, 2)) * [1.0, 2.6]


def test_the_long_side_comes_first():
    # k / side: 1/2.6 < 2/2.6 < 1/1 < 3/2.6 < 4/2.6 < 2/1
    assert smoothest_modes(np.array([2.6, 1.0]), 5).tolist() == [[0, 1], [0, 2], [1, 1], [0, 3], [0, 4]]


def test_bits_are_the_thresholded_eigenfunctions(box):
    found = SpectralHashing(3).fit(box).transform(box)
    long_side, short_side = box[:, 1] / 2.6, box[:, 0]
    expected = (
        np.cos(np.pi * long_side) >= 0.0,
        np.cos(2.0 * np.pi * long_side) >= 0.0,
        np.cos(np.pi * short_side) >= 0.0,
    )
    for bit, wanted in zip(found.T, expected, strict=True):
        agreement = np.mean(bit == wanted)
        assert max(agreement, 1.0 - agreement) > 0.97  # up to the sign of an axis, and the box found from samples


def test_modes_by_hand():
    assert smoothest_modes(np.array([1.0, 1.0]), 4).tolist() == [[0, 1], [1, 1], [0, 2], [1, 2]]
    assert smoothest_modes(np.array([1.0, 0.0]), 3).tolist() == [[0, 1], [0, 2], [0, 3]]


def test_neighbors_agree_more_than_strangers(box):
    found = SpectralHashing(16).fit(box).transform(box)
    distance = np.linalg.norm(box[:1000, None] - box[None, :1000], axis=2)
    hamming = (found[:1000, None] != found[None, :1000]).sum(axis=2)
    assert hamming[distance < 0.1].mean() + 2 < hamming[distance > 1.0].mean()
