"""The frontier on a page: what each size keeps, as figures for each kind of search, and everything as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hashlearn.compression.result import Certificate, FrontierRow
from hashlearn.pages.formatting import ABSENT, at_least, percent, seconds
from hashlearn.pages.markup import Markup, element, join
from hashlearn.pages.plots import Axis, Frame, Line, line_plot, linear_axis, marked_axis
from hashlearn.pages.series_styles import Look, look, swatch
from hashlearn.pages.tables import plain_table

MODES = {"asymmetric": "asymmetric search", "hamming": "search by Hamming distance"}
TICK_GAP = 1.6  # the smallest ratio of neighboring ticks on the axis of bytes
MOST_ROWS_OPEN = 24  # a longer table is folded


class _Point(NamedTuple):
    row: FrontierRow
    value: float
    low: float  # where its whisker ends


def frontier_figures(rows: Sequence[FrontierRow], promise: Certificate) -> list[Markup]:
    """Recall of the codes alone, and after rescoring, against bytes; for each kind of search."""
    figures = _figures(rows, promise, "codes", "codes_recall", "codes_bound", "Codes alone")
    if promise.keep_floats:
        figures += _figures(rows, promise, "rescored", "recall", "bound", f"{promise.max_depth:,} candidates rescored")
    return figures


def _figures(
    rows: Sequence[FrontierRow], promise: Certificate, kind: str, value: str, low: str, title: str
) -> list[Markup]:
    """A figure for each kind of search, of the attributes ``value`` and ``low``."""
    styles, asked = _styles(rows), 100.0 * promise.recall
    points = [_Point(row, 100.0 * getattr(row, value), 100.0 * getattr(row, low)) for row in rows]
    heights = [height for point in points for height in (point.value, point.low, asked)]
    sizes = _bytes_axis([point.row.bytes_per_row for point in points])
    figures = []
    for mode, words in MODES.items():
        of_mode = [point for point in points if point.row.mode == mode]
        if of_mode:
            figure = line_plot(
                _lines(of_mode, styles),
                sizes,
                linear_axis(heights, low=0.0, high=100.0),
                title=f"{title}, {words}",
                x_title="bytes a row, logarithmic",
                y_title=f"recall@{promise.k}, %",
                kind=f"{kind}-{mode}",
                note="A whisker goes down to the bound.",
                in_front=_marks(of_mode, asked),
            )
            figures.append(figure)
    return figures


def frontier_table(rows: Sequence[FrontierRow], promise: Certificate) -> Markup:
    """One line for each code and kind of search; folded if there are many."""
    heads = ["code", "bytes", "search", f"codes alone, recall@{promise.k}", "at least"]
    if promise.keep_floats:
        heads += [f"{promise.max_depth:,} rescored", "at least", f"candidates for {percent(promise.recall)}"]
    heads += ["ms a query", "fit, s"]
    caption = [
        element("strong", "Everything that was measured"),
        f" Bounds (“at least”) and candidates hold together at {percent(promise.confidence)} confidence.",
    ]
    styles = _styles(rows)
    lines = (_table_row(row, styles[row.family], promise.keep_floats) for row in rows)
    table = plain_table("measured", caption, heads, lines, "Everything that was measured")
    summary = element("summary", f"All {len(rows)} measurements as a table")
    return element("details", summary, table, open=len(rows) <= MOST_ROWS_OPEN)


def _table_row(row: FrontierRow, style: Look, rescored: bool) -> Markup:
    mark = element("span", "✓ chosen", class_="verdict better") if row.chosen else None
    name = element("th", swatch(style), element("span", row.family), " ", mark, scope="row")
    texts = [f"{row.bytes_per_row:,}", row.mode, percent(row.codes_recall, 3), at_least(row.codes_bound)]
    if rescored:
        candidates = ABSENT if row.depth is None else f"{row.depth:,}"
        texts += [percent(row.recall, 3), at_least(row.bound), candidates]
    texts += [seconds(row.ms_per_query), seconds(row.fit_seconds)]
    return element("tr", name, (element("td", text) for text in texts))


def _lines(points: Sequence[_Point], styles: Mapping[str, Look]) -> list[Line]:
    """One line for each family."""
    lines = []
    for family in sorted({point.row.family for point in points}):
        own = sorted((p for p in points if p.row.family == family), key=lambda point: point.row.bytes_per_row)
        sizes, values, lows = zip(*((float(p.row.bytes_per_row), p.value, p.low) for p in own), strict=True)
        lines.append(Line(family, sizes, values, styles[family], lows=lows))
    return lines


def _styles(rows: Sequence[FrontierRow]) -> dict[str, Look]:
    return {family: look(place) for place, family in enumerate(dict.fromkeys(row.family for row in rows))}


def _bytes_axis(sizes: Sequence[int]) -> Axis:
    """Decades, with ticks at the sizes that leave space for their numbers."""
    ticks: list[int] = []
    for size in sorted(set(sizes)):
        if not ticks or size >= TICK_GAP * ticks[-1]:
            ticks.append(size)
    return marked_axis(ticks, sizes, log=True)


def _marks(points: Sequence[_Point], asked: float) -> Callable[[Frame], Markup]:
    """A ring around the chosen code, and a line at the recall that was asked for."""

    def draw(frame: Frame) -> Markup:
        at, left, right = frame.at_y(asked), frame.at_x(frame.x.low), frame.at_x(frame.x.high)
        place = {"x": f"{right:.1f}", "y": f"{at + 14:.1f}", "text_anchor": "end"}
        parts = [
            element("path", d=f"M{left:.1f} {at:.1f}H{right:.1f}", class_="asked"),
            element("text", "asked for", class_="tick halo", **place),
        ]
        for row, value, _ in points:
            if row.chosen:
                x, y = frame.at_x(row.bytes_per_row), frame.at_y(value)
                parts.append(element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=8, class_="ring"))
                anchor, side = ("start", -8) if frame.x.fraction(row.bytes_per_row) < 0.5 else ("end", 8)
                height = y - 13 if y > frame.top + 20 else y + 22
                place = {"x": f"{x + side:.1f}", "y": f"{height:.1f}", "text_anchor": anchor}
                parts.append(element("text", "chosen", class_="label halo chosen", **place))
        return join(parts)

    return draw
