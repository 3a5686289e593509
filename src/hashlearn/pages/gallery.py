"""Queries with the neighbors that were found, as plain data that ``templates/parts.html`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class Group(NamedTuple):
    """Neighbors of a query that belong together."""

    title: str
    amount: str
    items: Sequence[Item]
    look: Look | None = None


class Query(NamedTuple):
    """A query with its neighbors. ``layout`` is "pictures", "texts" or "numbers"."""

    title: str | None
    over: str
    picture: Picture | None
    groups: Sequence[Group]
    layout: str = "pictures"
