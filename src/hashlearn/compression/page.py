"""The page "Will binary codes hurt my search?": the promise, what it costs and saves, and settings to copy.

One self-contained HTML file: no script, no request, light and dark, wide and narrow. The page itself is the template
``compress.html``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hashlearn.compression.engine_settings import engine_settings, hamming_depth
from hashlearn.compression.examples import Contents, example_queries
from hashlearn.compression.result import FLOAT_BYTES, Certificate, Compression, FrontierRow
from hashlearn.core.atomic_files import write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.pages.plots import Axis, Line, Plot, linear_axis, marked_axis
from hashlearn.pages.rendering import render
from hashlearn.pages.series_styles import Look, look

QUESTION = "Will binary codes hurt my search?"
DOLLARS_PER_GB = 4.6  # AWS r6g.large on demand, us-east-1: 16 GiB for $0.1008 an hour, 730 hours a month
SIZES_OF_MEMORY = (1_000_000, 100_000_000)
SEARCHES = {"asymmetric": "asymmetric search", "hamming": "search by Hamming distance"}
NOTE = "A whisker goes down to the bound. Dashed: the recall that was asked for. A ring: the code that was chosen."
TICK_GAP = 1.6  # the smallest ratio of neighboring ticks on the axis of bytes


def write_page(plan: Compression, path: str | os.PathLike[str], **shown: Any) -> None:
    """Write the page to a file, completely or not at all. ``shown`` are arguments of `page_data`."""
    write_atomically(Path(path), [render("compress.html", **page_data(plan, **shown)).encode()])


def page_data(
    plan: Compression,
    *,
    texts: Sequence[str] | None = None,
    images: Sequence[Any] | None = None,
    query_texts: Sequence[str] | None = None,
    query_images: Sequence[Any] | None = None,
    n_rows: int | None = None,
    title: str | None = None,
) -> dict[str, Any]:
    """What the template ``compress.html`` shows.

    Parameters
    ----------
    plan : what `hashlearn.compress` returned
    texts, images : the contents of the rows of X, shown in examples; images are uint8 (h, w) or (h, w, 3)
    query_texts, query_images : the same for queries of your own
    n_rows : the size of the database to compute memory and its price for; None: the rows of X
    title : name of the collection, shown above the question
    """
    promise = plan.certificate
    n_rows = promise.n_rows if n_rows is None else whole_number(n_rows, "n_rows", least=1)
    looks = {family: look(place) for place, family in enumerate(dict.fromkeys(row.family for row in plan.frontier))}
    return {
        "title": f"{title}: {QUESTION}" if title else QUESTION,
        "name": title,
        "question": QUESTION,
        "verdict": verdict(plan),
        "plan": plan,
        "promise": promise,
        "n_rows": n_rows,
        "searches": SEARCHES,
        "figures": frontier_figures(plan.frontier, promise, looks),
        "looks": looks,
        "float_bytes": _float_bytes(plan),
        "memory": [_memory(plan, count) for count in sorted({n_rows, *SIZES_OF_MEMORY})],
        "dollars": DOLLARS_PER_GB,
        "less_than_half": sum(count for found, count in enumerate(promise.found) if 2 * found < promise.k),
        "queries": example_queries(plan, Contents("", texts, images), Contents("query_", query_texts, query_images)),
        "depth": hamming_depth(plan),
        "settings": engine_settings(plan),
    }


def verdict(plan: Compression) -> str:
    """The answer, and the promise in the words of the plan."""
    promise = plan.certificate
    answer = "No" if promise.kept else "Yes" if promise.measured < promise.recall else "It may"
    return f"{answer}: {' '.join(str(plan).splitlines()[:-1])}"


class Memory(NamedTuple):
    """Bytes of a database, as floats and as codes, and the candidates of a query."""

    n_rows: int
    floats: int
    codes: int
    candidates: int


def _memory(plan: Compression, n_rows: int) -> Memory:
    return Memory(n_rows, n_rows * _float_bytes(plan), n_rows * plan.bytes_per_row, plan.certificate.depth_for(n_rows))


def _float_bytes(plan: Compression) -> int:
    """Bytes of the float vector that a code stands for."""
    return FLOAT_BYTES * int(plan.hasher.n_features_in_)


def frontier_figures(rows: Sequence[FrontierRow], promise: Certificate, looks: dict[str, Look]) -> list[Plot]:
    """Recall of the codes alone, and after rescoring, against bytes; for each kind of search."""
    parts = [("codes", "Codes alone", "codes_recall", "codes_bound")]
    if promise.keep_floats:
        parts.append(("rescored", f"{promise.max_depth:,} candidates rescored", "recall", "bound"))
    figures = []
    for kind, title, recall, bound in parts:
        points = [(row, 100.0 * getattr(row, recall), 100.0 * getattr(row, bound)) for row in rows]
        heights = [height for _, *pair in points for height in (*pair, 100.0 * promise.recall)]
        for mode, words in SEARCHES.items():
            of_mode = [point for point in points if point[0].mode == mode]
            if of_mode:
                figures.append(
                    Plot(
                        kind=f"{kind}-{mode}",
                        title=f"{title}, {words}",
                        x_title="bytes a row, logarithmic",
                        y_title=f"recall@{promise.k}, %",
                        x=_bytes_axis([row.bytes_per_row for row in rows]),
                        y=linear_axis(heights, low=0.0, high=100.0),
                        lines=_lines(of_mode, looks),
                        note=NOTE,
                        goal=100.0 * promise.recall,
                        ring=next(((row.bytes_per_row, value) for row, value, _ in of_mode if row.chosen), None),
                    )
                )
    return figures


def _lines(points: Sequence[tuple[FrontierRow, float, float]], looks: dict[str, Look]) -> list[Line]:
    """One line for each family."""
    lines = []
    for family in sorted({row.family for row, _, _ in points}):
        own = sorted((row.bytes_per_row, value, low) for row, value, low in points if row.family == family)
        sizes, values, _ = zip(*own, strict=True)
        lines.append(Line(family, sizes, values, looks[family], whiskers=[(x, low, high) for x, high, low in own]))
    return lines


def _bytes_axis(sizes: Sequence[int]) -> Axis:
    """Decades, with ticks at the sizes that leave space for their numbers."""
    ticks: list[int] = []
    for size in sorted(set(sizes)):
        if not ticks or size >= TICK_GAP * ticks[-1]:
            ticks.append(size)
    return marked_axis(ticks, sizes, log=True)
