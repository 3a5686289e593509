"""One pass over all pairs of queries and database counts the items, and the relevant items, at each distance.

No pair is stored and nothing is sorted. For one query every item becomes the number 2 · distance + relevant, and the
histogram of these numbers is all that most metrics need. Ties in database order need more: the same pass records, for
each relevant item, how many items at its distance came before it. With the counts of the smaller distances this gives
its rank. O(n_queries · n_database · n_words) time, O(n_database) memory for each thread.

Only the size of the database decides how queries are split into blocks. Results do not depend on the number of threads.

Labels are one class for each sample (numbers, strings or anything else that can be compared) or 0/1 indicators of shape
(n_samples, n_labels). A database item is relevant for a query if the classes are equal, or if they share any label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits import as_words, pack_bits, packed_codes
from hashlearn.bits.hamming import distances_to_all
from hashlearn.core.arrays import FloatArray, IntArray, to_numpy
from hashlearn.core.labels import checked_labels
from hashlearn.core.threads import map_threads

Result = TypeVar("Result")

PAIRS_PER_BLOCK = 4_000_000
MOST_QUERIES_PER_BLOCK = 1024
WIDEST_CODE = 4095  # bytes; the kernels store 2 · distance + 1 in 16 bits


class Task(NamedTuple):
    """Codes and labels as the kernels read them. Those of the database are stored word by word, not row by row."""

    queries: NDArray[np.uint64]  # (n_queries, n_words)
    database: NDArray[np.uint64]  # (n_words, n_database)
    query_labels: NDArray[Any]  # (n_queries, 1) classes 0, 1, … as int32, or (n_queries, n_label_words) sets as uint64
    database_labels: NDArray[Any]  # the same, transposed
    n_classes: int  # 0 if labels are sets
    largest_distance: int  # 8 · bytes in a code

    @property
    def n_database(self) -> int:
        """Number of database items."""
        return int(self.database.shape[1])


class Counts(NamedTuple):
    """Counts of a block of queries. Columns of ``retrieved`` and ``relevant`` are the distances 0, 1, …"""

    retrieved: IntArray  # items at each distance
    relevant: IntArray  # relevant items at each distance
    predicted: NDArray[np.int32]  # class by vote of the nearest items, if requested
    actual: NDArray[np.int32]  # class of the query
    # Filled if the database order was requested:
    precision_sum: FloatArray  # Σ of the precision at each relevant item among the first ``top_k``
    before_sum: FloatArray  # Σ of the precision one rank before each of these
    top_k_hits: IntArray  # relevant items among the first ``top_k``
    k_hits: IntArray  # relevant items among the first ``k``

    @property
    def n_relevant(self) -> IntArray:
        """Relevant items in the whole database, for each query."""
        return np.asarray(self.relevant.sum(axis=1))


def make_task(query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any) -> Task:
    """Check the four arguments of a metric and convert them for the kernels. Tensors are copied to the host."""
    query_codes = _codes(to_numpy(query_codes), "query_codes")
    database_codes = _codes(to_numpy(database_codes), "database_codes")
    n, width = query_codes.shape
    if width != database_codes.shape[1]:
        raise ValueError(
            "query_codes and database_codes must have rows of equal width, "
            f"got shapes {query_codes.shape} and {database_codes.shape}"
        )
    query_labels = checked_labels(query_labels, n, "query_labels", "query_codes")
    database_labels = checked_labels(database_labels, len(database_codes), "database_labels", "database_codes")
    if query_labels.ndim != database_labels.ndim:
        raise ValueError(
            "query_labels and database_labels must both be 1-D classes or both 2-D 0/1 indicators, "
            f"got shapes {query_labels.shape} and {database_labels.shape}"
        )
    labels, n_classes = (_classes if query_labels.ndim == 1 else _label_sets)(query_labels, database_labels)
    planes, labels_by_word = (np.ascontiguousarray(rows.T) for rows in (as_words(database_codes), labels[n:]))
    return Task(as_words(query_codes), planes, labels[:n], labels_by_word, n_classes, 8 * width)


def _codes(codes: Any, name: str) -> NDArray[np.uint8]:
    array = packed_codes(codes, name)
    if len(array) == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); at least one code is needed")
    if array.shape[1] > WIDEST_CODE:
        raise ValueError(f"{name} must have at most {WIDEST_CODE} bytes in a row, got shape {array.shape}")
    return array


def _classes(queries: NDArray[Any], database: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Classes 0, 1, … of queries and database in the sorted order of all labels, and how many there are."""
    # Numbers and text are never equal, even if NumPy can cast them.
    kinds = {"numbers" if labels.dtype.kind in "biuf" else labels.dtype.kind for labels in (queries, database)}
    if len(kinds) > 1:
        raise TypeError(
            "query_labels and database_labels must be of one kind, "
            f"got dtypes {queries.dtype} and {database.dtype}: no label could ever be equal"
        )
    values, classes = np.unique(np.concatenate([queries, database]), return_inverse=True)
    return classes.astype(np.int32)[:, None], len(values)


def _label_sets(queries: NDArray[Any], database: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Indicators of queries and database packed into words; no classes."""
    if queries.shape[1] != database.shape[1]:
        raise ValueError(
            "query_labels and database_labels must have the same columns, one for each label, "
            f"got shapes {queries.shape} and {database.shape}"
        )
    return np.concatenate([as_words(pack_bits(labels)) for labels in (queries, database)]), 0


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
        words, labels = task.queries[first : first + step], task.query_labels[first : first + step]
        retrieved, relevant, predicted, sums, hits = _count_block(
            words, task.database, labels, *task[3:], database_order, last, k, voters
        )
        return finish(Counts(retrieved, relevant, predicted, labels[:, 0], *sums.T, *hits.T))

    return list(map_threads(count, range(0, len(task.queries), step)))


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> FloatArray:
    """part / whole, 0 where the whole is 0."""
    quotient: FloatArray = np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)
    return quotient


@njit(cache=True, nogil=True)
def _count_block(  # type: ignore[no-untyped-def]
    words, planes, query_labels, labels, n_classes, largest_distance, database_order, top_k, k, voters
):
    n_queries, n = words.shape[0], planes.shape[1]
    retrieved = np.zeros((n_queries, largest_distance + 1), np.int64)
    relevant = np.zeros((n_queries, largest_distance + 1), np.int64)
    predicted = np.full(n_queries, -1, np.int32)
    sums = np.zeros((n_queries, 2))
    hits = np.zeros((n_queries, 2), np.int64)
    keys = np.empty(n, np.uint16)
    places = np.empty(n + 1 if database_order else 0, np.uint64)
    votes = np.zeros(n_classes, np.int64)
    classes = labels[0]
    for i in range(n_queries):
        distances_to_all(words[i], planes, keys)
        if n_classes > 0:
            _mark_equal_class(query_labels[i, 0], classes, keys)
        else:
            _mark_shared_labels(query_labels[i], labels, keys)
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
        shared = own[0] & sets[0, j]
        for w in range(1, sets.shape[0]):
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
