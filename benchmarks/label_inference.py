"""Codes from labels with default settings: seconds of inference, its objective and floor, bits proven, retrieval.

``python -m benchmarks.label_inference`` prints for every collection the seconds of inference alone, the final objective
(3), the floor that no codes can go below and the excess over it, the share of bits whose gap is 0, and the mean gap of
the last sweep. ``--retrieval`` adds precision within radius 2 and mean average precision on held-out samples, for which
hash functions have 1,000 landmarks. Each row is the mean over seeds; ± is their standard deviation.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher, metrics
from hashlearn.experiments import datasets
from hashlearn.hash_functions import KernelRidge

MOST_QUERIES = 1_000
COLLECTIONS = ("digits", "clinc77", "clinc150", "twenty", "mnist")


class Collection(NamedTuple):
    """Rows to learn from, which are the database too, and queries."""

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray


def collection(name: str) -> Collection:
    """One of `COLLECTIONS`: "twenty" is 11,000 synthetic rows in 20 classes, "clinc77" the first 77 classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        is_query = np.arange(len(y)) >= 1_200
        X = np.sqrt(X)
    elif name == "twenty":
        rng = np.random.default_rng(0)
        y = rng.integers(0, 20, 12_000)
        X = 0.35 * rng.standard_normal((20, 64))[y] + rng.standard_normal((12_000, 64))
        is_query = np.arange(12_000) >= 11_000
    else:
        data = datasets.load("mnist" if name == "mnist" else "clinc150_minilm")
        X, y, is_query = data.X, data.y, data.is_query
        if name == "clinc77":
            X, y, is_query = X[y < 77], y[y < 77], is_query[y < 77]
    queries = np.flatnonzero(is_query)
    queries = np.random.default_rng(0).permutation(queries)[:MOST_QUERIES]
    return Collection(X[~is_query], y[~is_query], X[queries], y[queries])


def measured(data: Collection, n_bits: int, seed: int, retrieval: bool) -> dict[str, float]:
    """The figures of one fit."""
    function: Any = KernelRidge(max_gram_rows=2_000, n_landmarks=1_000) if retrieval else "linear_ridge"
    hasher = TwoStepHasher(n_bits, hash_function=function, random_state=seed).fit(data.X, data.y)
    report = hasher.inference_report_
    gaps = np.array([record.gap for record in report.bits[-n_bits:]])
    floor = getattr(report, "floor", float("nan"))
    figures = {
        "seconds": report.seconds,
        "objective": report.objectives[-1],
        "final": report.final_objective,
        "floor": floor,
        "excess, %": 100.0 * (report.objectives[-1] / floor - 1.0),
        "bits proven, %": 100.0 * float(np.mean(gaps <= 1e-9)),
        "mean gap, %": 100.0 * float(np.mean(gaps)),
    }
    if retrieval:
        codes = hasher.encode(data.X), hasher.encode(data.queries)
        quality = metrics.evaluate(codes[1], codes[0], data.query_labels, data.y)
        figures["precision@2"] = 100.0 * quality.precision_within_radius
        figures["mAP"] = 100.0 * quality.mean_average_precision
    return figures


def main() -> None:
    options = _options()
    measured(collection("digits"), 8, 0, options.retrieval)  # kernels compile
    heading = ""
    for name in options.collections:
        data = collection(name)
        for n_bits in options.bits:
            rows = [measured(data, n_bits, seed, options.retrieval) for seed in range(options.seeds)]
            if not heading:
                heading = " | ".join(rows[0])
                print(f"| collection | bits | {heading} |\n|{'---|' * (2 + len(rows[0]))}")
            cells = [_cell([row[figure] for row in rows], figure) for figure in rows[0]]
            print(f"| {name}, {len(np.unique(data.y))} classes, {len(data.y):,} rows | {n_bits} | ", end="")
            print(" | ".join(cells) + " |", flush=True)


def _cell(values: list[float], figure: str) -> str:
    digits = {"objective": 6, "final": 6, "floor": 6, "seconds": 3, "excess, %": 3, "mean gap, %": 2}.get(figure, 1)
    text = f"{np.mean(values):.{digits}f}"
    return f"{text} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 and figure != "floor" else text


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--bits", type=int, nargs="+", default=[64])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--retrieval", action="store_true", help="also precision within radius 2 and mAP")
    return parser.parse_args()


if __name__ == "__main__":
    main()
