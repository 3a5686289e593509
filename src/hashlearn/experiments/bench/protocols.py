"""How samples become training set, database and queries: the paper's protocols as small definitions.

The draw's number is the seed. Hash functions encode the whole database, training samples included. Sampling is O(n).

The paper's SUN397 subset has the 42 categories with more than 500 images and draws 100 queries and 120 training samples
from each. Other data rarely has classes this large, so "120 per class" has five sizes: all three numbers divided by 1,
2, 5, 10 or 20. The protocol takes the largest size that leaves at least 42 classes, or at least half of them if there
are fewer than 84. SUN397 itself is drawn exactly as in the paper, Caltech-101 with more than 50, 10 and 12 images.

If a data set has a test part, all of it is the queries, whatever the protocol. Test samples are in neither the
database nor the training set, and only the training samples are drawn. "120 per class" then counts the samples without
the queries: it takes classes with more than 400 of them, or a part of that. What was drawn is stored with every result.

Two protocols do not draw class by class. "own" takes a data set's published split as it is, and is what a data set with
a split gets if no table names it. "all rows" needs no labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import known_name
from hashlearn.experiments.datasets import DataSet

IndexArray = NDArray[np.intp]
ALL = "all"  # training samples of a class
ENOUGH_CLASSES = 42


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
            if not data.has_labels:
                raise ValueError(f"{data.name}: has no labels, so training samples cannot be drawn from each class")
            train = np.concatenate(
                [
                    _sample(data, train[data.y[train] == label], int(self.train), rng, self.name, int(label))
                    for label in np.unique(data.y[train])
                ]
            )
        details = {
            "split": "own",
            "train_per_class": self.train or ALL,
            "queries": "canonical",
            "n_unused": len(data) - int(data.is_query.sum()) - len(database),
            "n_classes": len(np.unique(data.y[train])) if data.has_labels else None,
        }
        return _split(self, train, database, np.flatnonzero(data.is_query), rng, details)


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
            queries, words = np.flatnonzero(data.is_query), "canonical"
        else:
            queries, words = rng.permutation(len(data))[: -(-len(data) // 10)], "a tenth of the rows"
        database = np.setdiff1d(np.arange(len(data)), queries)
        return _split(self, database, database, queries, rng, {"queries": words})


@dataclass(frozen=True)
class Protocol:
    """Numbers of training samples and queries of each class.

    Parameters
    ----------
    name : its name in results
    train_per_class : samples drawn from each class without its queries
    queries_per_class : queries drawn from each class if the data set has no test part; None: it must have one
    class_size_above : classes with more samples than this, queries included, are used, the others left out
    divisors : divisors of the three numbers above, tried in order (see the head of this module)
    database : "rest", everything but the queries, or "training", the training samples alone
    unseen_share : share of the classes, drawn at random, from which nothing is learned and from which all queries come.
        The database holds all classes, so an unseen class must also be distinguished from the learned ones
    train : training samples of each class instead of ``train_per_class``, or "all": every sample that may be drawn
    most_queries : a random choice of this many queries is asked if there are more
    """

    name: str
    train_per_class: int
    queries_per_class: int | None = None
    class_size_above: int = 0
    divisors: tuple[int, ...] = (1,)
    database: str = "rest"
    unseen_share: float = 0.0
    train: int | str | None = None
    most_queries: int | None = None

    def draw(self, data: DataSet, seed: int) -> Split:
        """The split of this seed. The same seed gives the same split."""
        if not data.has_labels:
            raise ValueError(f"{data.name}: has no labels y, and protocol {self.name!r} draws from each class")
        sized = self._sized_for(data)
        per_class = self.train or sized.train_per_class
        rng = np.random.default_rng(seed)
        classes = np.unique(data.y)
        unseen = classes[:0]
        if n_unseen := round(self.unseen_share * len(classes)):
            unseen = rng.choice(classes, n_unseen, replace=False)
        train, queries, rest = [], [], []
        large = classes[sized._class_sizes(data) > sized.class_size_above]
        for label in large:
            own_queries, others = sized._queries_of(np.flatnonzero(data.y == label), data, rng)
            rest.append(others)
            if label in unseen or not n_unseen:
                queries.append(own_queries)
            if label not in unseen:
                count = len(others) if per_class == ALL else int(per_class)
                train.append(_sample(data, others, count, rng, self.name, int(label)))
        if not train:
            raise ValueError(f"{data.name}: no class has more than {sized.class_size_above} samples")
        details: dict[str, Any] = {
            "split": "drawn",
            "train_per_class": per_class,
            "queries": "canonical" if sized.queries_per_class is None else f"{sized.queries_per_class} per class",
            "database": self.database,
            "class_size_above": sized.class_size_above,
            "n_classes": len(train),
            "n_classes_left_out": len(classes) - len(large),
        }
        if n_unseen:
            details["unseen_classes"] = sorted(int(label) for label in unseen)
        samples = np.concatenate(train)
        database = np.sort(samples if self.database == "training" else np.concatenate(rest))
        return _split(self, samples, database, np.concatenate(queries), rng, details)

    def _sized_for(self, data: DataSet) -> Protocol:
        """This protocol in the largest size that leaves enough classes, with the data set's own queries, if any."""
        if data.is_query is not None and self.queries_per_class is not None:
            at_least = max(0, self.class_size_above - self.queries_per_class)
            return replace(self, queries_per_class=None, class_size_above=at_least)._sized_for(data)
        sizes = self._class_sizes(data)
        enough = min(ENOUGH_CLASSES, -(-len(sizes) // 2))
        for divisor in self.divisors:
            above = self.class_size_above // divisor
            if len(self.divisors) == 1 or np.count_nonzero(sizes > above) >= enough:
                queries = self.queries_per_class and self.queries_per_class // divisor
                train = self.train_per_class // divisor
                return replace(self, train_per_class=train, queries_per_class=queries, class_size_above=above)
        beside = " beside the test part" if self.queries_per_class is None else ""
        raise ValueError(
            f"{data.name}: protocol {self.name!r} needs {enough} classes with more than "
            f"{self.class_size_above // self.divisors[-1]} samples{beside}, got {np.count_nonzero(sizes > above)}"
        )

    def _class_sizes(self, data: DataSet) -> IndexArray:
        """Number of samples of each class, without the test part if that part is the queries."""
        classes, places = np.unique(data.y, return_inverse=True)
        if self.queries_per_class is None and data.is_query is not None:
            places = places[~data.is_query]
        return np.bincount(places, minlength=len(classes))

    def _queries_of(
        self, members: IndexArray, data: DataSet, rng: np.random.Generator
    ) -> tuple[IndexArray, IndexArray]:
        """The queries of a class, and its other samples."""
        if self.queries_per_class is not None:
            order = rng.permutation(members)
            return order[: self.queries_per_class], np.sort(order[self.queries_per_class :])
        if data.is_query is None:
            raise ValueError(f"{data.name}: protocol {self.name!r} needs a test part of the data set's own")
        return members[data.is_query[members]], members[~data.is_query[members]]


AnyProtocol = Protocol | OwnSplit | AllRows


def _sample(
    data: DataSet, rows: IndexArray, count: int, rng: np.random.Generator, protocol: str, label: int
) -> IndexArray:
    """``count`` of the rows of a class."""
    if len(rows) < count:
        raise ValueError(
            f"{data.name}: protocol {protocol!r} needs {count} training samples a class, "
            f"class {label} has {len(rows)} beside its queries"
        )
    return rng.choice(rows, count, replace=False)


def _split(
    protocol: AnyProtocol,
    train: IndexArray,
    database: IndexArray,
    queries: IndexArray,
    rng: np.random.Generator,
    details: dict[str, Any],
) -> Split:
    """The split with at most as many queries as the protocol takes. Those left out are in no other part either."""
    most = protocol.most_queries
    if most is not None and len(queries) > most:
        queries = rng.choice(queries, most, replace=False)
    counts = {"n_train": len(train), "n_database": len(database), "n_queries": len(queries)}
    return Split(train, database, np.sort(queries), {"name": protocol.name, **details, "most_queries": most, **counts})


_SUN397 = Protocol(
    "120 per class", train_per_class=120, queries_per_class=100, class_size_above=500, divisors=(1, 2, 5, 10, 20)
)

PROTOCOLS: dict[str, AnyProtocol] = {
    protocol.name: protocol
    for protocol in (
        OwnSplit(),
        AllRows(),
        Protocol("500 per class", train_per_class=500),
        _SUN397,
        # The paper: 2,000 images, 200 a class, "as training set". A k-NN classifier's training set is what it searches.
        Protocol("knn", train_per_class=200, database="training"),
        Protocol("digits", train_per_class=60, queries_per_class=30),
        Protocol("100 per class", train_per_class=100),
        replace(_SUN397, name="unseen, 120", unseen_share=0.3),
        Protocol("unseen, 500", train_per_class=500, unseen_share=0.3),
        Protocol("unseen, 100", train_per_class=100, unseen_share=0.3),
        Protocol("unseen digits", train_per_class=60, queries_per_class=30, unseen_share=0.3),
    )
}
# What the command line calls them: "120" for "120 per class", "unseen-120" for "unseen, 120".
SHORT_OF = {name: name.removesuffix(" per class").replace(", ", "-").replace(" ", "-") for name in PROTOCOLS}
SHORT_NAMES = {short: name for name, short in SHORT_OF.items()}


def protocol_named(name: str) -> AnyProtocol:
    """A protocol by its short name or its name in results.

    >>> protocol_named("120").name, protocol_named("120 per class").name
    ('120 per class', '120 per class')
    """
    return PROTOCOLS[SHORT_NAMES[known_name(SHORT_OF.get(name, name), SHORT_NAMES, "protocol")]]
