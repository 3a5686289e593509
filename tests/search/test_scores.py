"""Search with real numbers on one side: margins against codes, and candidates ranked again by their vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hashlearn.bits import pack_bits, unpack_signs
from hashlearn.search import HammingIndex, asymmetric_search, rescore
from hashlearn.search.asymmetric import ITEMS_PER_BLOCK
from tests.search.codes import random_codes


@pytest.mark.parametrize("n_bits", [1, 8, 12, 33, 100])
@pytest.mark.parametrize("k", [1, 10, 200])
def test_asymmetric_scores_are_inner_products(n_bits: int, k: int) -> None:
    """Whole margins, so that sums are exact and ties are many; more codes than the kernel takes at a time."""
    codes = random_codes(2 * ITEMS_PER_BLOCK + 100, n_bits)
    margins = np.random.default_rng(0).integers(-3, 4, (20, n_bits)).astype(float)
    scores = margins @ unpack_signs(codes, n_bits).astype(float).T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = asymmetric_search(margins, codes, k)
    np.testing.assert_array_equal(found.indices, order)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, order, axis=1))


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


def test_asymmetric_search_does_not_depend_on_threads_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, margins = random_codes(300, 20), np.random.default_rng(0).standard_normal((33, 20))
    expected = asymmetric_search(margins, codes, 5)
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        np.testing.assert_array_equal(asymmetric_search(margins, codes, 5).scores, expected.scores)
        np.testing.assert_array_equal(asymmetric_search(margins[7:8], codes, 5).scores[0], expected.scores[7])
    assert asymmetric_search(margins[:0], codes, 5).indices.shape == (0, 5)


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


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
def test_rescoring_ranks_candidates_by_their_vectors(metric: str, dtype: type) -> None:
    rng = np.random.default_rng(0)
    database = (4 * rng.standard_normal((300, 16))).astype(dtype)
    queries = rng.standard_normal((20, 16))
    candidates = np.stack([rng.permutation(300)[:50] for _ in queries])
    found = rescore(candidates, queries, database, 10, metric=metric)
    for query, row, best, scores in zip(queries, candidates, found.indices, found.scores, strict=True):
        vectors = database[row].astype(float)
        values = {
            "dot": vectors @ query,
            "l2": -np.linalg.norm(vectors - query, axis=1),
            "cosine": vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query),
        }[metric]
        np.testing.assert_array_equal(best, row[np.argsort(-values)[:10]])
        np.testing.assert_allclose(scores, np.sort(values)[::-1][:10], rtol=1e-12)


def test_rescoring_a_search_result_with_ids_of_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors, ids = rng.standard_normal((100, 8)), rng.permutation(1000)[:100]
    index = HammingIndex(8)
    index.add(pack_bits(vectors > 0), ids)
    found = index.search(pack_bits(vectors > 0), 30)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    best = rescore(found, vectors, mapped, 1, ids=ids)
    np.testing.assert_array_equal(best.indices[:, 0], ids)
    np.testing.assert_allclose(best.scores, 1.0)


def test_ties_zeros_and_missing_candidates() -> None:
    database = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    found = rescore([[2, 1, 0, -1]], [[2.0, 0.0]], database, 4)
    np.testing.assert_array_equal(found.indices, [[0, 1, 2, -1]])
    np.testing.assert_array_equal(found.scores, [[1.0, 1.0, 0.0, -np.inf]])


def test_rescoring_in_small_batches_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    database, queries = rng.standard_normal((50, 9)), rng.standard_normal((21, 9))
    candidates = np.tile(np.arange(50), (21, 1))
    expected = rescore(candidates, queries, database, 5)
    monkeypatch.setitem(rescore.__globals__, "NUMBERS_PER_BATCH", 1000)
    found = rescore(candidates, queries, database, 5)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.indices, expected.indices)


def test_bad_candidates_are_refused() -> None:
    database = np.eye(4)
    cases = [
        ([[0, 7]], database[:1], database, "candidates name id 7"),
        ([0, 1], database[:1], database, r"candidates must be .* shape \(1, m\)"),
        ([[0.0]], database[:1], database, "candidates must be"),
        ([[0]], database[:2], database, "one row for each query"),
        ([[0]], database[:1, :3], database, "as many columns"),
        ([[0]], database[:1], database[0], "2 dimensions"),
        ([[0]], [[np.inf] * 4], database, "query_vectors must be finite"),
        ([[0]], database[:1], database * np.nan, "database_vectors must be finite"),
    ]
    for candidates, queries, vectors, words in cases:
        with pytest.raises(ValueError, match=words):
            rescore(candidates, queries, vectors, 1)
    with pytest.raises(ValueError, match=r"did you mean 'cosine'\?"):
        rescore([[0]], database[:1], database, 1, metric="cosin")
    with pytest.raises(ValueError, match=r"from 1 to the 1 item"):
        rescore([[0]], database[:1], database, 2)


def test_signs_of_margins_are_the_codes() -> None:
    """The best score of a query against its own code is the sum of the sizes of its margins."""
    margins = np.random.default_rng(0).standard_normal((30, 12))
    codes = pack_bits(margins >= 0)
    found = asymmetric_search(margins, codes, 1)
    np.testing.assert_array_equal(found.indices[:, 0], np.arange(30))
    np.testing.assert_allclose(found.scores[:, 0], np.abs(margins).sum(axis=1))
