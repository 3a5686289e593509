"""Files for FAISS: FAISS alone reads them and answers as an index does; `FaissStore` reads them back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from hashlearn.search.about import About
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT, are_found
from hashlearn.search.stores import FaissHNSW, FaissIVF, FaissStore, faiss_kinds, file_store
from tests.search.codes import engine, random_codes, some_ids, split_settings

KINDS = pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf"])
ID_KINDS = pytest.mark.parametrize("id_type", ID_TYPES)

ALONE = """
import json, sys, zipfile
import faiss, numpy as np

path, queries, k = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3])
index = faiss.read_index_binary(path)
distances, found = index.search(queries, k)
with zipfile.ZipFile(path) as archive:
    about = json.loads(archive.read("about.json"))
    ids = json.loads(archive.read("ids.json")) if about["id_type"] != "int64" else None
assert not any(name.startswith("hashlearn") for name in sys.modules)
inner = type(faiss.downcast_IndexBinary(index.index)).__name__
named = found.tolist() if ids is None else [[ids[row] for row in rows] for rows in found.tolist()]
print(json.dumps([type(index).__name__, inner, about["n_bits"], about["model"], distances.tolist(), named]))
"""


def write_faiss(path: Path, codes: np.ndarray, ids: list[Any], n_bits: int, **settings: Any) -> None:
    id_type = TEXT if isinstance(ids[0], str) else INTEGER
    with FaissStore.open(path, About(n_bits, id_type), **settings) as store:
        store.add(codes, ids)


@pytest.fixture(autouse=True)
def _needs_faiss() -> None:
    engine("faiss")


def test_faiss_alone_answers_as_an_index_does(tmp_path: Path) -> None:
    """Which of equally near items FAISS returns at the k-th place is its own matter."""
    codes, queries = random_codes(400, 33), random_codes(20, 33, seed=1)
    np.save(tmp_path / "queries.npy", queries)
    for id_type, kind, inner in (
        (INTEGER, "flat", "IndexBinaryFlat"),
        (TEXT, FaissHNSW(search_width=400), "IndexBinaryHNSW"),
        (TEXT, FaissIVF(n_lists=8, n_probes=8), "IndexBinaryIVF"),
    ):
        ids, path = some_ids(id_type, 400), tmp_path / inner
        write_faiss(path, codes, ids, 33, kind=kind, model="a" * 64)
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
    with FaissStore.open(tmp_path / "b", About(12, id_type=id_type), kind=kind) as store:
        store.add(codes, ids)
    with FaissStore.open(tmp_path / "b", About(12)) as store:
        assert (len(store), store.id_type, store.kind) == (n, id_type, faiss_kinds.as_kind(kind))
        assert store.index.ids.tolist() == sorted(ids)
        store.upsert(random_codes(200, 12, seed=2), some_ids(id_type, 200))
    with FaissStore.open(tmp_path / "b", About(12, id_type=id_type), kind=kind) as store:
        assert len(store) == 200
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@KINDS
@ID_KINDS
def test_a_store_answers_exactly_and_approximately(tmp_path: Path, kind: str, id_type: str) -> None:
    codes, ids = random_codes(500, 64), some_ids(id_type, 500)
    queries = random_codes(20, 64, seed=1)
    index = HammingIndex(64)
    index.add(codes, ids)
    write_faiss(tmp_path / "a", codes, ids, 64, kind=kind)
    with FaissStore.open(tmp_path / "a", About(64)) as store:
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
    with FaissStore.open(path, About(12, model="a" * 64), kind=FaissHNSW(n_links=7)) as store:
        store.add(codes, range(50))
    for kind in (None, "hnsw", FaissHNSW(n_links=7)):
        with FaissStore.open(path, About(12), kind=kind) as store:
            assert (store.kind, store.model) == (FaissHNSW(n_links=7), "a" * 64)
    wrong: list[tuple[int, dict[str, Any], str]] = [
        (12, {"kind": "flat"}, r"is there already, as FaissHNSW\(.*\) and not FaissFlat"),
        (12, {"kind": FaissHNSW()}, r"is there already, as FaissHNSW\(n_links=7"),
        (12, {"model": "b" * 64}, "codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb"),
        (12, {"id_type": "string"}, "is there already, with ids that are integers and not text"),
        (13, {}, "is there already, with codes of 12 bits and not n_bits=13"),
        (12, {"fields": {"lang": str}}, "a FaissStore keeps ids and codes only; leave fields out"),
        (12, {"kind": "faiss"}, "kind must be one of 'flat', 'hnsw', 'ivf'"),
    ]
    before = path.read_bytes()
    for n_bits, settings, words in wrong:
        about, options = split_settings(n_bits, settings)
        with pytest.raises(ValueError, match=words):
            FaissStore.open(path, about, **options)
    with FaissStore.open(path, About(12)) as store, pytest.raises(ValueError, match="give the ids that may be found"):
        store.search(codes, 1, where={"lang": "en"})
    assert path.read_bytes() == before


def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    faiss = engine("faiss")
    plain = faiss.IndexBinaryFlat(16)
    plain.add(random_codes(5, 16))
    faiss.write_index_binary(plain, str(tmp_path / "plain"))
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("other.txt", "hello")
    for name in ("plain", "text", "empty", "folder", "zip"):
        with pytest.raises(ValueError, match=rf"{name}' cannot be loaded: it (was not written by|is not a regular)"):
            FaissStore.open(tmp_path / name, About(16))
    store = FaissStore.open(None, About(16))
    store.path = tmp_path / "plain"
    store.upsert(random_codes(5, 16), np.arange(5))
    with pytest.raises(ValueError, match="was not written by hashlearn as a file of FAISS"):
        store.save()


@pytest.mark.parametrize("id_type", [INTEGER, TEXT])
def test_damage_is_refused_or_without_effect(tmp_path: Path, id_type: str) -> None:
    """Checksums cover the index and what is in the archive; a date in the archive may be any."""
    codes, ids = random_codes(30, 33), some_ids(id_type, 30)
    stored = dict(zip(ids, codes.tolist(), strict=True))
    write_faiss(tmp_path / "a", codes, ids, 33)
    content = (tmp_path / "a").read_bytes()
    rng, refused = np.random.default_rng(0), 0
    index_bytes = file_store.read_file(tmp_path / "a", "FAISS").index_bytes
    places = [*range(0, index_bytes, 7), *rng.integers(index_bytes, len(content), 200).tolist()]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= int(rng.integers(1, 256))
        (tmp_path / "b").write_bytes(damaged)
        try:
            index = FaissStore.open(tmp_path / "b", About(33)).index
        except ValueError:
            refused += 1
            continue
        assert place >= index_bytes
        assert dict(zip(index.ids.tolist(), index.codes.tolist(), strict=True)) == stored
    assert refused > 0.8 * len(places)
    for part in range(40):
        (tmp_path / "b").write_bytes(content[: len(content) * part // 40])
        with pytest.raises(ValueError, match="cannot be loaded"):
            FaissStore.open(tmp_path / "b", About(33))


@pytest.mark.parametrize(
    ("changes", "ids", "words"),
    [
        ({"format": 2}, None, "its format is 2, and 'hashlearn codes in FAISS, format 1' can be read"),
        ({"n_bits": 41}, None, "its index is not one of"),
        ({"n_bits": "33"}, None, "n_bits must be"),
        ({"model": "x"}, None, "model must be the digest"),
        ({"settings": {"kind": "os"}}, None, "kind must be one of"),
        ({"settings": {"kind": "flat", "a": 1}}, None, "unexpected keyword argument"),
        ({"settings": 1}, None, "about.json is damaged"),
        ({"index_bytes": 2**40}, None, "index_bytes must be"),
        ({"index_sha256": "0"}, None, "the checksum of its index is wrong"),
        ({"mark": 7}, None, "about.json is damaged"),
        ({"id_type": "uuid"}, None, "was not written by"),
        ({"id_type": "text"}, None, "was not written by"),
        ({}, ["a"], "one entry for each of the 3"),
        ({}, ["a", "b", 7], "all of one kind"),
        ({}, ["a", "b", "b"], "distinct"),
        ({}, {"a": 1}, "about.json is damaged"),
    ],
)
def test_lying_files_are_refused(tmp_path: Path, changes: dict[str, Any], ids: Any, words: str) -> None:
    write_faiss(tmp_path / "a", random_codes(3, 33), ["a", "b", "c"], 33)
    with zipfile.ZipFile(tmp_path / "a") as archive:
        about, names = json.loads(archive.read("about.json")), json.loads(archive.read("ids.json"))
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[: about["index_bytes"]])
    with zipfile.ZipFile(tmp_path / "b", "a") as archive:
        archive.writestr("about.json", json.dumps({**about, **changes}))
        archive.writestr("ids.json", json.dumps(names if ids is None else ids))
    with pytest.raises(ValueError, match=words):
        FaissStore.open(tmp_path / "b", About(33))


def test_packed_members_are_refused_unread(tmp_path: Path) -> None:
    write_faiss(tmp_path / "a", random_codes(3, 33), ["a", "b", "c"], 33)
    with zipfile.ZipFile(tmp_path / "a") as archive:
        about = archive.read("about.json")
    with zipfile.ZipFile(tmp_path / "b", "w") as archive:
        archive.writestr("about.json", about)
        archive.writestr("ids.json", b" " * 10_000_000, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="was not written by"):
        FaissStore.open(tmp_path / "b", About(33))
