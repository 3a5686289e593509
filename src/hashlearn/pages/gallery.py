"""Queries with the neighbors that were found, as plain data that ``templates/parts.html`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.pages.formatting import counted
from hashlearn.pages.png import data_uri
from hashlearn.pages.series_styles import Look


class Picture(NamedTuple):
    """An image inside the page."""

    address: str
    alt: str
    width: int
    height: int

    @classmethod
    def of(cls, pixels: NDArray[np.uint8], alt: str) -> Picture:
        """The picture of these pixels."""
        return cls(data_uri(pixels), alt, pixels.shape[1], pixels.shape[0])


class Item(NamedTuple):
    """A neighbor."""

    name: Any
    detail: str | None = None
    picture: Picture | None = None
    kind: str = ""  # "same", "other" or "new": the style of its frame

    @classmethod
    def labeled(cls, pixels: NDArray[np.uint8], label: str, distance: int, wanted: str) -> Item:
        """An image with its label, marked by whether that is the query's, and its distance in bits."""
        same, away = label == wanted, counted(distance, "bit")
        alt = f"{label}, {away} away, {'same label' if same else 'another label'}"
        return cls(f"{'✓' if same else '✗'} {label}", away, Picture.of(pixels, alt), "same" if same else "other")


class Group(NamedTuple):
    """Neighbors of a query that belong together."""

    title: str
    amount: str
    items: Sequence[Item]
    look: Look | None = None

    @classmethod
    def of_method(cls, method: str, items: Sequence[Item], look: Look) -> Group:
        """What a method found, and how much of it has the query's label."""
        return cls(method, f"{sum(item.kind == 'same' for item in items)} of {len(items)}", items, look)


class Query(NamedTuple):
    """A query with its neighbors. ``layout`` is "pictures", "texts" or "numbers"."""

    title: str | None
    over: str
    picture: Picture | None
    groups: Sequence[Group]
    layout: str = "pictures"
