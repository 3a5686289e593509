"""What hashers that need labels share: the check that y is there, and labels as indicators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from hashlearn.hash_functions.base import working_rows
from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.baselines.function_hasher import FunctionHasher
from hashlearn.hashers.two_step import _checked_labels as checked_labels
from hashlearn.hashers.two_step import require_classes

__all__ = ["SupervisedHasher", "checked_labels", "label_indicators", "require_classes", "require_labels"]


class SupervisedHasher(FunctionHasher):
    """A hasher that learns from labels and cannot do without; a subclass's ``fit`` sets ``hash_functions_``."""

    _learns_from_labels = True

    def _checked(self, X: Any, y: Any, accepts_sparse: bool | None = None) -> tuple[Any, NDArray[Any]]:
        """X and y fit to learn n_bits bits from: labels (n,) or 0/1 indicators (n, n_labels)."""
        require_labels(self, y)
        accepts_sparse = self._accepts_sparse if accepts_sparse is None else accepts_sparse
        X = working_rows(self._validated(X, reset=True, accepts_sparse=accepts_sparse))
        labels = checked_labels(y, X.shape[0])
        require_classes(labels)
        self._check_n_bits(X.shape[0])
        return X, labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def require_labels(hasher: BaseHasher, y: Any) -> None:
    """scikit-learn's words for a missing y."""
    if y is None:
        name = type(hasher).__name__
        raise ValueError(f"{name} requires y to be passed, but the target y is None; call fit(X, y) with labels")


def label_indicators(labels: NDArray[Any]) -> NDArray[np.float64]:
    """0/1 (n, n_labels): one-hot for class labels, indicators as they are.

    >>> label_indicators(np.array(["b", "a", "b"]))
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    if labels.ndim == 2:
        return labels.astype(np.float64)
    classes, member = np.unique(labels, return_inverse=True)
    indicators = np.zeros((len(labels), len(classes)))
    indicators[np.arange(len(labels)), member] = 1.0
    return indicators
