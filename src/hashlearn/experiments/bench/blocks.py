"""Stored records grouped as tables show them: by table and data set, then by method and code length.

A record is the JSON that `hashlearn bench` stores for one cell: one method, one code length, one draw. Fractions are
turned into per cent here, and nowhere else. The paper's numbers, as printed, are in a CSV file of the package.
"""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from importlib import resources
from typing import Any

from hashlearn.experiments.bench.methods import METHODS, SUPERVISED, UNSUPERVISED
from hashlearn.experiments.bench.protocols import ALL
from hashlearn.experiments.bench.results import Request
from hashlearn.experiments.bench.tables import PAPER_DATASETS, TABLES, Table, rank

Record = Mapping[str, Any]
Reader = Callable[[Record], "float | None"]
PaperValue = Callable[[str, str, str, int], "float | None"]  # (table, data set, method, n_bits) → per cent
# Our data sets' names in the paper's tables. The k-NN table's CIFAR-10 has other features.
_PAPER_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR10", "sun397": "SUN397"}
_KNN_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR10-HOG"}
# Our methods that interpret one of the paper's methods differently, in its tables without labels.
_READINGS = {"SDR distance": "SDR", "AL distance": "AL"}


class Verdict(Enum):
    """How a measured value compares with the paper's. Each has a word and a sign, so color is never needed."""

    BETTER = "better"
    WITHIN = "within"
    WORSE = "worse"

    @property
    def sign(self) -> str:
        """The verdict as one character."""
        return {"better": "▲", "within": "≈", "worse": "▼"}[self.value]


@dataclass(frozen=True)
class Entry:
    """The values of one method at one code length, one for each draw, beside the paper's value.

    >>> entry = Entry((87.0, 88.0), paper=86.5)
    >>> entry.mean, round(entry.deviation, 2), entry.difference, entry.verdict.value
    (87.5, 0.71, 1.0, 'within')
    """

    values: tuple[float, ...]
    paper: float | None = None
    tolerance: float = 1.0  # in points of per cent

    @property
    def mean(self) -> float | None:
        """The mean over draws; None without draws."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over draws; None for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Measured minus published, to the two decimals that are printed; None if either is absent."""
        return None if self.mean is None or self.paper is None else round(self.mean - self.paper, 2)

    @property
    def verdict(self) -> Verdict | None:
        """Better or worse only beyond the tolerance; None if there is nothing to compare."""
        if self.difference is None:
            return None
        if self.difference > self.tolerance:
            return Verdict.BETTER
        return Verdict.WITHIN if self.difference >= -self.tolerance else Verdict.WORSE


@dataclass(frozen=True, eq=False)
class Block:
    """One table on one data set: everything that is shown under one heading."""

    table: Table
    dataset: str
    features: str
    records: tuple[Record, ...]
    request: Request | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """What is shown: the metrics asked for, or the table's."""
        return (self.request.metrics if self.request else ()) or self.table.shown_metrics

    @property
    def metric(self) -> str:
        """The most important metric."""
        return self.metrics[0]

    @property
    def is_published(self) -> bool:
        """Whether samples are drawn as in the paper: no option of the run changed that."""
        return not any((record.get("protocol") or {}).get("asked") for record in self.records)

    @property
    def key(self) -> str:
        """A name for anchors."""
        return re.sub(r"[^\w.-]+", "_", f"{self.table.name}-{self.dataset}-{self.features}")

    @cached_property
    def methods(self) -> list[str]:
        """The methods measured, in the order in which they were asked for. Others follow in the paper's order."""
        return sorted({record["cell"]["method"] for record in self.records}, key=lambda name: rank(name, self._order))

    def label(self, method: str) -> str:
        """A short name for figures: the class of a method from outside, unless another method has that name too."""
        name = method.rpartition(":")[2]
        return name if sum(other.rpartition(":")[2] == name for other in self.methods) == 1 else method

    @property
    def without_labels(self) -> list[str]:
        """The methods that learned without labels, in a table of those that learn from them."""
        if self.table.setting != SUPERVISED:
            return []
        settings = {r["cell"]["method"]: (r.get("configuration") or {}).get("setting") for r in self.records}
        return [method for method in self.methods if settings[method] == UNSUPERVISED]

    @cached_property
    def lengths(self) -> list[int]:
        """The code lengths measured, ascending."""
        return sorted({record["cell"]["n_bits"] for record in self.records})

    @property
    def draws(self) -> int:
        """The largest number of draws of any method at any length."""
        return max(map(len, self._groups.values()))

    def drawn(self, n_draws: int) -> str:
        """A number of draws in words, which say whether all of them learn from the same rows."""
        protocol = self.records[0].get("protocol") or {} if self.records else {}
        every_row = protocol.get("train_per_class", ALL) == ALL and not protocol.get("unseen_classes")
        same = every_row and str(protocol.get("queries")).startswith("canonical")
        return f"{n_draws} draws" + (" with the same training rows" if same else "")

    def at(self, method: str, n_bits: int) -> list[Record]:
        """The records of one method at one length, by draw."""
        return self._groups.get((method, n_bits), [])

    def entry(self, method: str, n_bits: int, reader: Reader, paper: float | None = None) -> Entry:
        """The values that ``reader`` finds in the draws of one method at one length."""
        values = (reader(record) for record in self.at(method, n_bits))
        return Entry(tuple(value for value in values if value is not None), paper, self.table.tolerance)

    def compared(self, method: str, n_bits: int, name: str, paper_value: PaperValue) -> Entry:
        """A metric in per cent, beside the paper's value if it is the paper's metric on samples drawn as there."""
        comparable = name == self.table.metric and self.is_published
        value = paper_value(self.table.name, self.dataset, method, n_bits) if comparable else None
        return self.entry(method, n_bits, metric(name), value)

    def beside_paper(self, paper_value: PaperValue) -> dict[str, list[Entry]]:
        """For each method, measured here or published in the paper, one entry for each code length."""
        rows = {
            method: [self.compared(method, n_bits, self.metric, paper_value) for n_bits in self.lengths]
            for method in dict.fromkeys([*self._order, *self.methods])
        }
        return {
            method: row
            for method, row in rows.items()
            if method in self.methods or any(entry.paper is not None for entry in row)
        }

    @cached_property
    def _order(self) -> list[str]:
        first = (method for run in self.request.runs for method in run.methods) if self.request else ()
        return [*dict.fromkeys([*first, *METHODS])]

    @cached_property
    def _groups(self) -> dict[tuple[str, int], list[Record]]:
        groups: dict[tuple[str, int], list[Record]] = {}
        for record in sorted(self.records, key=lambda record: record["cell"]["draw"]):
            groups.setdefault((record["cell"]["method"], record["cell"]["n_bits"]), []).append(record)
        return groups


def blocks(records: Iterable[Record], requests: Mapping[tuple[str, str], Request] | None = None) -> list[Block]:
    """The records grouped by table, data set and features, in the paper's order; with what was asked for them."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        key = record["cell"]
        groups.setdefault((key["table"], key["dataset"], key.get("features") or "given"), []).append(record)
    order = sorted(groups, key=lambda group: (rank(group[0], TABLES), rank(group[1], PAPER_DATASETS), group[2]))
    return [
        Block(
            TABLES[table],
            dataset,
            features,
            tuple(groups[table, dataset, features]),
            (requests or {}).get((table, dataset)),
        )
        for table, dataset, features in order
    ]


def metric(name: str) -> Reader:
    """Reads one metric of a record, in per cent.

    >>> metric("map")({"metrics": {"map": 0.5}}), metric("map")({"metrics": {"map": None}})
    (50.0, None)
    """

    def read(record: Record) -> float | None:
        value = finite((record.get("metrics") or {}).get(name))
        return None if value is None else 100.0 * value

    return read


def duration(stage: str) -> Reader:
    """Reads the seconds of one stage of a record."""
    return lambda record: finite((record.get("seconds") or {}).get(stage))


def finite(value: object) -> float | None:
    """The value as a number; None if it is not a finite number.

    >>> finite(1), finite(None), finite(float("inf"))
    (1.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def published_value(table: str, dataset: str, method: str, n_bits: int) -> float | None:
    """The value that the paper prints for an entry, in per cent; None if it has none.

    Both targets without labels get the same number, because the paper does not say which it used.

    >>> published_value("inference", "mnist", "SDR", 8)
    86.33
    >>> [published_value("unsupervised", "mnist", method, 8) for method in ("SDR", "SDR distance")]
    [43.08, 43.08]
    >>> published_value("supervised", "digits", "SDR", 8) is None
    True
    """
    names = _KNN_NAMES if table == "knn" else _PAPER_NAMES
    if table in ("unsupervised", "knn"):
        method = _READINGS.get(method, method)
    return _published().get((table, names.get(dataset.lower(), ""), method, n_bits))


@cache
def _published() -> dict[tuple[str, str, str, int], float]:
    text = resources.files("hashlearn.experiments.bench").joinpath("paper_tables.csv").read_text("utf-8")
    return {
        (row["table"], row["dataset"], row["method"], int(row["n_bits"])): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }
