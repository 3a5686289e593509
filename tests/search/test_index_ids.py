"""`HammingIndex` with ids of every kind, and with filters: the answers of a full sort."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex, asymmetric_search
from hashlearn.search.ids import ID_TYPES, INTEGER, are_found, as_objects, checked_ids
from hashlearn.search.interface import NOWHERE
from tests.search.codes import engine, random_codes, some_ids

KINDS = pytest.mark.parametrize("id_type", ID_TYPES)


def full_sort(queries: np.ndarray, codes: np.ndarray, ids: Any, k: int) -> tuple[list[list[Any]], list[list[int]]]:
    """Ids and distances of the k nearest by Python's own sort; None and `NOWHERE` where there are fewer."""
    found, far = [], []
    for query in queries:
        distances = np.bitwise_count(codes ^ query).sum(axis=1).tolist()
        pairs = sorted(zip(distances, list(ids), strict=True))[:k]
        rest = k - len(pairs)
        found.append([item for _, item in pairs] + [None] * rest)
        far.append([distance for distance, _ in pairs] + [NOWHERE] * rest)
    return found, far


def as_lists(ids: np.ndarray) -> list[list[Any]]:
    return np.where(are_found(ids), ids, None).tolist()


@KINDS
def test_the_nearest_with_ties_by_id(id_type: str) -> None:
    ids, codes, queries = some_ids(id_type, 300), random_codes(300, 12), random_codes(10, 12, seed=1)
    index = HammingIndex(12)
    assert index.id_type is None
    assert index.add(codes[:200], ids[:200]).tolist() == ids[:200]
    index.search(codes[:1], 1)
    index.add(codes[200:], ids[200:])
    assert (index.id_type, len(index), index.ids.tolist()) == (id_type, 300, sorted(ids))
    for k in (1, 7, 300):
        found, expected = index.search(queries, k), full_sort(queries, codes, ids, k)
        assert found.indices.tolist() == expected[0]
        assert found.distances.tolist() == expected[1]
        assert found.indices.dtype == (np.int64 if id_type == INTEGER else object)
    near = index.search_radius(queries, 2)
    for query, part in zip(queries, near, strict=True):
        every = full_sort(query[None], codes, ids, 300)
        assert part.indices.tolist() == [
            item for item, distance in zip(every[0][0], every[1][0], strict=True) if distance <= 2
        ]
    margins = np.random.default_rng(0).standard_normal((4, 12))
    order = np.argsort(checked_ids(ids)) if id_type == INTEGER else np.array(sorted(range(300), key=ids.__getitem__))
    rows = asymmetric_search(margins, codes[order], 9).indices
    assert index.search(k=9, margins=margins).indices.tolist() == [[ids[order[row]] for row in part] for part in rows]


@KINDS
def test_upsert_and_remove(id_type: str) -> None:
    ids, codes = some_ids(id_type, 60), random_codes(90, 33)
    index = HammingIndex(33)
    index.upsert(codes[:40], ids[:40])
    index.search(codes[:1], 1)
    before = index.codes
    index.upsert(codes[60:], ids[30:])  # ten of them are there
    stored = dict(zip(ids, [*codes[:30], *codes[60:]], strict=True))
    assert index.remove(ids[3:6]) == 3
    assert index.remove(where=ids[:6]) == 3  # three of them are gone already
    for item in ids[:6]:
        del stored[item]
    assert index.ids.tolist() == sorted(stored)
    np.testing.assert_array_equal(index.codes, [stored[item] for item in sorted(stored)])
    assert len(before) == 40
    for item, code in stored.items():
        assert item in index.search_radius(code[None], 0)[0].indices.tolist()
    assert index.remove(where=np.ones(len(index), bool)) == 54
    assert (len(index), index.id_type) == (0, id_type)


def test_an_upsert_reaches_the_next_search_and_no_earlier_one() -> None:
    index = HammingIndex(8)
    index.add(random_codes(5, 8))
    seen = index._table().codes
    before = seen.copy()
    index.search(before, 1)
    index.upsert(255 - before, np.arange(5))
    np.testing.assert_array_equal(seen, before)
    np.testing.assert_array_equal(index.codes, 255 - before)
    assert (index.search(255 - before, 1).distances == 0).all()  # though no row has moved


@KINDS
def test_filters_are_exact(id_type: str) -> None:
    ids, codes = some_ids(id_type, 200), random_codes(200, 20)
    queries, margins = random_codes(6, 20, seed=1), np.random.default_rng(0).standard_normal((6, 20))
    index = HammingIndex(20)
    index.add(codes, ids)
    row = {item: place for place, item in enumerate(ids)}
    for count in (0, 1, 5, 60, 200):
        some = [ids[place] for place in np.random.default_rng(count).permutation(200)[:count]]
        kept = codes[[row[item] for item in some]]
        strangers = some_ids(id_type, 300, seed=5)
        strangers = [item for item in strangers if item not in row]
        assert strangers
        mask = np.array([item in some for item in index.ids.tolist()], bool)
        forms: list[Any] = [some, set(some), checked_ids(some, id_type=id_type), [*some, *strangers], mask]
        forms += [mask.tolist(), engine("pandas").Series(mask), engine("pyarrow").array(mask)]
        expected, far = full_sort(queries, kept, some, 30)
        for where in forms:
            assert index.count(where) == count
            found = index.search(queries, 30, where=where)
            assert as_lists(found.indices) == expected
            assert found.distances.tolist() == far
        near = index.search_radius(queries, 3, where=mask)
        limits = [sum(distance <= 3 for distance in distances) for distances in full_sort(queries, kept, some, 200)[1]]
        assert np.diff(near.limits).tolist() == limits
        assert near[0].indices.tolist() == full_sort(queries[:1], kept, some, limits[0])[0][0]
        scored = index.search(k=30, margins=margins, where=some)
        assert are_found(scored.indices).sum() == np.isfinite(scored.scores).sum() == 6 * min(count, 30)
        if count:
            signs = 2.0 * np.unpackbits(kept, axis=1, count=20) - 1.0
            best = np.sort(margins @ signs.T, axis=1)[:, ::-1][:, :30]
            np.testing.assert_allclose(scored.scores[:, : best.shape[1]], best, rtol=1e-12)
            assert scored.indices[0, 0] == some[int(np.argmax(signs @ margins[0]))]
    assert index.count() == len(index) == 200


def test_bad_filters_are_refused() -> None:
    index = HammingIndex(12)
    with pytest.raises(ValueError, match="nothing to search"):
        index.search(random_codes(1, 12), 1, where=["a"])
    index.add(random_codes(3, 12), ["a", "b", "c"])
    query = random_codes(1, 12)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (
            np.ones(2, bool),
            ValueError,
            r"where: a mask must have one entry for each of the 3 code\(s\), got shape \(2,\)",
        ),
        (np.ones((3, 1), bool), ValueError, r"where: a mask must have one entry"),
        ([1, 2], TypeError, r"where: ids must be text, as those that are stored, got integers: 1"),
        (["a", 1], TypeError, r"where: ids must be all of one kind"),
        (["a", "a"], ValueError, r"where: ids must be distinct, got 'a' more than once"),
        ([True, "a", "b"], ValueError, r"where: a mask must|where: ids must"),
        ({"lang": "en"}, TypeError, r"where: ids must be integers or text, got dict"),
        (3.5, TypeError, r"where: ids must be"),
    ]
    for where, kind, words in wrong:
        calls = [
            lambda where=where: index.search(query, 1, where=where),
            lambda where=where: index.search(k=1, margins=np.ones((1, 12)), where=where),
            lambda where=where: index.search_radius(query, 1, where=where),
            lambda where=where: index.count(where),
            lambda where=where: index.remove(where=where),
        ]
        for call in calls:
            with pytest.raises((TypeError, ValueError) if kind is ValueError else kind, match=words):
                call()
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 3 item\(s\)"):
        index.search(query, 4, where=["a"])
    for arguments in ({}, {"ids": ["a"], "where": ["a"]}):
        with pytest.raises(ValueError, match=r"remove takes either ids or where, got (neither|both)"):
            index.remove(**arguments)
    assert len(index) == 3


@KINDS
def test_the_kind_of_ids_is_that_of_the_first_ones(id_type: str) -> None:
    codes, ids = random_codes(4, 12), some_ids(id_type, 4)
    index = HammingIndex(12)
    index.add(codes[:0], [])
    index.upsert(codes[:0], [])
    assert index.id_type is None
    index.add(codes, ids)
    for other in ID_TYPES:
        if other != id_type:
            for put in (index.add, index.upsert):
                with pytest.raises(TypeError, match=r"ids must be \w+, as those that are stored, got \w+: "):
                    put(codes, some_ids(other, 4))
            with pytest.raises(TypeError, match="as those that are stored"):
                index.remove(some_ids(other, 1))
    if id_type != INTEGER:
        with pytest.raises(ValueError, match=r"ids must be given, because those in the index are text"):
            index.add(codes)
        assert index.add(codes[:0]).tolist() == []
    with pytest.raises(
        ValueError, match=r"ids must be new, but .* is there already \(1 such id\(s\)\); upsert replaces"
    ):
        index.add(codes[:2], [ids[0], some_ids(id_type, 50, seed=3)[-1]])
    with pytest.raises(KeyError, match="ids must be in the index, but"):
        index.remove([ids[0], some_ids(id_type, 50, seed=3)[-1]])
    for put in (index.add, index.upsert):
        with pytest.raises(ValueError, match="ids must be distinct"):
            put(codes[:2], [some_ids(id_type, 50, seed=3)[-1]] * 2)
    assert index.ids.tolist() == sorted(ids)


@pytest.mark.parametrize(
    ("bad", "kind", "words"),
    [
        (["a", "b", 3], TypeError, "all of one kind"),
        ([2**63, 1, 2], ValueError, r"from 0 to 2\*\*63 - 1"),
        (["a", "", "b"], ValueError, "not be empty text"),
        (["a", "a", "b"], ValueError, "distinct"),
    ],
)
def test_bad_ids_leave_the_index_as_it_was(bad: list[Any], kind: type[Exception], words: str) -> None:
    index = HammingIndex(12)
    for put in (index.add, index.upsert):
        with pytest.raises(kind, match=words):
            put(random_codes(3, 12), bad)
    assert (len(index), index.id_type) == (0, None)


def test_an_upsert_of_known_integers_leaves_the_next_id() -> None:
    index = HammingIndex(8)
    index.add(random_codes(3, 8))
    index.upsert(random_codes(2, 8), [1, 7])
    assert index.add(random_codes(1, 8)).tolist() == [8]


@KINDS
def test_copies_and_pickles(id_type: str) -> None:
    index = HammingIndex(12)
    index.add(random_codes(20, 12), some_ids(id_type, 20))
    for other in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert (other.ids.tolist(), other.id_type) == (index.ids.tolist(), id_type)
        other.remove(other.ids[:3])
        assert len(index) == 20


def test_an_id_array_from_a_search_is_taken_back() -> None:
    """Results go in again: as a filter, in a removal and in `upsert`."""
    ids = [f"page {number}" for number in range(10)]
    index = HammingIndex(12)
    index.add(random_codes(10, 12), ids)
    found = index.search(random_codes(1, 12), 4).indices[0]
    assert index.count(found) == 4
    index.upsert(random_codes(4, 12, seed=2), found)
    assert index.remove(found) == 4
    assert index.ids.tolist() == [item for item in ids if item not in set(found.tolist())]


def test_filters_while_others_write() -> None:
    """A search sees the codes before a change or after it, never a part of both."""
    index, stop, errors = HammingIndex(16), threading.Event(), []
    ids = as_objects(f"item {number}" for number in range(2000))
    index.add(np.zeros((2000, 2), np.uint8), ids)

    def write() -> None:
        value = 0
        while not stop.is_set():
            value ^= 255
            index.upsert(np.full((2000, 2), value, np.uint8), ids)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(50):
        found = index.search(np.zeros((1, 2), np.uint8), 1000, where=ids[500:1500])
        if len(set(found.distances[0].tolist())) != 1 or set(found.indices[0].tolist()) != set(ids[500:1500].tolist()):
            errors.append(found)
    stop.set()
    writer.join()
    assert errors == []


def test_texts_that_look_alike_are_different_ids() -> None:
    index = HammingIndex(8)
    index.add(random_codes(3, 8), ["1", "01", "1 "])
    assert index.ids.tolist() == ["01", "1", "1 "]
    with pytest.raises(KeyError, match="'001' is not"):
        index.remove("001")
    assert index.remove("1") == 1
