"""The frontier on a page: what each size keeps, as figures for each kind of search, and everything as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hashlearn.compression.result import Certificate, FrontierRow
from hashlearn.pages.formatting import ABSENT, at_least, percent, seconds
from hashlearn.pages.markup import Markup, element, join
from hashlearn.pages.plots import Axis, Frame, Line, line_plot, linear_axis, log_axis, marked_axis
from hashlearn.pages.series_styles import Look, look, swatch
from hashlearn.pages.tables import plain_table

MODES = {"asymmetric": "asymmetric search", "hamming": "search by Hamming distance"}
TICK_GAP = 1.6  # the smallest ratio of neighboring ticks on the axis of bytes
MOST_ROWS_OPEN = 24  # a longer table is folded


def frontier_figures(rows: Sequence[FrontierRow], promise: Certificate) -> list[Markup]:
    """Against bytes: recall of the codes alone, recall after rescoring, candidates needed; for each kind of search."""
    styles = _styles(rows)
    asked, whisker = 100.0 * promise.recall, "A whisker goes down to the bound."
    figures = _figures(
        rows,
        styles,
        lambda row: 100.0 * row.codes_recall,
        lambda row: 100.0 * row.codes_bound,
        asked,
        kind="codes",
        title="Codes alone",
        y_title=f"recall@{promise.k}, %",
        note=whisker,
    )
    if not promise.keep_floats:
        return figures
    figures += _figures(
        rows,
        styles,
        lambda row: 100.0 * row.recall,
        lambda row: 100.0 * row.bound,
        asked,
        kind="rescored",
        title=f"{promise.max_depth:,} candidates rescored",
        y_title=f"recall@{promise.k}, %",
        note=whisker,
    )
    return figures + _figures(
        [row for row in rows if row.depth is not None],
        styles,
        lambda row: float(row.depth or 0),
        kind="depth",
        title="Candidates to rescore",
        y_title="candidates, logarithmic",
        note=f"Needed to promise {percent(promise.recall)}; fewer are better.",
    )


def _figures(
    rows: Sequence[FrontierRow],
    styles: Mapping[str, Look],
    value: Callable[[FrontierRow], float],
    low: Callable[[FrontierRow], float] | None = None,
    asked: float | None = None,
    *,
    kind: str,
    title: str,
    y_title: str,
    note: str,
) -> list[Markup]:
    """A figure for each kind of search. Recall has a lower bound and a value asked for; candidates have neither."""
    if not rows:
        return []
    values = [value(row) for row in rows]
    if low is None or asked is None:
        axis = log_axis(values, floor=1.0)
    else:
        axis = linear_axis([*values, *map(low, rows), asked], low=0.0, high=100.0)
    sizes = _bytes_axis([row.bytes_per_row for row in rows])
    figures = []
    for mode, words in MODES.items():
        of_mode = [row for row in rows if row.mode == mode]
        if of_mode:
            figure = line_plot(
                _lines(of_mode, styles, value, low),
                sizes,
                axis,
                title=f"{title}, {words}",
                x_title="bytes a row, logarithmic",
                y_title=y_title,
                kind=f"{kind}-{mode}",
                note=note,
                in_front=_marks(of_mode, value, asked),
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


def _lines(
    rows: Sequence[FrontierRow],
    styles: Mapping[str, Look],
    value: Callable[[FrontierRow], float],
    low: Callable[[FrontierRow], float] | None,
) -> list[Line]:
    """One line for each family."""
    lines = []
    for family in sorted({row.family for row in rows}):
        own = sorted((row for row in rows if row.family == family), key=lambda row: row.bytes_per_row)
        sizes = [float(row.bytes_per_row) for row in own]
        lines.append(Line(family, sizes, [*map(value, own)], styles[family], lows=[*map(low, own)] if low else ()))
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


def _marks(
    rows: Sequence[FrontierRow], value: Callable[[FrontierRow], float], asked: float | None
) -> Callable[[Frame], Markup]:
    """A ring around the chosen code, and a line at the recall that was asked for."""

    def draw(frame: Frame) -> Markup:
        parts = []
        if asked is not None:
            at, left, right = frame.at_y(asked), frame.at_x(frame.x.low), frame.at_x(frame.x.high)
            parts.append(element("path", d=f"M{left:.1f} {at:.1f}H{right:.1f}", class_="asked"))
            place = {"x": f"{right:.1f}", "y": f"{at + 14:.1f}", "text_anchor": "end"}
            parts.append(element("text", "asked for", class_="tick halo", **place))
        for row in rows:
            if row.chosen:
                x, y = frame.at_x(row.bytes_per_row), frame.at_y(value(row))
                parts.append(element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=8, class_="ring"))
                anchor, side = ("start", -8) if frame.x.fraction(row.bytes_per_row) < 0.5 else ("end", 8)
                height = y - 13 if y > frame.top + 20 else y + 22
                place = {"x": f"{x + side:.1f}", "y": f"{height:.1f}", "text_anchor": anchor}
                parts.append(element("text", "chosen", class_="label halo chosen", **place))
        return join(parts)

    return draw
