"""Which choices make the best codes, one varied at a time from the defaults, without labels and with them.

``python -m benchmarks.choices --dataset mnist --bits 16``, or with ``--labels``. Learned from are 500 samples a class
(their labels only if asked for); queries (2,000) and database (20,000, those learned from among them) come from the
training part too, so that no test query is looked at. Printed are precision within 2 bits and mean average precision,
mean of the draws.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from hashlearn import TwoStepHasher, metrics, targets
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.protocols import PROTOCOLS
from hashlearn.hash_functions import KernelRidge
from hashlearn.hashers.codewords import best_order, confusions

N_QUERIES, N_DATABASE = 2_000, 20_000


def main() -> None:
    options = _options()
    data = datasets.load(options.dataset)
    trials = _with_labels() if options.labels else _without_labels()
    print(f"| {options.dataset}, {options.bits} bits, {options.draws} draw(s) | precision within 2 bits | mAP |")
    print("|---|---|---|")
    for name, parameters in trials.items():
        if options.only and not any(word in name for word in options.only):
            continue
        found = np.mean([_score(data, draw, options, parameters) for draw in range(options.draws)], axis=0)
        print(f"| {name} | {100 * found[0]:.2f} | {100 * found[1]:.2f} |", flush=True)


class FarApart(TwoStepHasher):
    """Easily confused classes get codewords far from each other: the opposite of ``arrange``."""

    def fit(self, X: Any, y: Any = None) -> FarApart:
        """As `TwoStepHasher`, with the codewords given out anew before hash functions are learned."""
        super().fit(X, y)
        rng = np.random.default_rng(self.random_state)
        _, first, member = np.unique(y, return_index=True, return_inverse=True)
        words = self.codes_[first]
        shares = np.bincount(member) / len(member)
        order = best_order(words.astype(np.float64), -confusions(X, member, rng), shares, rng)
        self.codes_ = words[order][member]
        self.hash_functions_ = KernelRidge().fit(X, self.codes_, rng)
        return self


def _without_labels() -> dict[str, dict[str, Any]]:
    default = targets.Neighbors()
    trials: dict[str, dict[str, Any]] = {"defaults": {}}
    trials |= {f"n_neighbors={k}": {"target": replace(default, n_neighbors=k)} for k in (5, 10, 15)}
    trials |= {f"dimension={d}": {"target": replace(default, dimension=float(d))} for d in (8, 16, 24, 32, 48)}
    trials["metric='euclidean'"] = {"target": replace(default, metric="euclidean")}
    trials["square roots"] = {"power": 0.5}
    trials["init='pca'"] = {"init": "pca"}
    trials["hash_function='rbf_svm'"] = {"hash_function": "rbf_svm"}
    trials |= {f"target={name!r}": {"target": name} for name in ("distance", "thresholded_distance")}
    paper = {"hash_function": "rbf_svm", "init": "pca"}
    for share in (0.005, 0.01, 0.02, 0.05, 0.1):
        trials[f"the paper's, q={share}"] = {**paper, "target": targets.ThresholdedDistance(share)}
    return trials


def _with_labels() -> dict[str, dict[str, Any]]:
    trials: dict[str, dict[str, Any]] = {"defaults": {}}
    trials["square roots"] = {"power": 0.5}
    trials["arrange=False"] = {"arrange": False}
    trials["confused classes far apart"] = {"kind": FarApart}
    trials["spread=False"] = {"spread": False}
    trials |= {f"alpha={alpha}": {"hash_function": KernelRidge(alpha=alpha)} for alpha in (0.01, 0.03, 0.3)}
    trials["hash_function='rbf_svm'"] = {"hash_function": "rbf_svm"}
    trials["the paper's"] = {"hash_function": "rbf_svm", "arrange": False, "spread": False}
    return trials


def _score(data: datasets.DataSet, draw: int, options: argparse.Namespace, parameters: dict[str, Any]) -> list[float]:
    split = PROTOCOLS["500 per class"].draw(data, draw)
    others = np.random.default_rng(100 + draw).permutation(np.setdiff1d(split.database, split.train))
    queries = others[:N_QUERIES]
    database = np.concatenate([split.train, others[N_QUERIES : N_QUERIES + N_DATABASE - len(split.train)]])
    solver = options.solver or ("local_search" if options.labels else "sweeps")
    chosen = {"solver": solver, "random_state": draw, **parameters}
    kind, X = chosen.pop("kind", TwoStepHasher), data.X ** chosen.pop("power", 1.0)
    train = _thinned(split.train, data.y, draw) if options.unequal else split.train
    labels = data.y[train] if options.labels else None
    hasher = kind(options.bits, **chosen).fit(X[train], labels)
    found = metrics.evaluate(hasher.encode(X[queries]), hasher.encode(X[database]), data.y[queries], data.y[database])
    return [found.precision_within_radius, found.mean_average_precision]


def _thinned(train: np.ndarray, y: np.ndarray, draw: int) -> np.ndarray:
    """500 samples of one class, each next class 0.7 times as many as the one before, 20 of the last of ten."""
    classes = np.unique(y[train])
    order = np.random.default_rng(draw).permutation(len(classes))
    kept = []
    for label, place in zip(classes, order, strict=True):
        own = train[y[train] == label]
        kept.append(own[: max(2, round(len(own) * 0.7**place))])
    return np.concatenate(kept)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--dataset", default="mnist", choices=["mnist", "cifar10"])
    parser.add_argument("--labels", action="store_true", help="learn from labels")
    parser.add_argument("--unequal", action="store_true", help="learn from classes of 500 down to 20 samples")
    parser.add_argument("--bits", type=int, default=16)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--solver", help="default: local_search with labels, sweeps without")
    parser.add_argument("--only", nargs="+", help="words; trials that hold none of them are left out")
    return parser.parse_args()


if __name__ == "__main__":
    main()
