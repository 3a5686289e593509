"""The picture of README.md, docs/front.svg, drawn from stored results: what codes keep with labels, and without.

``python -m benchmarks.front_picture`` draws it again; a test compares it with docs/results. Codes without labels
are all of 8 bytes, because some of FAISS's quantizers were not measured at more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.claims.stored import Stored, read_all
from hashlearn.pages.markup import Markup, element

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 920, 340
TOP, STEP, BAR = 78, 25, 15
LEFT, RIGHT = 28, 480  # where the two halves begin
NAMES, LONGEST = 226, 170  # widths of the names and of a bar of 100 %
EMBEDDINGS, CLASSIFIER = "embeddings_clinc150", "embeddings_classifier"
FOUND = "mAP by intent"
WITH_LABELS = {  # name in the picture: stored result and its cell
    "hashlearn, defaults, 8 bytes": (CLASSIFIER, f"[its code of 8 bytes][{FOUND}]"),
    "classifier, labels kept, 1 byte": (CLASSIFIER, f"[its known label][{FOUND}]"),
    "classifier, 1 byte": (CLASSIFIER, f"[its predicted class][{FOUND}]"),
    "floats, 1,536 bytes": (EMBEDDINGS, f"[–][cosine of the 384 floats][{FOUND}]"),
    "ITQ without labels, 8 bytes": (EMBEDDINGS, f"[64][ITQ][{FOUND}]"),
    "signs of PCA, 8 bytes": (EMBEDDINGS, f"[64][sign code after PCA][{FOUND}]"),
}
WITHOUT_LABELS = {
    name: ("frontier_clinc150", f"[`{row}`][8 bytes]")
    for name, row in {
        "hashlearn, full settings, GPU": "Ranking full",
        "FAISS LSQ": "LSQ",
        "FAISS RQ": "RQ",
        "hashlearn, defaults": "Ranking",
        "FAISS PRQ": "PRQ",
        "signs of PCA": "Sign",
        "FAISS OPQ": "OPQ",
        "FAISS ITQ": "FAISS ITQ",
        "FAISS PQ": "PQ",
    }.items()
}
ASYMMETRIC = 1  # its place in a cell that holds Hamming / asymmetric / rescored
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: #46556a; }
.page { fill: #fbfcfe; stroke: #d5dce6; } .title { font-size: 16px; font-weight: 600; }
.ours { fill: #2f6fc4; } .other { fill: #aab6c6; } .strong { font-weight: 600; fill: #1d2a3c; }
@media (prefers-color-scheme: dark) {
  text { fill: #b6c3d4; } .page { fill: #151b24; stroke: #303b4a; }
  .ours { fill: #6ba6f2; } .other { fill: #56657a; } .strong { fill: #eef3fa; }
}
"""


def picture(results: Mapping[str, Stored]) -> str:
    """The whole file."""
    title = "CLINC150: what 8 bytes of hashlearn find, with and without labels, beside floats, a classifier and FAISS"
    neighbors = float(results[EMBEDDINGS].value("[64][labels][recall@10 of the float neighbors, Hamming]"))
    notes = (
        "Codes from labels lose the order within a class:",
        f"they find {neighbors:.0f} % of the 10 nearest neighbors.",
    )
    parts = [
        element("title", title),
        element("style", Markup(STYLE)),
        element("rect", x=1, y=1, width=WIDTH - 2, height=HEIGHT - 2, rx=12, class_="page"),
        _text("With labels: intents found", LEFT, 34, kind="strong title"),
        _text("mean average precision, %; the classifier is linear", LEFT, 56),
        *_bars(results, WITH_LABELS, LEFT),
        *(_text(note, LEFT, TOP + (len(WITH_LABELS) + 1) * STEP + 18 * place) for place, note in enumerate(notes)),
        _text("Without labels: neighbors found with 8 bytes", RIGHT, 34, kind="strong title"),
        _text("share of the 10 nearest, float query against codes, %", RIGHT, 56),
        *_bars(results, WITHOUT_LABELS, RIGHT),
        _text("CLINC150: 18,000 sentences, embeddings of 384 floats, 4,500 queries", WIDTH - 24, HEIGHT - 14, "end"),
    ]
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "role": "img"}
    return str(element("svg", parts, xmlns="http://www.w3.org/2000/svg", **size)) + "\n"


def _bars(results: Mapping[str, Stored], cells: Mapping[str, tuple[str, str]], left: float) -> list[Markup]:
    """A line for each value: name, bar, number."""
    parts = []
    for place, (name, (result, cell)) in enumerate(cells.items()):
        parts_of_cell = results[result].value(cell).split(" / ")
        value = float(parts_of_cell[ASYMMETRIC if len(parts_of_cell) > 1 else 0])
        y, length, ours = TOP + place * STEP, LONGEST * value / 100, name.startswith("hashlearn")
        kind, begin = "strong" if ours else None, left + NAMES
        size = {"width": f"{length:.1f}", "height": BAR, "rx": 3, "class_": "ours" if ours else "other"}
        parts += [
            _text(name, begin - 8, y + 12, "end", kind),
            element("rect", x=begin, y=y, **size),
            _text(f"{value:.1f}", begin + length + 8, y + 12, kind=kind),
        ]
    return parts


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str | None = None) -> Markup:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


if __name__ == "__main__":
    (ROOT / "docs" / "front.svg").write_text(picture(read_all(ROOT)), encoding="utf-8")
