"""Pairs of samples and the distances their codes should have, for BRE: so many random ones for each sample.

Uniform over all pairs, so the objective is an unbiased picture of that over all of them, and memory linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.threads import map_row_blocks

IndexArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Each pair twice, (i, j) and (j, i): the partners of sample i are partners[starts[i] : starts[i + 1]]."""

    starts: IndexArray
    partners: NDArray[np.int32]
    distances: NDArray[np.float64]  # wanted, in [0, 1]

    @property
    def owners(self) -> NDArray[np.int32]:
        """i of every (i, j)."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))


def labelled_pairs(labels: NDArray[Any], n_pairs: int, rng: np.random.Generator) -> Pairs:
    """Distance 0 between samples that share a label, 1 between others."""
    i, j = _draw(len(labels), n_pairs, rng)
    if labels.ndim == 1:
        similar = labels[i] == labels[j]
    else:
        indicators = labels.astype(bool)
        similar = np.concatenate(
            map_row_blocks(lambda a, b: (indicators[i[a:b]] & indicators[j[a:b]]).any(axis=1), len(i), labels.shape[1])
        )
    return _both_ways(len(labels), i, j, np.where(similar, 0.0, 1.0))


def distance_pairs(X: Any, n_pairs: int, rng: np.random.Generator) -> Pairs:
    """½‖x − x'‖² between rows brought to unit length, divided by the largest of the drawn ones if that is above 1."""
    i, j = _draw(X.shape[0], n_pairs, rng)
    everyone = np.arange(X.shape[0])
    norms = np.sqrt(_products(X, everyone, everyone))
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0.0)
    distances = np.maximum(1.0 - _products(X, i, j) * scale[i] * scale[j], 0.0)
    return _both_ways(X.shape[0], i, j, distances / max(1.0, float(distances.max(initial=0.0))))


def _draw(n: int, n_pairs: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """For each sample so many others; a pair may come twice."""
    i = np.repeat(np.arange(n), n_pairs)
    return i, (i + rng.integers(1, n, len(i))) % n


def _both_ways(n: int, i: IndexArray, j: IndexArray, distances: NDArray[np.float64]) -> Pairs:
    owners, both = np.concatenate([i, j]), np.concatenate([distances, distances])
    order = np.argsort(owners, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n))]).astype(np.intp)
    return Pairs(starts, np.concatenate([j, i])[order].astype(np.int32), both[order])


def _products(X: Any, i: IndexArray, j: IndexArray) -> NDArray[np.float64]:
    """x_i · x_j for every pair of rows, in blocks."""

    def block(a: int, b: int) -> NDArray[np.float64]:
        left, right = X[i[a:b]], X[j[a:b]]
        if sp.issparse(X):
            return np.asarray(left.multiply(right).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", left, right, dtype=np.float64)

    return np.concatenate(map_row_blocks(block, len(i), X.shape[1]))
