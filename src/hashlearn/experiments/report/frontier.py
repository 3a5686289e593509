"""The frontier on a page: recall against bytes as one figure for each kind of search, and everything as a table."""

from __future__ import annotations

from hashlearn.experiments.bench.blocks import Block, metric, number_in
from hashlearn.experiments.bench.summary import FRONTIER_COLUMNS, frontier_lines
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.experiments.report.tables import look_in, method_cell
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.plots import Line, line_plot, linear_axis, marked_log_axis
from hashlearn.pages.tables import plain_table

_TITLES = {
    "asymmetric@10": "Asymmetric search",
    "hamming@10": "Search by Hamming distance",
    "rescored@10": "First 100 of the asymmetric search, rescored by floats",
}


def frontier_figures(block: Block) -> list[Markup]:
    """Recall@10 against the bytes that a row takes; no figure for a search that no method has."""
    found = [_figure(block, key, f"{title}, {dataset_name(block.dataset)}") for key, title in _TITLES.items()]
    return [figure for figure in found if figure is not None]


def frontier_table(block: Block) -> Markup:
    """One row for each method and size."""
    rows = [
        element("tr", method_cell(block, method), (element("td", text) for text in texts))
        for method, *texts in frontier_lines(block)
    ]
    caption = [
        element("strong", f"Recall@10, %, {dataset_name(block.dataset)}"),
        f" Mean of {block.drawn(block.draws)} ± standard deviation." if block.draws > 1 else " One draw.",
        " By size, the highest recall of an asymmetric search first.",
    ]
    return plain_table("frontier", caption, ["method", *FRONTIER_COLUMNS], rows, f"Frontier, {block.dataset}")


def _figure(block: Block, key: str, title: str) -> Markup | None:
    lines = []
    for method in block.methods:
        points = []
        for n_bits in block.lengths:
            size, recall = (block.entry(method, n_bits, reader) for reader in (number_in("bytes_per_row"), metric(key)))
            if size.mean is not None and recall.mean is not None:
                points.append((size.mean, recall.mean, recall.deviation))
        if points:
            sizes, recalls, deviations = zip(*points, strict=True)
            lines.append(Line(block.label(method), sizes, recalls, look_in(block, method), deviations))
    if not lines:
        return None
    return line_plot(
        lines,
        marked_log_axis([n_bits / 8.0 for n_bits in block.lengths], [x for line in lines for x in line.x]),
        linear_axis([y for line in lines for y in line.y], low=0.0, high=100.0),
        title=title,
        x_title="bytes a row, logarithmic",
        y_title="recall@10, %",
        kind=key.partition("@")[0],
    )
