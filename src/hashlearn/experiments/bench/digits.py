"""The built-in experiment: scikit-learn's digits, with and without labels, learned codes beside plain sign codes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hashlearn import bits, bqp, metrics
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.hashers import TwoStepHasher
from hashlearn.inference import start_codes

N_QUERIES = 500
NEAREST = 8
SHOWN_QUERIES = 6


@dataclass(frozen=True)
class Row:
    """One method's scores."""

    setting: str  # "no labels" or "labels"
    method: str
    precision: float  # within radius 2
    mean_average_precision: float
    fit_seconds: float
    encode_seconds: float  # for all images


@dataclass(frozen=True)
class Search:
    """A worked search: one query and its nearest images by one method."""

    method: str
    query: int
    neighbours: NDArray[np.intp]
    distances: NDArray[np.int32]


@dataclass
class DigitsResult:
    """Everything that the demo shows."""

    n_bits: int
    images: NDArray[np.float64]  # (n, 8, 8), grey levels 0 … 16
    labels: NDArray[np.int64]
    rows: list[Row] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    seconds: float = 0.0
    report: str = ""  # inference report of the last supervised fit


def run(
    n_bits: int = 16,
    seed: int = 0,
    solvers: tuple[str, ...] = ("al", "sdr"),
    n_images: int | None = None,
    progress: ProgressCallback | None = None,
) -> DigitsResult:
    """Learn on the database, encode everything, search and score. ``progress`` is told between steps."""
    from sklearn.datasets import load_digits

    began = time.perf_counter()
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))[:n_images]
    X, y = X[order], y[order]
    n_queries = min(N_QUERIES, len(X) // 4)
    queries, database = slice(0, n_queries), slice(n_queries, None)
    result = DigitsResult(n_bits, X.reshape(-1, 8, 8), y)

    steps: list[tuple[str, str, str | None]] = [("no labels", "sign of PCA", None)]
    steps += [(setting, solver.upper(), solver) for setting in ("no labels", "labels") for solver in solvers]
    for done, (setting, name, solver) in enumerate(steps):
        tell(progress, f"{name}, {setting}", done, len(steps))
        started = time.perf_counter()
        if solver is None:
            packed = bits.pack_signs(start_codes("pca", X, n_bits, np.random.default_rng(seed)).astype(np.int8))
            fitted = encoded = time.perf_counter()
        else:
            # A relaxation solved to a thousandth rounds as well, and the sparse target is slow to certify further.
            chosen = bqp.SemidefiniteRelaxation(tol=1e-3, max_iter=2) if solver == "sdr" else solver
            hasher = TwoStepHasher(n_bits, solver=chosen, random_state=seed)
            hasher.fit(X[database], y[database] if setting == "labels" else None)
            fitted = time.perf_counter()
            packed = hasher.encode(X)
            encoded = time.perf_counter()
            result.report = str(hasher.inference_report_)
        scores = (packed[queries], packed[database], y[queries], y[database])
        result.rows.append(
            Row(
                setting,
                name,
                metrics.precision_within_radius(*scores, radius=2),
                metrics.mean_average_precision(*scores),
                fitted - started,
                encoded - fitted,
            )
        )
        result.searches += _searches(f"{name}, {setting}", packed, n_queries)
    result.seconds = time.perf_counter() - began
    return result


def _searches(method: str, packed: NDArray[np.uint8], n_queries: int) -> list[Search]:
    distances = bits.hamming_distances(packed[:SHOWN_QUERIES], packed[n_queries:])
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEAREST]
    return [
        Search(method, query, nearest[query] + n_queries, distances[query, nearest[query]])
        for query in range(len(distances))
    ]
