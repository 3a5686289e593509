"""Signs, bits and packed bytes are three forms of one thing; what is none of them is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashlearn.bits import (
    bits_to_signs,
    pack_bits,
    pack_signs,
    packed_codes,
    signs_to_bits,
    unpack_bits,
    unpack_signs,
)


@pytest.mark.parametrize("n_bits", range(1, 131))
def test_round_trip_for_every_number_of_bits(n_bits: int) -> None:
    bits = np.random.default_rng(n_bits).integers(0, 2, (7, n_bits), dtype=np.uint8)
    packed = pack_bits(bits)
    assert packed.dtype == np.uint8
    assert packed.shape == (7, (n_bits + 7) // 8)
    np.testing.assert_array_equal(unpack_bits(packed, n_bits), bits)
    signs = bits_to_signs(bits)
    assert signs.dtype == np.int8
    np.testing.assert_array_equal(signs, 2 * bits.astype(int) - 1)
    np.testing.assert_array_equal(signs_to_bits(signs), bits)
    np.testing.assert_array_equal(pack_signs(signs), packed)
    np.testing.assert_array_equal(unpack_signs(packed, n_bits), signs)


@given(st.integers(1, 70), st.integers(0, 5), st.integers(0, 2**32 - 1), st.sampled_from("CF"))
def test_byte_order_and_pad_bits(n_bits: int, n: int, seed: int, order: Any) -> None:
    bits = np.asarray(np.random.default_rng(seed).integers(0, 2, (n, n_bits)), order=order)
    packed = pack_bits(bits)
    for row, code in zip(bits, packed, strict=True):
        text = "".join(map(str, row)).ljust(8 * len(code), "0")
        assert [int(text[8 * i : 8 * i + 8], 2) for i in range(len(code))] == code.tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32])
def test_any_kind_of_number_will_do(dtype: Any) -> None:
    assert pack_bits(np.array([[1, 0, 1]], dtype=dtype)).tolist() == [[0b10100000]]


def test_inputs_are_left_alone() -> None:
    signs = np.array([[1, -1]], dtype=np.int8)
    packed = pack_signs(signs)
    unpack_bits(packed, 2)[:] = 9
    bits_to_signs(signs_to_bits(signs))[:] = 9
    assert signs.tolist() == [[1, -1]]
    assert packed.tolist() == [[0b10000000]]


@pytest.mark.parametrize(
    ("function", "values", "error", "message"),
    [
        (pack_bits, [[1, -1]], ValueError, r"bits must hold only 0 and 1, got -1 at \(0, 1\); these are signs"),
        (pack_bits, [[0, 2]], ValueError, r"bits must hold only 0 and 1, got 2 at \(0, 1\)$"),
        (pack_bits, [[0, 0.5]], ValueError, r"got 0.5"),
        (pack_bits, [[0, np.nan]], ValueError, r"got nan"),
        (bits_to_signs, [[1, -1]], ValueError, r"these are signs"),
        (pack_signs, [[1, 0]], ValueError, r"signs must hold only -1 and 1, got 0 at \(0, 1\); these are bits"),
        (signs_to_bits, [[1, 0]], ValueError, r"these are bits"),
        (pack_signs, [[1, 3]], ValueError, r"got 3"),
        (pack_signs, [1, -1], ValueError, r"signs must have 2 dimensions.*\(2,\); reshape\(1, -1\)"),
        (pack_bits, np.zeros((2, 0)), ValueError, r"bits must have at least one column"),
        (pack_bits, [[1], [0, 1]], ValueError, r"bits must be a rectangular array"),
        (pack_bits, [["a"]], TypeError, r"bits must hold numbers"),
        (packed_codes, [[0, 1]], TypeError, r"codes must be packed codes of dtype uint8, got int64"),
        (packed_codes, np.zeros(3, np.uint8), ValueError, r"codes must have 2 dimensions"),
    ],
)
def test_wrong_values_are_refused(function: Any, values: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        function(values)


@pytest.mark.parametrize("n_bits", [1, 5, 7, 9, 12])
def test_each_of_the_bits_past_the_end_must_be_zero(n_bits: int) -> None:
    places = 8 * -(-n_bits // 8)
    for place in range(n_bits, places):
        with pytest.raises(ValueError, match=f"packed must be zero past bit {n_bits}"):
            unpack_bits(np.packbits(np.arange(places) == place)[None], n_bits)


@pytest.mark.parametrize(
    ("n_bits", "message"),
    [
        (17, r"packed must have 3 byte\(s\) in a row for n_bits=17, got shape \(1, 2\)"),
        (8, r"must have 1 byte"),
        (15, r"packed must be zero past bit 15, but row 0 ends in byte 0b00000001; is n_bits=15 right"),
        (0, r"n_bits must be an integer of at least 1, got 0"),
        (2.0, r"n_bits must be an integer"),
        (True, r"n_bits must be an integer"),
    ],
)
def test_a_wrong_number_of_bits_is_refused(n_bits: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_bits(np.array([[0, 1]], np.uint8), n_bits)
