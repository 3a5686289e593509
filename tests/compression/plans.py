"""A `Compression` as `compress` makes it, built by hand: an LSH hasher, made-up measurements, known numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hashlearn.compression.result import Certificate, Compression, Example, FrontierRow
from hashlearn.hashers import LSH

N_ROWS, N_FEATURES, N_BITS, K = 2000, 32, 64, 10
SIZES = (4, 8, 12, 16, 24, 32)
LEVELS = {"itq": 0.50, "pca_sign": 0.42, "ranking_linear": 0.58}
DEPTH, HAMMING_DEPTH = 140, 312  # of the chosen code


def rows(n: int = N_ROWS, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, N_FEATURES)).astype(np.float32)


def frontier_row(family: str, size: int, mode: str, level: float, **changes: Any) -> FrontierRow:
    """Larger codes and asymmetric search keep more and need fewer candidates."""
    recall = min(0.99, level + 0.07 * np.log2(size / 4) + 0.08 * (mode == "asymmetric"))
    depth = None if recall < 0.5 else int(1400 * 2.0 ** (-14 * (recall - 0.5)))
    row = FrontierRow(
        size,
        family,
        mode,
        depth,
        (1 + recall) / 2,
        recall / 2 + 0.48,
        recall,
        recall - 0.03,
        0.8 + size / 40,
        0.02 * size,
    )
    return replace(row, **changes)


def frontier() -> tuple[FrontierRow, ...]:
    found = [
        frontier_row(family, size, mode, level)
        for family, level in LEVELS.items()
        for mode in ("hamming", "asymmetric")
        for size in SIZES
    ]
    for place, row in enumerate(found):
        if (row.family, row.bytes_per_row) == ("ranking_linear", 8):
            chosen = row.mode == "asymmetric"
            found[place] = replace(row, depth=DEPTH if chosen else HAMMING_DEPTH, chosen=chosen)
    return tuple(sorted(found, key=lambda row: row.bytes_per_row))


def only(mode: str) -> tuple[FrontierRow, ...]:
    return tuple(row for row in frontier() if row.mode == mode)


def without_depths() -> tuple[FrontierRow, ...]:
    return tuple(replace(row, depth=None) for row in frontier())


def certificate(**changes: Any) -> Certificate:
    found = (0, 0, 0, 0, 1, 2, 3, 6, 14, 40, 334)
    made = Certificate(
        recall=0.95,
        promised=0.95,
        k=K,
        confidence=0.99,
        metric="cosine",
        mode="asymmetric",
        depth=DEPTH,
        max_depth=200,
        keep_floats=True,
        n_bits=N_BITS,
        family="ranking_linear",
        n_database=N_ROWS - 500,
        n_rows=N_ROWS,
        n_choosing=100,
        n_testing=400,
        own_queries=False,
        found=found,
        bet=2.0,
        tested=("ranking_linear, 8 bytes, asymmetric",),
        model="a1b2",
        data="c3d4",
        queries="e5f6",
        seed=0,
        growth=0.4,
        versions={"hashlearn": "0.1"},
    )
    return replace(made, **changes)


def plan(**changes: Any) -> Compression:
    """``changes`` are those of the certificate."""
    hasher = LSH(n_bits=N_BITS, random_state=0).fit(rows())
    examples = (
        Example(3, (5, 8, 13, 21, 34, 55, 89, 144, 233, 377), (5, 8, 13, 21, 34, 55, 90, 91, 92, 93)),
        Example(77, tuple(range(100, 110)), tuple(range(101, 111))),
    )
    return Compression(hasher, certificate(**changes), frontier(), examples)
