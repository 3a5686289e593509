"""What hashers share whose ``fit`` ends in fitted hash functions: where margins come from, and what X may be."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from hashlearn.hash_functions import DistinctBits, FittedHashFunctions, LinearMargins
from hashlearn.hashers.base import BaseHasher


class FunctionHasher(BaseHasher):
    """A hasher with ``hash_functions_``: their margins do not depend on batches, threads or memory order."""

    _accepts_sparse: ClassVar[bool] = True
    _learns_from_labels = False
    hash_functions_: FittedHashFunctions

    def _training_rows(self, X: Any) -> Any:
        """X validated, with n_bits checked against it."""
        X = self._validated(X, reset=True, accepts_sparse=self._accepts_sparse)
        self._check_n_bits(X.shape[0])
        return X

    def _margins(self, X: Any) -> NDArray[Any]:
        """Of the fitted hash functions."""
        return self.hash_functions_.decision_function(X)

    def _row_functions(self) -> Any:
        return self.hash_functions_ if type(self)._margins is FunctionHasher._margins else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags


def linear_functions(weights: NDArray[Any], origin: NDArray[Any], description: str) -> LinearMargins:
    """Margins (x − origin) @ weights, one column of ``weights`` for each bit."""
    return LinearMargins(weights, -(origin @ weights), every_bit(weights.shape[1]), description)


def every_bit(n_bits: int) -> DistinctBits:
    """Every bit has a function of its own."""
    return DistinctBits(np.arange(n_bits), np.arange(n_bits), np.ones(n_bits, dtype=np.int8))


def column_means(X: Any) -> NDArray[np.float64]:
    """Means of the features, summed in float64, for dense and sparse X."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def usable_scale(scale: float, dtype: np.dtype[Any]) -> float:
    """``scale``, or 0 where it is so small that a number divided by it can overflow: X is then as good as constant."""
    return scale if scale > 1e8 * float(np.finfo(dtype).tiny) else 0.0
