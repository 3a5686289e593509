"""Statistics of codes, on codes whose answers are known and against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hashlearn.bits import pack_bits
from hashlearn.metrics import bit_statistics


@pytest.mark.parametrize("n_bits", [1, 3, 9])
def test_all_codes_once_are_perfect(n_bits: int) -> None:
    codes = pack_bits(list(itertools.product([0, 1], repeat=n_bits)))
    found = bit_statistics(codes, n_bits)
    assert (found.n_samples, found.n_bits) == (2**n_bits, n_bits)
    np.testing.assert_array_equal(found.balance, 0.5)
    np.testing.assert_array_equal(found.bit_entropy, 1.0)
    assert found.code_entropy == pytest.approx(n_bits)
    assert found.max_correlation == found.mean_correlation == 0.0
    assert (found.n_distinct, found.n_collisions, found.collision_rate) == (2**n_bits, 0, 0.0)


def test_by_hand() -> None:
    """Three equal codes and one that differs in bits 0 and 1; bit 2 never varies."""
    found = bit_statistics(pack_bits([[1, 0, 1], [1, 0, 1], [1, 0, 1], [0, 1, 1]]), 3)
    np.testing.assert_array_equal(found.balance, [0.75, 0.25, 1.0])
    entropy = -0.75 * np.log2(0.75) + 0.5
    np.testing.assert_allclose(found.bit_entropy, [entropy, entropy, 0.0])
    assert found.code_entropy == pytest.approx(entropy)
    assert found.max_correlation == found.mean_correlation == pytest.approx(1.0)
    assert found.n_constant == 1
    assert (found.n_distinct, found.n_collisions) == (2, 3)
    assert found.collision_rate == 3 / 6


@pytest.mark.parametrize("n_bits", [20, 64, 100])
def test_against_numpy(n_bits: int) -> None:
    rng = np.random.default_rng(n_bits)
    bits = (rng.random((9000, 1)) + rng.random((9000, n_bits)) < 0.9).astype(int)
    bits[4000:8500] = bits[0]
    found = bit_statistics(pack_bits(bits), n_bits)
    correlation = np.abs(np.corrcoef(bits.T))[np.triu_indices(n_bits, 1)]
    assert found.max_correlation == pytest.approx(correlation.max(), rel=1e-9)
    assert found.mean_correlation == pytest.approx(correlation.mean(), rel=1e-9)
    np.testing.assert_allclose(found.balance, bits.mean(axis=0), rtol=1e-12)
    _, counts = np.unique(bits, axis=0, return_counts=True)
    assert found.n_distinct == len(counts)
    assert found.n_collisions == sum(c * (c - 1) // 2 for c in counts.tolist())
    assert found.code_entropy == pytest.approx(-np.sum(counts / 9000 * np.log2(counts / 9000)), rel=1e-12)


def test_one_sample() -> None:
    found = bit_statistics(pack_bits([[1, 0]]), 2)
    assert (found.n_distinct, found.n_collisions, found.collision_rate, found.n_constant) == (1, 0, 0.0, 2)
    assert (found.code_entropy, found.max_correlation, found.mean_correlation) == (0.0, 0.0, 0.0)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"codes is empty"):
        bit_statistics(np.zeros((0, 1), np.uint8), 4)
    with pytest.raises(ValueError, match=r"codes must be zero past bit 4"):
        bit_statistics(np.full((1, 1), 255, np.uint8), 4)
    with pytest.raises(ValueError, match=r"codes must have 2 byte"):
        bit_statistics(np.zeros((1, 1), np.uint8), 9)
