"""Targets made of classes: eq. (3) with s_ij = 0 for samples of one class and 1 otherwise, Y = 1 − 2S.

Classes are labels, sets of labels, or labels of some samples with the neighbor graph for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.labels import label_indicators
from hashlearn.targets.base import Groups, Target, opposite_classes
from hashlearn.targets.neighbors import Neighbors

# With more distinct label sets than this, their similarity is a sparse matrix instead of a factor.
MAX_FACTORED_SETS = 400
# More groups than this have no K × K matrix (72 MB) and no inference of their own.
MOST_GROUPS = 3000
UNLABELED = -1


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
        one_hot = label_indicators(_classes(y, self.name))
        weights = np.r_[-1.0, np.full(one_hot.shape[1], 2.0)]
        return bqp.LowRank(np.hstack([np.ones((len(one_hot), 1)), one_hot]), weights)

    def groups(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> Groups | None:
        classes, member = np.unique(_classes(y, self.name), return_inverse=True)
        return Groups(member, opposite_classes(len(classes))) if len(classes) <= MOST_GROUPS else None


def _classes(y: NDArray[Any] | None, target: str) -> NDArray[Any]:
    assert y is not None
    if y.ndim != 1:
        raise ValueError(f"target {target!r} needs one class for each sample, got y of shape {y.shape}")
    return y


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
        sets, member = _label_sets(y)
        n, n_sets = len(member), len(sets)
        background = bqp.LowRank(np.ones((n, 1)), np.array([-1.0]))
        if n_sets <= MAX_FACTORED_SETS:
            shared = (sets.astype(np.float64) @ sets.T.astype(np.float64) > 0).astype(np.float64)
            values, vectors = np.linalg.eigh(shared)
            nonzero = np.abs(values) > 1e-12 * np.abs(values).max()
            return bqp.LowRank(vectors[member][:, nonzero], 2.0 * values[nonzero]) + background
        indicator = sp.csr_array(np.asarray(y, dtype=np.float64))
        similar = sp.csr_array(indicator @ indicator.T)
        similar.data[:] = 2.0
        return bqp.Sparse(similar) + background

    def groups(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> Groups | None:
        assert y is not None
        sets, member = _label_sets(y)
        lonely = (sets.sum(axis=1) == 0)[member]  # rows without labels share no label with each other either
        number = np.where(lonely, len(sets) + np.cumsum(lonely), member)
        _, first, member = np.unique(number, return_index=True, return_inverse=True)
        if len(first) > MOST_GROUPS:
            return None
        labels = np.asarray(y, dtype=bool)[first].astype(np.float64)
        return Groups(member, np.where(labels @ labels.T > 0.0, 1.0, -1.0))


def _label_sets(y: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """The distinct sets of labels, in order, and the number of the set of each row."""
    sets, member = np.unique(np.asarray(y, dtype=bool), axis=0, return_inverse=True)
    return sets, member.ravel()


@dataclass(frozen=True)
class LabelsAndNeighbors(Target):
    """Y of two labeled samples is that of `Labels`, of all other pairs that of `Neighbors`.

    With E the graph's embedding, E₁ and C₁ its rows and the one-hot classes of labeled samples (else zero), and 1₁
    their indicator, Y = EEᵀ − E₁E₁ᵀ + 2C₁C₁ᵀ − 1₁1₁ᵀ: of rank 2 · n_components + classes + 1, never n × n.

    Parameters
    ----------
    neighbors : the graph, over all samples
    labels_weight : share of Y between labeled samples that comes from labels, in [0, 1]; the rest comes from the
        graph, so that codes also distinguish samples of one class

    A sample without a label has y = −1, as in scikit-learn. If there is no such sample, the graph matters only if
    ``labels_weight`` is below 1.

    >>> X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    >>> target = LabelsAndNeighbors(Neighbors(n_neighbors=1, n_components=2, dimension=1.0))
    >>> Y = target.build(X, np.array([0, -1, 1, -1]), np.random.default_rng(0)).toarray()
    >>> Y[0, 2].round(9), (Y[0, 1] > Y[0, 3]).item()
    (np.float64(-1.0), True)
    """

    neighbors: Neighbors = Neighbors()  # noqa: RUF009  (frozen)
    labels_weight: float = 1.0

    name: ClassVar[str] = "labels_and_neighbors"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.neighbors, Neighbors):
            raise TypeError(f"neighbors must be a Neighbors target, got {type(self.neighbors).__name__}")
        if not (isinstance(self.labels_weight, int | float | np.number) and 0.0 <= self.labels_weight <= 1.0):
            raise ValueError(f"labels_weight must lie in [0, 1], got {self.labels_weight!r}")

    def for_bits(self, n_bits: int) -> LabelsAndNeighbors:
        return replace(self, neighbors=self.neighbors.for_bits(n_bits))

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        y = _classes(y, self.name)
        has_label = labeled(y)
        E = self.neighbors.embedding(X, rng)
        if not has_label.any():
            return bqp.LowRank(E, np.ones(E.shape[1]))
        classes = Labels().build(None, y[has_label], rng)
        assert classes.is_low_rank
        factor = np.zeros((len(y), classes.rank))
        factor[has_label] = classes.P
        graph_weights = np.ones(E.shape[1])
        w = self.labels_weight
        if has_label.all():
            return bqp.LowRank(np.hstack([E, factor]), np.r_[(1.0 - w) * graph_weights, w * classes.weights])
        return bqp.LowRank(
            np.hstack([E, np.where(has_label[:, None], E, 0.0), factor]),
            np.r_[graph_weights, -w * graph_weights, w * classes.weights],
        )


def labeled(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which samples have a class.

    >>> labeled(np.array([0, -1, 2]))
    array([ True, False,  True])
    """
    return y != UNLABELED if y.dtype.kind in "iuf" else np.ones(len(y), dtype=bool)
