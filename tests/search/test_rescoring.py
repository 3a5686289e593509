"""Candidates ranked again by their float vectors, which are in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.bits import pack_bits
from hashlearn.files import open_rows
from hashlearn.search import HammingIndex, SearchResult, asymmetric_search, rescore
from hashlearn.search.ids import TEXT
from hashlearn.search.stores.postgres.store import vector_text
from tests.search.codes import some_ids


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


def test_rescoring_with_text() -> None:
    """The same answers as with the ranks of the ids in their place, ties and gaps included."""
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.standard_normal((50, 8)), 2, axis=0)  # every score occurs twice
    ids = some_ids(TEXT, 100)
    index = HammingIndex(8)
    index.add(pack_bits(vectors > 0), ids)
    found = index.search(pack_bits(vectors[:12] > 0), 30, where=ids[:60]).indices[:, ::-1]  # ties not in order of id
    found[3, 20:] = None
    ranks = np.argsort(sorted(range(100), key=ids.__getitem__))
    numbers = {item: int(rank) for item, rank in zip(ids, ranks, strict=True)}
    numbered = [[-1 if item is None else numbers[item] for item in row] for row in found.tolist()]
    best = rescore(found, vectors[:12], vectors, 25, ids=ids)
    expected = rescore(numbered, vectors[:12], vectors, 25, ids=ranks)
    np.testing.assert_array_equal(best.scores, expected.scores)
    assert [[numbers.get(item, -1) for item in row] for row in best.indices.tolist()] == expected.indices.tolist()
    again = rescore(best.indices.tolist(), vectors[:12], vectors, 3, ids=ids)
    np.testing.assert_array_equal(again.indices, best.indices[:, :3])


def test_rescoring_text_needs_the_id_of_each_row() -> None:
    with pytest.raises(
        ValueError, match=r"candidates name id 'a', but .* have no vector for it; give the id of each row"
    ):
        rescore([["a", "b"]], [[1.0, 0.0]], np.eye(2), 1)
    with pytest.raises(ValueError, match="candidates name id 0, but"):
        rescore([[0, 1]], [[1.0, 0.0]], np.eye(2), 1, ids=["a", "b"])
    with pytest.raises(ValueError, match="candidates name id 'c', but"):
        rescore([["a", "c"]], [[1.0, 0.0]], np.eye(2), 1, ids=["a", "b"])
    assert rescore([["a", "b"]], [[1.0, 0.0]], np.eye(2), 1, ids=["b", "a"]).indices.tolist() == [["b"]]


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
        ([0, 1], database[:1], database, r"candidates must be .* shape \(n_queries, m\)"),
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


@pytest.fixture
def files(tmp_path: Path) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Vectors, candidates with gaps, and the same vectors in every form that can be read here."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((90, 7)).astype(np.float32)
    candidates = np.stack([rng.permutation(90)[:20] for _ in range(12)])
    candidates[3, 5:] = -1
    path = tmp_path / "vectors.npy"
    np.save(path, vectors)
    np.savez_compressed(tmp_path / "vectors.npz", vectors=vectors)
    forms = [np.load(path, mmap_mode="r"), np.asfortranarray(vectors), vectors.tolist()]
    forms += [open_rows(path), open_rows(tmp_path / "vectors.npz")]
    if find_spec("pyarrow"):
        import pyarrow
        from pyarrow import parquet

        flat = pyarrow.array(vectors.ravel())
        tables = {"lists": {"row": pyarrow.FixedSizeListArray.from_arrays(flat, 7)}}
        tables["columns"] = {f"c{i}": vectors[:, i] for i in range(7)}
        for name, table in tables.items():
            parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet", row_group_size=13)
            forms.append(open_rows(tmp_path / f"{name}.parquet"))
    return vectors, candidates, forms


@pytest.mark.parametrize("batch", [1, 5 * 7, 4_000_000])
def test_vectors_in_files_give_what_arrays_give(files: Any, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, candidates, forms = files
    expected = rescore(candidates, vectors[:12], vectors, 6)
    monkeypatch.setitem(rescore.__globals__, "NUMBERS_PER_BATCH", batch)
    for database in forms:
        found = rescore(candidates, vectors[:12], database, 6)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_each_vector_is_read_once_and_no_other(files: Any) -> None:
    vectors, candidates, _ = files

    class Spy:
        n_rows, n_features = vectors.shape

        def pick(self, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
            read.extend(rows.tolist())
            yield vectors[rows]

    read: list[int] = []
    found = rescore(candidates, vectors[:12], Spy(), 6)
    np.testing.assert_array_equal(found.indices, rescore(candidates, vectors[:12], vectors, 6).indices)
    assert read == sorted({*candidates.ravel().tolist()} - {-1})


def test_a_path_is_refused() -> None:
    with pytest.raises(TypeError, match="a file that files"):
        rescore([[0]] * 3, np.eye(3), "vectors.npy", 1)


def test_a_result_of_rescoring_is_a_search_result() -> None:
    """Nearest first by distance, and again candidates for a rescoring."""
    vectors = np.random.default_rng(0).standard_normal((30, 16))
    found = rescore(asymmetric_search(vectors, pack_bits(vectors > 0), 10), vectors, vectors, 5, metric="l2")
    assert isinstance(found, SearchResult)
    assert (np.diff(found.distances, axis=1) >= 0).all()
    np.testing.assert_array_equal(found.distances[:, 0], 0.0)
    np.testing.assert_array_equal(rescore(found, vectors, vectors, 1).indices[:, 0], np.arange(30))


def test_masked_vectors_are_refused() -> None:
    masked = np.ma.masked_greater(np.eye(3), 0.5)
    with pytest.raises(ValueError, match="database_vectors has 3 masked entries"):
        rescore([[0, 1]], [[1.0, 0.0, 0.0]], masked, 1)
    with pytest.raises(ValueError, match="query_vectors has masked entries"):
        rescore([[0, 1]], masked[:1], np.eye(3), 1)


def test_a_result_shows_the_scores_that_its_attribute_has() -> None:
    found = rescore([[0, 1]], [[1.0, 0.0]], [[3.0, 4.0], [1.0, 0.0]], 2)
    assert repr(found) == "ScoredResult(indices=array([[1, 0]]), scores=array([[1. , 0.6]]))"


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_columns_of_vectors_are_written_for_pgvector(package: str) -> None:
    rows = [[1.0, 2.5], [0.0, -1.0]]
    column = getattr(pytest.importorskip(package), "array" if package == "pyarrow" else "Series")(rows)
    assert vector_text(column, 2) == vector_text(np.array(rows), 2) == ["[1.0,2.5]", "[0.0,-1.0]"]
