"""`HammingIndex` against brute force: every backend, any width, ties, radii and changes."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from hashlearn.search import BACKENDS, FaissHNSW, FaissIVF, FaissMultiHash, HammingIndex, code_table, faiss_backends
from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import NOWHERE
from tests.search.codes import APPROXIMATE, EXACT, available, engine, filled, nearest, random_codes, within


@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("n_bits", [1, 12, 33, 64, 100])
def test_the_nearest_with_ties_by_id(backend: str, n_bits: int) -> None:
    index, codes, ids = filled(available(backend), n_bits)
    queries = random_codes(20, n_bits, seed=1)
    for k in (1, 7, 299, 300):
        found = index.search(queries, k)
        expected_ids, expected_distances = nearest(queries, codes, ids, k)
        np.testing.assert_array_equal(found.indices, expected_ids)
        np.testing.assert_array_equal(found.distances, expected_distances)
        assert (found.indices.dtype, found.distances.dtype) == (np.int64, np.int32)


@pytest.mark.parametrize("backend", EXACT)
def test_many_blocks_and_far_items_first(backend: str) -> None:
    """Distances fall along the database, so that what is kept is forgotten again and again."""
    n = 20_000
    bits = np.arange(100) < np.linspace(100, 0, n)[:, None]
    codes = np.packbits(bits, axis=1)
    index = HammingIndex(100, available(backend))
    index.add(codes)
    query = np.zeros((1, 13), np.uint8)
    for k in (1, 500, 5000):
        expected = nearest(query, codes, np.arange(n), k)
        found = index.search(query, k)
        np.testing.assert_array_equal(found.indices, expected[0])
        np.testing.assert_array_equal(found.distances, expected[1])


class Careless:
    """FAISS's flat index, but of equally near items it takes the last ones first."""

    def __init__(self, codes: np.ndarray) -> None:
        self.codes, self.ntotal, self.d = codes, len(codes), 8 * codes.shape[1]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        rows, distances = nearest(queries, self.codes[::-1], np.arange(self.ntotal), k)
        return distances, self.ntotal - 1 - rows

    def range_search(self, queries: np.ndarray, radius: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = [within(query, self.codes[::-1], np.arange(self.ntotal), radius - 1) for query in queries]
        limits = np.cumsum([0, *(len(rows) for rows, _ in found)])
        rows, distances = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return limits, distances.astype(np.float32), self.ntotal - 1 - rows


@pytest.mark.parametrize("batch", [1, 10**9])
def test_ties_by_id_from_an_engine_that_breaks_them_otherwise(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_backends, "HITS_PER_BATCH", batch)
    codes, queries = random_codes(300, 12), random_codes(20, 12, seed=1)
    engine_with_ties = faiss_backends.FlatEngine(Careless(codes))
    for k in (1, 7, 299, 300):
        rows, distances = engine_with_ties.nearest(queries, k)
        expected = nearest(queries, codes, np.arange(300), k)
        np.testing.assert_array_equal(rows, expected[0])
        np.testing.assert_array_equal(distances, expected[1])


@pytest.mark.parametrize("backend", EXACT)
def test_all_codes_equal(backend: str) -> None:
    index = HammingIndex(33, available(backend))
    index.add(np.repeat(random_codes(1, 33), 9000, axis=0), np.arange(9000)[::-1])
    found = index.search(random_codes(3, 33, seed=1), 4)
    np.testing.assert_array_equal(found.indices, np.tile(np.arange(4), (3, 1)))


@pytest.mark.parametrize("backend", [*EXACT, *APPROXIMATE])
@pytest.mark.parametrize("n_bits", [12, 33, 100])
def test_radius_is_inclusive_and_exact_with_every_backend(backend: str, n_bits: int) -> None:
    index, codes, ids = filled(available(backend), n_bits)
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


@pytest.mark.parametrize("backend", EXACT)
def test_threads_change_nothing(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index, codes, ids = filled(available(backend), 12, n=5000)
    queries = random_codes(150, 12, seed=1)
    expected = nearest(queries, codes, ids, 10)
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        if backend != "numpy":
            faiss = engine("faiss")
            before = faiss.omp_get_max_threads()
            faiss.omp_set_num_threads(int(threads))
        found, near = index.search(queries, 10), index.search_radius(queries, 1)
        if backend != "numpy":
            faiss.omp_set_num_threads(before)
        np.testing.assert_array_equal(found.indices, expected[0])
        np.testing.assert_array_equal(near[7].indices, within(queries[7], codes, ids, 1)[0])


@pytest.mark.parametrize("backend", [*EXACT, *APPROXIMATE])
def test_batches_strides_and_order_of_the_queries_change_nothing(backend: str) -> None:
    index, _, _ = filled(available(backend), 33)
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


@pytest.mark.parametrize("backend", EXACT)
def test_order_of_adding_changes_nothing(backend: str) -> None:
    index, codes, ids = filled(available(backend), 33)
    other = HammingIndex(33, backend)
    for part in np.array_split(np.random.default_rng(3).permutation(len(ids)), 7):
        other.add(codes[part], ids[part])
        other.search(codes[:2], 1)
    found, expected = other.search(codes, 10), index.search(codes, 10)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(other.ids, np.sort(ids))
    np.testing.assert_array_equal(other.codes, codes[np.argsort(ids)])


@pytest.mark.parametrize("backend", [*EXACT, *APPROXIMATE])
def test_add_and_remove(backend: str) -> None:
    codes = random_codes(400, 16)
    index = HammingIndex(16, available(backend))
    np.testing.assert_array_equal(index.add(codes[:100]), np.arange(100))
    index.search(codes[:1], 1)
    np.testing.assert_array_equal(index.add(codes[100:]), np.arange(100, 400))
    assert len(index) == 400
    assert set(index.search_radius(codes[250:251], 0)[0].indices) == set(np.flatnonzero((codes == codes[250]).all(1)))
    index.remove(np.arange(0, 400, 2))
    assert len(index) == 200
    found = index.search(codes[:50], 20).indices
    assert (found[found != NOTHING] % 2 == 1).all()
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


@pytest.mark.parametrize("backend", [*EXACT, *APPROXIMATE])
def test_codes_that_take_the_place_of_removed_ones_are_found(backend: str) -> None:
    codes = random_codes(200, 64)
    index = HammingIndex(64, available(backend))
    index.add(codes[:100])
    index.search(codes[:1], 1)
    index.remove(np.arange(10))
    index.add(codes[100:110], np.arange(10))  # as many as before, and other codes
    found = index.search_radius(codes[100:110], 0)
    assert [place in items.indices for place, items in enumerate(found)] == [True] * 10


@pytest.mark.parametrize("backend", APPROXIMATE)
def test_approximate_backends_find_most_and_report_true_distances(backend: str) -> None:
    index, codes, ids = filled(available(backend), 64, n=3000)
    queries = codes[:100]
    found = index.search(queries, 10)
    expected_distances = nearest(queries, codes, ids, 10)[1]
    there = found.indices != NOTHING
    assert (found.distances[~there] == NOWHERE).all()
    order = np.argsort(ids)
    rows = order[np.searchsorted(ids[order], np.where(there, found.indices, ids[0]))]
    true = np.array([[np.bitwise_count(codes[i] ^ q).sum() for i in row] for row, q in zip(rows, queries, strict=True)])
    np.testing.assert_array_equal(found.distances[there], true[there])
    assert (found.distances <= expected_distances[:, -1:]).mean() > 0.3
    pairs = list(zip(found.distances.ravel().tolist(), found.indices.ravel().tolist(), strict=True))
    assert all(pairs[i : i + 10] == sorted(pairs[i : i + 10]) for i in range(0, len(pairs), 10))


@pytest.mark.parametrize("backend", APPROXIMATE)
def test_approximate_backends_are_built_the_same_with_any_number_of_threads(backend: str) -> None:
    available(backend)
    faiss = engine("faiss")
    before, answers = faiss.omp_get_max_threads(), []
    for threads in (1, 3):
        faiss.omp_set_num_threads(threads)
        index, codes, _ = filled(backend, 64, n=2000)
        answers.append(index.search(codes[:50], 10).indices)
        assert faiss.omp_get_max_threads() == threads
    faiss.omp_set_num_threads(before)
    np.testing.assert_array_equal(answers[0], answers[1])


@pytest.mark.parametrize(
    "backend", [FaissIVF(n_lists=8, n_probes=8), FaissHNSW(n_links=8, search_width=400), FaissMultiHash(n_hashes=2)]
)
def test_backend_objects(backend: Any) -> None:
    engine("faiss")
    index, codes, ids = filled(backend, 20)
    found = index.search(codes, 3)
    expected = nearest(codes, codes, ids, 3)[1]
    assert (found.distances == expected).mean() > 0.9
    assert repr(backend) in repr(index)


@pytest.mark.parametrize("backend", EXACT)
def test_copies_and_pickles(backend: str) -> None:
    index, codes, _ = filled(available(backend), 12)
    expected = index.search(codes, 5).indices
    for other in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        np.testing.assert_array_equal(other.search(codes, 5).indices, expected)
        other.add(codes)
        assert len(index) == 300


def test_every_backend_is_listed_and_auto_is_exact() -> None:
    assert [*BACKENDS] == [*EXACT, *APPROXIMATE]
    assert {name for name, backend in BACKENDS.items() if backend.exact} == set(EXACT)
    assert HammingIndex(8).backend.name == "numpy"


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
                index._table.remove(np.arange(kept, 5))

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

    monkeypatch.setattr(code_table.np, "concatenate", slowly)
    assert len(getattr(index, part)) in (20, 30)
    adding.join()
    np.testing.assert_array_equal(index.ids, np.arange(30))
    np.testing.assert_array_equal(index.codes, codes)
