"""One node: its bound by rounds of minimization, cuts and dual points, and the pair of variables to branch on.

A round minimizes the augmented Lagrangian (`lagrangian`), updates the multipliers, and makes a dual point from V:
y_i = v_iᵀ(MV)_i, shifted by λ_min(M − Diag(y)). Then violated cuts are added and slack ones dropped. Eigenvectors of
negative eigenvalues become new columns of V, which leads away from saddle points, and empty columns are removed.

If the relaxation is tight, V is close to signs z. Take y_i = z_i (Mz)_i, with multipliers only for cuts that z meets
with equality. If M − Diag(y) ⪰ 0, the bound of this dual point is exactly the value of z.

Pairs with X_ij near 0 are undecided. A few of them are tried: both children's augmented Lagrangians are minimized for a
few steps from the parent's V, with the parent's cuts. The pair with the largest product of both increases is chosen, as
usual in strong branching. Cost: `CANDIDATES` · 2 · `TRIAL_STEPS` evaluations, a tenth of the work of a node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.proof.cuts import WIDEST, Cuts, violated
from hashlearn.bqp.proof.lagrangian import minimize, multipliers, violation, weighted
from hashlearn.bqp.proof.tree import Leaf, Node
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
WORK_PER_CALL = 2e9  # floating point operations between two checks of the time


@dataclass(eq=False)
class Relaxation:
    """What the rounds of one node end with."""

    X: FloatArray
    leaf: Leaf
    estimate: float
    pruned: bool


def strengthen(
    node: Node,
    threshold: float,
    prunes: Callable[[Leaf], bool],
    report: Callable[[Leaf], Any],
    round_signs: Callable[[FloatArray], Any],
    between: Callable[[], Any],
    most_rounds: int | None = None,
) -> Relaxation:
    """Rounds until ``prunes`` accepts a dual point with a bound above ``threshold``, or progress is slow.

    The node keeps its last V and cuts, for its children. ``report`` gets better dual points, ``round_signs`` gets signs
    that V suggests.
    """
    C, constant, m = node.C, float(node.diagonal.sum()), node.m
    size = max(float(np.sqrt((C * C).sum() / m)), 1e-300)
    sigma, tolerance = PENALTY * size, TOLERANCE * size * np.sqrt(m)
    X, M = np.empty((m, m)), np.empty((m, m))
    best: Leaf | None = None
    polished, last, estimate = 0, -np.inf, -np.inf
    is_root = node.parent is None
    widest = 3 if is_root else WIDEST
    for number in range(most_rounds or MOST_ROUNDS):
        V, cuts, sizes = node.V, node.cuts, node.cuts.sizes
        steps = max(
            1,
            min(
                POLISHING_STEPS if polished else STEPS,
                int(WORK_PER_CALL / (4.0 * m * m * V.shape[1] + 50.0 * len(sizes))),
            ),
        )
        for _ in range(2 if len(sizes) else 1):
            estimate = constant + minimize(C, V, cuts.members, sizes, cuts.gamma, sigma, tolerance, steps, X, M)
            cuts = cuts.with_gamma(multipliers(X, cuts.members, sizes, cuts.gamma, sigma))
            between()
        z = _leading_signs(V)
        round_signs(z)
        leaf, values, vectors = _dual_point(node, V, cuts)
        if best is None or leaf.bound > best.bound:
            best = leaf
            report(best)
        if estimate > threshold and best.bound <= threshold:
            tight = _tight_point(node, z, cuts)
            best = tight if tight.bound > best.bound else best
        if best.bound > threshold:
            if prunes(best):
                return Relaxation(X, best, estimate, True)
            threshold += 0.5 * (best.bound - threshold)  # rounding to integers cost too much
        node.cuts = _without_slack(X, cuts)
        if estimate > threshold:
            polished += 1
            sigma *= SOFTER
            # A new column of norm 0.05 √m for an eigenvalue λ has the gradient 0.1 √m |λ|, and |λ| ≤ slack / m will do.
            tolerance = min(0.7 * tolerance, 0.05 * (estimate - threshold) / np.sqrt(m))
            if polished > POLISHING:
                break
        else:
            gain = estimate - last
            slow = number >= 2 and (ROOT_HORIZON if is_root else HORIZON) * gain < threshold - estimate
            if slow and widest == WIDEST:
                break
            if widest < WIDEST and (slow or number in WIDER):
                widest += 2
            node.cuts = node.cuts.extended(violated(X, node.cuts, widest, LEAST_VIOLATION, CUTS_PER_ROUND))
        last = estimate
        node.V = _with_rank(V, values, vectors)
        between()
    assert best is not None
    node.estimate = estimate
    return Relaxation(X, best, estimate, False)


def _dual_point(node: Node, V: FloatArray, cuts: Cuts) -> tuple[Leaf, FloatArray, FloatArray]:
    """The dual point of V, and the eigenpairs of M − Diag(y) that are negative."""
    M = weighted(node.C, cuts.members, cuts.sizes, cuts.gamma)
    y = np.einsum("ij,ij->i", M @ V, V)
    values, vectors = la.eigh(M - np.diag(y), check_finite=False)
    negative = values < 0.0
    return _leaf(node, y + values[0], cuts), values[negative], vectors[:, negative]


def _tight_point(node: Node, z: FloatArray, cuts: Cuts) -> Leaf:
    """The dual point for which z is optimal, with the cuts that z satisfies with equality."""
    Z = np.outer(z, z)
    equal = np.array([violation(Z, b, k) == 0.0 for b, k in zip(cuts.members, cuts.sizes, strict=True)], dtype=bool)
    cuts = cuts.kept(equal & (cuts.gamma > 0.0))
    M = weighted(node.C, cuts.members, cuts.sizes, cuts.gamma)
    y = z * (M @ z)
    least = la.eigh(M - np.diag(y), eigvals_only=True, subset_by_index=[0, 0], check_finite=False)[0]
    return _leaf(node, y + least, cuts)


def _leaf(node: Node, y: FloatArray, cuts: Cuts) -> Leaf:
    bound = float(y.sum() + node.diagonal.sum() + cuts.gamma @ (1.0 - cuts.sizes))
    return Leaf(y, cuts, bound)


def _without_slack(X: FloatArray, cuts: Cuts) -> Cuts:
    slack = -multipliers(X, cuts.members, cuts.sizes, np.full(len(cuts.gamma), 100.0), 1.0) + 100.0
    return cuts.kept((cuts.gamma > 0.0) | (slack < SLACK))


def _leading_signs(V: FloatArray) -> FloatArray:
    """Signs of V along its longest direction."""
    direction = la.eigh(V.T @ V, subset_by_index=[V.shape[1] - 1] * 2, check_finite=False)[1][:, 0]
    return np.where(V @ direction < 0.0, -1.0, 1.0)


def _with_rank(V: FloatArray, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """V without its empty columns, and with a column for each of the most negative eigenvalues."""
    m = len(V)
    squares, Q = la.eigh(V.T @ V, check_finite=False)
    V = V @ Q[:, squares > 1e-7 * m]
    more = min(len(values), max(4, V.shape[1] // 3), m - V.shape[1])
    if more > 0:
        V = np.hstack([V, 0.05 * np.sqrt(m) * vectors[:, :more]])
    if V.shape[1] < 2:
        V = np.hstack([V, np.zeros((m, 1))])
    return np.ascontiguousarray(V / np.linalg.norm(V, axis=1)[:, None])


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
    value = minimize(child.C, child.V, cuts.members, cuts.sizes, cuts.gamma, sigma, 0.0, TRIAL_STEPS, X, M)
    return float(value + child.diagonal.sum() - node.estimate)
