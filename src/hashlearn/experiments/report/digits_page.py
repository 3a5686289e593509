"""The page of ``hashlearn demo``: the table of scores, the searches as pictures, and the inference report."""

from __future__ import annotations

from hashlearn.experiments.bench.digits import DigitsResult
from hashlearn.experiments.formatting import fixed, seconds
from hashlearn.experiments.report.gallery import queries_and_neighbors
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.page import document
from hashlearn.experiments.report.tables import plain_table

HEADS = ("learned from", "method", "precision within 2 bits", "mean average precision", "", "fit, s", "encode all, s")


def page(result: DigitsResult) -> str:
    """The whole page as text."""
    n_bits = result.n_bits
    about = (
        f"{result.n_images:,} images of 64 pixels became codes of {n_bits} bits. Queries are searched among the others "
        f"by Hamming distance; an image is right if it shows the same digit. All of it took {result.seconds:.1f} s."
    )
    header = element("header", element("h1", f"Handwritten digits in {n_bits} bits"), element("p", about))
    pictures = queries_and_neighbors(result.galleries)
    legend = element("p", "The nearest images and their distances in bits; ✓ shows the query’s digit, ✗ another.")
    sections = [
        ("scores", "How good the codes are", plain_table("demo", None, HEADS, _rows(result), "Scores")),
        ("searches", "Searches", [legend, *pictures]),
        ("inference", "Inference, bit by bit", element("pre", result.report)),
    ]
    parts = [element("section", element("h2", name), content, id=anchor) for anchor, name, content in sections]
    return document(f"hashlearn: digits in {n_bits} bits", header, element("main", parts))


def _rows(result: DigitsResult) -> list[Markup]:
    rows = []
    for row in result.rows:
        bar = element("span", style=f"width:{100.0 * row.mean_average_precision:.0f}%", class_="bar")
        scores = [f"{fixed(100.0 * score, 1)} %" for score in (row.precision, row.mean_average_precision)]
        texts = [element("td", text) for text in (row.setting, row.method, *scores)]
        times = [element("td", seconds(time)) for time in (row.fit_seconds, row.encode_seconds)]
        rows.append(element("tr", texts, element("td", bar, class_="track"), times))
    return rows
