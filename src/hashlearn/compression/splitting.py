"""Rows and queries, checked and split: a database, queries that choose, and queries that test."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from hashlearn.compression.promise import TABLE_SHARE, fewest_values, shared
from hashlearn.core.arrays import to_numpy
from hashlearn.core.checks import LARGEST_FEATURE, generator, require_k, whole_number
from hashlearn.core.labels import checked_labels, require_unmasked
from hashlearn.core.rows import as_rows, column_names, require_finite, require_numbers, require_same_columns
from hashlearn.metrics import float_neighbors
from hashlearn.search import VectorFile

MOST_QUERIES = 2500
ROWS_PER_QUERY = 8  # without queries, at most one row in eight is kept out of the database
CHOOSING_SHARE = 5  # one query in five chooses, the others test
FEWEST_CHOOSING = 10
READ_ROWS = 65_536

Ranks = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """The rows that codes are learned from, the queries that choose among them, and those that test the choice."""

    database: NDArray[Any]
    labels: NDArray[Any] | None
    choosing: NDArray[Any]
    testing: NDArray[Any]
    true_choosing: Ranks  # rows of the database: the k nearest of each query by floats
    true_testing: Ranks
    metric: str
    seed: int | None
    database_rows: NDArray[np.int64]  # the row of X that each database row is
    testing_rows: NDArray[np.int64]  # the row of the queries, or of X if there are none, that each testing query is
    n_rows: int
    names: NDArray[Any] | None = None  # of the columns of X

    @property
    def k(self) -> int:
        """How many neighbors count."""
        return int(self.true_testing.shape[1])


def split_rows(
    X: Any,
    y: Any,
    queries: Any,
    *,
    recall: float,
    confidence: float,
    k: Any,
    metric: str,
    n_queries: Any,
    max_rows: Any,
    seed: int | None,
) -> Split:
    """Check all rows and split them. Queries that equal a database row are left out, because every code finds those.

    X may be a file that `hashlearn.files.open_rows` opened; only the rows that are used are read from it.
    """
    needed, rng = _queries_needed(recall, confidence), generator(seed)
    X = as_rows(X)
    names = feature_names(X)
    X = X if isinstance(X, VectorFile) else _matrix(X)
    n_rows = X.n_rows if isinstance(X, VectorFile) else X.shape[0]
    most = whole_number(max_rows, "max_rows", least=2)
    held_out = 0 if queries is not None else _held_out(n_rows, n_queries, needed, recall, confidence)
    order = rng.permutation(n_rows)[: most + held_out]
    asked_rows, database_rows = order[:held_out], np.sort(order[held_out:])
    database = checked_rows(_taken(X, database_rows), "X", least=2)
    labels = None if y is None else checked_labels(y, n_rows)[database_rows]
    if (database == database[0]).all():
        raise ValueError("X must have distinct rows; all of its rows are equal, so none is nearer than another")
    k = require_k(k, len(database))
    if queries is None:
        asked = checked_rows(_taken(X, np.sort(asked_rows)), "X")[np.argsort(np.argsort(asked_rows))]
    else:
        queries = as_rows(queries, "queries")
        require_same_columns(feature_names(queries), names, "queries", "X")
        asked = checked_rows(queries, "queries")
        if asked.shape[1] != database.shape[1]:
            shapes = f"{asked.shape[1]} and {database.shape[1]}"
            raise ValueError(f"queries and X must have the same number of columns, got {shapes}")
        wanted = None if n_queries is None else whole_number(n_queries, "n_queries", least=1)
        asked_rows = rng.permutation(len(asked))[:wanted]
        asked = asked[asked_rows]
    usable = usable_queries(asked, database, metric, "queries" if queries is not None else "rows kept out as queries")
    asked, asked_rows = asked[usable], asked_rows[usable]
    if queries is not None:
        warn_of_repeats(asked)
    if len(asked) < needed:
        raise ValueError(_too_few(len(asked), needed, recall, confidence))
    n_choosing = max(len(asked) // CHOOSING_SHARE, FEWEST_CHOOSING)
    true = float_neighbors(asked, database, k, metric=metric)
    return Split(
        database=database,
        labels=labels,
        choosing=asked[:n_choosing],
        testing=asked[n_choosing:],
        true_choosing=true[:n_choosing],
        true_testing=true[n_choosing:],
        metric=metric,
        seed=seed,
        database_rows=database_rows,
        testing_rows=asked_rows[n_choosing:],
        n_rows=n_rows,
        names=names,
    )


def _matrix(X: Any) -> Any:
    """Rows in memory, of which some can be taken; their entries are not checked yet."""
    if issparse(X):
        raise TypeError("X must be dense rows, got a sparse matrix; X.toarray() makes it dense if memory allows")
    require_unmasked(X, "X")
    given = to_numpy(X)
    rows = given if hasattr(given, "iloc") else np.asarray(given)  # a data frame keeps its columns apart
    if not hasattr(rows, "iloc") and rows.dtype.kind in "OUS":
        require_numbers(given, "X")
    if rows.ndim != 2:
        raise ValueError(f"X must be rows of equal length, in 2 dimensions, got shape {rows.shape}")
    return rows


def _taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """These rows, which ascend."""
    if isinstance(X, VectorFile):
        return np.concatenate(list(X.pick(rows, READ_ROWS)))
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def digest(rows: NDArray[Any]) -> str:
    """SHA-256 of the numbers, their type and their shape."""
    found = hashlib.sha256(f"{rows.dtype.str}{rows.shape}".encode())
    found.update(np.ascontiguousarray(rows).data)
    return found.hexdigest()


def feature_names(X: Any) -> NDArray[Any] | None:
    """The names of the columns of a file or a frame; None if there are none. Call `as_rows` first."""
    if not isinstance(X, VectorFile):
        return column_names(X)
    names = getattr(X, "names", None)
    return None if names is None else np.array(names, object)


def checked_rows(X: Any, name: str, least: int = 1) -> NDArray[Any]:
    """Finite rows in single or double precision, at least ``least`` of them."""
    require_unmasked(X, name)
    given = to_numpy(as_rows(X, name))
    try:
        rows: NDArray[Any] = check_array(
            given, dtype=(np.float64, np.float32), input_name=name, ensure_min_samples=0, ensure_all_finite=False
        )
    except (ValueError, TypeError):  # a TypeError: dates
        require_numbers(given, name)
        raise
    if len(rows) < least:
        raise ValueError(f"{name} must have at least {least} row(s), got shape {rows.shape}")
    largest = max(float(rows.max()), -float(rows.min()))
    if not largest < np.inf:
        require_finite(rows, name)
    if largest > LARGEST_FEATURE:
        raise ValueError(f"{name} has an entry of size {largest:.3g}; scale it below {LARGEST_FEATURE:.0e} first")
    return rows


def _queries_needed(recall: float, confidence: float) -> int:
    """How many queries it takes at least, those that choose included."""
    testing = fewest_values(recall, shared(confidence, 1, 1.0 - TABLE_SHARE))
    return max(-(-testing * CHOOSING_SHARE // (CHOOSING_SHARE - 1)), testing + FEWEST_CHOOSING)


def _too_few(given: int, needed: int, recall: float, confidence: float) -> str:
    return (
        f"recall={recall:g} at confidence={confidence:g} takes at least {needed} queries, even if all neighbors are "
        f"found; there are {given}. Give more queries, or ask for less recall or confidence"
    )


def _held_out(n: int, n_queries: Any, needed: int, recall: float, confidence: float) -> int:
    """How many rows to keep out of the database."""
    most = n // ROWS_PER_QUERY
    if n_queries is not None:
        most = whole_number(n_queries, "n_queries", least=1, most=n - 2)
    count = min(most, MOST_QUERIES) if n_queries is None else most
    if count < needed:
        where = f"one row in {ROWS_PER_QUERY} of X is kept out as a query" if n_queries is None else "n_queries says so"
        raise ValueError(f"{_too_few(count, needed, recall, confidence)} ({where}; queries= takes your own)")
    return count


def warn_of_repeats(queries: NDArray[Any]) -> None:
    """The test of a promise counts every query as new knowledge."""
    distinct = len({row.tobytes() for row in queries + 0.0})  # −0.0 becomes 0.0
    if distinct < len(queries):
        warnings.warn(
            f"only {distinct} of {len(queries)} queries are distinct; the promise is valid if queries were drawn "
            "independently of each other, so leave out copies that were not drawn",
            stacklevel=4,
        )


def usable_queries(asked: NDArray[Any], database: NDArray[Any], metric: str, what: str) -> NDArray[np.bool_]:
    """Which queries say something about codes; the others are named in a warning."""
    known = {row.tobytes() for row in database + 0.0}  # −0.0 becomes 0.0
    copies = np.array([row.tobytes() in known for row in (asked + 0.0).astype(database.dtype)])
    zero = ~asked.any(axis=1) & (metric == "cosine") & ~copies
    for left_out, why in ((copies, "equal a database row, and codes always find those"), (zero, "are zero: no cosine")):
        if left_out.any():
            warnings.warn(
                f"{left_out.sum()} of {len(asked)} {what} {why}; they are left out, and recall is that of the others",
                stacklevel=4,
            )
    return ~(copies | zero)
