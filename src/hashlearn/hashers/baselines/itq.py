"""Iterative quantization: signs of rotated principal components, with the smallest error. O(n · n_features²)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from hashlearn.core.checks import generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.base import BaseHasher
from hashlearn.linalg.principal_axes import principal_axes
from hashlearn.linalg.rotation import itq_rotation


@dataclass(eq=False, repr=False)
class ITQ(BaseHasher):
    """Iterative quantization (Gong and Lazebnik 2011), unsupervised.

    X is centered and projected to its first n_bits principal components V; then signs B and a rotation R minimize
    ‖B − VR‖² in turn. The bits are the signs of VR.

    Parameters
    ----------
    n_bits : code length. With more bits than features, zero columns are added to V. R is then an isometry into n_bits
        dimensions, and the same two steps minimize the same error. The publication has n_bits ≤ n_features
    n_iter : steps of the alternation
    random_state : seed or Generator, for the first rotation

    Attributes
    ----------
    quantization_errors_ : ‖B − VR‖² / n before the first step and after each, with X divided by its largest entry
    hash_functions_ : the fitted linear functions
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Y. Gong, S. Lazebnik: Iterative quantization: a Procrustean approach to learning binary codes. CVPR 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = ITQ(n_bits=16, random_state=0).fit(X)
    >>> hasher.encode(X[:2]).shape
    (2, 2)
    >>> bool(hasher.quantization_errors_[-1] < hasher.quantization_errors_[0])
    True
    """

    n_bits: int = 32
    _: KW_ONLY
    n_iter: int = 50
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> ITQ:
        """Learn projection and rotation; y is ignored."""
        X, _ = self._training(X)
        self._require_whole("n_iter", least=0)
        rng = generator(self.random_state)
        axes = principal_axes(X, self.n_bits, rng)
        n_components = axes.directions.shape[1]
        V = np.zeros((X.shape[0], self.n_bits))
        V[:, :n_components] = axes.scores(X)
        with one_blas_thread():
            R, errors = itq_rotation(V, rng, self.n_iter)
            weights = axes.directions @ R[:n_components]
        self.quantization_errors_ = np.array(errors) / X.shape[0]
        self.hash_functions_ = linear_functions(weights, axes.centre * axes.scale, f"ITQ, {self.n_iter} steps")
        return self
