"""Unsupervised targets: squared Euclidean distances between rows of unit length, as they are or thresholded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from hashlearn import bqp
from hashlearn.targets.base import centred_unit_rows


@dataclass(frozen=True)
class Distance:
    """Eq. (3), unsupervised: s_ij = ‖x_i − x_j‖² with c = 4, so Y = 1 − S/2 = XXᵀ; rank n_features.

    Parameters
    ----------
    centre : subtract the mean before rows are brought to unit length

    Deviations
    ----------
    The paper's text does not centre. Without it non-negative features (pixels) have no negative inner product, and
    a bit that is the same for all samples becomes optimal. ``centre=False`` is the literal text.

    >>> Distance().build(np.array([[0.0, 1.0], [2.0, 1.0]]), None, np.random.default_rng(0)).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    centre: bool = True

    name: ClassVar[str] = "distance"
    needs_labels: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = True

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """From features, shape (n, n_features)."""
        rows = centred_unit_rows(X, self.centre)
        return bqp.LowRank(rows, np.ones(rows.shape[1]))


@dataclass(frozen=True)
class ThresholdedDistance:
    """Each sample's nearest fraction of all others is similar (made symmetric), everything else is not: Y = 2N − 11ᵀ.

    N is sparse with about fraction · n² ones. This reading of the paper's unsupervised experiments reaches its
    figures; squared distances as printed do not (docs/paper.md).

    Parameters
    ----------
    fraction : q, the share of samples that count as similar, e.g. 0.02
    centre : subtract the mean before rows are brought to unit length
    """

    fraction: float = 0.02
    centre: bool = True

    name: ClassVar[str] = "thresholded_distance"
    needs_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (isinstance(self.fraction, int | float | np.number) and 0.0 < self.fraction < 1.0):
            raise ValueError(f"fraction must lie strictly between 0 and 1, got {self.fraction!r}")

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """From features, shape (n, n_features)."""
        rows = centred_unit_rows(X, self.centre)
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
