"""Test queries whose neighbors changed: what the codes keep, what they lose, and what comes in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hashlearn.compression.result import Compression, Example
from hashlearn.core.arrays import to_numpy
from hashlearn.pages.formatting import cut
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.png import picture


class Contents(NamedTuple):
    """What the rows of X, or the queries, look like; None where only their numbers are known."""

    name: str  # of the arguments, for errors: "" or "query_"
    texts: Sequence[Any] | None
    images: Sequence[Any] | None

    def require(self, n_rows: int, exactly: bool) -> None:
        """Refuse contents that are too few, or of another number than the rows if ``exactly``."""
        for kind, held in (("texts", self.texts), ("images", self.images)):
            if held is not None and (len(held) < n_rows or (exactly and len(held) != n_rows)):
                limit = f"{n_rows:,} entries, one for each row of X" if exactly else f"at least {n_rows:,} entries"
                raise ValueError(f"{self.name}{kind} must have {limit}, got {len(held):,}")

    def picture(self, row: int, label: str) -> Markup | None:
        """The image of a row."""
        if self.images is None:
            return None
        pixels = np.asarray(to_numpy(self.images[row]))
        try:
            return picture(pixels, label)
        except ValueError as error:
            raise ValueError(f"{self.name}images[{row}]: {error}") from None

    def text(self, row: int) -> str | None:
        """The text of a row, cut if it is long."""
        return None if self.texts is None else cut(self.texts[row])


def example_parts(plan: Compression, database: Contents, queries: Contents) -> list[Markup]:
    """Each example with its neighbors in three groups."""
    promise = plan.certificate
    own = promise.own_queries
    if not own and (queries.texts is not None or queries.images is not None):
        kind = "texts" if queries.texts is not None else "images"
        raise ValueError(f"query_{kind} must be None, because the queries are rows of X; {kind} shows them")
    database.require(promise.n_rows, exactly=True)
    if own:
        queries.require(1 + max((example.query for example in plan.examples), default=-1), exactly=False)
    return [_example(example, database, queries if own else database, own) for example in plan.examples]


def _example(example: Example, database: Contents, queries: Contents, own: bool) -> Markup:
    name = f"{'query' if own else 'row'} {example.query:,}"
    kept = [row for row in example.true if row in example.found]
    lost = [row for row in example.true if row not in example.found]
    instead = [row for row in example.found if row not in example.true]
    groups = (("kept", kept, "same"), ("lost", lost, "other"), ("came instead", instead, "new"))
    title = element("h4", element("small", name if own else f"query, {name}"), queries.text(example.query))
    header = element("header", queries.picture(example.query, f"Query: {name}"), title)
    found = [_group(group, rows, kind, database, len(example.true)) for group, rows, kind in groups if rows]
    layout = "query" if queries.images is not None else "query stacked"
    return element("section", header, element("div", found, class_="rows"), class_=layout)


def _group(title: str, rows: list[int], kind: str, database: Contents, k: int) -> Markup:
    count = f" {len(rows)}" if kind == "new" else f" {len(rows)} of {k}"
    name = element("p", {"same": "✓ ", "other": "✗ ", "new": "→ "}[kind], title, element("small", count))
    if database.images is not None:
        shown = element("div", (_figure(row, kind, title, database) for row in rows), class_="neighbors")
    elif database.texts is not None:
        items = (element("li", database.text(row), element("small", f" row {row:,}")) for row in rows)
        shown = element("ul", items, class_="texts")
    else:
        shown = element("p", "rows " if len(rows) > 1 else "row ", ", ".join(f"{row:,}" for row in rows))
    return element("div", name, shown, class_="found", data_group=kind)


def _figure(row: int, kind: str, title: str, database: Contents) -> Markup:
    label = f"row {row:,}"
    text = database.text(row)
    caption = element("figcaption", element("b", text or label), element("span", label) if text else None)
    return element("figure", database.picture(row, f"{label}, {title}"), caption, class_=kind)
