"""Precision within 2 bits and mAP against the number of labels: 5,000, as in the paper, to the whole training part.

``python -m benchmarks.learning_curve --dataset mnist`` learns from so many samples of the training part with the
defaults (kernel ridge; past 20,000 rows on landmarks), encodes the whole training part as database, and asks with the
test part. Means and deviations over draws.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from hashlearn import TwoStepHasher, metrics
from hashlearn.experiments import datasets
from hashlearn.hash_functions import KernelRidge


def main() -> None:
    options = _options()
    data = datasets.load(options.dataset)
    assert data.is_query is not None
    database, queries = np.flatnonzero(~data.is_query), np.flatnonzero(data.is_query)
    print(f"| {options.dataset}, labels | bits | precision within 2 bits | mAP | fit | encode the database |")
    print("|---|---|---|---|---|---|")
    for rows in options.rows or [5_000, 10_000, 20_000, len(database)]:
        for n_bits in options.bits:
            found = []
            for draw in range(options.draws):
                learned = np.random.default_rng(draw).choice(database, min(rows, len(database)), replace=False)
                function = KernelRidge(
                    alpha=options.alpha or "loo",
                    max_gram_rows=options.max_gram_rows,
                    n_landmarks=options.landmarks,
                )
                hasher = TwoStepHasher(n_bits, hash_function=function, random_state=draw)
                began = time.perf_counter()
                hasher.fit(data.X[learned], data.y[learned])
                fitted = time.perf_counter()
                codes = hasher.encode(data.X[database])
                encoded = time.perf_counter()
                score = metrics.evaluate(hasher.encode(data.X[queries]), codes, data.y[queries], data.y[database])
                found.append([
                    100.0 * score.precision_within_radius,
                    100.0 * score.mean_average_precision,
                    fitted - began,
                    encoded - fitted,
                ])  # fmt: skip
            mean = np.mean(found, axis=0)
            spread = np.std(found, axis=0, ddof=1) if len(found) > 1 else np.zeros(4)
            print(
                f"| {len(learned):,} | {n_bits} | {mean[0]:.2f} ± {spread[0]:.2f} | {mean[1]:.2f} ± {spread[1]:.2f} "
                f"| {mean[2]:.0f} s | {mean[3]:.0f} s |",
                flush=True,
            )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", default="mnist", choices=["mnist", "cifar10"])
    parser.add_argument("--rows", type=int, nargs="+", help="default: 5,000, 10,000, 20,000 and all")
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--alpha", type=float, help="default: chosen by leave-one-out errors")
    parser.add_argument("--landmarks", type=int, default=KernelRidge().n_landmarks)
    parser.add_argument("--max-gram-rows", type=int, help="rows up to which the whole Gram matrix is used")
    return parser.parse_args()


if __name__ == "__main__":
    main()
