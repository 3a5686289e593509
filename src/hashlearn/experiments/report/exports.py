"""The tables of a page as CSV: for a paper, a spreadsheet or a plot of your own."""

from __future__ import annotations

import csv
import io

from hashlearn.experiments.bench.blocks import blocks, published_value
from hashlearn.experiments.bench.results import Results

CSV_HEADS = (
    "table", "data set", "features", "protocol", "method", "bits", "metric", "mean", "standard deviation", "draws",
    "paper",
)  # fmt: skip


def as_csv(results: Results) -> str:
    """One line for each table, data set, method, code length and metric; values in per cent."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_HEADS)
    for block in blocks(results.cells, results.requests):
        protocol = (block.records[0].get("protocol") or {}).get("name", "")
        for method in block.methods:
            for n_bits in block.lengths:
                for name in block.metrics:
                    entry = block.compared(method, n_bits, name, published_value)
                    if entry.values:
                        key = [block.table.name, block.dataset, block.features, protocol, method, n_bits, name]
                        numbers = [_number(value) for value in (entry.mean, entry.deviation)]
                        lines.writerow([*key, *numbers, len(entry.values), _number(entry.paper)])
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
