"""Classes that no label was seen of: labels and the neighbour graph together against ITQ on the same samples.

``python -m benchmarks.unseen_classes`` draws as `hashlearn bench unseen` does: labels of 7 of 10 classes, queries of
the other 3 (CLINC150: 45 of 150 classes), all classes in the database. Beside the labelled samples every method is
given as many samples of the database without their labels, which is what a collection has before anybody has named a
new class. Printed is mAP, mean and deviation over draws.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.claims.recording import Table, add_option
from hashlearn import TwoStepHasher, metrics, targets
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.protocols import PROTOCOLS
from hashlearn.hash_functions import KernelRidge
from hashlearn.hashers import ITQ

PROTOCOL = {"mnist": "unseen, 500", "cifar10": "unseen, 500", "clinc150_minilm": "unseen, 100"}


def main() -> None:
    options = _options()
    names = ("ITQ, labelled samples", "ITQ, all samples", "neighbors, all", "labels and neighbors, all", "labels")
    table = Table("data, bits", *names)
    for name in options.dataset:
        data = datasets.load(name)
        for n_bits in options.bits:
            found = np.array([_scores(data, n_bits, draw) for draw in range(options.draws)])
            spread = found.std(axis=0, ddof=1) if len(found) > 1 else np.zeros(found.shape[1])
            cells = [f"{m:.2f} ± {s:.2f}" for m, s in zip(found.mean(axis=0), spread, strict=True)]
            table.row(f"{name}, {n_bits}", *cells)
    table.record(options.json)


def _scores(data: datasets.DataSet, n_bits: int, draw: int) -> list[float]:
    split = PROTOCOLS[PROTOCOL[data.name]].draw(data, draw)
    others = np.setdiff1d(split.database, split.train)
    free = np.random.default_rng(draw).choice(others, min(len(split.train), len(others)), replace=False)
    every = np.concatenate([split.train, free])
    labels = np.concatenate([data.y[split.train], np.full(len(free), -1)])

    def two_step(target: Any) -> TwoStepHasher:
        # The kernel's full Gram matrix of up to 21,000 rows would take minutes.
        function = KernelRidge(max_gram_rows=7_000)
        solver = "local_search" if target == "labels" else "sweeps"
        return TwoStepHasher(n_bits, target=target, solver=solver, hash_function=function, random_state=draw)

    X = data.X
    fitted = [
        ITQ(n_bits, random_state=draw).fit(X[split.train]),
        ITQ(n_bits, random_state=draw).fit(X[every]),
        two_step("neighbors").fit(X[every]),
        two_step(targets.LabelsAndNeighbors()).fit(X[every], labels),
        two_step("labels").fit(X[split.train], data.y[split.train]),
    ]
    return [
        100.0
        * float(
            metrics.mean_average_precision(
                hasher.encode(X[split.queries]),
                hasher.encode(X[split.database]),
                data.y[split.queries],
                data.y[split.database],
            )
        )
        for hasher in fitted
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", nargs="+", default=["mnist", "clinc150_minilm"], choices=list(PROTOCOL))
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--draws", type=int, default=3)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
