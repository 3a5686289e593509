"""A small picture with linear axes for the pages, written as SVG that follows light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.markup import Markup, element
from hashlearn.pages.plots import linear_axis

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 330, 64, 24, 34, 52
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #46556a; }
.page { fill: #fbfcfe; stroke: #d5dce6; }
.grid { stroke: #dde3ec; } .curve { stroke: #55647a; stroke-width: 2; fill: none; }
.claim { stroke: #b3402f; stroke-width: 1.6; stroke-dasharray: 6 4; } .mark { stroke: #2f6fc4; stroke-width: 1.6; }
.dots { stroke: #2f6fc4; stroke-width: 4; stroke-linecap: round; stroke-opacity: 0.45; fill: none; }
.strong { font-weight: 600; fill: #1d2a3c; paint-order: stroke; stroke: #fbfcfe; stroke-width: 4; }
.red { fill: #b3402f; } .ring { fill: none; stroke: #b3402f; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c3d4; } .page { fill: #151b24; stroke: #303b4a; } .grid { stroke: #2b3543; }
  .curve { stroke: #a3b2c6; } .mark, .dots { stroke: #6ba6f2; } .strong { fill: #eef3fa; stroke: #151b24; }
  .claim, .ring { stroke: #f08a78; } .red { fill: #f08a78; }
}
"""


class Picture:
    """A frame with linear axes, and lines at ticks of the vertical one."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float], y_title: str) -> None:
        ticks = linear_axis(y).ticks
        self.title, self.x, self.y = title, x, (ticks[0], ticks[-1])
        self.parts: list[Markup] = [element("rect", x=1, y=1, width=WIDTH - 2, height=HEIGHT - 2, rx=12, class_="page")]
        for tick in ticks:
            self.horizontal(tick, "grid")
            self.text(f"{tick:g}", LEFT - 8, self.at(x[0], tick)[1] + 4, "end")
        self.text(y_title, 14, 22, "start", "strong")

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point."""
        (x0, x1), (y0, y1) = self.x, self.y
        across, up = (x - x0) / (x1 - x0), (y - y0) / (y1 - y0)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def path(self, points: Iterable[tuple[float, float]], kind: str, dots: bool = False) -> None:
        """A line through the points, or a dot at each of them."""
        places = [self.at(*point) for point in points]
        joined = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        self.parts.append(element("path", d=joined if dots else line, class_=kind))

    def horizontal(self, y: float, kind: str) -> None:
        """A line across the picture."""
        self.path([(self.x[0], y), (self.x[1], y)], kind)

    def text(self, text: str, x: float, y: float, anchor: str = "middle", kind: str | None = None) -> None:
        """Text at a place of the picture."""
        self.parts.append(element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind))

    def write(self, path: Path) -> None:
        """The file."""
        inside = [element("title", self.title), element("style", Markup(STYLE)), *self.parts]
        size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "role": "img"}
        path.write_text(element("svg", inside, xmlns="http://www.w3.org/2000/svg", **size) + "\n", "utf-8")
