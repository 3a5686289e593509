"""Line plots as plain data: axes, ticks, lines and the place of everything; ``templates/parts.html`` draws them.

Drawn for about 420 pixels of width, so that letters stay readable on a phone. Colors and fonts are the style sheet's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hashlearn.pages.formatting import compact
from hashlearn.pages.series_styles import Look

LEFT, RIGHT, TOP, BOTTOM, PAD = 54.0, 8.0, 30.0, 42.0, 10.0
_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Line:
    """One series of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: Look
    whiskers: Sequence[tuple[float, float, float]] = ()  # x, and from where to where
    markers: int | None = None  # their number, spread evenly over the line; None: one at each point
    width: float = 2


@dataclass(frozen=True)
class Plot:
    """A figure with its legend, and the place of every value in the picture."""

    kind: str
    title: str
    x_title: str
    y_title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    note: str | None = None
    goal: float | None = None  # a height to reach, with a line of its own
    ring: tuple[float, float] | None = None  # around the point that was chosen
    sections: Sequence[tuple[float, float, str]] = ()  # from where to where on the horizontal axis, and the name
    band: Sequence[tuple[float, float, float]] = ()  # x, and from where to where there is a shade

    width, height, left, right, bottom = 420, 280, LEFT, 420 - RIGHT, 280 - BOTTOM

    @property
    def top(self) -> float:
        """The upper end of the vertical axis; sections have their names above it."""
        return TOP + 18.0 if self.sections else TOP

    @property
    def band_path(self) -> str:
        """The outline of the shade."""
        there, back = ([(x, place[side]) for x, *place in self.band] for side in (0, 1))
        return f"{self._joined([*there, *reversed(back)])}z"

    def at_x(self, value: float) -> float:
        """Horizontal place of a value."""
        return LEFT + PAD + self.x.fraction(value) * (self.right - LEFT - 2 * PAD)

    def at_y(self, value: float) -> float:
        """Vertical place of a value."""
        return self.bottom - self.y.fraction(value) * (self.bottom - self.top)

    def path(self, line: Line) -> str:
        """The points of a line."""
        return self._joined(zip(line.x, line.y, strict=True))

    def marked(self, line: Line, number: int) -> list[tuple[float, float]]:
        """Places that get a marker. If they are few, those of lines with neighboring numbers are shifted apart."""
        places = [(self.at_x(x), self.at_y(y)) for x, y in zip(line.x, line.y, strict=True)]
        count = len(places) if line.markers is None else line.markers
        if count >= len(places):
            return places
        first, last = places[0][0], places[-1][0]
        shift = 0.2 + 0.6 * (number % 4) / 3.0
        targets = [first + (last - first) * (step + shift) / count for step in range(count)]
        return [min(places, key=lambda place: abs(place[0] - x)) for x in targets]

    def _joined(self, points: Iterable[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self.at_x(x):.1f} {self.at_y(y):.1f}" for x, y in points)


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``, linear or in decades."""

    low: float
    high: float
    ticks: Sequence[float]
    log: bool = False
    names: Sequence[str] = ()  # of the ticks; none: their values

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Ticks with their names."""
        return list(zip(self.ticks, self.names or map(compact, self.ticks), strict=True))

    def fraction(self, value: float) -> float:
        """0 at ``low``, 1 at ``high``; values that a logarithm cannot show are placed at ``low``.

        >>> Axis(0.0, 4.0, ()).fraction(1.0), Axis(0.01, 100.0, (), log=True).fraction(1.0)
        (0.25, 0.5)
        """
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        clipped = max(value, self.low)
        return math.log(clipped / self.low) / math.log(self.high / self.low)


def linear_axis(values: Iterable[float], count: int = 5, low: float | None = None, high: float | None = None) -> Axis:
    """A linear axis around the values with about ``count`` round ticks, never beyond ``low`` and ``high`` if given.

    >>> linear_axis([0.0, 9.3]).ticks
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """
    held = list(values)
    bottom, top = min(held), max(held)
    if top - bottom <= 1e-12 * max(abs(top), abs(bottom)):
        margin = 0.05 * abs(top) or 1.0
        bottom, top = bottom - margin, top + margin
    raw = (top - bottom) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((power * factor for factor in _ROUND_STEPS), key=lambda s: abs(math.log(s / raw)))
    first, last = math.floor(bottom / step + 1e-9), math.ceil(top / step - 1e-9)
    if low is not None:
        first = max(first, math.floor(low / step + 1e-9))
    if high is not None:
        last = min(last, math.ceil(high / step - 1e-9))
    ticks = tuple(round(tick * step, 12) for tick in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def marked_axis(ticks: Sequence[float], values: Iterable[float] = (), log: bool = False) -> Axis:
    """An axis with a tick at each of these places and nowhere else, long enough for the values too.

    >>> marked_axis([8, 16, 32]).fraction(16), marked_axis([8]).fraction(8), marked_axis([8, 16], [4], log=True).low
    (0.3333333333333333, 0.5, 4)
    """
    shown = [*ticks, *values]
    low, high = min(shown), max(shown)
    return Axis(low, high, tuple(ticks), log) if low < high else Axis(low - 1.0, high + 1.0, tuple(ticks))
