"""Queries and the images that each method finds nearest to them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.report.tables import Part
from hashlearn.pages.gallery import Group, Item, Picture, Query

Stored = Mapping[str, Any]  # what `hashlearn.experiments.bench.cell` stores


class Gallery(NamedTuple):
    """The queries of a part, at the longest code of each method that has pictures."""

    part: Part
    lengths: list[int]
    queries: list[Query]


def gallery(part: Part) -> Gallery | None:
    """Each query with one row of neighbors for each method; None if no pictures are stored."""
    block = part.block
    stored, lengths = {}, set()
    for method in block.methods:
        records = (r for n_bits in reversed(block.lengths) for r in block.at(method, n_bits) if r.get("gallery"))
        record = next(records, None)
        if record is not None:
            stored[method] = record["gallery"]
            lengths.add(record["cell"]["n_bits"])
    return Gallery(part, sorted(lengths), _queries(part, stored)) if stored else None


def _queries(part: Part, stored: Mapping[str, Stored]) -> list[Query]:
    """What each method found for each query. Methods share their queries."""
    found: dict[tuple[str, str], list[Group]] = {}
    headers: dict[tuple[str, str], Picture] = {}
    for method, held in stored.items():
        for query in held["queries"]:
            label = str(query["label"])
            key = (query["image"], label)
            items = [
                Item.labeled(_pixels(held, near["image"]), str(near["label"]), int(near["distance"]), label)
                for near in query["neighbors"]
            ]
            found.setdefault(key, []).append(Group.of_method(method, items, part.look(method)))
            headers.setdefault(key, Picture.of(_pixels(held, query["image"]), f"Query: {label}"))
    return [Query(label, "query", headers[image, label], groups) for (image, label), groups in found.items()]


def _pixels(held: Stored, encoded: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(encoded), np.uint8).reshape(held["image_shape"])
