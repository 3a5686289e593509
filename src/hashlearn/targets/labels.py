"""Supervised targets: eq. (3) with s_ij = 0 for samples of one class and 1 otherwise, Y = 1 − 2S."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from hashlearn import bqp

# With more distinct label sets than this their similarity is kept sparse instead of factored.
MAX_FACTORED_SETS = 400


@dataclass(frozen=True)
class Labels:
    """Samples of one class get one code, other classes the opposite: Y = 2CCᵀ − 11ᵀ, C one-hot; rank classes + 1.

    >>> Labels().build(None, np.array(["a", "b", "a"]), np.random.default_rng(0)).toarray()
    array([[ 1., -1.,  1.],
           [-1.,  1., -1.],
           [ 1., -1.,  1.]])
    """

    name: ClassVar[str] = "labels"
    needs_labels: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """From class labels of any kind, shape (n,)."""
        assert y is not None
        _, classes = np.unique(y, return_inverse=True)
        one_hot = np.zeros((len(classes), classes.max() + 1))
        one_hot[np.arange(len(classes)), classes] = 1.0
        return bqp.LowRank(
            np.hstack([np.ones((len(classes), 1)), one_hot]), np.r_[-1.0, np.full(one_hot.shape[1], 2.0)]
        )


@dataclass(frozen=True)
class SharedLabels:
    """Multi-label: two samples are similar when they share a label; samples without labels are similar to none.

    Samples with the same set of labels are interchangeable, so with u distinct sets Y has rank at most u + 1 and is
    factored through a u × u matrix; for many sets the similar pairs are kept as a sparse matrix beside −11ᵀ.

    >>> Y = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 0]])
    >>> SharedLabels().build(None, Y, np.random.default_rng(0)).toarray().round(9) + 0.0
    array([[ 1.,  1., -1.],
           [ 1.,  1., -1.],
           [-1., -1.,  1.]])
    """

    name: ClassVar[str] = "shared_labels"
    needs_labels: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """From 0/1 indicators, shape (n, n_labels)."""
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
