"""Styles of series by order of appearance: a color, a marker and a dash, so that color is never needed.

Colors are slots of the style sheet (Okabe and Ito's palette, darkened or lightened for contrast with the page), so
that dark mode and print change them in one place.
"""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """The style of a line: color slot 1 … 8, name of a marker, dash pattern."""

    color: int
    marker: str
    dash: str | None = None

    @property
    def stroke(self) -> str:
        """The color as a variable of the style sheet."""
        return f"var(--s{self.color})"

    @property
    def outline(self) -> str:
        """The marker as the path of an SVG picture."""
        return _MARKERS[self.marker]


_MARKERS = {
    "circle": "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0z",
    "square": "M-3 -3h6v6h-6z",
    "up": "M0 -4L3.8 3h-7.6z",
    "down": "M0 4L3.8 -3h-7.6z",
    "diamond": "M0 -4.4L4.4 0L0 4.4L-4.4 0z",
    "plus": "M-1.1 -4h2.2v2.9h2.9v2.2h-2.9v2.9h-2.2v-2.9h-2.9v-2.2h2.9z",
    "bar": "M-1.6 -4.2h3.2v8.4h-3.2z",
    "flat": "M-4.2 -1.6h8.4v3.2h-8.4z",
}
_DASHES = (None, "5 3", "1.5 3")


def look(place: int) -> Look:
    """The style of the series that comes at this place, from 0. The first 24 differ in marker or dash.

    >>> look(0), look(9)
    (Look(color=1, marker='circle', dash=None), Look(color=2, marker='square', dash='5 3'))
    """
    names = list(_MARKERS)
    turn, slot = divmod(place, len(names))
    return Look(1 + slot, names[slot], _DASHES[turn % len(_DASHES)])
