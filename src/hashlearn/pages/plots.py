"""Line plots as inline SVG: axes, ticks, grid, markers, deviations and a legend.

Drawn for about 420 pixels of width, so that letters stay readable on a phone. Colors and fonts are the style sheet's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hashlearn.pages.formatting import compact
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.series_styles import Look, marker, stroke, swatch

WIDTH, HEIGHT = 420.0, 280.0
LEFT, RIGHT, TOP, BOTTOM, PAD = 54.0, 8.0, 30.0, 42.0, 10.0
_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Line:
    """One series of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: Look
    deviations: Sequence[float | None] = ()
    lows: Sequence[float | None] = ()  # where whiskers that only go down end
    markers: int | None = None  # their number, spread evenly over the line; None: one at each point
    width: float = 2.0


@dataclass(frozen=True)
class Frame:
    """The place of the data in the picture."""

    x: Axis
    y: Axis
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM

    def at_x(self, value: float) -> float:
        """Horizontal place of a value."""
        return LEFT + PAD + self.x.fraction(value) * (WIDTH - RIGHT - LEFT - 2 * PAD)

    def at_y(self, value: float) -> float:
        """Vertical place of a value."""
        return self.bottom - self.y.fraction(value) * (self.bottom - self.top)


def line_plot(
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    title: str,
    x_title: str,
    y_title: str,
    kind: str,
    note: str | None = None,
    behind: Callable[[Frame], Markup] | None = None,
    in_front: Callable[[Frame], Markup] | None = None,
    x_text: Callable[[float], str] = compact,
) -> Markup:
    """A figure with its legend. ``behind`` and ``in_front`` draw what belongs under and over the lines."""
    frame = Frame(x, y, TOP if behind is None else TOP + 18.0)
    described = f"{title}. {y_title} against {x_title}, for {', '.join(line.name for line in lines)}."
    picture = element(
        "svg",
        element("title", described),
        _grid(frame, x_title, y_title, x_text),
        behind(frame) if behind else None,
        (_line(frame, line, place) for place, line in enumerate(lines)),
        in_front(frame) if in_front else None,
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
    )
    caption = element("figcaption", element("strong", title), element("span", note) if note else None)
    return element("figure", caption, legend(lines), picture, class_="plot", data_plot=kind)


def legend(lines: Sequence[Line]) -> Markup:
    """The name of every line with a sample of it."""
    return element("ul", (element("li", swatch(line.look), line.name) for line in lines), class_="legend")


def _grid(frame: Frame, x_title: str, y_title: str, x_text: Callable[[float], str]) -> Markup:
    bottom, right = frame.bottom, WIDTH - RIGHT
    parts = []
    for tick in frame.y.ticks:
        at = frame.at_y(tick)
        parts.append(element("path", d=f"M{LEFT:g} {at:.1f}H{right:.1f}", class_="grid"))
        parts.append(_text(compact(tick), LEFT - 7, at + 4, "end", "tick"))
    for tick in frame.x.ticks:
        at = frame.at_x(tick)
        parts.append(element("path", d=f"M{at:.1f} {bottom:g}v4", class_="axis"))
        parts.append(_text(x_text(tick), at, bottom + 18, "middle", "tick"))
    parts.append(element("path", d=f"M{LEFT:g} {bottom:g}H{right:.1f}", class_="axis"))
    parts.append(_text(y_title, 2, 15, "start", "axis-title"))
    parts.append(_text(x_title, right, HEIGHT - 5, "end", "axis-title"))
    return element("g", parts)


def _line(frame: Frame, line: Line, place: int) -> Markup:
    places = [(frame.at_x(x), frame.at_y(y)) for x, y in zip(line.x, line.y, strict=True)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    ends = [(i, line.y[i] - sd, line.y[i] + sd) for i, sd in enumerate(line.deviations) if sd]
    ends += [(i, low, line.y[i]) for i, low in enumerate(line.lows) if low is not None]
    whiskers = [
        element("path", d=f"M{places[i][0]:.1f} {frame.at_y(low):.1f}V{frame.at_y(high):.1f}") for i, low, high in ends
    ]
    return element(
        "g",
        element("path", d=path, class_="line", stroke_width=f"{line.width:g}", **stroke(line.look)),
        element("g", whiskers, class_="whiskers", stroke=line.look.stroke) if whiskers else None,
        (marker(line.look, *at) for at in _marked(places, line.markers, place)),
    )


def _marked(places: list[tuple[float, float]], count: int | None, shift: int) -> list[tuple[float, float]]:
    """The points that get a marker. If they are few, those of neighboring lines are shifted apart."""
    if count is None or count >= len(places):
        return places
    if count == 0:
        return []
    left, right = places[0][0], places[-1][0]
    wanted = [left + (right - left) * (step + 0.2 + 0.6 * (shift % 4) / 3.0) / count for step in range(count)]
    return [min(places, key=lambda place: abs(place[0] - x)) for x in wanted]


def _text(text: str, x: float, y: float, anchor: str, kind: str) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``, linear or in decades."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

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
