"""Which cells a run consists of, and the key of each: a digest of all that determines its result.

A table or a part of it, with names as people type them. A cell's result is stored in a file that its key names, so a
stored result may be used if that file exists.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from hashlearn.core.names import known_name
from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.methods import METHODS, SUPERVISED, CellContext, is_own, method_named
from hashlearn.experiments.bench.protocols import PROTOCOLS
from hashlearn.experiments.bench.tables import PAPER_DATASETS, RETRIEVAL, TABLES, Cell, Table
from hashlearn.experiments.datasets import Source
from hashlearn.experiments.datasets import source as source_of
from hashlearn.experiments.datasets.own_files import SUFFIXES, near_file
from hashlearn.hashers import BaseHasher

MOST_BITS = 4096
SCORING = 3  # raised by a change of what a result holds or how it is measured: older results are then ignored
KEY_LETTERS = 16
NOT_RECORDED = ("progress", "verbose")  # parameters that do not affect the result


@dataclass(frozen=True)
class Plan:
    """A table or a part of one. The first draw of everything runs first, so that a whole table is there early."""

    table: Table
    datasets: Mapping[str, Source]  # by name in results
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

    @cached_property
    def keys(self) -> dict[Cell, str]:
        """Every cell and its key."""
        return {cell: self.key(cell) for cell in self.cells}

    def key(self, cell: Cell) -> str:
        """The first digits of the digest of all that determines a cell's result."""
        table, choice, source = self.table, self.choice, self.datasets[cell.dataset]
        usual = table.protocol(cell.dataset).name
        may_have_own = bool(source.sha256) and cell.dataset not in table.protocols and choice.protocol is None
        parts = {
            "scoring": SCORING,
            "cell": asdict(cell),
            "features": table.features.get(cell.dataset),
            "data": source.sha256,
            "protocol": [may_have_own, repr(PROTOCOLS[choice.protocol or usual])],
            "sizes": [choice.train_per_class, choice.queries],
            "method": self._method(cell),
            "metrics": [table.neighbors, table.euclidean, sorted(choice.extra_metrics)],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:KEY_LETTERS]

    def _method(self, cell: Cell) -> list[object]:
        """Setting and parameters of a method of the package, or the source of another."""
        method, table = method_named(cell.method), self.table
        setting = method.setting_in(table.setting, self.datasets[cell.dataset].has_labels)
        if is_own(cell.method):
            return [setting, method.configuration]
        context = CellContext(
            cell.n_bits, cell.draw, setting or "", cell.dataset, table.hash_function, np.zeros(0, np.int64)
        )
        return [setting, method.hasher, recorded_parameters(method.build(context))]


def recorded_parameters(hasher: BaseHasher) -> dict[str, str]:
    """The parameters that affect a hasher's codes, as text."""
    return {name: repr(value) for name, value in hasher.get_params(deep=False).items() if name not in NOT_RECORDED}


def plan(
    table: str,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
    n_draws: int = 3,
    known_datasets: Sequence[str] | None = None,
    choice: Choice | None = None,
) -> Plan:
    """A table by name, whole or in part; names in any case, a ValueError with the nearest name for an unknown one.

    Parameters
    ----------
    datasets : names, or paths of .npz, .npy or .parquet files; None: the paper's
    methods : any method for the table's setting, or ``module:Class``; None: the paper's. In a table of methods that
        learn from labels, those that do not may stand beside them. Where a data set has no labels, the paper's methods
        that need them are left out, and others are refused
    bits : code lengths; None: the paper's
    n_draws : draws 0, 1, …, n_draws − 1
    known_datasets : names to check the data sets against; None: no check
    choice : protocol, its sizes and metrics; None: the table's

    >>> [str(cell) for cell in plan("knn", ["mnist"], ["sdr"], bits=[8], n_draws=1).cells]
    ['mnist, SDR, 8 bits, draw 0']
    """
    definition = TABLES[known_name(table, TABLES, "table")]
    choice = choice or Choice()
    sources: dict[str, Source] = {}
    for text in datasets or definition.datasets:
        name, place = _name_and_place(text, known_datasets if datasets else None)  # the paper's may be absent
        source = sources.setdefault(name, source_of(place))
        if source.name != place:
            raise ValueError(f"{source.name} and {place}: results of both would be called {name!r}; rename one")
    names = [name if is_own(name) else known_name(name, METHODS, "method") for name in methods or definition.methods]
    if not methods and not all(source.has_labels for source in sources.values()):
        names = [name for name in names if METHODS[name].setting_in(definition.setting, False)]
    for name in names:
        _require_place(definition, name, sources)
    lengths = sorted(set(bits or definition.bits))
    if not 1 <= lengths[0] <= lengths[-1] <= MOST_BITS:
        raise ValueError(f"bits must be code lengths from 1 to {MOST_BITS}, got {lengths}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be a positive integer, got {n_draws}")
    for name, source in sources.items():
        _require_labels(definition, choice, name, source)
    return Plan(definition, sources, tuple(dict.fromkeys(names)), tuple(lengths), n_draws, choice)


def _require_place(table: Table, name: str, sources: Mapping[str, Source]) -> None:
    """Refuse a method that cannot run in this table or on these data sets."""
    method = method_named(name)
    if method.setting_in(table.setting) is None:
        raise ValueError(
            f"method {name} is not {table.setting}, table {table.name!r} is; "
            f"there are {', '.join(n for n, m in METHODS.items() if m.setting_in(table.setting))}"
        )
    for dataset, source in sources.items():
        if not source.has_labels and table.setting != SUPERVISED and method.setting_in(table.setting, False) is None:
            raise ValueError(f"method {name} learns from labels, and data set {dataset!r} has no y")


def _require_labels(table: Table, choice: Choice, dataset: str, source: Source) -> None:
    """Refuse a data set without labels where they are needed."""
    if source.has_labels:
        return
    if table.euclidean is None:
        raise ValueError(f"data set {dataset!r} has no y, and table {table.name!r} needs labels; 'neighbors' does not")
    if choice.metrics or choice.train_per_class not in (None, "all"):
        raise ValueError(f"data set {dataset!r} has no y; --metric and a number for --train-per-class need labels")


def _name_and_place(text: str, known: Sequence[str] | None) -> tuple[str, str]:
    """The data set's name in results, and what `datasets.load` takes."""
    if text.endswith(SUFFIXES):
        stem = Path(text).stem
        if stem.lower() in {*RETRIEVAL, *PAPER_DATASETS}:
            raise ValueError(f"{text}: results would be taken for those of {stem.lower()!r}; rename the file")
        return stem, text
    try:
        name = text.strip() if known is None else known_name(text, known, "data set")
    except ValueError:
        if not (hint := near_file(text)):
            raise
        raise ValueError(f"unknown data set {text!r}{hint}") from None
    if not name or Path(name).name != name:
        raise ValueError(f"a data set is a name or the path of an {', '.join(SUFFIXES)} file, got {text!r}")
    return name, name
