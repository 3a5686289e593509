"""What a protocol returns, and the two protocols that do not draw class by class: "own" and "all rows".

"own" takes a data set's published split as it is: rows marked "train" are learned from and searched, rows marked "test"
ask. "all rows" needs no labels. Both are O(n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.datasets import DataSet

IndexArray = NDArray[np.intp]
ALL = "all"  # training samples of a class


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the data set, and a description of the protocol as applied."""

    train: IndexArray
    database: IndexArray
    queries: IndexArray
    description: dict[str, Any]


@dataclass(frozen=True)
class OwnSplit:
    """The data set's own split: nothing is drawn unless an option asks for it.

    Rows marked "train" are learned from and searched, rows marked "database" are only searched, rows marked "test"
    are the queries. Rows with another mark, such as "val", take no part. If no row is marked "train", all rows that are
    not queries are learned from and searched.

    Parameters
    ----------
    train : training samples of each class, drawn at random; "all" or None: every training row
    most_queries : a random choice of this many queries is asked if there are more
    """

    train: int | str | None = None
    most_queries: int | None = None

    name: ClassVar[str] = "own"

    def draw(self, data: DataSet, seed: int) -> Split:
        """The split of this seed. The same seed gives the same split."""
        if data.is_query is None:
            raise ValueError(f"{data.name}: protocol 'own' needs a split with rows marked 'test', it has none")
        is_train = ~data.is_query if data.parts is None else data.parts == "train"
        if not is_train.any():
            is_train = ~data.is_query
        searched = is_train if data.parts is None else is_train | (data.parts == "database")
        if not searched.any():
            raise ValueError(f"{data.name}: every row is marked 'test'; protocol 'own' needs rows marked 'train'")
        rng = np.random.default_rng(seed)
        train, database = np.flatnonzero(is_train), np.flatnonzero(searched)
        if self.train not in (None, ALL):
            train = drawn_per_class(data, train, int(self.train), rng, self.name)
        queries = drawn_queries(np.flatnonzero(data.is_query), self.most_queries, rng)
        description = {
            "name": self.name,
            "split": "own",
            "train_per_class": self.train or ALL,
            "queries": "canonical",
            "most_queries": self.most_queries,
            "n_train": len(train),
            "n_database": len(database),
            "n_queries": len(queries),
            "n_unused": len(data) - int(data.is_query.sum()) - len(database),
            "n_classes": len(np.unique(data.y[train])) if data.has_labels else None,
        }
        return Split(train, database, queries, description)


@dataclass(frozen=True)
class AllRows:
    """Every row but the queries is learned from and searched; labels play no part.

    Queries are the data set's test part, or else a random tenth of the rows.

    Parameters
    ----------
    most_queries : a random choice of this many queries is asked if there are more
    """

    most_queries: int | None = None

    name: ClassVar[str] = "all rows"

    def draw(self, data: DataSet, seed: int) -> Split:
        """The split of this seed. The same seed gives the same split."""
        rng = np.random.default_rng(seed)
        if data.is_query is not None:
            part, queries = np.flatnonzero(data.is_query), "canonical"
        else:
            part, queries = rng.permutation(len(data))[: -(-len(data) // 10)], "a tenth of the rows"
        database = np.setdiff1d(np.arange(len(data)), part)
        asked = part
        if self.most_queries is not None and len(part) > self.most_queries:
            asked = rng.choice(part, self.most_queries, replace=False)
            queries = f"{queries}, {self.most_queries:,} of them"
        description = {
            "name": self.name,
            "queries": queries,
            "most_queries": self.most_queries,
            "n_train": len(database),
            "n_database": len(database),
            "n_queries": len(asked),
        }
        return Split(database, database, np.sort(asked), description)


def drawn_per_class(data: DataSet, rows: IndexArray, count: int, rng: np.random.Generator, protocol: str) -> IndexArray:
    """``count`` of the rows of each class that has rows here."""
    if not data.has_labels:
        raise ValueError(f"{data.name}: has no labels, so training samples cannot be drawn from each class")
    chosen = []
    for label in np.unique(data.y[rows]):
        members = rows[data.y[rows] == label]
        require_enough(data, int(label), len(members), count, protocol)
        chosen.append(rng.choice(members, count, replace=False))
    return np.concatenate(chosen)


def drawn_queries(queries: IndexArray, most: int | None, rng: np.random.Generator) -> IndexArray:
    """At most this many of the queries, in ascending order. Queries that are left out are in no other part either."""
    if most is None or len(queries) <= most:
        return np.sort(queries)
    return np.sort(rng.choice(queries, most, replace=False))


def require_enough(data: DataSet, label: int, n_left: int, wanted: int, protocol: str) -> None:
    """Refuse a class with too few rows to learn from."""
    if n_left < wanted:
        raise ValueError(
            f"{data.name}: protocol {protocol!r} needs {wanted} training samples a class, "
            f"class {label} has {n_left} beside its queries"
        )
