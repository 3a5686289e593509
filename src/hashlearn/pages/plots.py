"""Line plots as inline SVG: axes, ticks, grid, markers, deviations, a legend, and each line's name beside it.

Drawn for about 420 pixels of width, so that letters stay readable on a phone. Colors and fonts are the style sheet's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from hashlearn.pages.formatting import compact
from hashlearn.pages.markup import Markup, element, join
from hashlearn.pages.series_styles import Look, marker, stroke, swatch

WIDTH, HEIGHT = 420.0, 280.0
LEFT, TOP, BOTTOM, PAD = 54.0, 30.0, 42.0, 10.0
LETTER = 8.2  # upper limit of the width of a letter of a label
LABEL_GAP = 14.0
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
    right: float
    top: float = TOP
    bottom: float = HEIGHT - BOTTOM

    def at_x(self, value: float) -> float:
        """Horizontal place of a value."""
        return LEFT + PAD + self.x.fraction(value) * (WIDTH - self.right - LEFT - 2 * PAD)

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
    labels_inside: bool = False,
    note: str | None = None,
    behind: Callable[[Frame], Markup] | None = None,
    in_front: Callable[[Frame], Markup] | None = None,
    x_text: Callable[[float], str] = compact,
) -> Markup:
    """A figure. Names are at the lines' ends, or with ``labels_inside`` where lines are far apart."""
    longest = max(len(line.name) for line in lines)
    right = 8.0 if labels_inside else 14.0 + LETTER * min(longest, 16)
    frame = Frame(x, y, right, TOP if behind is None else TOP + 18.0)
    names = _inside_labels if labels_inside else _end_labels
    described = f"{title}. {y_title} against {x_title}, for {', '.join(line.name for line in lines)}."
    picture = element(
        "svg",
        element("title", described),
        _grid(frame, x_title, y_title, x_text),
        behind(frame) if behind else None,
        (_line(frame, line, place) for place, line in enumerate(lines)),
        names(frame, lines),
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
    bottom, right = frame.bottom, WIDTH - frame.right
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


def _end_labels(frame: Frame, lines: Sequence[Line]) -> Markup:
    """Names right of the lines' last points, moved apart if they would touch, with leaders to the lines."""
    wished = [frame.at_y(line.y[-1]) for line in lines]
    placed = spaced(wished, LABEL_GAP, TOP, frame.bottom)
    edge = WIDTH - frame.right
    parts = []
    for line, wish, place in zip(lines, wished, placed, strict=True):
        begin = frame.at_x(line.x[-1]) + 5
        leader = f"M{begin:.1f} {wish:.1f}L{edge + 8:.1f} {place:.1f}"
        parts.append(element("path", d=leader, class_="leader", stroke=line.look.stroke))
        parts.append(_text(_short(line.name), edge + 11, place + 4, "start", "label", line.look.stroke))
    return element("g", parts)


def _inside_labels(frame: Frame, lines: Sequence[Line]) -> Markup:
    """Names above or below their lines, touching no line and no other name. A name that does not fit is left out."""
    grid = np.linspace(frame.at_x(frame.x.low), frame.at_x(frame.x.high), 121)
    heights = np.array([_heights(frame, line, grid) for line in lines])
    placed: list[tuple[float, float, float]] = []  # middle x, middle y, half a width
    parts = []
    for line, own in zip(lines, heights, strict=True):
        half = 0.5 * LETTER * len(_short(line.name))
        best: tuple[float, float, float] | None = None
        for x in grid[::4]:
            beside = np.abs(grid - x) <= half
            if grid[0] > x - half or x + half > grid[-1] or np.isnan(own[beside]).any():
                continue
            for y in (own[beside].min() - 10.0, own[beside].max() + 10.0):
                clear = np.nanmin(np.abs(heights[:, beside] - y)) >= 9.0 and frame.top <= y <= frame.bottom - 8.0
                alone = all(abs(x - px) > half + ph or abs(y - py) > LABEL_GAP for px, py, ph in placed)
                away = abs(y - own[beside].mean())
                if clear and alone and (best is None or away < best[0] - 0.1):
                    best = (away, float(x), float(y))
        if best is not None:
            _, x, y = best
            placed.append((x, y, half))
            parts.append(_text(_short(line.name), x, y + 4, "middle", "label halo", line.look.stroke))
    return join(parts)


def _heights(frame: Frame, line: Line, places: np.ndarray) -> np.ndarray:
    """The height of the line at each horizontal place; NaN beyond its ends."""
    x, y = np.array([frame.at_x(v) for v in line.x]), np.array([frame.at_y(v) for v in line.y])
    return np.where((places >= x[0]) & (places <= x[-1]), np.interp(places, x, y), np.nan)


def _text(text: str, x: float, y: float, anchor: str, kind: str, fill: str | None = None) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind, fill=fill)


def _short(name: str) -> str:
    return name if len(name) <= 16 else name[:15] + "…"


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


def log_axis(values: Iterable[float], floor: float) -> Axis:
    """Decades around the values; values below ``floor`` are drawn at it.

    >>> log_axis([0.02, 3.0], floor=1e-4).ticks
    (0.01, 0.1, 1.0, 10.0)
    """
    held = [max(value, floor) for value in values]
    first = math.floor(math.log10(min(held)) + 1e-9)
    last = max(math.ceil(math.log10(max(held)) - 1e-9), first + 1)
    ticks = tuple(10.0**power for power in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks[:: max(1, math.ceil(len(ticks) / 6))], log=True)


def marked_axis(ticks: Sequence[float]) -> Axis:
    """An axis with a tick at each of these places and nowhere else.

    >>> marked_axis([8, 16, 32]).fraction(16), marked_axis([8]).fraction(8)
    (0.3333333333333333, 0.5)
    """
    if len(ticks) == 1:
        return Axis(ticks[0] - 1.0, ticks[0] + 1.0, tuple(ticks))
    return Axis(ticks[0], ticks[-1], tuple(ticks))


def marked_log_axis(ticks: Sequence[float], values: Iterable[float] = ()) -> Axis:
    """The same in decades, long enough for the values too.

    >>> marked_log_axis([8, 16, 32]).fraction(16), marked_log_axis([8, 16], [4]).low
    (0.5, 4)
    """
    held = [*ticks, *values]
    low, high = min(held), max(held)
    return Axis(low, high, tuple(ticks), log=True) if low < high else marked_axis([low])


def spaced(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the places as little as possible so that they are ``gap`` apart, in order, inside [low, high] if they fit.

    >>> spaced([10.0, 11.0, 40.0], gap=12.0, low=0.0, high=50.0)
    [4.5, 16.5, 40.0]
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    # Less their steps, places in order must not decrease: the nearest such sequence is an isotonic regression.
    nearest = isotonic_regression(np.asarray(places, dtype=float)[order] - steps).x
    moved = np.empty(len(places))
    moved[order] = np.clip(nearest, low, max(low, high - steps[-1])) + steps
    return [float(place) for place in moved]
