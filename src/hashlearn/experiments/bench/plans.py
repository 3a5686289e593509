"""Which cells a run consists of: a table or a part of it, with names as people type them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hashlearn.core.names import known_name
from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.methods import METHODS, SUPERVISED
from hashlearn.experiments.bench.own_methods import is_own, method_named
from hashlearn.experiments.bench.tables import PAPER_DATASETS, RETRIEVAL, TABLES, Cell, Table
from hashlearn.experiments.datasets.own_files import SUFFIXES, near_file

MOST_BITS = 4096


@dataclass(frozen=True)
class Plan:
    """A table or a part of one. The first draw of everything runs first, so that a whole table is there early."""

    table: Table
    datasets: Mapping[str, str]  # name in results → what `datasets.load` is given
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    n_draws: int
    choice: Choice = field(default_factory=Choice)

    @property
    def shown_metrics(self) -> tuple[str, ...]:
        """The metrics asked for, or the table's."""
        return self.choice.metrics or self.table.shown_metrics

    @property
    def cells(self) -> list[Cell]:
        """All cells, in the order in which they run."""
        return [
            Cell(self.table.name, dataset, method, n_bits, draw)
            for dataset in self.datasets
            for draw in range(self.n_draws)
            for n_bits in self.bits
            for method in self.methods
        ]


def plan(
    table: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
    n_draws: int = 3,
    known_datasets: Sequence[str] | None = None,
    choice: Choice | None = None,
    has_labels: Callable[[str], bool] = lambda source: True,
) -> Plan:
    """A table by name, whole or in part; names in any case, a ValueError with the nearest name for an unknown one.

    Parameters
    ----------
    datasets : names, or paths of .npz, .npy or .parquet files; None: the paper's
    methods : any method for the table's setting, or ``module:Class``; None: the paper's. In a table of methods that
        learn from labels, those that do not may stand beside them
    bits : code lengths; None: the paper's
    n_draws : draws 0, 1, …, n_draws − 1
    known_datasets : names to check ``datasets`` against; None: no check
    choice : protocol, its sizes and metrics; None: the table's
    has_labels : says of a data set's source whether it has labels. Without labels, the paper's methods that need them
        are left out, and others are refused

    >>> [str(cell) for cell in plan("knn", ["mnist"], ["sdr"], bits=[8], n_draws=1).cells]
    ['mnist, SDR, 8 bits, draw 0']
    """
    chosen = TABLES[known_name(table, TABLES, "table")]
    choice = choice or Choice()
    sources: dict[str, str] = {}
    for given in datasets or chosen.datasets:
        name, source = _source(given, known_datasets if datasets else None)  # the paper's may be absent: `run` tells
        if sources.setdefault(name, source) != source:
            raise ValueError(f"{sources[name]} and {source}: results of both would be called {name!r}; rename one")
    labeled = {name: has_labels(source) for name, source in sources.items()}
    names = [name if is_own(name) else known_name(name, METHODS, "method") for name in methods or chosen.methods]
    if not methods and not all(labeled.values()):
        names = [name for name in names if METHODS[name].setting_in(chosen.setting, False)]
    for name in names:
        _require_place(chosen, name, labeled)
    lengths = list(bits) if bits else list(chosen.bits)
    for length in lengths:
        if not 1 <= length <= MOST_BITS:
            raise ValueError(f"bits must be code lengths from 1 to {MOST_BITS}, got {length}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be a positive integer, got {n_draws}")
    for name, has in labeled.items():
        _require_labels(chosen, choice, name, has)
    order = tuple(dict.fromkeys(names))
    return Plan(chosen, sources, order, tuple(sorted(set(lengths))), n_draws, choice)


def _require_place(table: Table, name: str, labeled: Mapping[str, bool]) -> None:
    """Refuse a method that cannot run in this table or on these data sets."""
    method = method_named(name)
    if method.setting_in(table.setting) is None:
        raise ValueError(
            f"method {name} is not {table.setting}, table {table.name!r} is; "
            f"there are {', '.join(n for n, m in METHODS.items() if m.setting_in(table.setting))}"
        )
    for dataset, has_labels in labeled.items():
        if not has_labels and table.setting != SUPERVISED and method.setting_in(table.setting, False) is None:
            raise ValueError(f"method {name} learns from labels, and data set {dataset!r} has no y")


def _require_labels(table: Table, choice: Choice, dataset: str, has_labels: bool) -> None:
    """Refuse a data set without labels where they are needed."""
    if has_labels:
        return
    if table.euclidean is None:
        raise ValueError(f"data set {dataset!r} has no y, and table {table.name!r} needs labels; 'neighbors' does not")
    if choice.metrics or choice.train_per_class not in (None, "all"):
        raise ValueError(f"data set {dataset!r} has no y; --metric and a number for --train-per-class need labels")


def _source(given: str, known: Sequence[str] | None) -> tuple[str, str]:
    """The data set's name in results, and what `datasets.load` gets."""
    if given.endswith(SUFFIXES):
        stem = Path(given).stem
        if stem.lower() in {*RETRIEVAL, *PAPER_DATASETS}:
            raise ValueError(f"{given}: results would be taken for those of {stem.lower()!r}; rename the file")
        return stem, given
    try:
        name = given.strip() if known is None else known_name(given, known, "data set")
    except ValueError:
        if not (hint := near_file(given)):
            raise
        raise ValueError(f"unknown data set {given!r}{hint}") from None
    if not name or Path(name).name != name:
        raise ValueError(f"a data set is a name or the path of an {', '.join(SUFFIXES)} file, got {given!r}")
    return name, name
