"""The picture of README.md, docs/front.svg, drawn from stored results: what codes keep with labels, and without.

``python -m benchmarks.front_picture`` draws it again; a test compares it with docs/results.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from benchmarks.claims.stored import Stored, read_all
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.plots import spaced

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 920, 340
TOP, BOTTOM = 84, 282
BARS = {  # name in the picture: bits and method of embeddings_clinc150
    "hashlearn, 8 bytes": ("64", "labels"),
    "floats, 1,536 bytes": ("–", "cosine of the 384 floats"),
    "ITQ, 8 bytes": ("64", "ITQ"),
    "signs of PCA, 8 bytes": ("64", "sign code after PCA"),
}
LINES = {  # name in the picture: row of frontier_clinc150
    "hashlearn": "`Ranking full`",
    "FAISS RQ": "`RQ`",
    "FAISS LSQ": "`LSQ`",
    "signs of PCA": "`Sign`",
    "FAISS OPQ": "`OPQ`",
    "FAISS PQ": "`PQ`",
}
SIZES = (4, 8, 16)
ASYMMETRIC = 1  # place of the asymmetric recall in a cell: Hamming / asymmetric / rescored
LEFT, RIGHT, LABELS = 520, 770, 784  # of the lines
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #46556a; }
.page { fill: #fbfcfe; stroke: #d5dce6; } .grid { stroke: #dde3ec; } .title { font-size: 16px; font-weight: 600; }
.ours { fill: #2f6fc4; } .other { fill: #aab6c6; } .line { fill: none; stroke: #8795a8; stroke-width: 1.8; }
.best { fill: none; stroke: #2f6fc4; stroke-width: 3; } .strong { font-weight: 600; fill: #1d2a3c; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c3d4; } .page { fill: #151b24; stroke: #303b4a; } .grid { stroke: #2b3543; }
  .ours { fill: #6ba6f2; } .other { fill: #56657a; } .line { stroke: #7d8ca1; } .best { stroke: #6ba6f2; }
  .strong { fill: #eef3fa; }
}
"""


def picture(results: dict[str, Stored]) -> str:
    """The whole file."""
    title = "With labels, 8 bytes find more than the floats; without labels, learned codes keep neighbors in few bytes"
    parts = [
        element("title", title),
        element("style", Markup(STYLE)),
        element("rect", x=1, y=1, width=WIDTH - 2, height=HEIGHT - 2, rx=12, class_="page"),
        *_bars(results["embeddings_clinc150"]),
        *_lines(results["frontier_clinc150"]),
        _text("CLINC150: 18,000 sentences, embeddings of 384 floats, 4,500 queries", WIDTH - 24, HEIGHT - 14, "end"),
    ]
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "role": "img"}
    return str(element("svg", parts, xmlns="http://www.w3.org/2000/svg", **size)) + "\n"


def _bars(result: Stored) -> list[Markup]:
    """Mean average precision with labels, floats and codes without labels beside."""
    parts = [
        _text("With labels: intents found", 28, 36, kind="strong title"),
        _text("mean average precision, %", 28, 58),
    ]
    step = (BOTTOM - TOP) / len(BARS)
    for place, (name, (bits, method)) in enumerate(BARS.items()):
        value = float(result.value(f"[{bits}][{method}][mAP by intent]#1"))
        y, ours = TOP + place * step, method == "labels"
        bar = element(
            "rect",
            x=28,
            y=f"{y + 20:.1f}",
            width=f"{3.6 * value:.1f}",
            height=18,
            rx=3,
            class_="ours" if ours else "other",
        )
        parts += [_text(name, 28, y + 14, kind="strong" if ours else None), bar]
        parts.append(_text(f"{value:.1f}", 36 + 3.6 * value, y + 34, kind="strong" if ours else None))
    return parts


def _lines(result: Stored) -> list[Markup]:
    """Neighbors found against bytes without labels."""
    known = {name: _recalls(result, row) for name, row in LINES.items()}
    parts = [
        _text("Without labels: neighbors found", LEFT - 40, 36, kind="strong title"),
        _text("share of the 10 nearest, float query against codes, %", LEFT - 40, 58),
    ]
    for tick in (20, 40, 60, 80):
        parts.append(element("path", d=f"M{LEFT - 8} {_y(tick):.1f}H{RIGHT + 6}", class_="grid"))
        parts.append(_text(str(tick), LEFT - 16, _y(tick) + 4, "end"))
    parts += [
        _text(f"{size} bytes" if size == SIZES[0] else str(size), _x(size), BOTTOM + 22, "middle") for size in SIZES
    ]
    ends = [points[-1][1] for points in known.values()]
    places = spaced([_y(end) for end in ends], 17.0, TOP, BOTTOM)
    for (name, points), place in sorted(
        zip(known.items(), places, strict=True), key=lambda item: item[0][0] == "hashlearn"
    ):
        ours = name == "hashlearn"
        line = "M" + "L".join(f"{_x(size):.1f} {_y(recall):.1f}" for size, recall in points)
        last = points[-1]
        pointer = f"M{_x(last[0]):.1f} {_y(last[1]):.1f}L{LABELS - 4} {place:.1f}"
        parts += [element("path", d=pointer, class_="grid"), element("path", d=line, class_="best" if ours else "line")]
        parts.append(_text(f"{name} {last[1]:.0f}", LABELS, place + 4, kind="strong" if ours else None))
    return parts


def _recalls(result: Stored, row: str) -> list[tuple[int, float]]:
    """Bytes and asymmetric recall, where it was measured."""
    cells = {size: result.value(f"[{row}][{size} bytes]") for size in SIZES}
    found = [(size, cell.split(" / ")[ASYMMETRIC]) for size, cell in cells.items() if " / " in cell]
    return [(size, float(text)) for size, text in found if re.fullmatch(r"[\d.]+", text)]


def _x(size: float) -> float:
    return LEFT + (RIGHT - LEFT) * math.log(size / SIZES[0]) / math.log(SIZES[-1] / SIZES[0])


def _y(recall: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * (recall - 10.0) / 75.0


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str | None = None) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


if __name__ == "__main__":
    (ROOT / "docs" / "front.svg").write_text(picture(read_all(ROOT)), encoding="utf-8")
