"""Test queries whose neighbors changed: what the codes keep, what they lose, and what comes in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hashlearn.compression.result import Compression, Example
from hashlearn.core.arrays import to_numpy
from hashlearn.pages.formatting import cut
from hashlearn.pages.gallery import Group, Item, Picture, Query


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

    def picture(self, row: int, label: str) -> Picture | None:
        """The image of a row."""
        if self.images is None:
            return None
        pixels = np.asarray(to_numpy(self.images[row]))
        try:
            return Picture.of(pixels, label)
        except ValueError as error:
            raise ValueError(f"{self.name}images[{row}]: {error}") from None

    def text(self, row: int) -> str | None:
        """The text of a row, cut if it is long."""
        return None if self.texts is None else cut(self.texts[row])


def example_queries(plan: Compression, database: Contents, queries: Contents) -> list[Query]:
    """Each example with its neighbors in three groups."""
    promise = plan.certificate
    own = promise.own_queries
    if not own and (queries.texts is not None or queries.images is not None):
        kind = "texts" if queries.texts is not None else "images"
        raise ValueError(f"query_{kind} must be None, because the queries are rows of X; {kind} shows them")
    database.require(promise.n_rows, exactly=True)
    if own:
        queries.require(1 + max((example.query for example in plan.examples), default=-1), exactly=False)
    return [_query(example, database, queries if own else database, own) for example in plan.examples]


def _query(example: Example, database: Contents, queries: Contents, own: bool) -> Query:
    name = f"{'query' if own else 'row'} {example.query:,}"
    picture = queries.picture(example.query, f"Query: {name}")
    k = len(example.true)
    kept = [row for row in example.true if row in example.found]
    lost = [row for row in example.true if row not in example.found]
    instead = [row for row in example.found if row not in example.true]
    groups = [
        Group("✓ kept", f"{len(kept)} of {k}", [_item(row, "same", "kept", database) for row in kept]),
        Group("✗ lost", f"{len(lost)} of {k}", [_item(row, "other", "lost", database) for row in lost]),
        Group("→ came instead", f"{len(instead)}", [_item(row, "new", "came instead", database) for row in instead]),
    ]
    return Query(
        title=queries.text(example.query),
        over=name if own else f"query, {name}",
        picture=picture,
        groups=[group for group in groups if group.items],
        layout="pictures" if database.images is not None else "texts" if database.texts is not None else "numbers",
    )


def _item(row: int, kind: str, group: str, database: Contents) -> Item:
    text, label = database.text(row), f"row {row:,}"
    if database.images is None and text is None:
        return Item(f"{row:,}", kind=kind)
    picture = database.picture(row, f"{label}, {group}")
    return Item(text or label, label if text or picture is None else None, picture, kind)
