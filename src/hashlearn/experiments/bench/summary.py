"""Tables as text from stored cells: mean ± sample standard deviation over draws, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hashlearn.experiments.bench.blocks import Block, Entry, published_value
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.bench.plans import Plan
from hashlearn.experiments.bench.results import Results
from hashlearn.pages.formatting import ABSENT, text_table


@dataclass(frozen=True)
class Summary:
    """One table on one data set."""

    title: str  # what the numbers are, in one line
    protocol: str  # in words; empty if nothing is stored
    n_draws: int
    bits: tuple[int, ...]
    rows: Mapping[str, Mapping[int, Entry]]  # method → code length → entry

    @property
    def has_values(self) -> bool:
        """Whether anything is measured."""
        return any(entry.values for row in self.rows.values() for entry in row.values())

    def text(self) -> str:
        """An aligned table."""
        header = ["method", *(f"L = {n_bits}" for n_bits in self.bits)]
        lines = [
            [method, *(entry_text(row[n_bits], self.n_draws) for n_bits in self.bits)]
            for method, row in self.rows.items()
        ]
        return text_table(header, lines)


def summarize(results: Results, plan: Plan, dataset: str, metric_name: str) -> Summary:
    """The means of a metric on one data set, for all methods and lengths of the plan, without results too."""
    table, block = plan.table, _block(results, plan, dataset)
    paper = published_value if plan.choice.sizes is None else lambda *key: None
    rows = {
        method: {n_bits: block.compared(method, n_bits, metric_name, paper) for n_bits in plan.bits}
        for method in plan.methods
    }
    over = _over(plan, block)
    has_paper = any(entry.paper is not None for row in rows.values() for entry in row.values())
    beside = "; in brackets the paper's, and ours minus it" if has_paper else ""
    title = f"{table.title}, {dataset} ({block.features}): {metric_title(metric_name)} in %, {over}{beside}"
    return Summary(title, _protocol(block), plan.n_draws, plan.bits, rows)


def summaries(results: Results, plan: Plan, dataset: str) -> dict[str, Summary]:
    """The metrics that a table shows of one data set; only those with values, if there are any."""
    every = {name: summarize(results, plan, dataset, name) for name in plan.shown_metrics}
    return {name: one for name, one in every.items() if one.has_values} or every


def _block(results: Results, plan: Plan, dataset: str) -> Block:
    """The stored records of one data set."""
    records = tuple(record for cell, record in results.records.items() if cell.dataset == dataset)
    features = records[0]["cell"].get("features", ABSENT) if records else ABSENT
    return Block(plan.table, dataset, features, records)


def _over(plan: Plan, block: Block) -> str:
    return f"mean ± standard deviation of {block.drawn(plan.n_draws)}" if plan.n_draws > 1 else "one draw"


def entry_text(entry: Entry, n_draws: int) -> str:
    """An entry as a table shows it.

    >>> entry_text(Entry((87.0, 88.0), 86.5), 2)
    '87.50 ± 0.71 (86.50, +1.00)'
    >>> entry_text(Entry((87.0,)), 3), entry_text(Entry((), 86.5), 3)
    ('87.00 [1 of 3 draws]', '– (86.50)')
    """
    if entry.mean is None:
        parts = [ABSENT]
    else:
        parts = [f"{entry.mean:.2f}" + (f" ± {entry.deviation:.2f}" if entry.deviation is not None else "")]
    if entry.paper is not None:
        difference = "" if entry.difference is None else f", {entry.difference:+.2f}"
        parts.append(f"({entry.paper:.2f}{difference})")
    if 0 < len(entry.values) < n_draws:
        parts.append(f"[{len(entry.values)} of {n_draws} draws]")
    return " ".join(parts)


def _protocol(block: Block) -> str:
    """A stored protocol in one line; empty if nothing is stored."""
    drawn: Mapping[str, Any] = block.records[0].get("protocol", {}) if block.records else {}
    if not drawn:
        return ""
    left_out = f" ({drawn['n_classes_left_out']} smaller ones left out)" if drawn.get("n_classes_left_out") else ""
    unseen = drawn.get("unseen_classes")
    other_classes = f", all of {len(unseen)} other classes, drawn anew each time" if unseen else ""
    each = f", {drawn['train_per_class']} of each class" if drawn.get("train_per_class") else ""
    searched = ", training rows among them" if drawn.get("split") == "own" else ""
    parts = [
        f"{drawn['n_classes']} classes{left_out}" if drawn.get("n_classes") else "",
        f"{drawn['n_train']:,} training samples{each}",
        f"{drawn['n_database']:,} in the database{searched}",
        f"{drawn['n_queries']:,} queries ({drawn['queries']}{other_classes})",
        f"{drawn['n_unused']:,} rows unused" if drawn.get("n_unused") else "",
    ]
    return f"Protocol {drawn['name']!r}: {'; '.join(filter(None, parts))}"
