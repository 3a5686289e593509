"""The paper's four tables and three more: what is compared, on what, how it is measured; which cells a run consists of.

Retrieval by labels rewards a good classifier. Therefore queries of "unseen" belong to classes that nothing was learned
from, and "neighbors" scores the nearest rows of the original vectors: there, labels only draw the training samples.
Stored results call this table "neighbours"; both words are accepted. "frontier" compares bytes: other packages have
rows there, everything is learned from the whole database, and searches are scored, not codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hashlearn.core.names import known_name
from hashlearn.experiments.bench.methods import METHODS, MIXED, SUPERVISED, UNSUPERVISED
from hashlearn.experiments.bench.peers import PEERS
from hashlearn.experiments.bench.protocols import PROTOCOLS, AllRows, Protocol

MOST_BITS = 4096
STORED_NAMES = {"neighbors": "neighbours"}  # tables whose folder in stored results has another name
METRIC_TITLES = {
    "precision@2": "precision within 2 bits",
    "map": "mean average precision",
    "knn_accuracy": "accuracy of 4 nearest neighbours",
    "neighbours@10": "true neighbours among the nearest 10 codes",
    "neighbours@100": "true neighbours among the nearest 100 codes",
    "hamming@10": "recall@10 of a search by Hamming distance",
    "asymmetric@10": "recall@10 of an asymmetric search",
    "rescored@10": "recall@10 with the first 100 rescored by floats",
}


@dataclass(frozen=True, order=True)
class Cell:
    """One number of a table, from one draw: the smallest thing that is run and stored.

    >>> Cell("inference", "mnist", "SDR", 8, 0).path.as_posix()
    'inference/mnist/SDR/8-0.json'
    """

    table: str
    dataset: str
    method: str
    n_bits: int
    draw: int

    @property
    def path(self) -> Path:
        """The file of its result, relative to the results folder."""
        return Path(self.table) / self.dataset / self.method / f"{self.n_bits}-{self.draw}.json"

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
    peers: tuple[str, ...] = ()  # other packages' methods
    all_rows: AllRows | None = None  # its protocol for all data sets, if searches are scored

    @property
    def metric_title(self) -> str:
        """The metric in words."""
        return METRIC_TITLES[self.metric]

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The table's own metric first."""
        if self.all_rows is not None:
            return (self.metric, "hamming@10", "rescored@10")
        own = (self.metric, "neighbours@100") if self.euclidean else (self.metric,)
        return tuple(dict.fromkeys((*own, "map")))

    def protocol(self, dataset: str) -> Protocol | AllRows:
        """How samples of this data set are drawn."""
        return self.all_rows or PROTOCOLS[self.protocols.get(dataset, self.other_protocol)]

    def runs_like(self, other: Table, dataset: str) -> bool:
        """Whether a cell of this table is the same run in the other one."""
        parts = ("setting", "hash_function", "neighbors", "euclidean", "all_rows")
        return (
            all(getattr(self, part) == getattr(other, part) for part in parts)
            and self.protocol(dataset) == other.protocol(dataset)
            and self.features.get(dataset) == other.features.get(dataset)
        )


_RETRIEVAL = {
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
_BEYOND = ("SDR", "AL", "SDR distance", "ITQ", "SDH", "Sign", "One-hot")

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
            protocols=_RETRIEVAL,
        ),
        Table(
            "supervised",
            "Supervised hashing",
            "Whole methods that learn from labels.",
            "precision@2",
            SUPERVISED,
            ("SDR", "AL", "TSH", "FastHash", "KSH", "BRE", "ITQ-CCA"),
            PAPER_DATASETS,
            protocols=_RETRIEVAL,
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
            protocols=_RETRIEVAL,
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
            "neighbours",
            "Neighbours of the original vectors",
            "What should be found are each query's 10 nearest vectors by Euclidean distance; no labels are involved.",
            "neighbours@10",
            MIXED,
            _BEYOND,
            ("mnist", "clinc150_minilm"),
            bits=(16, 32, 64),
            protocols=_RETRIEVAL,
            euclidean=10,
        ),
        Table(
            "frontier",
            "Recall against bytes",
            "Each query's 10 nearest float vectors should be found. No labels are involved, and bytes count everything "
            "that a row stores.",
            "asymmetric@10",
            UNSUPERVISED,
            ("Ranking", "Ranking linear", "Sign", "Sign cut", "ITQ"),
            ("digits",),
            bits=(32, 64),
            peers=tuple(PEERS),
            all_rows=AllRows(),
        ),
    )
}


@dataclass(frozen=True)
class Plan:
    """A table or a part of one. The first draw of everything runs first, so that a whole table is there early."""

    table: Table
    datasets: Mapping[str, str]  # name in results → what `datasets.load` is given
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    n_draws: int
    not_installed: tuple[str, ...] = ()  # peers of the table that need a package

    @property
    def cells(self) -> list[Cell]:
        """All cells, in the order in which they run."""
        return [
            Cell(self.table.name, dataset, method, n_bits, draw)
            for dataset in self.datasets
            for draw in range(self.n_draws)
            for n_bits in self.bits
            for method in self.methods
            if method not in PEERS or PEERS[method].fits(n_bits)
        ]


def plan(
    table: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
    n_draws: int = 3,
    known_datasets: Sequence[str] | None = None,
    all_rows: AllRows | None = None,
) -> Plan:
    """A table by name, whole or in part; names in any case, a ValueError with the nearest name for an unknown one.

    Parameters
    ----------
    datasets : names, or paths of .npz files; None: the paper's
    methods : any method for the table's setting; None: the paper's
    bits : code lengths; None: the paper's
    n_draws : draws 0, 1, …, n_draws − 1
    known_datasets : names to check ``datasets`` against; None: no check
    all_rows : metric and queries of a table that scores searches; None: the table's

    >>> [str(cell) for cell in plan("knn", ["mnist"], ["sdr"], bits=[8], n_draws=1).cells]
    ['mnist, SDR, 8 bits, draw 0']
    """
    table = known_name(table, [*TABLES, *STORED_NAMES], "table")
    chosen = TABLES[STORED_NAMES.get(table, table)]
    if all_rows is not None:
        if chosen.all_rows is None:
            raise ValueError(f"table {chosen.name!r} has its own queries and metric; 'frontier' lets you choose them")
        chosen = replace(chosen, all_rows=all_rows)
    absent = tuple(name for name in chosen.peers if not methods and not PEERS[name].installed)
    known = [*METHODS, *chosen.peers]
    names = [known_name(name, known, "method") for name in methods or (*chosen.methods, *chosen.peers)]
    names = [name for name in names if name not in absent]
    for name in names:
        if name in METHODS and METHODS[name].setting_in(chosen.setting) is None:
            raise ValueError(
                f"method {name} is not {chosen.setting}, table {chosen.name!r} is; "
                f"there are {', '.join(n for n, m in METHODS.items() if m.setting_in(chosen.setting))}"
            )
    lengths = list(bits) if bits else list(chosen.bits)
    for length in lengths:
        if not 1 <= length <= MOST_BITS:
            raise ValueError(f"bits must be code lengths from 1 to {MOST_BITS}, got {length}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be a positive integer, got {n_draws}")
    sources = dict(_source(given, known_datasets) for given in (datasets or chosen.datasets))
    return Plan(chosen, sources, tuple(dict.fromkeys(names)), tuple(sorted(set(lengths))), n_draws, absent)


def rank(name: str, known: Iterable[str]) -> tuple[int, str]:
    """A key to sort by: known names in their order, then the others alphabetically.

    >>> sorted({"b", "z", "a"}, key=lambda name: rank(name, ("z", "y")))
    ['z', 'a', 'b']
    """
    names = list(known)
    return (names.index(name) if name in names else len(names), name)


def _source(given: str, known: Sequence[str] | None) -> tuple[str, str]:
    """The data set's name in results, and what `datasets.load` gets."""
    if given.endswith(".npz"):
        stem = Path(given).stem
        if stem.lower() in {*_RETRIEVAL, *PAPER_DATASETS}:
            raise ValueError(f"{given}: results would be taken for those of {stem.lower()!r}; rename the file")
        return stem, given
    name = given.strip() if known is None else known_name(given, known, "data set")
    if not name or Path(name).name != name:
        raise ValueError(f"a data set is a name or the path of an .npz file, got {given!r}")
    return name, name
