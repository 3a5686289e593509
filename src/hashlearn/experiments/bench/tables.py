"""The paper's four tables and two more: what is compared, on what, how it is measured; what a run of one consists of.

Retrieval by labels rewards a good classifier. So "unseen" asks for classes that nothing was learned from, and
"neighbors" for the nearest rows of the original vectors: labels draw the training samples, and are not scored. Stored
results call this table "neighbours"; both words are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hashlearn.core.names import known_name
from hashlearn.experiments.bench.methods import METHODS, MIXED, SUPERVISED, UNSUPERVISED
from hashlearn.experiments.bench.protocols import PROTOCOLS, Protocol

MOST_BITS = 4096
STORED_NAMES = {"neighbors": "neighbours"}  # tables whose folder in stored results has another name


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
        """Where its result lies in the results folder."""
        return Path(self.table) / self.dataset / self.method / f"{self.n_bits}-{self.draw}.json"

    def __str__(self) -> str:
        return f"{self.dataset}, {self.method}, {self.n_bits} bits, draw {self.draw}"


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one of ours."""

    name: str
    title: str
    metric: str  # a key of the stored "metrics"
    setting: str  # SUPERVISED, UNSUPERVISED or MIXED
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    bits: tuple[int, ...] = (8, 16, 24, 32)
    hash_function: str = "rbf_svm"  # of two-step methods
    neighbors: int | None = None  # k of the k-NN vote, if the table has one
    euclidean: int | None = None  # how many nearest float vectors are to be found, where the table asks for them
    protocols: Mapping[str, str] = field(default_factory=dict)  # of the data sets that have one of their own
    other_protocol: str = "120 per class"  # of the others
    features: Mapping[str, str] = field(default_factory=dict)  # where not the data set's default

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The table's own metric first."""
        return (self.metric, "neighbours@100") if self.euclidean else (self.metric,)

    def protocol(self, dataset: str) -> Protocol:
        """How samples of this data set are drawn."""
        return PROTOCOLS[self.protocols.get(dataset, self.other_protocol)]

    def runs_like(self, other: Table, dataset: str) -> bool:
        """Whether a cell of this table is the same run in the other one."""
        parts = ("setting", "hash_function", "neighbors", "euclidean")
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
_ALL = ("mnist", "cifar10", "sun397")
_BEYOND = ("SDR", "AL", "SDR distance", "ITQ", "SDH", "Sign", "One-hot")

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "inference",
            "Binary inference methods, with labels",
            "precision@2",
            SUPERVISED,
            ("SDR", "AL", "NOPT", "GraphCut"),
            _ALL,
            protocols=_RETRIEVAL,
        ),
        Table(
            "supervised",
            "Supervised hashing",
            "precision@2",
            SUPERVISED,
            ("SDR", "AL", "TSH", "FastHash", "KSH", "BRE", "ITQ-CCA"),
            _ALL,
            protocols=_RETRIEVAL,
        ),
        Table(
            "unsupervised",
            "Unsupervised hashing",
            "precision@2",
            UNSUPERVISED,
            ("SDR", "AL", "SDR distance", "AL distance", "ITQ", "BA", "SPH", "KMH"),
            _ALL,
            protocols=_RETRIEVAL,
        ),
        Table(
            "knn",
            "4-NN classification without labels in learning, linear SVM as hash functions",
            "knn_accuracy",
            UNSUPERVISED,
            ("SDR", "AL", "SDR distance", "AL distance", "NMF", "ALM"),
            ("mnist", "cifar10"),
            bits=(8, 16, 32),
            hash_function="linear_svm",
            neighbors=4,
            protocols=_KNN,
            features={"cifar10": "hog"},
        ),
        Table(
            "unseen",
            "Queries of classes that nothing was learned from",
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
            "Nearest rows of the original vectors",
            "neighbours@10",
            MIXED,
            _BEYOND,
            ("mnist", "clinc150_minilm"),
            bits=(16, 32, 64),
            protocols=_RETRIEVAL,
            euclidean=10,
        ),
    )
}


@dataclass(frozen=True)
class Plan:
    """What was asked for: a table or a part of one. Draws come first, so that one whole draw is there early."""

    table: Table
    datasets: Mapping[str, str]  # name in results → what `datasets.load` is given
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    n_draws: int

    @property
    def cells(self) -> list[Cell]:
        """All of it, in the order of running."""
        return [
            Cell(self.table.name, dataset, method, n_bits, draw)
            for dataset in self.datasets
            for draw in range(self.n_draws)
            for n_bits in self.bits
            for method in self.methods
        ]

    @property
    def missing_methods(self) -> tuple[str, ...]:
        """Those that were asked for and that this version does not have."""
        return tuple(name for name in self.methods if METHODS[name].is_missing)


def plan(
    table: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
    n_draws: int = 3,
    known_datasets: Sequence[str] | None = None,
) -> Plan:
    """A table by name, whole or in part; names in any case, a ValueError with the nearest name for an unknown one.

    Parameters
    ----------
    datasets : names, or paths of .npz files; None: the paper's
    methods : any method for the table's setting; None: the paper's
    bits : code lengths; None: the paper's
    n_draws : draws 0, 1, …, n_draws − 1
    known_datasets : names to check ``datasets`` against; None: not checked here

    >>> [str(cell) for cell in plan("knn", ["mnist"], ["sdr"], bits=[8], n_draws=1).cells]
    ['mnist, SDR, 8 bits, draw 0']
    """
    table = known_name(table, [*TABLES, *STORED_NAMES], "table")
    chosen = TABLES[STORED_NAMES.get(table, table)]
    names = [known_name(name, METHODS, "method") for name in methods] if methods else list(chosen.methods)
    for name in names:
        if METHODS[name].setting_in(chosen.setting) is None:
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
    return Plan(chosen, sources, tuple(dict.fromkeys(names)), tuple(sorted(set(lengths))), n_draws)


def _source(given: str, known: Sequence[str] | None) -> tuple[str, str]:
    """The name in results, and what to load."""
    if given.endswith(".npz"):
        stem = Path(given).stem
        if stem.lower() in {*_RETRIEVAL, *_ALL}:
            raise ValueError(f"{given}: results would be taken for those of {stem.lower()!r}; rename the file")
        return stem, given
    name = given.strip() if known is None else known_name(given, known, "data set")
    if not name or Path(name).name != name:
        raise ValueError(f"a data set is a name or the path of an .npz file, got {given!r}")
    return name, name
