"""Which pair of variables to branch on: the one whose children, after a few steps each, have the highest bounds.

Pairs with X_ij near 0 are undecided. A few of them are tried: both children's augmented Lagrangians are minimized for a
few steps from the parent's V, with the parent's cuts. The pair with the largest product of both increases is chosen, as
usual in strong branching. Cost: `CANDIDATES` · 2 · `STEPS` evaluations, a tenth of the work of a node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.bqp.branch_and_bound.bound import PENALTY
from hashlearn.bqp.branch_and_bound.lagrangian import minimize
from hashlearn.bqp.branch_and_bound.tree import Node
from hashlearn.core.arrays import FloatArray

CANDIDATES = 12
STEPS = 10


def choose_pair(node: Node, X: FloatArray, between: Callable[[], Any]) -> tuple[int, int]:
    """Positions i < j in the node."""
    best, best_score = (0, 1), -np.inf
    for i, j in _candidates(node, X):
        rises = [max(_rise(node, i, j, sign), 1e-6 * abs(node.estimate)) for sign in (1, -1)]
        score = float(np.log(rises[0] + 1e-300) + np.log(rises[1] + 1e-300))
        if score > best_score:
            best, best_score = (i, j), score
        between()
    return best


def _candidates(node: Node, X: FloatArray) -> list[tuple[int, int]]:
    """Undecided pairs of variables that are undecided towards the others too."""
    m = node.m
    undecided = 1.0 - np.abs(X)
    strength = np.abs(node.C).sum(axis=1)
    strength = strength / max(float(strength.max()), 1e-300)
    score = undecided**2 * (1.0 + strength[:, None] + strength[None, :])
    rows, columns = np.triu_indices(m, 1)
    order = np.argsort(-score[rows, columns], kind="stable")[:CANDIDATES]
    return [(int(rows[k]), int(columns[k])) for k in order]


def _rise(node: Node, i: int, j: int, sign: int) -> float:
    """How far the child's relaxation lies above the node's, after a few steps."""
    child = node.child(i, j, sign)
    X, M = np.empty((child.m, child.m)), np.empty((child.m, child.m))
    sigma = PENALTY * max(float(np.sqrt((node.C**2).sum() / node.m)), 1e-300)
    cuts = child.cuts
    value = minimize(child.C, child.V, cuts.members, cuts.sizes, cuts.gamma, sigma, 0.0, STEPS, X, M)
    return float(value + child.diagonal.sum() - node.estimate)
