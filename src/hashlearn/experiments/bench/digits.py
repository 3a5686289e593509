"""The experiment of ``hashlearn demo``: scikit-learn's digits, learned codes beside plain sign codes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hashlearn import bits, bqp, metrics
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.cell import gallery
from hashlearn.experiments.bench.protocols import Split
from hashlearn.hashers import TwoStepHasher
from hashlearn.inference import start_codes

N_QUERIES = 500


@dataclass(frozen=True)
class Row:
    """The scores and times of one method."""

    setting: str  # "no labels" or "labels"
    method: str
    precision: float  # within radius 2
    mean_average_precision: float
    fit_seconds: float
    encode_seconds: float  # for all images


@dataclass
class DigitsResult:
    """Everything that the demo shows."""

    n_bits: int
    n_images: int
    rows: list[Row] = field(default_factory=list)
    galleries: dict[str, dict[str, Any]] = field(default_factory=dict)  # method and setting → queries, neighbors
    seconds: float = 0.0
    report: str = ""  # inference report of the last supervised fit


def run(
    n_bits: int = 16,
    seed: int = 0,
    solvers: tuple[str, ...] = ("al", "sdr"),
    n_images: int | None = None,
    progress: ProgressCallback | None = None,
) -> DigitsResult:
    """Learn on the database, encode everything, search and score. ``progress`` is called between steps."""
    began = time.perf_counter()
    data = datasets.load("digits")
    order = np.random.default_rng(seed).permutation(len(data))[:n_images]
    n_queries = min(N_QUERIES, len(order) // 4)
    split = Split(order[n_queries:], order[n_queries:], order[:n_queries], {})
    X, y = data.X[order], data.y[order]
    queries, database = slice(0, n_queries), slice(n_queries, None)
    result = DigitsResult(n_bits, len(order))

    steps: list[tuple[str, str, str | None]] = [("no labels", "sign of PCA", None)]
    steps += [(setting, solver.upper(), solver) for setting in ("no labels", "labels") for solver in solvers]
    for done, (setting, name, solver) in enumerate(steps):
        tell(progress, f"{name}, {setting}", done, len(steps))
        started = time.perf_counter()
        if solver is None:
            packed = bits.pack_signs(start_codes("pca", X, n_bits, np.random.default_rng(seed)).astype(np.int8))
            fitted = encoded = time.perf_counter()
        else:
            # A relaxation solved to a thousandth rounds as well, and certifying the sparse target further is slow.
            chosen = bqp.SemidefiniteRelaxation(tol=1e-3, max_iter=2) if solver == "sdr" else solver
            hasher = TwoStepHasher(n_bits, solver=chosen, random_state=seed)
            hasher.fit(X[database], y[database] if setting == "labels" else None)
            fitted = time.perf_counter()
            packed = hasher.encode(X)
            encoded = time.perf_counter()
            result.report = str(hasher.inference_report_)
        scores = (packed[queries], packed[database], y[queries], y[database])
        precision = metrics.precision_within_radius(*scores, radius=2)
        average = metrics.mean_average_precision(*scores)
        result.rows.append(Row(setting, name, precision, average, fitted - started, encoded - fitted))
        found = gallery(data, split, packed[database], packed[queries])
        assert found is not None  # the digits have images
        result.galleries[f"{name}, {setting}"] = found
    result.seconds = time.perf_counter() - began
    return result
