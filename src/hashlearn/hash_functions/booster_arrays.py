"""scikit-learn's fitted boosters as forests of complete trees, which need no pickle to be stored.

A tree of a booster stops where it likes; a complete tree goes on to its full depth, with thresholds of +inf that send
every row to the left. The booster's constant becomes a tree of its own, the first, so that sums are made in the
booster's order and come out the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.hash_functions.forest_margins import Forest

DEEPEST = 12  # a complete tree has 2 ** depth leaves


def as_forests(boosters: Sequence[Any]) -> list[Forest]:
    """One forest for each fitted `HistGradientBoostingClassifier` of two classes, all of the same shape."""
    grown = [[trees[0].nodes for trees in booster._predictors] for booster in boosters]
    depth = max((int(nodes["depth"].max()) for trees in grown for nodes in trees), default=0)
    if depth > DEEPEST:
        raise TypeError(
            f"boosted trees of depth {depth} are too deep to be stored without pickle; max_depth of at most {DEEPEST} "
            "can be"
        )
    return [
        _forest(trees, float(booster._baseline_prediction.ravel()[0]), depth)
        for booster, trees in zip(boosters, grown, strict=True)
    ]


def _forest(trees: list[NDArray[Any]], constant: float, depth: int) -> Forest:
    n_nodes = 2**depth - 1
    features = np.zeros((1 + len(trees), n_nodes), dtype=np.int32)
    thresholds = np.full((1 + len(trees), n_nodes), np.inf)
    leaves = np.zeros((1 + len(trees), n_nodes + 1))
    leaves[0] = constant
    for t, nodes in enumerate(trees, start=1):
        waiting = [(0, 0)]
        while waiting:
            node, place = waiting.pop()
            if place >= n_nodes:
                leaves[t, place - n_nodes] = nodes["value"][node]
            elif nodes["is_leaf"][node]:
                waiting.append((node, 2 * place + 1))
            else:
                features[t, place], thresholds[t, place] = nodes["feature_idx"][node], nodes["num_threshold"][node]
                waiting += [(nodes["left"][node], 2 * place + 1), (nodes["right"][node], 2 * place + 2)]
    return Forest(features, thresholds, leaves)
