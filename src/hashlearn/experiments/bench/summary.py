"""Tables from stored cells: mean ± sample standard deviation over draws, beside the paper's numbers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hashlearn.experiments.bench import paper
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.bench.tables import TABLES

METRIC_TITLES = {
    "precision@2": "precision within 2 bits",
    "map": "mean average precision",
    "knn_accuracy": "accuracy of 4 nearest neighbours",
    "neighbours@10": "nearest 10 float vectors among the nearest 10 codes",
    "neighbours@100": "nearest 10 float vectors among the nearest 100 codes",
}
ABSENT = "–"


@dataclass(frozen=True)
class Entry:
    """One method at one code length, in per cent."""

    values: tuple[float, ...]  # one for each draw
    paper: float | None
    is_missing: bool = False  # this version has no such method

    @property
    def mean(self) -> float | None:
        """Over the draws there are; None for none."""
        return statistics.fmean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation (n − 1); None for fewer than two draws."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def difference(self) -> float | None:
        """Mean minus the paper's."""
        return None if self.mean is None or self.paper is None else self.mean - self.paper

    def text(self, n_draws: int) -> str:
        """As a table shows it.

        >>> Entry((87.0, 88.0), 86.5).text(2)
        '87.50 ± 0.71 (86.50, +1.00)'
        >>> Entry((87.0,), None).text(3), Entry((), 86.5).text(3), Entry((), 86.5, is_missing=True).text(3)
        ('87.00 [1 of 3 draws]', '– (86.50)', 'missing (86.50)')
        """
        if self.mean is None:
            parts = ["missing" if self.is_missing else ABSENT]
        else:
            parts = [f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if self.deviation is not None else "")]
        if self.paper is not None:
            difference = "" if self.difference is None else f", {self.difference:+.2f}"
            parts.append(f"({self.paper:.2f}{difference})")
        if self.values and len(self.values) < n_draws:
            parts.append(f"[{len(self.values)} of {n_draws} draws]")
        return " ".join(parts)


@dataclass(frozen=True)
class Summary:
    """One table on one data set."""

    table: str
    dataset: str
    features: str
    protocol: str  # in words
    metric: str
    n_draws: int
    bits: tuple[int, ...]
    rows: Mapping[str, Mapping[int, Entry]]  # method → code length → entry

    @property
    def has_paper(self) -> bool:
        """Whether the paper has any of these numbers."""
        return any(entry.paper is not None for row in self.rows.values() for entry in row.values())

    @property
    def title(self) -> str:
        """What the numbers are, in one line."""
        over = f"mean ± standard deviation of {self.n_draws} draws" if self.n_draws > 1 else "one draw"
        beside = "; in brackets the paper's, and ours minus it" if self.has_paper else ""
        where = f"{self.dataset} ({self.features})"
        return f"{TABLES[self.table].title}, {where}: {METRIC_TITLES[self.metric]} in %, {over}{beside}"

    def markdown(self) -> str:
        """A table in Markdown, its columns aligned so that it reads as plain text too."""
        header = ["method", *(f"L = {n_bits}" for n_bits in self.bits)]
        lines = [[name, *(row[n_bits].text(self.n_draws) for n_bits in self.bits)] for name, row in self.rows.items()]
        return _markdown(header, lines)


def summarise(
    results: Results,
    table: str,
    dataset: str,
    metric: str | None = None,
    methods: Sequence[str] | None = None,
    bits: Sequence[int] | None = None,
) -> Summary:
    """The means of a metric (the table's own if None), for all methods and lengths of ``results``, missing ones too."""
    metric = metric or TABLES[table].metric
    known = [c for c in (*results.records, *results.missing) if (c.table, c.dataset) == (table, dataset)]
    present = [c for c in known if c in results.records]
    if methods is None:
        methods = sorted({c.method for c in known}, key=lambda name: ([*METHODS, name].index(name), name))
    lengths = tuple(sorted({c.n_bits for c in known})) if bits is None else tuple(bits)
    rows = {
        method: {n_bits: _entry(results, table, dataset, method, n_bits, metric) for n_bits in lengths}
        for method in methods
    }
    first = results.records[present[0]] if present else {}
    return Summary(
        table=table,
        dataset=dataset,
        features=first.get("cell", {}).get("features", ABSENT),
        protocol=_protocol(first.get("protocol", {})),
        metric=metric,
        n_draws=max((c.draw for c in known), default=0) + 1,
        bits=lengths,
        rows=rows,
    )


def _protocol(drawn: Mapping[str, Any]) -> str:
    """A stored protocol in one line; nothing where nothing is stored."""
    if not drawn:
        return ""
    left_out = f" ({drawn['n_classes_left_out']} smaller ones left out)" if drawn.get("n_classes_left_out") else ""
    unseen = drawn.get("unseen_classes")
    asked = f", all of {len(unseen)} other classes, drawn anew each time" if unseen else ""
    return (
        f"Protocol {drawn['name']!r}: {drawn['n_classes']} classes{left_out}, {drawn['train_per_class']} training "
        f"samples of each, {drawn['n_train']:,} in all; {drawn['n_database']:,} in the database; "
        f"{drawn['n_queries']:,} queries ({drawn['queries']}{asked})"
    )


def _entry(results: Results, table: str, dataset: str, method: str, n_bits: int, metric: str) -> Entry:
    found = [record["metrics"].get(metric) for record in results.draws(table, dataset, method, n_bits)]
    published = paper.value(table, dataset, method, n_bits) if metric == TABLES[table].metric else None
    is_missing = method in METHODS and METHODS[method].is_missing
    return Entry(tuple(100.0 * value for value in found if value is not None), published, is_missing)


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]

    def row(cells: Sequence[str]) -> str:
        first, *others = (
            f"{cell:<{w}}" if k == 0 else f"{cell:>{w}}" for k, (cell, w) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join([first, *others])} |"

    rule = [f"{'-' * (w + 2)}" if k == 0 else f"{'-' * (w + 1)}:" for k, w in enumerate(widths)]
    return "\n".join([row(header), f"|{'|'.join(rule)}|", *map(row, lines)])
