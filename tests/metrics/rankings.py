"""Slow and plain: rankings as lists, metrics by their definitions; and codes that have a wanted ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import pack_bits

Codes = NDArray[np.uint8]


def codes_at(distances: list[int]) -> tuple[Codes, Codes]:
    """One query, and a database with these distances to it (unary codes of 40 bits)."""
    database = np.zeros((len(distances), 40), np.uint8)
    for row, distance in zip(database, distances, strict=True):
        row[:distance] = 1
    return pack_bits(np.zeros((1, 40), np.uint8)), pack_bits(database)


def distances_of(query_codes: Codes, database_codes: Codes) -> NDArray[np.intp]:
    return np.bitwise_count(query_codes[:, None] ^ database_codes[None]).sum(axis=2, dtype=np.intp)


def ranked_value(relevant: NDArray[np.bool_], average: str, top_k: int | None = None) -> float:
    """The AP of one ranking, rank by rank, from the formulas."""
    n_relevant, last = int(relevant.sum()), top_k or len(relevant)
    hits, total, before = 0, 0.0, 1.0
    for rank, is_hit in enumerate(relevant[:last], start=1):
        hits += bool(is_hit)
        precision = hits / rank
        if is_hit:
            total += 0.5 * (before + precision) if average == "trapezoid" else precision
        before = precision
    if hits == 0:
        return 0.0
    return total / (hits if average == "top_k" else min(n_relevant, last))


def in_order(distances: NDArray[np.intp], relevant: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Relevance by rank, by a stable sort."""
    return relevant[np.argsort(distances, kind="stable")]
