"""Every store gives what exact search gives, ties included, for any width; and refuses the same bad input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from hashlearn.search.ids import NOTHING
from hashlearn.search.stores import STORES, SqliteVecStore
from tests.search import server
from tests.search.codes import engine, nearest, random_codes
from tests.search.conftest import OPENERS, Opener


def test_a_sqlite_upsert_that_fails_half_way_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    apsw = engine("apsw", "sqlite_vec")
    codes = random_codes(6, 32)
    with SqliteVecStore.create(tmp_path / "a.db", "codes", 32) as store:
        store.upsert(codes[:3], [1, 2, 3])
        with pytest.raises(apsw.Error, match="UNIQUE"):
            store._upsert(codes[3:], np.array([1, 2, 2]))  # the third row fails, two are written by then
        assert not store.connection.in_transaction
    with SqliteVecStore.create(tmp_path / "a.db", "codes", 32) as store:
        assert len(store) == 3
        np.testing.assert_array_equal(store.search(codes[:3], 1).indices.ravel(), [1, 2, 3])


@pytest.mark.parametrize("n_bits", [12, 33, 64, 100])
def test_same_neighbors_as_exact_search(open_store: Opener, n_bits: int) -> None:
    codes, queries = random_codes(500, n_bits), random_codes(10, n_bits, seed=1)
    ids = np.random.default_rng(0).permutation(3000)[:500]
    with open_store(n_bits) as store:
        store.upsert(codes, ids)
        assert len(store) == 500
        for k in (1, 10, 500):
            found, expected = store.search(queries, k), nearest(queries, codes, ids, k)
            np.testing.assert_array_equal(found.indices, expected[0])
            np.testing.assert_array_equal(found.distances, expected[1])
            assert (found.indices.dtype, found.distances.dtype) == (np.int64, np.int32)


def test_ties_larger_than_what_the_engine_is_asked_for(open_store: Opener) -> None:
    codes = np.repeat(random_codes(2, 16), 3000, axis=0)
    with open_store(16) as store:
        store.upsert(codes, np.arange(6000)[::-1])
        found = store.search(codes[[0, -1]], 3)
    np.testing.assert_array_equal(found.indices, [[3000, 3001, 3002], [0, 1, 2]])
    np.testing.assert_array_equal(found.distances, 0)


def test_upsert_replaces_and_remove_removes(open_store: Opener) -> None:
    codes = random_codes(60, 33)
    with open_store(33) as store:
        store.upsert(codes[:50], np.arange(50))
        store.upsert(codes[50:], np.arange(45, 55))  # five of them are there
        assert len(store) == 55
        assert store.remove([0, 1, 2, 999]) == 3
        assert store.remove([]) == store.remove([0]) == 0
        assert len(store) == 52
    index = HammingIndex(33)
    index.add(np.concatenate([codes[3:45], codes[50:]]), np.arange(3, 55))
    with open_store(33) as store:  # opened again: all of it has stayed
        found, expected = store.search(codes, 52), index.search(codes, 52)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)


def test_approximate_search_finds_most(open_store: Opener) -> None:
    codes, queries = random_codes(2000, 64), random_codes(30, 64, seed=1)
    with open_store(64) as store:
        store.upsert(codes, np.arange(2000))
        if hasattr(store, "build_index"):
            store.build_index()
        found = store.search(queries, 10, exact=False)
        exact = store.search(queries, 10)
    expected = nearest(queries, codes, np.arange(2000), 10)
    np.testing.assert_array_equal(exact.indices, expected[0])
    assert (found.distances <= expected[1][:, -1:]).mean() > 0.5
    there = found.indices != NOTHING
    true = np.bitwise_count(codes[found.indices] ^ queries[:, None]).sum(axis=2)
    np.testing.assert_array_equal(found.distances[there], true[there])


class LastBits:
    """A hasher of a kind: the signs of the first twelve numbers."""

    def encode(self, X: Any) -> np.ndarray:
        return np.packbits(np.asarray(X)[:, :12] > 0, axis=1)


def test_vectors_through_a_hasher(open_store: Opener) -> None:
    X = np.random.default_rng(0).standard_normal((40, 20))
    with open_store(12, hasher=LastBits()) as store:
        store.upsert_vectors(X, range(40))
        found = store.search_vectors(X[:5], 3)
        np.testing.assert_array_equal(found.indices, store.search(LastBits().encode(X[:5]), 3).indices)
        assert (found.distances[:, 0] == 0).all()
    with open_store(12) as store, pytest.raises(ValueError, match=r"vectors need a hasher"):
        store.search_vectors(X[:5], 3)


def test_bad_input_is_refused_and_changes_nothing(open_store: Opener) -> None:
    codes = random_codes(5, 12)
    with open_store(12) as store:
        with pytest.raises(ValueError, match="nothing to search"):
            store.search(codes, 1)
        store.upsert(codes, np.arange(5))
        store.upsert(codes[:0], [])
        for k in (0, -1, 1.0, True):
            with pytest.raises(ValueError, match="k must be an integer of at least 1"):
                store.search(codes, k)
        for k in (6, 300_000_000, 2**70):
            for exact in (True, False):
                with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 5 item\(s\)"):
                    store.search(codes, k, exact=exact)
        for bad, kind in ((codes[:, :1], ValueError), (codes.astype(int), TypeError), (codes | 1, ValueError)):
            with pytest.raises(kind):
                store.upsert(bad, np.arange(5) + 5)
            with pytest.raises(kind):
                store.search(bad, 1)
        for ids in ([0, 0, 1, 2, 3], [-1, 1, 2, 3, 4], [1.0] * 5, [1]):
            with pytest.raises((TypeError, ValueError), match="ids must"):
                store.upsert(codes, ids)
        assert len(store) == 5
        assert store.search(codes[:0], 1).indices.shape == (0, 1)


def test_a_table_for_another_number_of_bits_is_refused(open_store: Opener) -> None:
    with open_store(12) as store:
        store.upsert(random_codes(5, 12), np.arange(5))
    with pytest.raises(ValueError, match=r"is there already"):
        open_store(33)


def test_codes_of_another_model_are_refused(open_store: Opener) -> None:
    codes, model, other = random_codes(6, 12), "a" * 64, "b" * 64
    with open_store(12, model=model) as store:
        store.upsert(codes[:5], np.arange(5))
        assert store.model == model
    for given in (None, model):
        with open_store(12, model=given) as store:
            assert (store.model, len(store)) == (model, 5)
            store.upsert(codes[5:], [4])
    with pytest.raises(ValueError, match="codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb; encode its rows again"):
        open_store(12, model=other)
    with pytest.raises(ValueError, match="model must be the digest of a hasher"):
        open_store(12, model="x")
    with open_store(12, model=model) as store:
        np.testing.assert_array_equal(store.search(codes[5:], 1).indices, [[4]])


def test_a_table_without_a_model_is_accepted_and_stays_without(open_store: Opener) -> None:
    for model in (None, "a" * 64, "b" * 64):
        with open_store(12, model=model) as store:
            assert store.model is None
            store.upsert(random_codes(5, 12), np.arange(5))


@pytest.mark.parametrize("name", STORES)
def test_a_missing_package_names_the_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "start", lambda: "dbname=none")
    for package in {module.partition(".")[0] for module in STORES[name].packages}:
        with monkeypatch.context() as without:
            for module in [module for module in sys.modules if module.partition(".")[0] == package]:
                without.delitem(sys.modules, module)
            without.setitem(sys.modules, package, None)
            expected = rf"{STORES[name].__name__} needs {package}.*pip install 'hashlearn\[{STORES[name].extra}\]'"
            with pytest.raises(ImportError, match=expected):
                OPENERS[name](tmp_path, "t", 8)
