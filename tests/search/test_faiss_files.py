"""Files for FAISS: FAISS alone reads them and answers as an index does; `FaissStore` reads them back."""

from __future__ import annotations

import errno
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
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT, are_found
from hashlearn.search.stores import FaissHNSW, FaissIVF, FaissStore, faiss_kinds, file_store, read_faiss, write_faiss
from tests.search.codes import engine, random_codes, some_ids

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
        ids, path = some_ids(id_type, 400), tmp_path / id_type
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
    write_faiss(tmp_path / "a", codes, ids, 12, kind=kind)
    back, back_ids, n_bits = read_faiss(tmp_path / "a")
    np.testing.assert_array_equal(back, codes)
    assert (back_ids.tolist(), n_bits) == (ids, 12)
    with FaissStore.create(tmp_path / "b", 12, kind=kind, id_type=id_type) as store:
        store.add(codes, ids)
    with FaissStore.create(tmp_path / "b", 12) as store:
        assert (len(store), store.id_type, store.kind) == (n, id_type, faiss_kinds.as_kind(kind))
        assert store.index.ids.tolist() == sorted(ids)
        store.upsert(random_codes(200, 12, seed=2), some_ids(id_type, 200))
    with FaissStore.create(tmp_path / "b", 12, kind=kind, id_type=id_type) as store:
        assert len(store) == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@KINDS
@ID_KINDS
def test_a_store_answers_exactly_and_approximately(tmp_path: Path, kind: str, id_type: str) -> None:
    codes, ids = random_codes(500, 64), some_ids(id_type, 500)
    queries = random_codes(20, 64, seed=1)
    index = HammingIndex(64)
    index.add(codes, ids)
    write_faiss(tmp_path / "a", codes, ids, 64, kind=kind)
    with FaissStore.create(tmp_path / "a", 64) as store:
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
    with FaissStore.create(path, 12, kind=FaissHNSW(n_links=7), model="a" * 64) as store:
        store.add(codes, range(50))
    for kind in (None, "hnsw", FaissHNSW(n_links=7)):
        with FaissStore.create(path, 12, kind=kind) as store:
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
        with pytest.raises(ValueError, match=words):
            FaissStore.create(path, n_bits, **settings)
    with pytest.raises(ValueError, match="codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb"):
        read_faiss(path, model="b" * 64)
    with FaissStore.create(path, 12) as store, pytest.raises(ValueError, match="give the ids that may be found"):
        store.search(codes, 1, where={"lang": "en"})
    assert path.read_bytes() == before


def test_a_file_that_another_store_has_written_is_not_overwritten(tmp_path: Path) -> None:
    path, codes = tmp_path / "a", random_codes(5, 32)
    one, two = (FaissStore.create(path, 32) for _ in range(2))
    one.upsert(codes, np.arange(5))
    two.upsert(codes, np.arange(5) + 10)
    one.save()
    with pytest.raises(ValueError, match=r"a' was written by another store after this one read it; nothing is saved"):
        two.close()
    assert FaissStore.create(path, 32).index.ids.tolist() == [0, 1, 2, 3, 4]
    before = path.stat().st_mtime_ns
    FaissStore.create(path, 32).close()  # nothing was changed, so nothing is written
    assert path.stat().st_mtime_ns == before
    with FaissStore.create(None, 32) as store:
        store.upsert(codes, np.arange(5))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


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
        for call in (read_faiss, lambda path: FaissStore.create(path, 16)):
            with pytest.raises(
                ValueError, match=rf"{name}' cannot be loaded: it (was not written by|is not a regular)"
            ):
                call(tmp_path / name)
    store = FaissStore.create(None, 16)
    store.path = tmp_path / "plain"
    store.upsert(random_codes(5, 16), np.arange(5))
    with pytest.raises(ValueError, match="was not written by hashlearn as a file of FAISS"):
        store.save()


@pytest.mark.parametrize("id_type", [INTEGER, TEXT])
def test_damage_is_refused_or_without_effect(tmp_path: Path, id_type: str) -> None:
    """Checksums cover the index and what is in the archive; a date in the archive may be any."""
    codes, ids = random_codes(30, 33), some_ids(id_type, 30)
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
            back, back_ids, _ = read_faiss(tmp_path / "b")
        except ValueError:
            refused += 1
            continue
        assert place >= index_bytes
        np.testing.assert_array_equal(back, codes)
        assert back_ids.tolist() == ids
    assert refused > 0.8 * len(places)
    for part in range(40):
        (tmp_path / "b").write_bytes(content[: len(content) * part // 40])
        with pytest.raises(ValueError, match="cannot be loaded"):
            read_faiss(tmp_path / "b")


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
        read_faiss(tmp_path / "b")


def test_packed_members_are_refused_unread(tmp_path: Path) -> None:
    write_faiss(tmp_path / "a", random_codes(3, 33), ["a", "b", "c"], 33)
    with zipfile.ZipFile(tmp_path / "a") as archive:
        about = archive.read("about.json")
    with zipfile.ZipFile(tmp_path / "b", "w") as archive:
        archive.writestr("about.json", about)
        archive.writestr("ids.json", b" " * 10_000_000, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="was not written by"):
        read_faiss(tmp_path / "b")


@pytest.mark.parametrize("stage", ["write_index_binary", "zip", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    path = tmp_path / "a"
    with FaissStore.create(path, 33) as store:
        store.add(random_codes(5, 33), range(5))
    before = path.read_bytes()
    store = FaissStore.create(path, 33)
    store.add(random_codes(5, 33), range(5, 10))

    def fail(*arguments: Any, **settings: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    places = {"write_index_binary": engine("faiss"), "zip": file_store}
    monkeypatch.setattr(places.get(stage, os), "_put" if stage == "zip" else stage, fail)
    with pytest.raises(OSError, match="No space left"):
        store.save()
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    store.save()  # as soon as there is space
    assert len(FaissStore.create(path, 33)) == 10


def test_kills_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    code = """
import sys, numpy as np
from hashlearn.search.stores import write_faiss
print("ready", flush=True)
while True:
    for n in (2_000, 3_000):
        write_faiss(sys.argv[1], np.full((n, 8), n // 1000, np.uint8), [f"{n} {i}" for i in range(n)], 64)
"""
    path = tmp_path / "a"
    write_faiss(path, np.full((2000, 8), 2, np.uint8), [f"2000 {i}" for i in range(2000)], 64)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    for attempt in range(60):
        if attempt == 50:
            process.kill()
            process.wait()
            process.stdout.close()
        codes, ids, _ = read_faiss(path)
        assert len(codes) in (2000, 3000)
        assert (codes == len(codes) // 1000).all()
        assert ids.tolist() == [f"{len(codes)} {i}" for i in range(len(codes))]


def test_bad_input_of_write_faiss(tmp_path: Path) -> None:
    codes = random_codes(3, 12)
    wrong: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
        (codes, [1, 1, 2], {}, ValueError, "ids must be distinct"),
        (codes, [1, "a", 2], {}, TypeError, "all of one kind"),
        (codes, [2**63, 1, 2], {}, ValueError, r"from 0 to 2\*\*63 - 1"),
        (codes, ["", "a", "b"], {}, ValueError, "empty text"),
        (codes, [1, 2], {}, ValueError, "one entry for each of the 3"),
        (codes | 1, [1, 2, 3], {}, ValueError, "zero past bit 12"),
        (codes, [1, 2, 3], {"kind": "hsnw"}, ValueError, r"did you mean 'hnsw'\?"),
        (codes, [1, 2, 3], {"model": "x"}, ValueError, "model must be the digest"),
    ]
    for given, ids, settings, kind, words in wrong:
        with pytest.raises(kind, match=words):
            write_faiss(tmp_path / "a", given, ids, 12, **settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name", "values"),
    [
        (FaissHNSW, "search_width", (2**31 - 1, 2**63, None, 0, 8.0, True)),
        (FaissHNSW, "n_links", (513, None, 1)),
        (FaissIVF, "n_lists", (2**31, 0)),
        (FaissIVF, "n_probes", (2**64, -1)),
    ],
)
def test_settings_have_limits(kind: Any, name: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=f"{name} must be an integer from"):
            kind(**{name: value})


@pytest.mark.parametrize("kind", [FaissHNSW(512, 2**14, 2**18), FaissIVF(2**20, 2**20)])
def test_the_largest_settings_work(kind: Any) -> None:
    codes = random_codes(40, 33)
    store = FaissStore.create(None, 33, kind=kind)
    store.add(codes, range(40))
    assert (store.search(codes, 1, exact=False).distances == 0).all()


@KINDS
def test_any_number_of_threads_builds_the_same_index(kind: str) -> None:
    faiss, codes = engine("faiss"), random_codes(2000, 64)
    before, answers = faiss.omp_get_max_threads(), []
    for threads in (1, 3):
        faiss.omp_set_num_threads(threads)
        store = FaissStore.create(None, 64, kind=kind)
        store.add(codes, range(2000))
        answers.append(store.search(codes[:50], 10, exact=False).indices)
        assert faiss.omp_get_max_threads() == threads
    faiss.omp_set_num_threads(before)
    np.testing.assert_array_equal(answers[0], answers[1])
