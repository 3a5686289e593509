"""The pictures of docs/concepts.md, drawn from scikit-learn's digits and a small random problem.

``python -m benchmarks.concept_pictures`` writes docs/concept-code.svg, -distance, -recall, -bound and -promise. Every
number in them is computed here; what is drawn by hand is only where it stands.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.markup import Markup, element
from benchmarks.pictures import STYLE
from hashlearn import bits, bqp, metrics
from hashlearn.compression.promise import best_bet
from hashlearn.hashers import ITQ
from hashlearn.search import asymmetric_search, rescore

DOCS = Path(__file__).parents[1] / "docs"
WIDTH, N_BITS, RADIUS, K = 760, 16, 3, 10
DATABASE = 1200
SHOWN = (1, 2, 3, 5, 8)  # distances in the picture of distances
MORE_STYLE = """
.on { fill: #2f6fc4; } .off { fill: #e3e9f2; } .bad { fill: #c8553d; } .ink { fill: #1d2a3c; }
.sheet { fill: #ffffff; stroke: #c3ccd9; } .good { fill: none; stroke: #2f6fc4; stroke-width: 3; }
.inside { fill: #e3efff; } .light { fill: #ffffff; stroke: none; } .axis { stroke: #8795a8; }
.name { font-weight: 600; fill: #1d2a3c; } .code { font: 600 13px ui-monospace, Menlo, Consolas, monospace; }
.stake { stroke: #2f6fc4; stroke-width: 2.4; fill: none; } .fall { stroke: #c8553d; stroke-width: 2.4; fill: none; }
@media (prefers-color-scheme: dark) {
  .on { fill: #6ba6f2; } .name { fill: #eef3fa; } .off { fill: #2b3543; } .bad { fill: #f08a78; }
  .inside { fill: #16304f; } .good { stroke: #6ba6f2; } .light { fill: #0c1118; }
  .stake { stroke: #6ba6f2; } .fall { stroke: #f08a78; }
}
"""


class Drawing:
    """Shapes on a page with rounded corners, in the colors of the other pictures."""

    def __init__(self, name: str, title: str, height: int) -> None:
        self.path, self.title, self.height = DOCS / f"concept-{name}.svg", title, height
        self.parts: list[Markup] = []
        self.rect(1, 1, WIDTH - 2, height - 2, "page", rx=12)

    def rect(self, x: float, y: float, width: float, height: float, kind: str, **more: Any) -> None:
        """A rectangle."""
        sizes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        self.parts.append(element("rect", class_=kind, **sizes, **more))

    def line(self, points: list[tuple[float, float]], kind: str) -> None:
        """A line through the points."""
        self.parts.append(element("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_=kind))

    def text(self, text: str, x: float, y: float, anchor: str = "middle", kind: str | None = None) -> None:
        """Text at a place."""
        self.parts.append(element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind))

    def digit(self, pixels: np.ndarray, x: float, y: float, side: float) -> None:
        """An image of 8 × 8 pixels, ink on white."""
        self.rect(x, y, side, side, "sheet")
        step, levels = side / 8, np.ceil(pixels.reshape(8, 8) / 4).astype(int)
        for level in range(1, 5):
            places = np.argwhere(levels == level)
            squares = (
                f"M{x + step * column:g} {y + step * row:g}h{step:g}v{step:g}h-{step:g}z" for row, column in places
            )
            self.parts.append(element("path", d="".join(squares), class_="ink", fill_opacity=level / 4))

    def write(self) -> None:
        """The file."""
        inside = [element("title", self.title), element("style", Markup(STYLE + MORE_STYLE)), *self.parts]
        size = {"viewBox": f"0 0 {WIDTH} {self.height}", "width": WIDTH, "height": self.height, "role": "img"}
        self.path.write_text(element("svg", inside, xmlns="http://www.w3.org/2000/svg", **size) + "\n", "utf-8")


def code(query: np.ndarray, margins: np.ndarray) -> Drawing:
    """One digit, its margins, their signs as bits, and the bytes."""
    drawing = Drawing("code", "A digit becomes 16 margins, their signs 16 bits, and these two bytes", 236)
    drawing.digit(query, 30, 48, 128)
    drawing.text("64 numbers", 94, 206, kind="strong")
    drawing.text("→", 190, 118, kind="strong")
    signs, tallest, middle = margins > 0, np.abs(margins).max(), 92
    drawing.text("margins", 222, 30, "start", "strong")
    drawing.line([(222, middle), (726, middle)], "axis")
    packed = np.packbits(signs)
    for place, (margin, sign) in enumerate(zip(margins, signs, strict=True)):
        x, length = 226 + 31 * place, 46 * abs(margin) / tallest
        drawing.rect(x, middle - length if sign else middle, 24, length, "on" if sign else "bad")
        drawing.text(str(int(sign)), x + 12, 172, kind="code")
    for place, byte in enumerate(packed):
        x = 226 + 248 * place
        drawing.line([(x, 182), (x, 188), (x + 241, 188), (x + 241, 182)], "curve")
        drawing.text(f"byte {byte}", x + 120, 208, kind="strong")
    return drawing


def distance(query: np.ndarray, rows: np.ndarray, query_bits: np.ndarray, row_bits: np.ndarray) -> Drawing:
    """A query's code above codes at growing distances; the bits that differ stand out."""
    distances = (row_bits != query_bits).sum(axis=1)
    chosen = [int(np.flatnonzero(distances == want)[0]) for want in SHOWN]
    drawing = Drawing("distance", "Codes of five rows, their Hamming distances to a query, and a radius", 284)
    inside = sum(want <= RADIUS for want in SHOWN)
    drawing.rect(16, 68, WIDTH - 32, 40 * inside + 4, "inside", rx=8)
    drawing.text(f"radius {RADIUS}", WIDTH - 30, 74 + 20 * inside, "end", "name")
    for place, (pixels, pattern) in enumerate([(query, query_bits), *((rows[i], row_bits[i]) for i in chosen)]):
        y = 34 + 40 * place if place else 22
        drawing.digit(pixels, 30, y, 32)
        for bit, value in enumerate(pattern):
            x, differs = 84 + 29 * bit, value != query_bits[bit]
            drawing.rect(x, y + 3, 25, 26, "bad" if differs else "off", rx=4)
            drawing.text(str(value), x + 12.5, y + 21, kind="code light" if differs else "code")
        told = (
            "the query" if not place else f"{SHOWN[place - 1]} bit{'s differ' if SHOWN[place - 1] > 1 else ' differs'}"
        )
        drawing.text(told, 560, y + 21, "start", "name")
    return drawing


def recall(query: np.ndarray, rows: np.ndarray, truth: np.ndarray, found: np.ndarray) -> Drawing:
    """The nearest rows by float above the nearest by code; those that both have are framed."""
    shared = sorted(set(truth) & set(found))
    title = f"Of the {K} nearest rows by floats, {len(shared)} are among the {K} nearest by codes"
    drawing = Drawing("recall", title, 214)
    drawing.digit(query, 24, 76, 62)
    drawing.text("query", 55, 158, kind="strong")
    for y, name, ids in ((40, "nearest by floats", truth), (132, "nearest by codes", found)):
        drawing.text(name, 112, y - 12, "start", "strong")
        for place, row in enumerate(ids):
            drawing.digit(rows[row], 112 + 48 * place, y, 40)
            if row in shared:
                drawing.rect(110 + 48 * place, y - 2, 44, 44, "good", rx=4)
    drawing.text(f"{len(shared)} of {K} found", WIDTH - 24, 104, "end", "strong")
    drawing.text(f"recall {len(shared) / K:.1f}", WIDTH - 24, 124, "end", "strong")
    return drawing


def bound() -> Drawing:
    """All values of a small problem, the best that a solver found, and the bound that it proved."""
    n = 14
    A = np.random.default_rng(0).normal(size=(n, n))
    A = A + A.T
    solution = bqp.solve(A, method="sdr", random_state=0)
    points = np.array(list(product((-1, 1), repeat=n - 1)))
    points = np.c_[np.ones(len(points), int), points]
    values = np.einsum("ij,ij->i", points @ A, points)
    assert solution.bound <= values.min()
    drawing = Drawing("bound", "The values of all points of a small problem lie above the proven bound", 250)
    low, high = solution.bound - 12, values.max()
    counts, edges = np.histogram(values, bins=70, range=(values.min(), high))

    def across(value: float) -> float:
        return float(30 + (value - low) / (high - low) * (WIDTH - 60))

    for count, left, right in zip(counts, edges, edges[1:], strict=False):
        height = 130 * count / counts.max()
        drawing.rect(across(left), 200 - height, across(right) - across(left) - 1, height, "off")
    drawing.line([(30, 200), (WIDTH - 30, 200)], "axis")
    drawing.line([(across(solution.bound), 60), (across(solution.bound), 200)], "claim")
    drawing.line([(across(solution.value), 110), (across(solution.value), 200)], "mark")
    drawing.text(f"proven bound −{-solution.bound:.1f}: nothing lies below", 30, 44, "start", "strong red")
    drawing.text(f"value found −{-solution.value:.1f}", across(solution.value) + 6, 122, "start", "strong")
    drawing.text(f"gap {100 * solution.gap:.1f} %", across(solution.bound) + 6, 84, "start", "strong")
    drawing.text(f"all {2 * len(values):,} points, by value →", WIDTH - 30, 226, "end", "strong")
    return drawing


def promise(shares: np.ndarray, depth: int) -> Drawing:
    """The stake of two bets on the recall of queries, one on a true claim and one on a claim too high."""
    choosing, testing = shares[: len(shares) // 5], shares[len(shares) // 5 :]
    claims = {round(choosing.mean() - 0.05, 2): "stake", round(choosing.mean() + 0.05, 2): "fall"}
    bet = best_bet(choosing, min(claims), len(testing))
    drawing = Drawing("promise", "Stakes over test queries: the true claim is accepted, the one too high is not", 280)
    floor, top, left, right = -4.0, 6.0, 88, WIDTH - 120

    def at(query: int, power: float) -> tuple[float, float]:
        x = left + query / len(testing) * (right - left)
        return x, 236 - (power - floor) / (top - floor) * 190

    for power in range(int(floor), int(top) + 1, 2):
        drawing.line([at(0, power), at(len(testing), power)], "grid")
        drawing.text(f"{10.0**power:,}".removesuffix(".0"), left - 8, at(0, power)[1] + 4, "end")
    drawing.line([at(0, 2), at(len(testing), 2)], "claim")
    drawing.text("accepted above 100, at 99 % confidence", right, at(0, 2)[1] - 7, "end", "strong red")
    for claim, kind in claims.items():
        powers = np.r_[0.0, np.cumsum(np.log1p(bet * (testing - claim)))] / np.log(10)
        shown = np.clip(powers, floor, top)
        stop = int(np.argmax((shown == top) | (shown == floor))) or len(shown) - 1  # the edge of the picture
        drawing.line([at(i, float(p)) for i, p in enumerate(shown[: stop + 1])], kind)
        x, y = at(stop, float(shown[stop]))
        drawing.text(f"recall ≥ {claim:g}", x + 8, y + 4, "start", "strong" if kind == "stake" else "strong red")
    drawing.text("stake", 14, 24, "start", "strong")
    words = f"test queries, up to {len(testing)}; measured recall {testing.mean():.3f} with {depth} candidates"
    drawing.text(words, right, 264, "end", "strong")
    return drawing


def drawings() -> list[Drawing]:
    """All five."""
    X, _ = load_digits(return_X_y=True)
    database, queries = X[:DATABASE], X[DATABASE:]
    hasher = ITQ(n_bits=N_BITS, random_state=0).fit(database)
    margins, codes = hasher.decision_function(queries), hasher.encode(database)
    query_bits, row_bits = hasher.transform(queries), hasher.transform(database)
    truth = metrics.float_neighbors(queries, database, k=K)
    distances = bits.hamming_distances(hasher.encode(queries), codes)
    found = distances.argsort(axis=1, kind="stable")[:, :K]
    kept = np.array([len({*a} & {*b}) for a, b in zip(truth, found, strict=True)])
    shown = next(i for i, row in enumerate(distances) if {*SHOWN} <= {*row.tolist()})
    typical = int(np.argmin(np.abs(kept - kept.mean())))
    depth = 4 * K
    candidates = asymmetric_search(margins, codes, k=depth)
    best = rescore(candidates, queries, database, k=K, metric="cosine").indices
    shares = np.array([len({*a} & {*b}) / K for a, b in zip(truth, best, strict=True)])
    shares = np.random.default_rng(0).permutation(shares)
    return [
        code(queries[typical], margins[typical]),
        distance(queries[shown], database, query_bits[shown], row_bits),
        recall(queries[typical], database, truth[typical], found[typical]),
        bound(),
        promise(shares, depth),
    ]


if __name__ == "__main__":
    for drawing in drawings():
        drawing.write()
        print(drawing.path.name)
