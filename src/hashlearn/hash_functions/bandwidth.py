"""γ of the RBF kernel from the data.

``"neighbors"`` 1 / mean squared distance to the 50 nearest neighbors, the rule of the two-step literature
``"median"``    1 / median squared distance between rows
``"scale"``     1 / (n_features · variance of all entries of X), scikit-learn's
a number        itself

Distances are those of at most 500 rows, drawn with the generator, to all rows ("neighbors") or to each other
("median"): O(n · n_features).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from hashlearn.core.checks import positive
from hashlearn.core.threads import map_row_blocks
from hashlearn.hash_functions.batch_invariant import Rows

NEIGHBORS = 50
SAMPLED_ROWS = 500
RULES = {"neighbors": "50-NN rule", "median": "median rule", "scale": "scale rule"}
# A squared distance below this fraction of the squared norms is rounding: the rows are equal.
ROUNDING = 1e-13


def check_gamma(gamma: Any) -> None:
    """Refuse a value that is neither a rule, nor "cv", nor a positive number."""
    if isinstance(gamma, str):
        if gamma not in RULES and gamma != "cv":
            wanted = ", ".join(f"'{name}'" for name in (*RULES, "cv"))
            raise ValueError(f"gamma must be a positive number or one of {wanted}, got {gamma!r}")
        return
    positive(gamma, "gamma")


def choose_gamma(gamma: float | str, X: Rows, rng: np.random.Generator) -> tuple[float, str]:
    """γ and its source in words; γ is 1 if all distances are zero."""
    if not isinstance(gamma, str):
        return float(gamma), "given"
    rule = "neighbors" if gamma == "cv" else gamma
    size = _variance(X) * X.shape[1] if rule == "scale" else _typical_squared_distance(rule, X, rng)
    with np.errstate(over="ignore", divide="ignore"):
        value = float(1.0 / np.float64(size))
    return (value, RULES[rule]) if 0.0 < value < np.inf else (1.0, f"{RULES[rule]}, all rows equal")


def _typical_squared_distance(rule: str, X: Rows, rng: np.random.Generator) -> float:
    n = X.shape[0]
    if n < 2:
        return 0.0
    sample = np.arange(n) if n <= SAMPLED_ROWS else np.sort(rng.choice(n, SAMPLED_ROWS, replace=False))
    if rule == "neighbors":
        size = float(_nearest(X, sample, min(NEIGHBORS, n - 1)).mean())
        if size > 0.0:
            return size
    rows = X[sample]
    center = _center(rows)
    distances = _squared_distances(_float64(rows, center), _float64(rows, center))
    apart = distances[np.triu_indices(len(sample), 1)]
    return float(np.median(apart)) or float(apart.mean())


def _nearest(X: Rows, sample: NDArray[np.intp], k: int) -> NDArray[np.float64]:
    """Squared distances from each sampled row to its k nearest other rows, block by block."""
    center = _center(X[sample])
    queries = _float64(X[sample], center)

    def block(first: int, last: int) -> NDArray[np.float64]:
        distances = _squared_distances(queries, _float64(X[first:last], center))
        inside = (sample >= first) & (sample < last)
        distances[np.flatnonzero(inside), sample[inside] - first] = np.inf
        return distances if last - first <= k else np.partition(distances, k - 1, axis=1)[:, :k]

    nearest = np.hstack(map_row_blocks(block, X.shape[0]))
    return np.partition(nearest, k - 1, axis=1)[:, :k]


def _squared_distances(A: Rows, B: Rows) -> NDArray[np.float64]:
    a, b = (np.asarray((M * M).sum(axis=1), dtype=np.float64).ravel() for M in (A, B))
    norms = a[:, None] + b
    distances = norms - 2.0 * safe_sparse_dot(A, B.T, dense_output=True)
    distances[distances <= ROUNDING * norms] = 0.0
    return distances


def _center(rows: Rows) -> NDArray[np.float64] | None:
    return None if sp.issparse(rows) else rows.mean(axis=0, dtype=np.float64)


def _float64(rows: Rows, center: NDArray[np.float64] | None) -> Rows:
    rows = rows.astype(np.float64)
    return rows if center is None else rows - center


def _variance(X: Rows) -> float:
    if sp.issparse(X):
        size = X.shape[0] * X.shape[1]
        mean = X.data.sum(dtype=np.float64) / size
        return float(np.square(X.data, dtype=np.float64).sum() / size - mean * mean)
    return float(X.var(dtype=np.float64))
