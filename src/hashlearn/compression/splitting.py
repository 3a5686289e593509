"""Rows and queries, checked and split: a database, queries that choose, and queries that test."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from hashlearn.compression.contenders import Rows
from hashlearn.compression.promise import fewest_values
from hashlearn.core.arrays import to_numpy
from hashlearn.core.checks import LARGEST_FEATURE, require_k, whole_number
from hashlearn.core.labels import checked_labels, require_unmasked
from hashlearn.metrics import float_neighbors

MOST_QUERIES = 2500
ROWS_PER_QUERY = 8  # without queries, at most one row in eight is kept out of the database
CHOOSING_SHARE = 5  # one query in five chooses, the others test
FEWEST_CHOOSING = 10


@dataclass(frozen=True, eq=False)
class Split:
    """Rows, and where they come from."""

    rows: Rows
    database_rows: NDArray[np.int64]  # the row of X that each database row is
    testing_rows: NDArray[np.int64]  # the row of the queries, or of X if there are none, that each testing query is
    n_rows: int
    data_digest: str
    queries_digest: str


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
    rng: np.random.Generator,
    seed: int | None,
) -> Split:
    """Check all rows and split them. Queries that equal a database row are left out, because every code finds those."""
    X = _checked(X, "X")
    labels = None if y is None else checked_labels(y, len(X))
    needed = _queries_needed(recall, confidence)
    order = rng.permutation(len(X))
    if queries is None:
        count = _held_out(len(X), n_queries, needed, recall, confidence)
        held_out, order = order[:count], order[count:]
        asked, asked_rows = X[held_out], held_out
    else:
        asked = _checked(queries, "queries")
        if asked.shape[1] != X.shape[1]:
            raise ValueError(f"queries and X must have as many columns, got shapes {asked.shape} and {X.shape}")
        asked_rows = rng.permutation(len(asked))[
            : None if n_queries is None else whole_number(n_queries, "n_queries", least=1)
        ]
        asked = asked[asked_rows]
    database_rows = np.sort(order[: whole_number(max_rows, "max_rows", least=2)])
    database = np.ascontiguousarray(X[database_rows])
    if (database == database[0]).all():
        raise ValueError("X must have distinct rows; all of its rows are equal, so none is nearer than another")
    k = require_k(k, len(database))
    usable = _usable(asked, database, metric, "queries" if queries is not None else "rows kept out as queries")
    asked, asked_rows = asked[usable], asked_rows[usable]
    if len(asked) < needed:
        raise ValueError(_too_few(len(asked), needed, recall, confidence))
    n_choosing = max(len(asked) // CHOOSING_SHARE, FEWEST_CHOOSING)
    choosing, testing = asked[:n_choosing], asked[n_choosing:]
    true = float_neighbors(asked, database, k, metric=metric)
    rows = Rows(
        database,
        None if labels is None else labels[database_rows],
        choosing,
        testing,
        true[:n_choosing],
        true[n_choosing:],
        metric,
        seed,
    )
    return Split(rows, database_rows, asked_rows[n_choosing:], len(X), digest(X), digest(asked))


def digest(rows: NDArray[Any]) -> str:
    """SHA-256 of the numbers, their type and their shape."""
    found = hashlib.sha256(f"{rows.dtype.str}{rows.shape}".encode())
    found.update(np.ascontiguousarray(rows).data)
    return found.hexdigest()


def _checked(X: Any, name: str) -> NDArray[Any]:
    require_unmasked(X, name)
    rows: NDArray[Any] = check_array(to_numpy(X), dtype=(np.float64, np.float32), input_name=name, ensure_min_samples=2)
    largest = max(float(rows.max()), -float(rows.min()))
    if largest > LARGEST_FEATURE:
        raise ValueError(f"{name} has an entry of size {largest:.3g}; scale it below {LARGEST_FEATURE:.0e} first")
    return rows


def _queries_needed(recall: float, confidence: float) -> int:
    """How many queries it takes at least, those that choose included."""
    testing = fewest_values(recall, confidence)
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


def _usable(asked: NDArray[Any], database: NDArray[Any], metric: str, what: str) -> NDArray[np.bool_]:
    """Which queries say something about codes; the others are named in a warning."""
    known = {row.tobytes() for row in database + 0.0}  # −0.0 becomes 0.0
    copies = np.array([row.tobytes() in known for row in (asked + 0.0).astype(database.dtype)])
    zero = ~asked.any(axis=1) & (metric == "cosine") & ~copies
    for left_out, why in ((copies, "equal a database row, and codes always find those"), (zero, "are zero: no cosine")):
        if left_out.any():
            warnings.warn(f"{left_out.sum()} of {len(asked)} {what} {why}; they are left out", stacklevel=4)
    return ~(copies | zero)
