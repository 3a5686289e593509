"""The Polars expression gives the distances of `hamming_distances`, for any width, in frames and lazy frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.bits import hamming_distances
from hashlearn.search import HammingIndex, hamming_expression
from tests.search.codes import engine, random_codes


@pytest.fixture
def pl() -> Any:
    engine("pyarrow")
    return engine("polars")


def as_column(pl: Any, codes: np.ndarray) -> Any:
    return pl.Series("code", [code.tobytes() for code in codes], dtype=pl.Binary)


@pytest.mark.parametrize("n_bits", [1, 8, 12, 33, 64, 100, 1000])
def test_distances_to_a_code(pl: Any, n_bits: int) -> None:
    codes, query = random_codes(300, n_bits), random_codes(1, n_bits, seed=1)
    frame, expected = pl.DataFrame([as_column(pl, codes)]), hamming_distances(query, codes)[0]
    for given in (query[0], query, query.tobytes(), bytearray(query.tobytes())):
        found = frame.select(distance=hamming_expression("code", given))["distance"]
        assert found.dtype == pl.Int32
        np.testing.assert_array_equal(found.to_numpy(), expected)
    # A column that starts in the middle of its memory.
    found = frame.slice(100, 50).select(hamming_expression(pl.col("code"), query))["code"]
    np.testing.assert_array_equal(found.to_numpy(), expected[100:150])


@pytest.mark.parametrize("n_bits", [12, 64, 100])
def test_distances_between_two_columns(pl: Any, n_bits: int) -> None:
    a, b = random_codes(300, n_bits), random_codes(300, n_bits, seed=1)
    frame = pl.DataFrame({"a": as_column(pl, a), "b": as_column(pl, b)})
    expected = np.diag(hamming_distances(a, b))
    np.testing.assert_array_equal(frame.select(d=hamming_expression("a", pl.col("b")))["d"].to_numpy(), expected)
    first = frame.select(d=hamming_expression("a", pl.col("b").first()))["d"]
    np.testing.assert_array_equal(first.to_numpy(), hamming_distances(b[:1], a)[0])
    groups = frame.with_columns(g=pl.int_range(pl.len()) % 2).group_by("g").agg(d=hamming_expression("a", "b").sum())
    assert dict(groups.iter_rows()) == {0: expected[::2].sum(), 1: expected[1::2].sum()}


@pytest.mark.parametrize("engine_name", ["in-memory", "streaming"])
def test_the_nearest_of_a_lazy_frame(pl: Any, engine_name: Any) -> None:
    codes, query = random_codes(5000, 64), random_codes(1, 64, seed=1)
    lazy = pl.DataFrame({"id": np.arange(5000), "code": as_column(pl, codes)}).lazy()
    index = HammingIndex(64)
    index.add(codes)
    expected = index.search(query, 20)
    near = lazy.with_columns(distance=hamming_expression("code", query)).sort("distance", "id").head(20)
    found = near.collect(engine=engine_name)
    assert (found["id"].to_list(), found["distance"].to_list()) == (
        expected.indices[0].tolist(),
        expected.distances[0].tolist(),
    )
    within = lazy.filter(hamming_expression("code", query) <= 8).select(pl.len()).collect(engine=engine_name)
    assert within.item() == len(index.search_radius(query, 8)[0].indices)


def test_missing_codes_have_missing_distances(pl: Any) -> None:
    frame = pl.DataFrame({"a": [b"\x00\xff", None, b"\x01\x00"], "b": [b"\x00\x00", b"\x00\x00", None]})
    assert frame.select(d=hamming_expression("a", b"\x01\xff"))["d"].to_list() == [1, None, 8]
    assert frame.select(d=hamming_expression("a", "b"))["d"].to_list() == [8, None, None]
    nothing = frame.select(d=hamming_expression(pl.lit(None, pl.Binary), "b"))["d"]
    assert nothing.to_list() == [None] * 3
    empty = frame.clear().select(d=hamming_expression("a", b"\x01\xff"))["d"]
    assert (len(empty), empty.dtype) == (0, pl.Int32)


def test_wrong_columns_and_codes_are_refused_by_name(pl: Any) -> None:
    frame = pl.DataFrame({"code": [b"\x00\xff", b"\x01\x00"], "text": ["a", "b"], "ragged": [b"\x00", b"\x00\x00"]})
    for codes, others, message in (
        ("code", b"\x01", r"'code' and .* must have codes of equal width, got 2 and 1 byte"),
        ("text", b"\x01", r"column 'text' must hold packed codes as Binary, .* got String"),
        ("ragged", b"\x01", r"column 'ragged' must have codes of one width, from 1 to 4095 bytes, got 1 to 2"),
        ("code", b"", r"must have codes of one width, from 1 to 4095 bytes, got 0 to 0"),
    ):
        with pytest.raises(Exception, match=message):
            frame.select(hamming_expression(codes, others))
    for wrong in (5, np.zeros(2), np.zeros((2, 2), np.uint8), None):
        with pytest.raises(
            TypeError, match=r"others must be a column \(its name or an expression\) or one packed code"
        ):
            hamming_expression("code", wrong)
    with pytest.raises(TypeError, match=r"codes must be a column \(its name or an expression\), got bytes"):
        hamming_expression(b"\x01", "code")
