"""Margins of the query against codes: the scores of a plain sum, in the order of a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.bits import pack_bits, unpack_signs
from hashlearn.search import HammingIndex, SearchResult, asymmetric, asymmetric_search
from tests.search.codes import filled, random_codes


def plain(margins: Any, codes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and scores by a full sort. Sums are added in the documented order: bit by bit in a byte, then the bytes."""
    margins = np.asarray(margins, np.float64)
    n_bits = margins.shape[1]
    terms = margins[:, None, :] * unpack_signs(codes, n_bits)
    scores = np.zeros(terms.shape[:2])
    for byte in range(0, n_bits, 8):
        part = np.zeros_like(scores)
        for bit in range(byte, min(byte + 8, n_bits)):
            part += terms[:, :, bit]
        scores += part
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def check(margins: Any, codes: np.ndarray, k: int) -> None:
    found = asymmetric_search(margins, codes, k)
    rows, scores = plain(margins, codes, k)
    np.testing.assert_array_equal(found.indices, rows)
    np.testing.assert_array_equal(found.scores, scores)
    assert (found.indices.dtype, found.scores.dtype) == (np.int64, np.float64)


@pytest.mark.parametrize("n_bits", [*range(1, 71), 128, 129, 520])
def test_it_is_a_full_sort(n_bits: int) -> None:
    codes, margins = random_codes(200, n_bits, seed=n_bits), np.random.default_rng(n_bits).standard_normal((5, n_bits))
    for k in (1, 7, 200):
        check(margins, codes, k)


@pytest.mark.parametrize("n_bits", [64, 100])
def test_many_blocks_of_codes(n_bits: int) -> None:
    codes = random_codes(2 * asymmetric.ITEMS_PER_BLOCK + 100, n_bits)
    margins = np.random.default_rng(0).laplace(size=(3, n_bits))
    check(margins, codes, 10)
    check(margins, codes[: asymmetric.ITEMS_PER_BLOCK], 10)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
def test_any_kind_of_numbers(dtype: type) -> None:
    margins = (10 * np.random.default_rng(0).standard_normal((4, 33))).astype(dtype)
    check(margins, random_codes(300, 33), 20)
    check(np.asfortranarray(margins), random_codes(300, 33), 20)


@pytest.mark.parametrize(
    "margins",
    [
        np.zeros(40),
        np.full(40, 0.1),
        np.full(40, -1e-310),
        np.full(40, 1e110),
        np.where(np.arange(40) == 7, 1e9, 1.0),
        10.0 ** -np.arange(40.0),
        np.where(np.arange(40) < 20, -0.0, 5e-324),
        np.nextafter(np.arange(1.0, 41.0) / 3.0, 0.0),
    ],
)
def test_margins_of_every_size(margins: np.ndarray) -> None:
    """The bounds that refuse codes must hold for all of them, and for scores that differ in the last digit."""
    codes = pack_bits(np.random.default_rng(0).random((3000, 40)) < 0.5)
    check(np.stack([margins, -margins, margins[::-1]]), codes, 25)


def test_codes_with_a_low_bound_are_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their entries in the tables are made so high that each of them would be found."""
    margins = np.random.default_rng(0).standard_normal((1, 64))
    best = pack_bits(margins >= 0)
    tables = asymmetric._tables(margins)
    tables[0, np.arange(8), ~best[0]] = 1e9
    monkeypatch.setattr(asymmetric, "_tables", lambda _: tables)
    found = asymmetric_search(margins, np.concatenate([np.repeat(best, 5, axis=0), np.repeat(~best, 100, axis=0)]), 5)
    np.testing.assert_array_equal(found.indices, [np.arange(5)])


def test_with_signs_for_margins_it_is_hamming_search() -> None:
    codes, queries = random_codes(500, 33), random_codes(10, 33, seed=1)
    found = asymmetric_search(unpack_signs(queries, 33), codes, 50)
    index = HammingIndex(33)
    index.add(codes)
    expected = index.search(queries, 50)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(33 - 2 * expected.distances, found.scores)


def test_real_margins_order_what_hamming_distance_cannot() -> None:
    rng = np.random.default_rng(0)
    vectors, queries = rng.standard_normal((400, 24)), rng.standard_normal((60, 24))
    codes = pack_bits(vectors > 0)
    truth = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]
    index = HammingIndex(24)
    index.add(codes)
    symmetric = index.search(pack_bits(queries > 0), 10).indices
    asymmetric = asymmetric_search(queries, codes, 10).indices
    hits = [np.mean([len({*a} & {*b}) for a, b in zip(truth, found, strict=True)]) for found in (symmetric, asymmetric)]
    assert hits[1] > hits[0] + 0.5


def test_bad_margins_are_refused() -> None:
    codes, margins = random_codes(5, 12), np.zeros((2, 12))
    for bad, words in ((np.full((1, 12), np.nan), "finite"), (margins[0], "dimension"), (margins[:, :0], "column")):
        with pytest.raises(ValueError, match=words):
            asymmetric_search(bad, codes, 1)
    with pytest.raises(ValueError, match="n_bits=20"):
        asymmetric_search(np.zeros((1, 20)), codes, 1)
    for k in (0, 6):
        with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 5"):
            asymmetric_search(margins, codes, k)


def test_signs_of_margins_are_the_codes() -> None:
    """The best score of a query against its own code is the sum of the sizes of its margins."""
    margins = np.random.default_rng(0).standard_normal((30, 12))
    codes = pack_bits(margins >= 0)
    found = asymmetric_search(margins, codes, 1)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(30))
    np.testing.assert_allclose(found.scores[:, 0], np.abs(margins).sum(axis=1))


@pytest.mark.parametrize("n_queries", [1, 3, 33])
def test_threads_do_not_change_a_result(n_queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query is spread over spans of codes, many queries are spread over threads."""
    monkeypatch.setattr(asymmetric, "BLOCKS_PER_SPAN", 1)
    codes, margins = random_codes(9000, 20), np.random.default_rng(0).integers(-2, 3, (n_queries, 20))
    for threads in ("1", "2", "3", "7"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        for k in (5, 900, 9000):
            check(margins, codes, k)
    assert asymmetric_search(margins[:0], codes, 5).indices.shape == (0, 5)


def test_small_groups_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asymmetric, "NUMBERS_PER_GROUP", 1)
    check(np.random.default_rng(0).standard_normal((9, 20)), random_codes(300, 20), 5)


def test_an_index_answers_margins_by_its_ids() -> None:
    index, codes, ids = filled(21)
    margins = np.random.default_rng(0).integers(-2, 3, (6, 21))
    by_id = np.argsort(ids)
    rows, scores = plain(margins, codes[by_id], 40)
    found = index.search(k=40, margins=margins)
    np.testing.assert_array_equal(found.indices, ids[by_id][rows])
    np.testing.assert_array_equal(found.scores, scores)
    index.remove(found.indices[0, :1])
    assert found.indices[0, 0] not in index.search(k=10, margins=margins).indices


def test_the_result_is_a_search_result() -> None:
    found = asymmetric_search([[0.5, -2.0]], pack_bits([[1, 0], [1, 1], [0, 1]]), 3)
    assert isinstance(found, SearchResult)
    np.testing.assert_array_equal(found.distances, -found.scores)
    np.testing.assert_array_equal(found.scores, [[2.5, -1.5, -2.5]])
    assert not np.signbit(asymmetric_search([[0.0]], pack_bits([[1]]), 1).distances).any()


def test_bad_margins_are_refused_by_an_index() -> None:
    index, codes, _ = filled(12)
    margins = np.zeros((2, 12))
    with pytest.raises(ValueError, match="either codes or margins, got both"):
        index.search(codes, 1, margins=margins)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="either codes or margins, got neither"):
        index.search(k=1)  # type: ignore[call-overload]
    for width in (10, 13, 24):
        with pytest.raises(ValueError, match=rf"margins must have 12 columns, .* \(2, {width}\)"):
            index.search(k=1, margins=np.zeros((2, width)))
    with pytest.raises(ValueError, match=r"margins must be finite, got nan at index \(0, 3\)"):
        index.search(k=1, margins=np.where(np.arange(12) == 3, np.nan, margins))
    for k in (0, len(index) + 1, None):
        with pytest.raises(ValueError, match="k must be an integer from 1"):
            index.search(k=k, margins=margins)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="nothing to search"):
        HammingIndex(12).search(k=1, margins=margins)
