"""Every store gives what exact search gives, ties included, for any width; and refuses the same bad input."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.core.packages import installation
from hashlearn.search.about import About
from hashlearn.search.arrow import to_arrow
from hashlearn.search.ids import NOTHING
from hashlearn.search.stores import STORES, SqliteVecStore, UsearchStore
from hashlearn.search.stores.base import Batch
from tests.search import server
from tests.search.codes import engine, nearest, random_codes
from tests.search.conftest import Opener, opened


def test_a_sqlite_upsert_that_fails_half_way_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    apsw = engine("apsw", "sqlite_vec")
    codes = random_codes(6, 32)
    with SqliteVecStore.open(tmp_path / "a.db", About(32), table="codes") as store:
        store.upsert(codes[:3], [1, 2, 3])
        with pytest.raises(apsw.Error, match="UNIQUE"):
            store._put(
                [Batch(codes[3:], np.array([1, 2, 2]), {})], True
            )  # the third row fails, two are written by then
        assert not store.connection.in_transaction
    with SqliteVecStore.open(tmp_path / "a.db", About(32), table="codes") as store:
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


@pytest.mark.parametrize("open_store", ["lancedb"], indirect=True)
def test_lancedb_removes_many_ids_in_one_version(open_store: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hashlearn.search.stores.lancedb.IDS_AT_ONCE", 10)
    with open_store(33) as store:
        store.upsert(random_codes(60, 33), np.arange(60))
        before = store.table.version  # type: ignore[attr-defined]
        assert store.remove(np.arange(5, 95)) == 55
        assert store.table.version == before + 1  # type: ignore[attr-defined]
        assert len(store) == 5


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


def test_open_without_about_takes_what_is_there(open_store: Opener, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing is stored at .*; with about=About\(n_bits\) it is made"):
        open_store(None)
    assert list(tmp_path.iterdir()) == []
    with open_store(12, id_type="string", model="a" * 64) as store:
        store.upsert(random_codes(3, 12), ["a", "b", "c"])
    with open_store(None) as store:
        assert (len(store), store.about) == (3, About(12, "string", "a" * 64, {}))


@pytest.mark.parametrize("open_store", ["sqlite_vec", "duckdb", "lancedb"], indirect=True)
def test_open_without_about_makes_no_table_in_a_file_that_is_there(open_store: Opener) -> None:
    open_store(12).close()
    with pytest.raises((FileNotFoundError, ValueError), match="other"):
        open_store(None, table="other")
    open_store(13, table="other").close()


WITH_COLUMNS = pytest.mark.parametrize(
    "open_store", [name for name in STORES if STORES[name].has_fields], indirect=True
)
BAD_IDS: list[tuple[Any, str]] = [
    (["a", "b", "a"], "ids must be distinct, got 'a' more than once"),
    ([1, 2, 3], "ids must be text, as those that are stored, got integers: "),
]


def test_bad_ids_are_refused_and_change_nothing(open_store: Opener) -> None:
    codes = random_codes(4, 12)
    with open_store(12, id_type="string") as store:
        store.upsert(codes[3:], ["it's"])
        for ids, message in BAD_IDS:
            for put in (store.add, store.upsert):
                with pytest.raises((TypeError, ValueError), match=message):
                    put(codes[:3], ids)
        with pytest.raises(ValueError, match="remove takes either ids or where, got neither"):
            store.remove()
        assert (store.id_type, len(store)) == ("string", 1)
    with pytest.raises(ValueError, match=r"with ids that are text and not integers"):
        open_store(12, id_type="int64")
    with pytest.raises(ValueError, match=r"id_type must be one of 'int64', 'string', got 'text'"):
        open_store(12, id_type="text")


@WITH_COLUMNS
def test_columns_are_declared_once_and_wrong_values_are_refused_by_their_row(open_store: Opener) -> None:
    codes = random_codes(2, 12)
    for fields, message in (
        ({"year": "date"}, r"fields\['year'\] must be one of 'text', 'integer', 'real', 'boolean', got 'date'"),
        ({"Code": int}, "'Code' is taken"),
        ({"": int}, "fields must have names that are text, not empty"),
    ):
        with pytest.raises(ValueError, match=message):
            open_store(12, fields=fields)
    with open_store(12, fields={"year": int, 'It\'s a "text"': str}) as store:
        good = {"year": [1, None], 'It\'s a "text"': ["x", "it's"]}
        for values, message in (
            (None, "fields must have a value of 'year' for each code"),
            ({**good, "town": ["x", "y"]}, "fields has a column 'town' that is not stored; stored are 'year', "),
            ({**good, "year": [1]}, r"fields\['year'\] must have one entry for each of the 2 code\(s\), got 1"),
            ({**good, "year": [1, "2"]}, r"fields\['year'\] must be integer or None, got '2' at row 1"),
            (
                {**good, "year": [1, 2**63]},
                r"fields\['year'\] must be integer or None, got 9223372036854775808 at row 1",
            ),
        ):
            with pytest.raises(ValueError, match=message):
                store.upsert(codes, [1, 2], values)
        store.upsert(codes, [1, 2], good)
        assert store.count({'It\'s a "text"': "it's"}) == store.count({"year": 1}) == 1
    with pytest.raises(ValueError, match=r"is there already, with .*year integer.*, and fields asks for none"):
        open_store(12, fields={})
    with open_store(12) as store:
        assert store.fields == {"year": "integer", 'It\'s a "text"': "text"}


@pytest.mark.parametrize("open_store", ["usearch", "faiss", "lancedb", "duckdb"], indirect=True)
def test_a_full_disk_leaves_the_store_as_it_was(open_store: Opener) -> None:
    resource = pytest.importorskip("resource", reason="this system has no limits on the size of files")
    codes = np.random.default_rng(0).integers(0, 256, (20_000, 32), np.uint8)
    with open_store(256) as store:
        store.upsert(codes[:50], np.arange(50))
        store.search(codes[:1], 1)  # compiles the kernels, whose files count as well
    store = open_store(256)
    rows = 500 if isinstance(store, UsearchStore) else len(codes)  # a graph takes long
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # Python ignores the signal: writing fails
    try:
        with pytest.raises(Exception, match=r"could not be written, nothing is saved|File too large"):
            store.load(to_arrow(codes[:rows], np.arange(rows), 256))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store._close_after_error()
    with open_store(256) as store:
        assert len(store) == 50
        np.testing.assert_array_equal(store.search(codes[:50], 1).indices.ravel(), np.arange(50))
        store.load(to_arrow(codes[:200], np.arange(200), 256))
        assert len(store) == 200


def test_a_table_without_a_model_is_accepted_and_stays_without(open_store: Opener) -> None:
    for model in (None, "a" * 64, "b" * 64):
        with open_store(12, model=model) as store:
            assert store.model is None
            store.upsert(random_codes(5, 12), np.arange(5))


@pytest.mark.parametrize("name", STORES)
def test_a_missing_package_is_named_with_how_to_install_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "start", lambda: "dbname=none")
    for package in {module.partition(".")[0] for module in STORES[name].packages}:
        with monkeypatch.context() as without:
            for module in [module for module in sys.modules if module.partition(".")[0] == package]:
                without.delitem(sys.modules, module)
            without.setitem(sys.modules, package, None)
            command = re.escape(installation(STORES[name].extra))
            expected = f"{STORES[name].__name__} needs {package}.*{command}"
            with pytest.raises(ImportError, match=expected):
                opened(name, tmp_path, "t", 8)
