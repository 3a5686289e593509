"""Which neighbour graph makes the best codes without labels: k, dimension, metric, start, hash function.

``python -m benchmarks.neighbor_target --dataset mnist --bits 16`` varies one choice at a time from the defaults of
`hashlearn.targets.Neighbors`. Learned from are 500 samples a class without their labels; queries (2,000) and database
(20,000, those learned from among them) come from the training part too, so that no test query is looked at. Printed are
precision within 2 bits and mean average precision, mean of the draws.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from hashlearn import TwoStepHasher, datasets, metrics, targets
from hashlearn.bench.protocols import PROTOCOLS

N_QUERIES, N_DATABASE = 2_000, 20_000


def main() -> None:
    options = _options()
    data = datasets.load(options.dataset)
    default = targets.Neighbors()
    trials: dict[str, dict[str, Any]] = {"defaults": {}}
    trials |= {f"n_neighbors={k}": {"target": replace(default, n_neighbors=k)} for k in (5, 10, 15)}
    trials |= {f"dimension={d}": {"target": replace(default, dimension=float(d))} for d in (8, 16, 24, 32, 48)}
    trials["metric='euclidean'"] = {"target": replace(default, metric="euclidean")}
    trials["init='pca'"] = {"init": "pca"}
    trials["hash_function='rbf_svm'"] = {"hash_function": "rbf_svm"}
    trials |= {f"target={name!r}": {"target": name} for name in ("distance", "thresholded_distance")}
    print(f"| {options.dataset}, {options.bits} bits, {options.draws} draw(s) | precision within 2 bits | mAP |")
    print("|---|---|---|")
    for name, parameters in trials.items():
        if options.only and not any(word in name for word in options.only):
            continue
        found = np.mean([_score(data, draw, options, parameters) for draw in range(options.draws)], axis=0)
        print(f"| {name} | {100 * found[0]:.2f} | {100 * found[1]:.2f} |", flush=True)


def _score(data: datasets.DataSet, draw: int, options: argparse.Namespace, parameters: dict[str, Any]) -> list[float]:
    split = PROTOCOLS["500 per class"].draw(data, draw)
    others = np.random.default_rng(100 + draw).permutation(np.setdiff1d(split.database, split.train))
    queries = others[:N_QUERIES]
    database = np.concatenate([split.train, others[N_QUERIES : N_QUERIES + N_DATABASE - len(split.train)]])
    chosen = {"solver": options.solver, "target": "neighbors", "random_state": draw, **parameters}
    hasher = TwoStepHasher(options.bits, **chosen).fit(data.X[split.train])
    found = metrics.evaluate(
        hasher.encode(data.X[queries]), hasher.encode(data.X[database]), data.y[queries], data.y[database]
    )
    return [found.precision_within_radius, found.mean_average_precision]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", default="mnist", choices=["mnist", "cifar10"])
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--solver", default="local_search")
    parser.add_argument("--only", nargs="+", help="words; trials that hold none of them are left out")
    return parser.parse_args()


if __name__ == "__main__":
    main()
