"""The experiment of ``hashlearn demo``: scikit-learn's digits, codes learned with and without labels."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hashlearn import bqp, metrics
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments import datasets
from hashlearn.hashers import BaseHasher, RankingHasher, SignCodes, TwoStepHasher
from hashlearn.search import HammingIndex

N_QUERIES = 500
N_NEIGHBORS = 10
N_SHOWN = 8  # neighbors of the worked search
HIDDEN, N_STEPS = 128, 300  # enough for so few rows
# A relaxation solved to 1e-3 gives codes as good, and a tighter bound takes long.
QUICK_SDR = bqp.SemidefiniteRelaxation(tol=1e-3, max_iter=2)


@dataclass(frozen=True)
class Row:
    """The scores and times of one method."""

    setting: str  # "no labels" or "labels"
    method: str
    neighbors: float  # share of the nearest 10 floats, by cosine, among the nearest 10 codes
    precision: float  # within radius 2
    mean_average_precision: float
    fit_seconds: float
    encode_seconds: float  # for all images


class Neighbor(NamedTuple):
    """An image that the worked search finds."""

    row: int  # of the data set
    label: int
    distance: int  # in bits


@dataclass
class DigitsResult:
    """Everything that the demo shows."""

    n_bits: int
    n_images: int
    rows: list[Row] = field(default_factory=list)
    query_row: int = 0  # of the worked search
    query_label: int = 0
    neighbors: dict[str, list[Neighbor]] = field(default_factory=dict)  # by method


def run(
    n_bits: int = 16, seed: int = 0, n_images: int | None = None, progress: ProgressCallback | None = None
) -> DigitsResult:
    """Learn on the database, encode everything, search and score. ``progress`` is called between steps."""
    data = datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(data))[:n_images]
    n_queries = min(N_QUERIES, len(order) // 4)
    X, y = data.X[order], data.y[order]
    queries, database = slice(0, n_queries), slice(n_queries, None)
    result = DigitsResult(n_bits, len(order), query_row=int(order[0]), query_label=int(y[0]))
    nearest = metrics.float_neighbors(X[queries], X[database], N_NEIGHBORS)

    signs = SignCodes(min(n_bits, X.shape[1]), features="pca")  # at most one bit for each feature
    ranking = RankingHasher(n_bits, hidden=HIDDEN, n_steps=N_STEPS, random_state=seed)
    steps: list[tuple[str, str, BaseHasher]] = [
        ("no labels", "signs of PCA", signs),
        ("no labels", "RankingHasher", ranking),
        ("labels", "TwoStepHasher, AL", TwoStepHasher(n_bits, solver="al", random_state=seed)),
        ("labels", "TwoStepHasher, SDR", TwoStepHasher(n_bits, solver=QUICK_SDR, random_state=seed)),
    ]
    for done, (setting, name, hasher) in enumerate(steps):
        tell(progress, name, done, len(steps))
        started = time.perf_counter()
        hasher.fit(X[database], y[database] if setting == "labels" else None)
        fitted = time.perf_counter()
        packed = hasher.encode(X)
        encoded = time.perf_counter()
        codes = (packed[queries], packed[database])
        labels = (y[queries], y[database])
        scores = (
            metrics.neighbor_recall(*codes, nearest, k=N_NEIGHBORS),
            metrics.precision_within_radius(*codes, *labels, radius=2),
            metrics.mean_average_precision(*codes, *labels),
        )
        result.rows.append(Row(setting, name, *scores, fitted - started, encoded - fitted))
        index = HammingIndex(hasher.n_bits)
        index.add(packed[database])
        near = index.search(packed[:1], N_SHOWN)
        rows = order[database][near.indices[0]]
        found = zip(rows.tolist(), data.y[rows].tolist(), near.distances[0].tolist(), strict=True)
        result.neighbors[name] = [Neighbor(*neighbor) for neighbor in found]
    return result
