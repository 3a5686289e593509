"""One pass over all pairs of queries and database counts the items, and the relevant items, at each distance.

No pair is stored and nothing is sorted. For one query every item becomes the number 2 · distance + relevant, and the
histogram of these numbers is all that most metrics need. Ties in database order need more: the same pass records, for
each relevant item, how many items at its distance came before it. With the counts of the smaller distances this gives
its rank. O(n_queries · n_database · n_words) time, O(n_database) memory for each thread.

Only the size of the database decides how queries are split into blocks. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits.hamming import distances_to_all
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_threads
from hashlearn.metrics.inputs import Task

CountArray: TypeAlias = NDArray[np.int64]
Result = TypeVar("Result")

PAIRS_PER_BLOCK = 4_000_000
MOST_QUERIES_PER_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of a block of queries. Columns of ``retrieved`` and ``relevant`` are the distances 0, 1, …"""

    retrieved: CountArray  # items at each distance
    relevant: CountArray  # relevant items at each distance
    predicted: NDArray[np.int32]  # class by vote of the nearest items, if requested
    actual: NDArray[np.int32]  # class of the query
    # Filled if the database order was requested:
    precision_sum: FloatArray  # Σ of the precision at each relevant item among the first ``top_k``
    before_sum: FloatArray  # Σ of the precision one rank before each of these
    top_k_hits: CountArray  # relevant items among the first ``top_k``
    k_hits: CountArray  # relevant items among the first ``k``

    @property
    def n_relevant(self) -> CountArray:
        """Relevant items in the whole database, for each query."""
        total: CountArray = self.relevant.sum(axis=1)
        return total


def count_pairs(
    task: Task,
    finish: Callable[[Counts], Result],
    *,
    database_order: bool = False,
    top_k: int | None = None,
    k: int | None = None,
    voters: int = 0,
) -> list[Result]:
    """``finish`` of the counts of every block of queries, in order, on all cores.

    ``database_order`` breaks ties of distance by the database order. It fills ``precision_sum`` and ``before_sum`` up
    to rank ``top_k``, and the hits up to ranks ``top_k`` and ``k`` (None: all ranks). ``voters`` > 0 fills
    ``predicted``.
    """
    n = task.n_database
    step = min(max(1, PAIRS_PER_BLOCK // n), MOST_QUERIES_PER_BLOCK)
    last, k = n if top_k is None else top_k, n if k is None else k

    def count(first: int) -> Result:
        block = slice(first, first + step)
        queries = (task.queries[block], task.query_classes[block], task.query_sets[block])
        database = (task.database, task.database_classes, task.database_sets)
        retrieved, relevant, predicted, sums, hits = _count_block(
            queries, database, task.largest_distance, database_order, last, k, voters, task.classes
        )
        return finish(Counts(retrieved, relevant, predicted, queries[1], *sums.T, *hits.T))

    return list(map_threads(count, range(0, task.n_queries, step)))


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    """part / whole, 0 where the whole is 0."""
    quotient: FloatArray = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return quotient


@njit(cache=True, nogil=True)
def _count_block(  # type: ignore[no-untyped-def]
    queries, database, largest_distance, database_order, top_k, k, voters, n_classes
):
    """``queries`` and ``database`` are tuples of code words, classes and label sets."""
    (words, query_classes, query_sets), (planes, classes, sets) = queries, database
    n_queries, n = words.shape[0], planes.shape[1]
    retrieved = np.zeros((n_queries, largest_distance + 1), np.int64)
    relevant = np.zeros((n_queries, largest_distance + 1), np.int64)
    predicted = np.full(n_queries, -1, np.int32)
    sums = np.zeros((n_queries, 2))
    hits = np.zeros((n_queries, 2), np.int64)
    keys = np.empty(n, np.uint16)
    places = np.empty(n + 1 if database_order else 0, np.uint64)
    votes = np.zeros(n_classes, np.int64)
    for i in range(n_queries):
        distances_to_all(words[i], planes, keys)
        if sets.shape[0] > 0:
            _mark_shared_labels(query_sets[i], sets, keys)
        else:
            _mark_equal_class(query_classes[i], classes, keys)
        if database_order:
            m = _count_in_order(keys, retrieved[i], places)
            _sums_in_order(places[:m], retrieved[i], relevant[i], top_k, k, sums[i], hits[i])
        else:
            _count(keys, retrieved[i], relevant[i])
        if voters > 0:
            predicted[i] = _vote(keys, retrieved[i], classes, voters, votes)
    return retrieved, relevant, predicted, sums, hits


@njit(cache=True, nogil=True)
def _mark_equal_class(own, classes, keys):  # type: ignore[no-untyped-def]
    for j in range(keys.shape[0]):
        keys[j] = 2 * keys[j] + (classes[j] == own)


@njit(cache=True, nogil=True)
def _mark_shared_labels(own, sets, keys):  # type: ignore[no-untyped-def]
    for j in range(keys.shape[0]):
        shared = np.uint64(0)
        for w in range(sets.shape[0]):
            shared |= own[w] & sets[w, j]
        keys[j] = 2 * keys[j] + (shared != 0)


@njit(cache=True, nogil=True)
def _count(keys, retrieved, relevant):  # type: ignore[no-untyped-def]
    """Use four histograms in turn, so that an increment rarely waits for the previous one to the same bin."""
    n, n_distances = keys.shape[0], retrieved.shape[0]
    histogram = np.zeros((4, 2 * n_distances), np.uint32)
    whole = n - n % 4
    for j in range(0, whole, 4):
        histogram[0, keys[j]] += 1
        histogram[1, keys[j + 1]] += 1
        histogram[2, keys[j + 2]] += 1
        histogram[3, keys[j + 3]] += 1
    for j in range(whole, n):
        histogram[0, keys[j]] += 1
    for d in range(n_distances):
        for part in range(4):
            relevant[d] += histogram[part, 2 * d + 1]
            retrieved[d] += histogram[part, 2 * d] + histogram[part, 2 * d + 1]


@njit(cache=True, nogil=True)
def _count_in_order(keys, retrieved, places):  # type: ignore[no-untyped-def]
    """Count items at each distance; for each relevant item, in database order, store its distance (from bit 40 up) and
    its place 1, 2, … among the items at that distance. Returns how many. Storing without a branch makes it fast."""
    n_distances = retrieved.shape[0]
    seen = np.empty(n_distances, np.uint64)
    for d in range(n_distances):
        seen[d] = np.uint64(d) << np.uint64(40)
    m = 0
    for j in range(keys.shape[0]):
        key = keys[j]
        place = seen[key >> 1] + np.uint64(1)
        seen[key >> 1] = place
        places[m] = place
        m += key & 1
    for d in range(n_distances):
        retrieved[d] = seen[d] & np.uint64((1 << 40) - 1)
    return m


@njit(cache=True, nogil=True)
def _sums_in_order(places, retrieved, relevant, top_k, k, sums, hits):  # type: ignore[no-untyped-def]
    n_distances = retrieved.shape[0]
    for place in places:
        relevant[place >> np.uint64(40)] += 1
    items = np.zeros(n_distances, np.int64)
    n_hits = np.zeros(n_distances, np.int64)
    for d in range(1, n_distances):
        items[d] = items[d - 1] + retrieved[d - 1]
        n_hits[d] = n_hits[d - 1] + relevant[d - 1]
    at_sum, before_sum, top_k_hits, k_hits = 0.0, 0.0, 0, 0
    for place in places:
        d = place >> np.uint64(40)
        rank = items[d] + np.int64(place & np.uint64((1 << 40) - 1))
        n_hits[d] += 1
        k_hits += rank <= k
        if rank <= top_k:
            top_k_hits += 1
            at_sum += n_hits[d] / rank
            before_sum += (n_hits[d] - 1) / (rank - 1) if rank > 1 else 1.0
    sums[0], sums[1], hits[0], hits[1] = at_sum, before_sum, top_k_hits, k_hits


@njit(cache=True, nogil=True)
def _vote(keys, retrieved, classes, k, votes):  # type: ignore[no-untyped-def]
    """Most frequent class of the k nearest. Equal votes go to the smaller sum of distances, then to the lower class."""
    last, inside = 0, 0
    while inside + retrieved[last] < k:
        inside += retrieved[last]
        last += 1
    places_at_last = k - inside
    full_vote = k * retrieved.shape[0]  # more than the distances of k items together
    votes[:] = 0
    for j in range(keys.shape[0]):
        d = np.int64(keys[j] >> 1)
        if d < last or (d == last and places_at_last > 0):
            places_at_last -= d == last
            votes[classes[j]] += full_vote - d
    return votes.argmax()
