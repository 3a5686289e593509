"""Files of FAISS and usearch: the engine alone reads them and answers as an index does; stores read them back."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from hashlearn.search.about import About
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT, are_found
from hashlearn.search.stores import FaissStore, UsearchStore
from hashlearn.search.stores.file_store import PLACE_DIGITS, SHA256_DIGITS, FileStore
from tests.search.codes import engine, random_codes, some_ids, split_settings

KINDS = pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf", "usearch"])
ID_KINDS = pytest.mark.parametrize("id_type", ID_TYPES)

ALONE = """
import json, sys
from pathlib import Path
import faiss, numpy as np

path, queries, k = Path(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
index = faiss.read_index_binary(str(path))
distances, found = index.search(queries, k)
about, more = map(json.loads, path.read_bytes().rsplit(b"\\n", 5)[1:3])
assert not any(name.startswith("hashlearn") for name in sys.modules)
inner = type(faiss.downcast_IndexBinary(index.index)).__name__
ids = more["ids"]
assert (ids is None) == (about["id_type"] == "int64")
named = found.tolist() if ids is None else [[ids[row] for row in rows] for rows in found.tolist()]
print(json.dumps([type(index).__name__, inner, about["n_bits"], about["model"], distances.tolist(), named]))
"""


def opened(path: Path | None, about: About, kind: str | None = None, **settings: Any) -> FileStore:
    """A store of FAISS, or of usearch."""
    if kind == "usearch":
        return UsearchStore.open(path, about, **settings)
    return FaissStore.open(path, about, kind=kind, **settings)


def write(path: Path, codes: np.ndarray, ids: list[Any], n_bits: int, model: str | None = None, **options: Any) -> None:
    id_type = TEXT if isinstance(ids[0], str) else INTEGER
    with opened(path, About(n_bits, id_type, model), **options) as store:
        store.add(codes, ids)


def with_lines(path: Path, content: bytes, about: Any, more: Any, kind: type[FileStore] = FaissStore) -> None:
    """Forge a file: the bytes of an engine, other lines, and a checksum that is right."""
    content += f"\n{json.dumps(about)}\n{json.dumps(more)}\n{len(content):0{PLACE_DIGITS}}".encode()
    path.write_bytes(content + hashlib.sha256(content).hexdigest().encode() + kind.signature[1])


def parts_of(path: Path) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    content, about, more, *_ = path.read_bytes().rsplit(b"\n", 5)
    return content, json.loads(about), json.loads(more)


@pytest.fixture(autouse=True)
def _needs_the_engines() -> None:
    engine("faiss")
    engine("usearch.index")


def test_faiss_alone_answers_as_an_index_does(tmp_path: Path) -> None:
    """Which of equally near items FAISS returns at the k-th place is its own matter."""
    codes, queries = random_codes(400, 33), random_codes(20, 33, seed=1)
    np.save(tmp_path / "queries.npy", queries)
    cells: list[tuple[str, dict[str, Any], str]] = [
        (INTEGER, {"kind": "flat"}, "IndexBinaryFlat"),
        (TEXT, {"kind": "hnsw", "search_width": 400}, "IndexBinaryHNSW"),
        (TEXT, {"kind": "ivf", "n_lists": 8, "n_probes": 8}, "IndexBinaryIVF"),
    ]
    for id_type, settings, inner in cells:
        ids, path = some_ids(id_type, 400), tmp_path / inner
        write(path, codes, ids, 33, model="a" * 64, **settings)
        command = [sys.executable, "-W", "ignore", "-c", ALONE, str(path), str(tmp_path / "queries.npy"), "10"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert run.returncode == 0, run.stderr
        outer, found_inner, n_bits, model, distances, named = json.loads(run.stdout)
        assert (outer, found_inner, n_bits, model) == ("IndexBinaryIDMap2", inner, 33, "a" * 64)
        index = HammingIndex(33)
        index.add(codes, ids)
        expected = index.search(queries, 10)
        np.testing.assert_array_equal(distances, expected.distances)
        for row, answer in enumerate(named):
            near = expected.distances[row] < expected.distances[row, -1]
            whole = {str(item) for item in expected.indices[row][near]}
            assert whole <= {str(item) for item in answer}
            allowed = index.search_radius(queries[row : row + 1], int(expected.distances[row, -1]))[0].indices
            assert {str(item) for item in answer} <= {str(item) for item in allowed}


@KINDS
@ID_KINDS
@pytest.mark.parametrize("n", [0, 1, 200])
def test_files_come_back(tmp_path: Path, kind: str, id_type: str, n: int) -> None:
    codes, ids = random_codes(200, 12)[:n], some_ids(id_type, 200)[:n]
    with opened(tmp_path / "b", About(12, id_type), kind) as store:
        store.add(codes, ids)
    with opened(tmp_path / "b", About(12), kind if kind == "usearch" else None) as store:
        assert (len(store), store.id_type) == (n, id_type)
        assert store.settings["kind"] == ("hnsw" if kind == "usearch" else kind)
        assert store.index.ids.tolist() == sorted(ids)
        store.upsert(random_codes(200, 12, seed=2), some_ids(id_type, 200))
    with opened(tmp_path / "b", About(12, id_type), kind) as store:
        assert len(store) == 200
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    at = [store_class.is_at(str(tmp_path / "b")) for store_class in (FaissStore, UsearchStore)]
    assert at == [kind != "usearch", kind == "usearch"]


@KINDS
@ID_KINDS
def test_an_approximate_search_sees_every_change(tmp_path: Path, kind: str, id_type: str) -> None:
    """Rows come and go between searches and after the file was read; the first of a search has distance 0."""
    codes, ids = random_codes(300, 64), np.array(some_ids(id_type, 300), None if id_type == INTEGER else object)
    options = {"search_width": 300} if kind in ("hnsw", "usearch") else {"n_probes": 2**20} if kind == "ivf" else {}

    def check(store: FileStore, rows: np.ndarray) -> None:
        found = store.search(codes, len(rows), exact=False)
        expected = store.search(codes, len(rows))
        assert len(store) == len(rows)
        there = are_found(found.indices)
        assert there.mean() > 0.9
        assert set(found.indices[there].tolist()) == set(ids[rows].tolist())
        first = expected.distances[rows, 0] == 0
        assert first.all()
        assert (found.distances[rows, 0] == 0).mean() > 0.9
        np.testing.assert_array_equal(found.distances[there], expected.distances[there])

    with opened(tmp_path / "a", About(64, id_type), kind, **options) as store:
        store.add(codes[:200], ids[:200])
        check(store, np.arange(200))
        store.remove(ids[:50])
        store.add(codes[200:], ids[200:])
        check(store, np.arange(50, 300))
    with opened(tmp_path / "a", About(64), kind, **options) as store:
        check(store, np.arange(50, 300))
        store.upsert(codes[:60], ids[:60])
        store.remove(ids[100:110])
        check(store, np.r_[:100, 110:300])
        store.upsert(codes[::-1][:20], ids[:20])
        store.upsert(codes[:20], ids[:20])
        check(store, np.r_[:100, 110:300])
        before = (tmp_path / "a").read_bytes()
    assert (tmp_path / "a").read_bytes() != before
    with opened(tmp_path / "a", About(64), kind, **options) as store:
        check(store, np.r_[:100, 110:300])


@KINDS
@ID_KINDS
def test_a_store_answers_exactly_and_approximately(tmp_path: Path, kind: str, id_type: str) -> None:
    codes, ids = random_codes(500, 64), some_ids(id_type, 500)
    queries = random_codes(20, 64, seed=1)
    index = HammingIndex(64)
    index.add(codes, ids)
    write(tmp_path / "a", codes, ids, 64, kind=kind)
    with opened(tmp_path / "a", About(64), kind) as store:
        for where in (None, ids[:40], ids[:3]):
            found, expected = store.search(queries, 7, where=where), index.search(queries, 7, where=where)
            np.testing.assert_array_equal(found.indices, expected.indices)
            np.testing.assert_array_equal(found.distances, expected.distances)
            filtered = store.search(queries, 7, where=where, exact=False)
            if where is not None:  # always exact
                np.testing.assert_array_equal(filtered.indices, expected.indices)
        near, truth = store.search(queries, 7, exact=False), index.search(queries, 7)
        assert (near.distances <= truth.distances[:, -1:]).mean() > 0.25
        row = {item: place for place, item in enumerate(ids)}
        for query, items, distances in zip(queries, near.indices, near.distances, strict=True):
            there = are_found(items)
            true = [int(np.bitwise_count(codes[row[item]] ^ query).sum()) for item in items[there].tolist()]
            assert true == distances[there].tolist()
        assert store.count(ids[:40]) == 40
        assert store.remove(ids[:2]) == 2
        assert store.remove(ids[:3]) == 1
        assert not set(ids[:3]) & set(store.search(queries, 7, exact=False).indices.ravel().tolist())


def test_settings_and_model_stay_with_the_file(tmp_path: Path) -> None:
    path, codes = tmp_path / "a", random_codes(50, 12)
    with FaissStore.open(path, About(12, model="a" * 64), kind="hnsw", n_links=7) as store:
        store.add(codes, range(50))
    settings: dict[str, Any]
    for settings in ({}, {"kind": "hnsw"}, {"kind": "hnsw", "n_links": 7}, {"n_links": 7}):
        with FaissStore.open(path, About(12), **settings) as store:
            assert store.settings == {"kind": "hnsw", "n_links": 7, "build_width": 80, "search_width": 128}
            assert store.model == "a" * 64
    with FaissStore.open(path, search_width=300) as store:
        assert store.settings["search_width"] == 300
    wrong: list[tuple[int, dict[str, Any], str]] = [
        (12, {"kind": "flat"}, r"is there already, with {'kind': 'hnsw', .*} and not {'kind': 'flat'}"),
        (12, {"n_links": 32}, r"is there already, with {.*'n_links': 7, .*} and not {'n_links': 32}"),
        (12, {"search_width": 1}, "search_width must be an integer from 2"),
        (12, {"n_probes": 3}, "n_probes is no setting of FaissStore of kind 'hnsw'"),
        (12, {"model": "b" * 64}, "codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb"),
        (12, {"id_type": "string"}, "is there already, with ids that are integers and not text"),
        (13, {}, "is there already, with codes of 12 bits and not n_bits=13"),
        (12, {"fields": {"lang": str}}, "a FaissStore keeps ids and codes only; leave fields out"),
    ]
    before = path.read_bytes()
    for n_bits, settings, words in wrong:
        about, options = split_settings(n_bits, settings)
        with pytest.raises(ValueError, match=words):
            FaissStore.open(path, about, **options)
    with FaissStore.open(path, About(12)) as store, pytest.raises(ValueError, match="give the ids that may be found"):
        store.search(codes, 1, where={"lang": "en"})
    assert path.read_bytes() == before
    new: list[tuple[type[FileStore], dict[str, Any], str]] = [
        (FaissStore, {"kind": "faiss"}, "kind must be one of 'flat', 'hnsw', 'ivf', got 'faiss'"),
        (FaissStore, {"n_links": 32}, "n_links is no setting of FaissStore of kind 'flat'"),
        (UsearchStore, {"n_lists": 32}, "n_lists is no setting of UsearchStore of kind 'hnsw'"),
        (UsearchStore, {"n_links": 2**20}, "n_links must be an integer from 2 to 512"),
    ]
    for store_class, settings, words in new:
        with pytest.raises(ValueError, match=words):
            store_class.open(None, About(12), **settings)


def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    faiss = engine("faiss")
    plain = faiss.IndexBinaryFlat(16)
    plain.add(random_codes(5, 16))
    faiss.write_index_binary(plain, str(tmp_path / "plain"))
    (tmp_path / "text").write_text("hello\n" * 100)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    write(tmp_path / "usearch", random_codes(5, 16), list(range(5)), 16, kind="usearch")
    for name, words in {
        "plain": "it was not written by this version of FaissStore, or it is damaged",
        "text": "it was not written by",
        "empty": "it was not written by",
        "folder": "it is not a regular file",
        "usearch": "it was not written by this version of FaissStore",
    }.items():
        with pytest.raises(ValueError, match=rf"{name}' cannot be loaded: {words}"):
            FaissStore.open(tmp_path / name, About(16))
    store = FaissStore.open(None, About(16))
    store.path = tmp_path / "plain"
    store.upsert(random_codes(5, 16), np.arange(5))
    with pytest.raises(ValueError, match="was written by another store"):
        store.save()
    with pytest.raises(FileNotFoundError, match="nothing is stored at"):
        FaissStore.open(tmp_path / "none")


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, first in (("a", 0), ("b", 100)):
        write(tmp_path / name, random_codes(5, 16), list(range(first, first + 5)), 16)
    load = FaissStore._load

    def replace_and_load(store: Any, place: str, n_bytes: int) -> Any:
        os.replace(tmp_path / "b", place)
        return load(store, place, n_bytes)

    monkeypatch.setattr(FaissStore, "_load", replace_and_load)
    with pytest.raises(ValueError, match="it was replaced while it was read; open it again"):
        FaissStore.open(tmp_path / "a")


@pytest.mark.parametrize("kind", ["flat", "usearch"])
@pytest.mark.parametrize("id_type", [INTEGER, TEXT])
def test_damage_is_refused(tmp_path: Path, id_type: str, kind: str) -> None:
    """The checksum covers every byte before it."""
    codes, ids = random_codes(30, 33), some_ids(id_type, 30)
    write(tmp_path / "a", codes, ids, 33, kind=kind)
    content = (tmp_path / "a").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 300).tolist() + list(
        range(len(content) - SHA256_DIGITS - 30, len(content))
    ):
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        (tmp_path / "b").write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be loaded: it was not written by"):
            opened(tmp_path / "b", About(33), kind)
    for part in range(40):
        (tmp_path / "b").write_bytes(content[: len(content) * part // 40])
        with pytest.raises(ValueError, match="cannot be loaded: it was not written by"):
            opened(tmp_path / "b", About(33), kind)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_bits": 41}, "its index is not one of"),
        ({"n_bits": "33"}, "n_bits must be"),
        ({"model": "x"}, "model must be the digest"),
        ({"settings": {"kind": "os"}}, "kind must be one of"),
        ({"settings": {"kind": "flat", "a": 1}}, "a is no setting"),
        ({"settings": {"kind": "hnsw", "search_width": 2**40}}, "search_width must be"),
        ({"settings": 1}, "cannot be loaded"),
        ({"id_type": "uuid"}, "id_type must be"),
        ({"id_type": "text"}, "id_type must be"),
        ({"ids": ["a"]}, "out of bounds"),
        ({"ids": ["a", "b", 7]}, "all of one kind"),
        ({"ids": ["a", "b", "b"]}, "distinct"),
        ({"ids": ["a", "b", None]}, "ids must not be missing"),
        ({"ids": ["a", "b", "c", "d"]}, "is damaged: it has 3 codes and other ids"),
        ({"ids": [1, 2, 3]}, "is damaged: it has 3 codes and other ids"),
        ({"ids": {"a": 1}}, "out of bounds"),
        ({"ids": None}, "cannot be loaded"),
    ],
)
def test_lying_files_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write(tmp_path / "a", random_codes(3, 33), ["a", "b", "c"], 33)
    content, about, more = parts_of(tmp_path / "a")
    with_lines(tmp_path / "b", content, about, more)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    of_about = {name: value for name, value in changes.items() if name in about}
    of_more = {name: value for name, value in changes.items() if name in more}
    with_lines(tmp_path / "b", content, {**about, **of_about}, {**more, **of_more})
    with pytest.raises(ValueError, match=words):
        FaissStore.open(tmp_path / "b", About(33))


def test_a_lying_file_of_usearch_is_refused(tmp_path: Path) -> None:
    usearch = engine("usearch.index")
    write(tmp_path / "a", random_codes(3, 32), [1, 2, 3], 32, kind="usearch")
    content, about, more = parts_of(tmp_path / "a")
    floats, negative = (
        usearch.Index(ndim=32, **kinds)
        for kinds in ({}, {"metric": usearch.MetricKind.Hamming, "dtype": usearch.ScalarKind.B1})
    )
    floats.add(np.arange(3), np.ones((3, 32), np.float32))
    negative.add(np.array([2**64 - 2], np.uint64), random_codes(1, 32))
    for index, words in ((floats, "its index is not one of codes"), (negative, r"ids must be from 0 to 2\*\*63 - 1")):
        index.save(str(tmp_path / "theirs"))
        with_lines(tmp_path / "b", (tmp_path / "theirs").read_bytes(), about, more, UsearchStore)
        with pytest.raises(ValueError, match=words):
            UsearchStore.open(tmp_path / "b")
    with_lines(tmp_path / "b", content, {**about, "n_bits": 41}, more, UsearchStore)
    with pytest.raises(ValueError, match="its index is not one of codes"):
        UsearchStore.open(tmp_path / "b")
