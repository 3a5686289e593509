"""Spectral hashing: the eigenfunctions of a uniform box around the data, thresholded. O(n · n_features²)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import generator
from hashlearn.hash_functions.fitted import PanelFunction
from hashlearn.hash_functions.linear import LinearMargins, linear_functions, usable_scale
from hashlearn.hashers.base import BaseHasher
from hashlearn.linalg.principal_axes import principal_axes

FLAT = 1e-9  # a side this much shorter than the longest is rounding, not a side


class SpectralHashing(BaseHasher):
    """Spectral hashing (Weiss, Torralba and Fergus 2008), unsupervised.

    The data are taken for uniform in a box along their principal axes. On a side from a to b the Laplacian has the
    eigenfunctions cos(kπ(x − a)/(b − a)), k = 1, 2, …, with eigenvalues growing in k/(b − a). The n_bits smallest
    of all sides are used, so a long side gets several bits. A bit is 1 if its function is at least 0.

    Parameters
    ----------
    n_bits : code length; more bits than features are possible, for a side can have any number of them
    random_state : seed or Generator, used with more than 2,048 features only

    Attributes
    ----------
    hash_functions_ : the fitted functions
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Y. Weiss, A. Torralba, R. Fergus: Spectral hashing. NIPS 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> SpectralHashing(n_bits=16).fit(X).encode(X[:2]).shape
    (2, 2)
    """

    def fit(self, X: Any, y: Any = None) -> SpectralHashing:
        """Find the box and its smoothest functions; y is ignored."""
        X, _ = self._training(X)
        axes = principal_axes(X, self.n_bits, generator(self.random_state))
        scores = axes.scores(X) * axes.scale
        lower, upper = scores.min(axis=0), scores.max(axis=0)
        lengths = np.array([usable_scale(side, X.dtype) for side in upper - lower])
        axis, k = smoothest_modes(lengths, self.n_bits).T
        sides = lengths[axis]
        frequency = np.pi * k / np.where(sides > 0.0, sides, 1.0)
        linear = linear_functions(axes.directions[:, axis] * frequency, axes.center * axes.scale, "spectral hashing")
        intercepts = linear.intercepts - lower[axis] * frequency
        self.hash_functions_ = CosineMargins(linear.weights, intercepts, linear.bits, linear.description)
        return self


def smoothest_modes(sides: NDArray[Any], n_bits: int) -> NDArray[np.int64]:
    """(axis, k) of the n_bits smallest k/side, ties to the earlier axis; sides of length 0 have no functions.

    >>> smoothest_modes(np.array([2.0, 1.5]), 3).tolist()
    [[0, 1], [1, 1], [0, 2]]
    """
    usable = np.flatnonzero(sides >= FLAT * sides.max())
    k = np.arange(1, n_bits + 1)
    lengths = np.where(sides > 0.0, sides, 1.0)[usable]  # all are 0 if X is constant; then any function is right
    order = np.argsort((k / lengths[:, None]).ravel(), kind="stable")[:n_bits]
    return np.column_stack([usable[order // n_bits], k[order % n_bits]])


class CosineMargins(LinearMargins):
    """Margins cos(x @ weights + intercepts)."""

    kind = "cosine"

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        phases, factors = super()._panel_function(dtype, sparse)
        return lambda panel: np.cos(phases(panel)), factors
