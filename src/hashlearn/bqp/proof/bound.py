"""One node: its bound by rounds of minimization, cuts and dual points, and the pair of variables to branch on.

A round minimizes the augmented Lagrangian (`cuts`), updates the multipliers, and makes a dual point from V:
y_i = v_iᵀ(MV)_i, shifted by λ_min(M − Diag(y)). Then violated cuts are added and slack ones dropped. Eigenvectors of
negative eigenvalues become new columns of V, which leads away from saddle points, and empty columns are removed.

Pairs with X_ij near 0 are undecided. A few of them are tried: both children's augmented Lagrangians are minimized for a
few steps from the parent's V, with the parent's cuts. The pair with the largest product of both increases is chosen, as
usual in strong branching. Cost: `CANDIDATES` · 2 · `TRIAL_STEPS` evaluations, a tenth of the work of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.proof.cuts import WIDEST, Cuts, minimize, separate
from hashlearn.bqp.proof.tree import DualPoint, Node
from hashlearn.core.arrays import FloatArray

PENALTY = 0.3  # σ, relative to the root mean square of the rows of C
TOLERANCE = 1e-4  # of the gradient, relative to the same and √m
STEPS, POLISHING_STEPS = 100, 300  # of L-BFGS in one minimization
CUTS_PER_ROUND = 300  # of each size
LEAST_VIOLATION = 0.05
SLACK = 0.05  # cuts without multiplier are dropped if they hold by more
MOST_ROUNDS = 60
SOFTER = 0.7  # σ in each of the polishing rounds, relative to the one before
POLISHING = 15  # rounds for a dual point once the relaxation is high enough
# A node is branched if this many rounds like the last would not prune it.
HORIZON, ROOT_HORIZON = 5.0, 25.0
# The root begins with cuts of 3 entries. Wider ones follow at these rounds, or when progress is slow.
WIDER = (4, 7)
CANDIDATES, TRIAL_STEPS = 12, 10  # pairs that are tried for branching, and the steps for each child
WORK_PER_CALL = 2e9  # floating point operations between two looks at the clock


class Round(NamedTuple):
    """What a round gives: X = VVᵀ, the best dual point so far, whether it may prune, and signs that V suggests."""

    X: FloatArray
    point: DualPoint
    may_prune: bool
    z: FloatArray


def rounds(node: Node, threshold: float, between: Callable[[], Any], max_rounds: int | None = None) -> Iterator[Round]:
    """Rounds until progress towards a bound above ``threshold`` is slow; the caller stops at a point that prunes.

    The node keeps its last V, cuts and estimate, for its children.
    """
    m, size = node.m, _row_size(node)
    sigma, tolerance = PENALTY * size, TOLERANCE * size * np.sqrt(m)
    best: DualPoint | None = None
    n_polished, last = 0, -np.inf
    widest = 3 if node.is_root else WIDEST
    for number in range(max_rounds or MOST_ROUNDS):
        cuts = node.cuts
        work = 4.0 * m * m * node.V.shape[1] + 50.0 * len(cuts.gamma)
        steps = max(1, min(POLISHING_STEPS if n_polished else STEPS, int(WORK_PER_CALL / work)))
        for _ in range(2 if len(cuts.gamma) else 1):
            value, X = minimize(node.C, node.V, cuts.members, cuts.gamma, sigma, tolerance, steps)
            cuts = Cuts(cuts.members, np.maximum(0.0, cuts.gamma + sigma * cuts.violations(X)))
            between()
        node.estimate = node.offset + value
        point, values, vectors = _dual_point(node, cuts)
        best = point if best is None or point.bound > best.bound else best
        yield Round(X, best, best.bound > threshold, _leading_signs(node.V))
        threshold += max(0.0, 0.5 * (best.bound - threshold))  # rounding to integers cost too much
        node.cuts = cuts[(cuts.gamma > 0.0) | (cuts.violations(X) > -SLACK)]
        if node.estimate > threshold:
            n_polished += 1
            sigma *= SOFTER
            # A new column of norm 0.05 √m for an eigenvalue λ has the gradient 0.1 √m |λ|, and |λ| ≤ slack / m will do.
            tolerance = min(0.7 * tolerance, 0.05 * (node.estimate - threshold) / np.sqrt(m))
            if n_polished > POLISHING:
                break
        else:
            horizon = ROOT_HORIZON if node.is_root else HORIZON
            is_slow = number >= 2 and horizon * (node.estimate - last) < threshold - node.estimate
            if is_slow and widest == WIDEST:
                break
            if widest < WIDEST and (is_slow or number in WIDER):
                widest += 2
            node.cuts = node.cuts.extended(separate(X, node.cuts, widest, LEAST_VIOLATION, CUTS_PER_ROUND))
        last = node.estimate
        node.V = _with_rank(node.V, values, vectors)
        between()


def _row_size(node: Node) -> float:
    """The root mean square of the norms of the rows of C."""
    return max(float(np.sqrt((node.C**2).sum() / node.m)), 1e-300)


def _dual_point(node: Node, cuts: Cuts) -> tuple[DualPoint, FloatArray, FloatArray]:
    """The dual point of V, and the eigenpairs of M − Diag(y) that are negative before the shift."""
    M = cuts.subtracted_from(node.C)
    y = np.einsum("ij,ij->i", M @ node.V, node.V)
    values, vectors = la.eigh(M - np.diag(y), check_finite=False)
    y += values[0]
    bound = float(y.sum() + node.offset + cuts.gamma @ (1.0 - cuts.sizes))
    return DualPoint(y, cuts, bound), values[values < 0.0], vectors[:, values < 0.0]


def _leading_signs(V: FloatArray) -> FloatArray:
    """Signs of V along its longest direction."""
    direction = la.eigh(V.T @ V, subset_by_index=[V.shape[1] - 1] * 2, check_finite=False)[1][:, 0]
    return np.where(V @ direction < 0.0, -1.0, 1.0)


def _with_rank(V: FloatArray, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """V without its empty columns, and with a column for each of the most negative eigenvalues."""
    m = len(V)
    squares, Q = la.eigh(V.T @ V, check_finite=False)
    V = V @ Q[:, squares > 1e-7 * m]
    n_new = max(0, min(len(values), max(4, V.shape[1] // 3), m - V.shape[1]))
    V = np.hstack([V, 0.05 * np.sqrt(m) * vectors[:, :n_new], np.zeros((m, max(0, 2 - V.shape[1] - n_new)))])
    return np.ascontiguousarray(V / np.linalg.norm(V, axis=1)[:, None])


def choose_pair(node: Node, X: FloatArray, between: Callable[[], Any]) -> tuple[int, int]:
    """Positions i < j in the node."""
    best, best_score = (0, 1), -np.inf
    for i, j in _candidates(node, X):
        rises = [max(_rise(node, i, j, sign), 1e-6 * abs(node.estimate), 1e-300) for sign in (1, -1)]
        score = float(np.log(rises).sum())
        if score > best_score:
            best, best_score = (i, j), score
        between()
    return best


def _candidates(node: Node, X: FloatArray) -> list[tuple[int, int]]:
    """Undecided pairs of variables that are undecided towards the others too."""
    strength = np.abs(node.C).sum(axis=1)
    strength /= max(float(strength.max()), 1e-300)
    rows, columns = np.triu_indices(node.m, 1)
    score = ((1.0 - np.abs(X)) ** 2 * (1.0 + strength[:, None] + strength[None, :]))[rows, columns]
    order = np.argsort(-score, kind="stable")[:CANDIDATES]
    return list(zip(rows[order].tolist(), columns[order].tolist(), strict=True))


def _rise(node: Node, i: int, j: int, sign: int) -> float:
    """How far the child's relaxation lies above the node's, after a few steps."""
    child = node.child(i, j, sign)
    sigma = PENALTY * _row_size(node)
    value, _ = minimize(child.C, child.V, child.cuts.members, child.cuts.gamma, sigma, 0.0, TRIAL_STEPS)
    return float(value + child.offset - node.estimate)
