"""The paper's four tables and two more: what is compared, on what, how it is measured.

Retrieval by labels rewards a good classifier. Therefore queries of "unseen" belong to classes that nothing was learned
from, and "neighbors" scores the nearest rows of the original vectors: there, labels only draw the training samples.

A data set that no table names is taken in its own split, if it has one. Else training samples are drawn class by class,
and all rows are learned from where only neighbors of vectors are scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.methods import MIXED, SUPERVISED, UNSUPERVISED
from hashlearn.experiments.bench.protocols import PROTOCOLS, AnyProtocol, OwnSplit, Protocol
from hashlearn.experiments.datasets import DataSet


@dataclass(frozen=True, order=True)
class Cell:
    """One number of a table, from one draw: the smallest thing that is run and stored.

    >>> Cell("inference", "mnist", "my_module:MyHasher", 8, 0).file("0f3a").as_posix()
    'inference/mnist/my_module.MyHasher/8-0-0f3a.json'
    """

    table: str
    dataset: str
    method: str
    n_bits: int
    draw: int

    def file(self, key: str) -> Path:
        """The file of its result, relative to the results folder."""
        method = self.method.replace(":", ".")  # a colon is no part of a file name everywhere
        return Path(self.table) / self.dataset / method / f"{self.n_bits}-{self.draw}-{key}.json"

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method}, {self.n_bits} bits, draw {self.draw}"


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of ours."""

    name: str
    title: str
    about: str  # an explanation for readers of the report
    metric: str  # a key of the stored "metrics"
    setting: str  # SUPERVISED, UNSUPERVISED or MIXED
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    bits: tuple[int, ...] = (8, 16, 24, 32)
    tolerance: float = 1.0  # points of per cent within which a value agrees with the paper's
    hash_function: str = "rbf_svm"  # of two-step methods
    neighbors: int | None = None  # k of the k-NN vote, if the table has one
    euclidean: int | None = None  # number of nearest float vectors to find, if the table scores them
    protocols: Mapping[str, str] = field(default_factory=dict)  # data set → its own protocol
    other_protocol: str = "120 per class"  # for the other data sets
    features: Mapping[str, str] = field(default_factory=dict)  # data set → features other than its default

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The table's own metric first."""
        own = (self.metric, "neighbors@100") if self.euclidean else (self.metric,)
        return tuple(dict.fromkeys((*own, "map")))

    def protocol(self, dataset: str) -> AnyProtocol:
        """How samples of this data set are drawn, unless it has a split of its own and no table names it."""
        return PROTOCOLS[self.protocols.get(dataset, self.other_protocol)]

    def protocol_for(self, data: DataSet, choice: Choice) -> AnyProtocol:
        """How samples of this data set are drawn with these options."""
        if choice.protocol is not None:
            return choice.applied_to(PROTOCOLS[choice.protocol])
        usual = self.protocol(data.name)
        has_own = data.is_query is not None and data.name not in self.protocols
        if has_own and not (isinstance(usual, Protocol) and usual.unseen_share):
            return choice.applied_to(OwnSplit())
        return choice.applied_to(usual)


RETRIEVAL = {
    "mnist": "500 per class",
    "cifar10": "500 per class",
    "digits": "digits",
    "clinc150_minilm": "100 per class",
}
_KNN = {"mnist": "knn", "cifar10": "knn", "digits": "digits"}
_UNSEEN = {
    "mnist": "unseen, 500",
    "cifar10": "unseen, 500",
    "digits": "unseen digits",
    "clinc150_minilm": "unseen, 100",
}
PAPER_DATASETS = ("mnist", "cifar10", "sun397")
_BEYOND = ("SDR", "AL", "SDR distance", "ITQ", "SDH", "Sign")

_READINGS = (
    "SDR and AL aim at thresholded distances, “SDR distance” and “AL distance” at squared ones; the paper does not say "
    "which it used, so both stand beside the same numbers."
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "inference",
            "Binary inference",
            "Labels give the target; only the solver of the binary problems differs. The hash function is the same.",
            "precision@2",
            SUPERVISED,
            ("SDR", "AL", "NOPT", "GraphCut"),
            PAPER_DATASETS,
            protocols=RETRIEVAL,
        ),
        Table(
            "supervised",
            "Supervised hashing",
            "Whole methods that learn from labels.",
            "precision@2",
            SUPERVISED,
            ("SDR", "AL", "TSH", "FastHash", "KSH", "BRE", "ITQ-CCA"),
            PAPER_DATASETS,
            protocols=RETRIEVAL,
        ),
        Table(
            "unsupervised",
            "Unsupervised hashing",
            "Whole methods that see no label. " + _READINGS,
            "precision@2",
            UNSUPERVISED,
            ("SDR", "AL", "SDR distance", "AL distance", "ITQ", "BA", "SPH", "KMH"),
            PAPER_DATASETS,
            tolerance=2.0,
            protocols=RETRIEVAL,
        ),
        Table(
            "knn",
            "k-NN classification",
            "Queries are classified by their 4 nearest codes; hash functions are linear, learned without labels. "
            + _READINGS,
            "knn_accuracy",
            UNSUPERVISED,
            ("SDR", "AL", "SDR distance", "AL distance", "NMF", "ALM"),
            ("mnist", "cifar10"),
            bits=(8, 16, 32),
            tolerance=1.5,
            hash_function="linear_svm",
            neighbors=4,
            protocols=_KNN,
            features={"cifar10": "hog"},
        ),
        Table(
            "unseen",
            "Classes never learned from",
            "Queries come from classes that nothing was learned from; the database holds all classes.",
            "map",
            MIXED,
            _BEYOND,
            ("mnist", "clinc150_minilm"),
            bits=(16, 32, 64),
            protocols=_UNSEEN,
            other_protocol="unseen, 120",
        ),
        Table(
            "neighbors",
            "Neighbors of the original vectors",
            "What should be found are each query's 10 nearest vectors by Euclidean distance; no labels are involved.",
            "neighbors@10",
            MIXED,
            _BEYOND,
            ("mnist", "clinc150_minilm"),
            bits=(16, 32, 64),
            protocols=RETRIEVAL,
            other_protocol="all rows",
            euclidean=10,
        ),
    )
}


def rank(name: str, known: Iterable[str]) -> tuple[int, str]:
    """A key to sort by: known names in their order, then the others alphabetically.

    >>> sorted({"b", "z", "a"}, key=lambda name: rank(name, ("z", "y")))
    ['z', 'a', 'b']
    """
    names = list(known)
    return (names.index(name) if name in names else len(names), name)
