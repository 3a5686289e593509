"""How samples become training set, database and queries: the paper's protocols as small definitions.

The draw's number is the seed. Hash functions encode the whole database, training samples included. Sampling is O(n).

The paper's SUN397 subset has the 42 categories with more than 500 images and draws 100 queries and 120 training samples
from each. Other data rarely has classes this large, so "120 per class" has five sizes: all three numbers divided by 1,
2, 5, 10 or 20. The protocol takes the largest size that leaves at least 42 classes, or at least half of them if there
are fewer than 84. SUN397 itself is drawn exactly as in the paper, Caltech-101 with more than 50, 10 and 12 images.

If a data set has a test part, all of it is the queries, whatever the protocol. Test samples are in neither the
database nor the training set, and only the training samples are drawn. "120 per class" then counts the samples without
the queries: it takes classes with more than 400 of them, or a part of that. What was drawn is stored with every result.

A data set that no table names is taken in its own split if it has one (`hashlearn.experiments.bench.splits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hashlearn.core.names import known_name
from hashlearn.experiments.bench.splits import ALL, AllRows, IndexArray, OwnSplit, Split, drawn_queries, require_enough
from hashlearn.experiments.datasets import DataSet

WANTED_CLASSES = 42


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
        fitting = self._fitted_to(data)
        per_class = self.train or fitting.train_per_class
        rng = np.random.default_rng(seed)
        classes = np.unique(data.y)
        n_unseen = round(self.unseen_share * len(classes))
        unseen = rng.choice(classes, n_unseen, replace=False) if n_unseen else classes[:0]
        train, queries, rest, left_out = [], [], [], 0
        for label, size in zip(classes, fitting._class_sizes(data), strict=True):
            if size <= fitting.class_size_above:
                left_out += 1
                continue
            members = np.flatnonzero(data.y == label)
            asked, others = fitting._queries_of(members, data, rng)
            rest.append(others)
            if not n_unseen or label in unseen:
                queries.append(asked)
            if label not in unseen:
                count = len(others) if per_class == ALL else int(per_class)
                require_enough(data, int(label), len(others), count, self.name)
                train.append(rng.choice(others, count, replace=False))
        if not train:
            raise ValueError(f"{data.name}: no class has more than {fitting.class_size_above} samples")
        chosen = np.concatenate(train)
        database = np.sort(chosen if self.database == "training" else np.concatenate(rest))
        split = Split(chosen, database, drawn_queries(np.concatenate(queries), self.most_queries, rng), {})
        split.description.update(fitting._description(split, len(train), left_out))
        if n_unseen:
            split.description["unseen_classes"] = sorted(int(label) for label in unseen)
        return split

    def _fitted_to(self, data: DataSet) -> Protocol:
        """This protocol in the largest size that leaves enough classes, with the data set's own queries, if any."""
        if data.is_query is not None and self.queries_per_class is not None:
            at_least = max(0, self.class_size_above - self.queries_per_class)
            return replace(self, queries_per_class=None, class_size_above=at_least)._fitted_to(data)
        sizes = self._class_sizes(data)
        wanted = min(WANTED_CLASSES, -(-len(sizes) // 2))
        for divisor in self.divisors:
            above = self.class_size_above // divisor
            if len(self.divisors) == 1 or np.count_nonzero(sizes > above) >= wanted:
                return replace(
                    self,
                    train_per_class=self.train_per_class // divisor,
                    queries_per_class=None if self.queries_per_class is None else self.queries_per_class // divisor,
                    class_size_above=above,
                )
        beside = " beside the test part" if self.queries_per_class is None else ""
        raise ValueError(
            f"{data.name}: protocol {self.name!r} needs {wanted} classes with more than "
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
            raise ValueError(
                f"{data.name}: protocol {self.name!r} needs a test part of the data set's own, it has none"
            )
        return members[data.is_query[members]], members[~data.is_query[members]]

    def _description(self, split: Split, n_classes: int, left_out: int) -> dict[str, Any]:
        return {
            "name": self.name,
            "split": "drawn",
            "train_per_class": self.train or self.train_per_class,
            "queries": "canonical" if self.queries_per_class is None else f"{self.queries_per_class} per class",
            "most_queries": self.most_queries,
            "database": self.database,
            "class_size_above": self.class_size_above,
            "n_train": len(split.train),
            "n_database": len(split.database),
            "n_queries": len(split.queries),
            "n_classes": n_classes,
            "n_classes_left_out": left_out,
        }


_SUN397 = Protocol(
    "120 per class", train_per_class=120, queries_per_class=100, class_size_above=500, divisors=(1, 2, 5, 10, 20)
)

AnyProtocol = Protocol | OwnSplit | AllRows

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
