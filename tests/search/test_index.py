"""`HammingIndex` against brute force: any width, ties, radii and changes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from tests.search.codes import filled, nearest, random_codes, within


@pytest.mark.parametrize("n_bits", [1, 12, 33, 64, 100])
def test_the_nearest_with_ties_by_id(n_bits: int) -> None:
    index, codes, ids = filled(n_bits)
    queries = random_codes(20, n_bits, seed=1)
    for k in (1, 7, 299, 300):
        found = index.search(queries, k)
        expected_ids, expected_distances = nearest(queries, codes, ids, k)
        np.testing.assert_array_equal(found.indices, expected_ids)
        np.testing.assert_array_equal(found.distances, expected_distances)
        assert (found.indices.dtype, found.distances.dtype) == (np.int64, np.int32)


def test_many_blocks_and_far_items_first() -> None:
    """Distances fall along the database, so that what is kept is forgotten again and again."""
    n = 20_000
    bits = np.arange(100) < np.linspace(100, 0, n)[:, None]
    codes = np.packbits(bits, axis=1)
    index = HammingIndex(100)
    index.add(codes)
    query = np.zeros((1, 13), np.uint8)
    for k in (1, 500, 5000):
        expected = nearest(query, codes, np.arange(n), k)
        found = index.search(query, k)
        np.testing.assert_array_equal(found.indices, expected[0])
        np.testing.assert_array_equal(found.distances, expected[1])


def test_all_codes_equal() -> None:
    index = HammingIndex(33)
    index.add(np.repeat(random_codes(1, 33), 9000, axis=0), np.arange(9000)[::-1])
    found = index.search(random_codes(3, 33, seed=1), 4)
    np.testing.assert_array_equal(found.indices, np.tile(np.arange(4), (3, 1)))


@pytest.mark.parametrize("n_bits", [12, 33, 100])
def test_radius_is_inclusive(n_bits: int) -> None:
    index, codes, ids = filled(n_bits)
    queries = np.concatenate([codes[:5], random_codes(10, n_bits, seed=1)])
    for radius in (0, 1, 2, 9, n_bits, n_bits + 3):
        found = index.search_radius(queries, radius)
        assert len(found) == len(queries)
        assert found.limits[-1] == len(found.indices)
        for query, part in zip(queries, found, strict=True):
            expected_ids, expected_distances = within(query, codes, ids, radius)
            np.testing.assert_array_equal(part.indices, expected_ids)
            np.testing.assert_array_equal(part.distances, expected_distances)
    assert (found.limits.dtype, found.indices.dtype, found.distances.dtype) == (np.int64, np.int64, np.int32)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index, codes, ids = filled(12, n=5000)
    queries = random_codes(150, 12, seed=1)
    expected = nearest(queries, codes, ids, 10)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        found, near = index.search(queries, 10), index.search_radius(queries, 1)
        np.testing.assert_array_equal(found.indices, expected[0])
        np.testing.assert_array_equal(near[7].indices, within(queries[7], codes, ids, 1)[0])


def test_batches_strides_and_order_of_the_queries_change_nothing() -> None:
    index, _, _ = filled(33)
    queries = random_codes(64, 33, seed=1)
    together = index.search(queries, 5)
    one_by_one = [index.search(query[None], 5).indices[0] for query in queries]
    np.testing.assert_array_equal(together.indices, one_by_one)
    np.testing.assert_array_equal(index.search(queries[::-3], 5).indices, together.indices[::-3])
    np.testing.assert_array_equal(index.search(np.asfortranarray(queries), 5).distances, together.distances)
    read_only = queries.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(index.search(read_only, 5).indices, together.indices)
    assert index.search(queries[:0], 5).indices.shape == (0, 5)
    assert len(index.search_radius(queries[:0], 5)) == 0


def test_order_of_adding_changes_nothing() -> None:
    index, codes, ids = filled(33)
    other = HammingIndex(33)
    for part in np.array_split(np.random.default_rng(3).permutation(len(ids)), 7):
        other.add(codes[part], ids[part])
        other.search(codes[:2], 1)
    found, expected = other.search(codes, 10), index.search(codes, 10)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(other.ids, np.sort(ids))
    np.testing.assert_array_equal(other.codes, codes[np.argsort(ids)])


def test_add_and_remove() -> None:
    codes = random_codes(400, 16)
    index = HammingIndex(16)
    np.testing.assert_array_equal(index.add(codes[:100]), np.arange(100))
    index.search(codes[:1], 1)
    np.testing.assert_array_equal(index.add(codes[100:]), np.arange(100, 400))
    assert len(index) == 400
    assert set(index.search_radius(codes[250:251], 0)[0].indices) == set(np.flatnonzero((codes == codes[250]).all(1)))
    index.remove(np.arange(0, 400, 2))
    assert len(index) == 200
    found = index.search(codes[:50], 20).indices
    assert (found % 2 == 1).all()
    index.remove([399])
    assert index.add(codes[:1])[0] == 400  # an id is not used twice
    index.remove(index.ids)
    assert len(index) == 0
    with pytest.raises(ValueError, match="nothing to search"):
        index.search(codes, 1)


def test_free_ids_follow_the_largest_that_was_ever_used() -> None:
    codes, index = random_codes(1, 8), HammingIndex(8)
    index.add(codes, [100])
    index.add(codes, [5])
    assert index.add(codes).tolist() == [101]
    index.remove([101])
    assert index.add(codes).tolist() == [102]


@pytest.mark.parametrize("again", [3, 7, 9])
def test_an_id_that_is_there_is_refused_and_nothing_is_added(again: int) -> None:
    codes, index = random_codes(3, 8), HammingIndex(8)
    index.add(codes, [7, 3, 9])
    with pytest.raises(ValueError, match=f"ids must be new, but {again} is there already"):
        index.add(codes[:2], [12, again])
    np.testing.assert_array_equal(index.ids, [3, 7, 9])


def test_codes_that_take_the_place_of_removed_ones_are_found() -> None:
    codes = random_codes(200, 64)
    index = HammingIndex(64)
    index.add(codes[:100])
    index.search(codes[:1], 1)
    index.remove(np.arange(10))
    index.add(codes[100:110], np.arange(10))  # as many as before, and other codes
    found = index.search_radius(codes[100:110], 0)
    assert [place in items.indices for place, items in enumerate(found)] == [True] * 10


def test_what_the_index_returns_is_a_copy() -> None:
    codes, index = random_codes(5, 8), HammingIndex(8)
    index.add(codes)
    index.ids[:] = 0
    index.codes[:] = 255
    np.testing.assert_array_equal(index.ids, np.arange(5))
    np.testing.assert_array_equal(index.codes, codes)


def test_the_caller_s_arrays_are_copied() -> None:
    codes, ids = random_codes(5, 8), np.arange(5)
    index = HammingIndex(8)
    index.add(codes, ids)
    before = index.codes
    codes[:] ^= 255
    ids += 10
    np.testing.assert_array_equal(index.codes, before)
    np.testing.assert_array_equal(index.ids, np.arange(5))


@pytest.mark.parametrize("kind", ["codes", "codes and where", "margins", "radius"])
def test_codes_that_are_removed_just_before_a_search_are_not_found(kind: str) -> None:
    codes, index = random_codes(5, 16), HammingIndex(16)
    index.add(codes)

    class Late:
        """A lock that another thread had first, to remove codes."""

        def __enter__(self) -> None:
            kept = 0 if kind == "radius" else 2
            if len(index) == 5:
                index._parts = [index._table().at(np.arange(kept))]

        def __exit__(self, *_: object) -> None: ...

    index._lock = Late()  # type: ignore[assignment]
    search = {
        "codes": lambda: index.search(codes, 5),
        "codes and where": lambda: index.search(codes, 5, where=[0]),
        "margins": lambda: index.search(k=5, margins=np.ones((1, 16))),
        "radius": lambda: index.search_radius(codes, 3),
    }
    with pytest.raises(ValueError, match=r"2 item|nothing to search"):
        search[kind]()


@pytest.mark.parametrize("part", ["ids", "codes"])
def test_codes_that_are_added_while_others_are_read_stay(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, index = random_codes(30, 16), HammingIndex(16)
    index.add(codes[:10])
    index.add(codes[10:20])
    adding = threading.Thread(target=index.add, args=(codes[20:],))
    join = np.concatenate

    def slowly(parts: Any) -> Any:
        monkeypatch.undo()
        joined = join(parts)
        adding.start()
        adding.join(0.2)  # it waits until all is read
        return joined

    monkeypatch.setattr(np, "concatenate", slowly)
    assert len(getattr(index, part)) in (20, 30)
    adding.join()
    np.testing.assert_array_equal(index.ids, np.arange(30))
    np.testing.assert_array_equal(index.codes, codes)
