"""Several writers at once: threads that share a store, two stores over one table, processes, and errors half-way."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search.about import About
from hashlearn.search.stores import STORES, UsearchStore
from hashlearn.search.stores.file_store import FileStore
from tests.search.codes import engine, random_codes
from tests.search.conftest import Opener

# Two stores of these have separate memory and conflict when they save.
IN_MEMORY = [name for name, store in STORES.items() if issubclass(store, FileStore)]
FILES = pytest.mark.parametrize("open_store", IN_MEMORY, indirect=True)
TABLES = pytest.mark.parametrize("open_store", [name for name in STORES if name not in IN_MEMORY], indirect=True)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls return, or the errors they raise, each in a thread of its own, begun at the same moment."""
    barrier, results = threading.Barrier(len(calls)), [None] * len(calls)

    def work(number: int) -> None:
        barrier.wait()
        try:
            results[number] = calls[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_threads_share_a_store(open_store: Opener) -> None:
    codes = random_codes(50, 32)

    def work(store: Any, number: int) -> None:
        for first in range(0, 200, 50):
            store.upsert(codes, np.arange(50) + first + 1000 * number)
            assert store.search(codes[:2], 3).distances[:, 0].tolist() == [0, 0]
            assert len(store) >= 50
            assert store.remove([first + 1000 * number]) == 1

    with open_store(32) as store:
        assert at_once(*(lambda i=i: work(store, i) for i in range(4))) == [None] * 4
    with open_store(32) as store:
        assert len(store) == 4 * (200 - 4)


@TABLES
def test_two_stores_write_the_same_ids(open_store: Opener) -> None:
    def work(store: Any, code: int) -> None:
        for _ in range(4):
            store.upsert(np.full((200, 4), code, np.uint8), np.arange(200))

    with open_store(32) as one, open_store(32) as two:
        assert at_once(lambda: work(one, 1), lambda: work(two, 255)) == [None, None]
        for store in (one, two):
            assert len(store) == 200
            found = store.search(np.full((1, 4), 1, np.uint8), 200)
            assert np.unique(found.indices).size == 200
            assert len(np.unique(found.distances)) == 1  # all rows of one writer, none of the other
        assert one.remove(np.arange(50)) == 50
        assert len(two) == 150  # a store sees what another one has written


@TABLES
def test_eight_threads_make_one_table(open_store: Opener) -> None:
    stores = at_once(*(lambda: open_store(32) for _ in range(8)))
    assert [error for error in stores if isinstance(error, Exception)] == []
    for store in stores:
        store.close()


@FILES
def test_a_file_that_another_store_has_written_is_not_overwritten(open_store: Opener) -> None:
    codes = random_codes(5, 32)
    one, two, reader = (open_store(32) for _ in range(3))
    one.upsert(codes, np.arange(5))
    two.upsert(codes, np.arange(5) + 10)
    one.save()
    one.upsert(codes, np.arange(5) + 5)
    one.close()
    with pytest.raises(ValueError, match=r"store' was written by another store after this one read it; nothing is"):
        two.close()
    later = open_store(32)
    one.remove([0])
    one.save()
    assert len(later) == 10
    later.close()  # nothing was changed, so nothing is written
    with open_store(32) as again:
        assert len(again) == 9
    with pytest.raises(ValueError, match="written by another"):
        reader.save()


@FILES
def test_a_block_that_fails_does_not_save(open_store: Opener) -> None:
    codes = random_codes(5, 32)
    with open_store(32) as store:
        store.upsert(codes, np.arange(5))
    store = open_store(32)
    store.remove(np.arange(5))
    with pytest.raises(TypeError, match="integers"), store:
        store.remove(["six"])
    with open_store(32) as store:
        assert len(store) == 5


@FILES
def test_without_a_path_nothing_is_written(open_store: Opener, tmp_path: Path) -> None:
    with type(open_store(32)).open(None, About(32)) as store:
        store.upsert(random_codes(5, 32), np.arange(5))
    assert list(tmp_path.iterdir()) == []


def test_a_change_of_a_usearch_graph_that_fails_half_way_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine("usearch.index")
    path, codes = tmp_path / "a.usearch", random_codes(9, 32)
    with UsearchStore.open(path, About(32)) as store:
        store.upsert(codes[:5], np.arange(5))
    store = UsearchStore.open(path, About(32))
    store.upsert(codes, np.arange(9))
    updated = UsearchStore._updated

    def fail(store: Any, index: Any, changes: Any) -> None:
        index.remove(changes[0])
        raise MemoryError

    monkeypatch.setattr(UsearchStore, "_updated", fail)
    with pytest.raises(MemoryError):
        store.save()
    monkeypatch.setattr(UsearchStore, "_updated", updated)
    with UsearchStore.open(path, About(32)) as other:
        assert len(other) == 5
    store.close()
    with UsearchStore.open(path) as store:
        assert len(store) == 9
        assert store.search(codes, 1, exact=False).distances.tolist() == [[0]] * 9


@pytest.mark.parametrize("exact", [True, False])
def test_no_memory_is_taken_for_a_k_that_is_too_large(open_store: Opener, exact: bool) -> None:
    codes = random_codes(3, 32)
    with open_store(32) as store:
        store.upsert(codes, np.arange(3))
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="k must be"):
                store.search(codes, 10_000_000, exact=exact)
            assert tracemalloc.get_traced_memory()[1] < 20_000_000
        finally:
            tracemalloc.stop()
