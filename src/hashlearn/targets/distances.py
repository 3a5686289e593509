"""Unsupervised targets: squared Euclidean distances between rows of unit length, as they are or thresholded."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from hashlearn import bqp
from hashlearn.core.names import deprecated
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
    centre: InitVar[bool | None] = None

    name: ClassVar[str] = "distance"
    takes_tensors: ClassVar[bool] = True

    def __post_init__(self, centre: bool | None) -> None:
        _take_old_spelling(self, centre)

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
    centre: InitVar[bool | None] = None

    name: ClassVar[str] = "thresholded_distance"

    def __post_init__(self, centre: bool | None) -> None:
        _take_old_spelling(self, centre)
        if not (isinstance(self.fraction, int | float | np.number) and 0.0 < self.fraction < 1.0):
            raise ValueError(f"fraction must lie strictly between 0 and 1, got {self.fraction!r}")

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


def _take_old_spelling(target: Distance | ThresholdedDistance, centre: bool | None) -> None:
    if centre is not None:
        deprecated(f"{type(target).__name__}(centre=...)", "center=...", stacklevel=5)
        object.__setattr__(target, "center", centre)
