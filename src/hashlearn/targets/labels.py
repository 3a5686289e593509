"""Supervised targets: eq. (3) with s_ij = 0 for samples of one class and 1 otherwise, Y = 1 − 2S."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.labels import label_indicators
from hashlearn.targets.base import Target

# With more distinct label sets than this, their similarity is a sparse matrix instead of a factor.
MAX_FACTORED_SETS = 400


@dataclass(frozen=True)
class Labels(Target):
    """Samples of one class get one code, other classes the opposite: Y = 2CCᵀ − 11ᵀ, C one-hot; rank classes + 1.

    >>> Labels().build(None, np.array(["a", "b", "a"]), np.random.default_rng(0)).toarray()
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    name: ClassVar[str] = "labels"
    needs_labels: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        assert y is not None
        if y.ndim != 1:
            raise ValueError(f"target {self.name!r} needs one class for each sample, got y of shape {y.shape}")
        one_hot = label_indicators(y)
        weights = np.r_[-1.0, np.full(one_hot.shape[1], 2.0)]
        return bqp.LowRank(np.hstack([np.ones((len(y), 1)), one_hot]), weights)

    def classes(self, y: np.ndarray | None, codes: NDArray[np.int8]) -> NDArray[Any] | None:
        return y if y is not None and y.ndim == 1 else None


@dataclass(frozen=True)
class SharedLabels(Target):
    """Multi-label: two samples are similar when they share a label; samples without labels are similar to none.

    Samples with the same set of labels are interchangeable. With u distinct sets Y has rank at most u + 1 and is
    factored through a u × u matrix. With many sets Y is a sparse matrix of similar pairs plus −11ᵀ.

    >>> Y = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 0]])
    >>> SharedLabels().build(None, Y, np.random.default_rng(0)).toarray().round(9) + 0.0
    array([[ 1.,  1., -1.],
           [ 1.,  1., -1.],
           [-1., -1.,  1.]])
    """

    name: ClassVar[str] = "shared_labels"
    needs_labels: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        assert y is not None
        sets, member = np.unique(np.asarray(y, dtype=bool), axis=0, return_inverse=True)
        member = member.ravel()
        n, n_sets = len(member), len(sets)
        background = bqp.LowRank(np.ones((n, 1)), np.array([-1.0]))
        if n_sets <= MAX_FACTORED_SETS:
            shared = (sets.astype(np.float64) @ sets.T.astype(np.float64) > 0).astype(np.float64)
            values, vectors = np.linalg.eigh(shared)
            kept = np.abs(values) > 1e-12 * np.abs(values).max()
            return bqp.LowRank(vectors[member][:, kept], 2.0 * values[kept]) + background
        indicator = sp.csr_array(np.asarray(y, dtype=np.float64))
        similar = sp.csr_array(indicator @ indicator.T)
        similar.data[:] = 2.0
        return bqp.Sparse(similar) + background
