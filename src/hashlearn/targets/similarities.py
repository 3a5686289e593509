"""Targets without classes: squared distances between rows of unit length, or similarities that the user gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from hashlearn import bqp
from hashlearn.core.checks import require_share
from hashlearn.targets.base import Target, centered_unit_rows


@dataclass(frozen=True)
class Distance(Target):
    """Eq. (3), unsupervised: s_ij = ‖x_i − x_j‖² with c = 4, so Y = 1 − S/2 = XXᵀ; rank n_features.

    Parameters
    ----------
    center : subtract the mean before rows are brought to unit length

    Deviations
    ----------
    The paper's text does not center. Without centering, non-negative features (pixels) have no negative inner product,
    and a bit that is the same for all samples becomes optimal. ``center=False`` is the literal text.

    >>> Distance().build(np.array([[0.0, 1.0], [2.0, 1.0]]), None, np.random.default_rng(0)).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    center: bool = True

    name: ClassVar[str] = "distance"
    takes_tensors: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        rows = centered_unit_rows(X, self.center)
        return bqp.LowRank(rows, np.ones(rows.shape[1]))


@dataclass(frozen=True)
class ThresholdedDistance(Target):
    """Each sample's nearest fraction of all others is similar (made symmetric), everything else is not: Y = 2N − 11ᵀ.

    N is sparse with about fraction · n² ones. This reading of the paper's unsupervised experiments reaches its
    figures; squared distances as printed do not (docs/paper.md).

    Parameters
    ----------
    fraction : q, the share of samples that count as similar, e.g. 0.02
    center : subtract the mean before rows are brought to unit length
    """

    fraction: float = 0.02
    center: bool = True

    name: ClassVar[str] = "thresholded_distance"

    def __post_init__(self) -> None:
        require_share(self.fraction, "fraction")

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        rows = centered_unit_rows(X, self.center)
        n = len(rows)
        count = min(n - 1, max(1, round(self.fraction * n)))
        background = bqp.LowRank(np.ones((n, 1)), np.array([-1.0]))
        if n == 1:
            return background
        index = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows)
        near = index.kneighbors_graph(mode="connectivity")
        near = sp.csr_array(near.maximum(near.T) + sp.eye_array(n, format="csr"))
        near.data[:] = 2.0
        return bqp.Sparse(near) + background


@dataclass(frozen=True, eq=False)
class Similarity(Target):
    """Your own Y: symmetric, entries in [−1, 1] (1: same code, −1: opposite, 0: unrelated), dense, sparse or a
    `bqp.Operator`.

    Parameters
    ----------
    matrix : n × n, n the number of samples that fit gets
    background : value of the entries that a sparse matrix does not store, e.g. −1 for "not similar"

    >>> Similarity([[1.0, 0.5], [0.5, 1.0]]).build(np.zeros((2, 3)), None, np.random.default_rng(0)).toarray()
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    matrix: Any = field(repr=False)
    background: float = 0.0

    name: ClassVar[str] = "similarity"

    def __post_init__(self) -> None:
        if not -1.0 <= self.background <= 1.0:
            raise ValueError(f"background must lie in [-1, 1], got {self.background!r}")

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        target = bqp.as_operator(self.matrix)
        if target.n != X.shape[0]:
            raise ValueError(
                f"the similarity matrix must be n × n with n = {X.shape[0]}, the number of samples, got n = {target.n}"
            )
        entries = np.zeros(1) if target.is_low_rank else target.array if target.is_dense else target.sparse.data
        if entries.size and np.abs(entries).max() > 1.0 + 1e-9:
            worst = entries.flat[np.abs(entries).argmax()]
            raise ValueError(
                f"the similarity matrix must have entries in [-1, 1], got {worst:.6g}; "
                "1 asks for equal codes, -1 for opposite ones"
            )
        if self.background == 0.0:
            return target
        if not target.is_sparse:
            raise ValueError("background only has a meaning for a sparse similarity matrix; leave it at 0")
        shifted = target.sparse.copy()
        shifted.data = shifted.data - self.background
        return bqp.Sparse(shifted) + bqp.LowRank(np.ones((target.n, 1)), np.array([self.background]))


@dataclass(frozen=True, eq=False)
class Pairs(Target):
    """Lists of pairs (i, j) of sample numbers: similar ones get Y = 1, dissimilar ones −1, the rest 0.

    >>> Pairs(similar=[(0, 1)], dissimilar=[(1, 2)]).build(np.zeros((3, 1)), None, np.random.default_rng(0)).toarray()
    array([[ 0.,  1.,  0.],
           [ 1.,  0., -1.],
           [ 0., -1.,  0.]])
    """

    similar: ArrayLike = field(default=(), repr=False)
    dissimilar: ArrayLike = field(default=(), repr=False)

    name: ClassVar[str] = "pairs"

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        n = X.shape[0]
        lists = [(_pairs(self.similar, "similar", n), 1.0), (_pairs(self.dissimilar, "dissimilar", n), -1.0)]
        pairs = np.concatenate([p for p, _ in lists])
        if len(pairs) == 0:
            raise ValueError("Pairs needs at least one similar or dissimilar pair")
        values = np.concatenate([np.full(len(p), v) for p, v in lists])
        both = np.concatenate([pairs, pairs[:, ::-1]])
        total = sp.coo_array((np.r_[values, values], (both[:, 0], both[:, 1])), shape=(n, n)).tocsr()
        total.data = np.clip(total.data, -1.0, 1.0)  # a pair named twice counts once, a pair in both lists is 0
        return bqp.Sparse(total)


def _pairs(pairs: ArrayLike, name: str, n: int) -> np.ndarray:
    array = np.asarray(pairs)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a list of pairs of sample numbers, got an array of shape {array.shape}")
    if array.min() < 0 or array.max() >= n:
        raise ValueError(f"{name} names sample {array.max() if array.max() >= n else array.min()}, but there are {n}")
    if (array[:, 0] == array[:, 1]).any():
        raise ValueError(f"{name} pairs sample {array[array[:, 0] == array[:, 1]][0, 0]} with itself")
    return array.astype(np.intp)
