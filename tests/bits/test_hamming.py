"""Hamming distance of packed codes, against the inner product of signs, eq. (2), and against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.bits import as_words, bits_to_signs, hamming_distances, pack_bits
from hashlearn.bits.hamming import weighted_distances_to_all


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_equation_2(n_bits: int, n_a: int, n_b: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (n_a, n_bits)), rng.integers(0, 2, (n_b, n_bits))
    distances = hamming_distances(pack_bits(a), pack_bits(b))
    assert distances.dtype == np.int32
    assert distances.shape == (n_a, n_b)
    inner = bits_to_signs(a).astype(int) @ bits_to_signs(b).astype(int).T
    np.testing.assert_array_equal(inner, n_bits - 2 * distances)


@pytest.mark.parametrize("n_bits", [8, 32, 64, 72, 1024])
def test_a_metric_with_the_right_extremes(n_bits: int) -> None:
    bits = np.random.default_rng(n_bits).integers(0, 2, (9, n_bits))
    codes = pack_bits(bits)
    distances = hamming_distances(codes, codes)
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(distances.diagonal(), 0)
    np.testing.assert_array_equal(hamming_distances(codes, pack_bits(1 - bits)).diagonal(), n_bits)


def test_many_rows_and_strided_input() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (20_000, 6), dtype=np.uint8)[:, ::2]
    some = codes[:5]
    expected = np.bitwise_count(codes[:, None] ^ some[None]).sum(axis=2)
    np.testing.assert_array_equal(hamming_distances(codes, some), expected)


@pytest.mark.parametrize(("width", "n_words"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_words_hold_the_bytes_and_zeros(width: int, n_words: int) -> None:
    packed = np.random.default_rng(width).integers(0, 256, (4, width), dtype=np.uint8)
    words = as_words(packed[::-1])
    assert words.shape == (4, n_words)
    assert words.flags.c_contiguous
    content = words.view(np.uint8)
    np.testing.assert_array_equal(content[:, :width], packed[::-1])
    assert not content[:, width:].any()


@pytest.mark.parametrize(("n_bits", "n_digits"), [(5, 3), (64, 3), (130, 5)])
def test_weighted_distances_are_sums_of_weights(n_bits: int, n_digits: int) -> None:
    rng = np.random.default_rng(0)
    code, others = rng.integers(0, 2, (1, n_bits)), rng.integers(0, 2, (50, n_bits))
    weights = rng.integers(0, 2**n_digits, n_bits)
    digits = as_words(pack_bits((weights >> np.arange(n_digits)[:, None]) & 1))
    out = np.empty(50, np.uint32)
    planes = np.ascontiguousarray(as_words(pack_bits(others)).T)
    weighted_distances_to_all(as_words(pack_bits(code))[0], digits, planes, out)
    np.testing.assert_array_equal(out, (code != others) @ weights)


def test_unequal_widths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"equal width, got shapes \(1, 1\) and \(1, 2\)"):
        hamming_distances(np.zeros((1, 1), np.uint8), np.zeros((1, 2), np.uint8))
    with pytest.raises(TypeError, match=r"b must be packed codes of dtype uint8, got int8"):
        hamming_distances(np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.int8))
