"""Queries and the images that each method finds nearest to them, as PNG pictures inside the page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from hashlearn.experiments.bench.blocks import Block
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.experiments.report.tables import look_in
from hashlearn.pages.formatting import counted
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.png import picture
from hashlearn.pages.series_styles import Look, swatch

Gallery = Mapping[str, Any]  # what `hashlearn.experiments.bench.cell` makes


def gallery(block: Block, opened: bool = False) -> Markup | None:
    """Each query with one row of neighbors for each method; None if no pictures are stored."""
    stored, lengths = {}, set()
    for method in block.methods:
        records = (r for n_bits in reversed(block.lengths) for r in block.at(method, n_bits) if r.get("gallery"))
        record = next(records, None)
        if record is not None:
            stored[method] = record["gallery"]
            lengths.add(record["cell"]["n_bits"])
    if not stored:
        return None
    queries = _queries(stored, {method: look_in(block, method) for method in stored})
    bits = " and ".join(str(n_bits) for n_bits in sorted(lengths))
    title = element("strong", f"{block.table.title}, {dataset_name(block.dataset)}, {bits} bits")
    summary = element("summary", title, f" {counted(len(queries), 'query', 'queries')}")
    return element("details", summary, queries, class_="part gallery", open=opened, data_gallery=block.key)


def _queries(galleries: Mapping[str, Gallery], styles: Mapping[str, Look]) -> list[Markup]:
    """A section for each query, with what each method found. Methods share their queries."""
    found: dict[tuple[str, str], list[tuple[str, Any, Gallery]]] = {}
    for method, held in galleries.items():
        for query in held["queries"]:
            found.setdefault((query["image"], str(query["label"])), []).append((method, query, held))
    return [
        element(
            "section",
            element(
                "header",
                _picture(rows[0][2], image, f"Query: {label}"),
                element("h4", element("small", "query"), label),
            ),
            element("div", (_row(styles[method], method, *rest) for method, *rest in rows), class_="rows"),
            class_="query",
        )
        for (image, label), rows in found.items()
    ]


def _row(style: Look, method: str, query: Mapping[str, Any], held: Gallery) -> Markup:
    neighbors, wanted = query["neighbors"], str(query["label"])
    right = sum(str(neighbor["label"]) == wanted for neighbor in neighbors)
    name = element("p", swatch(style), method, element("span", f" {right} of {len(neighbors)}"))
    figures = [_neighbor(held, neighbor, wanted) for neighbor in neighbors]
    return element("div", name, element("div", figures, class_="neighbors"), class_="found")


def _neighbor(held: Gallery, neighbor: Mapping[str, Any], wanted: str) -> Markup:
    label = str(neighbor["label"])
    same = label == wanted
    away = counted(int(neighbor["distance"]), "bit")
    alt = f"{label}, {away} away, {'same label' if same else 'another label'}"
    caption = element("figcaption", element("b", f"{'✓' if same else '✗'} {label}"), element("span", away))
    picture = _picture(held, neighbor["image"], alt)
    return element("figure", picture, caption, class_="same" if same else "other")


def _picture(held: Gallery, encoded: str, alt: str) -> Markup:
    pixels = np.frombuffer(base64.b64decode(encoded), np.uint8).reshape(held["image_shape"])
    return picture(pixels, alt)
