"""Queries and the images that each method finds nearest to them, as pictures inside the page."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hashlearn.experiments.report.formatting import counted, dataset_name
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.model import Block, Cell
from hashlearn.experiments.report.png import data_uri
from hashlearn.experiments.report.series_styles import look_of, swatch

Query = Mapping[str, Any]


def gallery(block: Block, opened: bool = False) -> Markup | None:
    """Each query with one row of neighbours for each method; None where no pictures are stored."""
    found = _by_query(block)
    if not found:
        return None
    queries = [
        element(
            "section",
            element(
                "header",
                _picture(rows[0][2], rows[0][1]["image"], f"Query: {label}"),
                element("h4", element("small", "query"), label),
            ),
            element("div", (_row(method, query, cell) for method, query, cell in rows), class_="rows"),
            class_="query",
        )
        for (_, label), rows in found.items()
    ]
    lengths = sorted({cell["cell"]["n_bits"] for rows in found.values() for _, _, cell in rows})
    bits = " and ".join(str(n_bits) for n_bits in lengths)
    title = f"{block.table.title}, {dataset_name(block.dataset)}, {bits} bits"
    about = f" {counted(len(found), 'query', 'queries')}"
    summary = element("summary", element("strong", title), about)
    return element("details", summary, queries, class_="part gallery", open=opened, data_gallery=block.key)


def _by_query(block: Block) -> dict[tuple[str, str], list[tuple[str, Query, Cell]]]:
    """For each picture and label that is a query, what each method found; methods share their queries."""
    found: dict[tuple[str, str], list[tuple[str, Query, Cell]]] = {}
    for method in block.methods:
        cell = next(
            (c for n_bits in reversed(block.lengths) for c in block.at(method, n_bits) if c.get("gallery")), None
        )
        for query in cell["gallery"]["queries"] if cell else ():
            found.setdefault((query["image"], str(query["label"])), []).append((method, query, cell))  # type: ignore[arg-type]
    return found


def _row(method: str, query: Query, cell: Cell) -> Markup:
    neighbours = query["neighbours"]
    right = sum(str(neighbour["label"]) == str(query["label"]) for neighbour in neighbours)
    name = element("p", swatch(look_of(method)), method, element("span", f" {right} of {len(neighbours)}"))
    figures = [_neighbour(cell, neighbour, str(query["label"])) for neighbour in neighbours]
    return element("div", name, element("div", figures, class_="neighbours"), class_="found")


def _neighbour(cell: Cell, neighbour: Mapping[str, Any], wanted: str) -> Markup:
    label = str(neighbour["label"])
    same = label == wanted
    away = counted(int(neighbour["distance"]), "bit")
    alt = f"{label}, {away} away, {'same label' if same else 'another label'}"
    caption = element("figcaption", element("b", f"{'✓' if same else '✗'} {label}"), element("span", away))
    picture = _picture(cell, neighbour["image"], alt)
    return element("figure", picture, caption, class_="same" if same else "other")


def _picture(cell: Cell, encoded: str, alt: str) -> Markup:
    shape = tuple(int(side) for side in cell["gallery"]["image_shape"])
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError(f"{_name(cell)}: an image of the gallery is not base64") from None
    if len(raw) != math.prod(shape):
        wanted = f"{math.prod(shape)} for shape {list(shape)}"
        raise ValueError(f"{_name(cell)}: an image of the gallery has {len(raw)} bytes, not {wanted}")
    pixels = np.frombuffer(raw, np.uint8).reshape(shape)
    return element("img", src=data_uri(pixels), alt=alt, width=shape[1], height=shape[0])


def _name(cell: Cell) -> str:
    key = cell["cell"]
    return f"cell {key['table']}/{key['dataset']}/{key['method']}/{key['n_bits']}-{key['draw']}"
