"""The arguments of every metric, checked: packed codes and labels of queries and database.

Labels are one class for each sample (numbers, strings or anything else that can be compared) or 0/1 indicators of shape
(n_samples, n_labels). A database item is relevant for a query if the classes are equal, or if they share any label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import as_words, pack_bits, packed_codes
from hashlearn.core.arrays import to_numpy
from hashlearn.core.labels import checked_labels

WordArray: TypeAlias = NDArray[np.uint64]

# The kernels store 2 · distance + 1 in 16 bits.
WIDEST_CODE = 4095


@dataclass(frozen=True, eq=False)
class Task:
    """Codes and labels as the kernels read them. Database words and label sets are stored word by word, not row by row.

    Without label sets the two ``sets`` have no words; without classes the two ``classes`` are empty.
    """

    queries: WordArray  # (n_queries, n_words)
    database: WordArray  # (n_words, n_database)
    query_classes: NDArray[np.int32]
    database_classes: NDArray[np.int32]
    query_sets: WordArray  # (n_queries, n_label_words)
    database_sets: WordArray  # (n_label_words, n_database)
    classes: int  # number of classes, 0 if labels are sets
    largest_distance: int  # 8 · bytes in a code

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.queries)

    @property
    def n_database(self) -> int:
        """Number of database items."""
        return int(self.database.shape[1])


def make_task(query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any) -> Task:
    """Check the four arrays and convert them for the kernels. Tensors are copied to the host."""
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
    classes = (np.zeros(0, np.int32), np.zeros(0, np.int32), 0)
    sets = (np.zeros((n, 0), np.uint64), np.zeros((0, len(database_codes)), np.uint64))
    if query_labels.ndim == 1:
        classes = _factorize(query_labels, database_labels)
    else:
        sets = _label_sets(query_labels, database_labels)
    words, planes = as_words(query_codes), np.ascontiguousarray(as_words(database_codes).T)
    return Task(words, planes, *classes[:2], *sets, classes[2], 8 * width)


def _codes(codes: Any, name: str) -> NDArray[np.uint8]:
    array = packed_codes(codes, name)
    if len(array) == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); at least one code is needed")
    if array.shape[1] > WIDEST_CODE:
        raise ValueError(f"{name} must have at most {WIDEST_CODE} bytes in a row, got shape {array.shape}")
    return array


def _factorize(queries: NDArray[Any], database: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Classes 0, 1, … in the sorted order of all labels, and how many there are."""
    if _family(queries) != _family(database):
        raise TypeError(
            "query_labels and database_labels must be of one kind, "
            f"got dtypes {queries.dtype} and {database.dtype}: no label could ever be equal"
        )
    values, inverse = np.unique(np.concatenate([queries, database]), return_inverse=True)
    classes: NDArray[np.int32] = inverse.astype(np.int32)
    return classes[: len(queries)], classes[len(queries) :], len(values)


def _family(array: NDArray[Any]) -> str:
    """Numbers, or the kind of dtype. Labels of different families are never equal, even if NumPy can cast them."""
    return "numbers" if array.dtype.kind in "biuf" else array.dtype.kind


def _label_sets(queries: NDArray[Any], database: NDArray[Any]) -> tuple[WordArray, WordArray]:
    """Indicators packed into words, those of the database word by word."""
    if queries.shape[1] != database.shape[1]:
        raise ValueError(
            "query_labels and database_labels must have the same columns, one for each label, "
            f"got shapes {queries.shape} and {database.shape}"
        )
    query_sets, database_sets = (as_words(pack_bits(labels)) for labels in (queries, database))
    return query_sets, np.ascontiguousarray(database_sets.T)
