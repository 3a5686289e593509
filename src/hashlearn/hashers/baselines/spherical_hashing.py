"""Spherical hashing: a bit says whether x lies inside a sphere; spheres hold half the data each and overlap evenly.

A pass costs O(n · n_features · n_bits). The publication also has a distance of its own for these codes: the number of
differing bits divided by that of common ones.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import LARGEST_FEATURE, generator
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hash_functions import DistinctBits, FittedHashFunctions, every_bit
from hashlearn.hash_functions.fitted import PanelFunction, Rows, Stored, full_panel
from hashlearn.hashers.base import BaseHasher

POINTS_PER_CENTER = 5

log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class SphericalHashing(BaseHasher):
    """Spherical hashing (Heo et al. 2012), unsupervised.

    Each radius is the median distance to its center, so that half the samples are inside. Two independent bits share a
    quarter of the samples. Centers move apart if their spheres share more and together if they share less, until the
    overlaps are a quarter within the tolerances.

    Parameters
    ----------
    n_bits : code length
    mean_tol : stop when overlaps differ from a quarter by at most this on average, relative to a quarter …
    deviation_tol : … and their standard deviation is at most this, relative to a quarter
    max_iter : limit on the moves; reaching it is logged
    random_state : seed or Generator; every center starts at the mean of five samples

    Attributes
    ----------
    n_iter_ : moves done
    hash_functions_ : the fitted functions, with ``centers`` and ``squared_radii`` of the spheres
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    J.-P. Heo, Y. Lee, J. He, S.-F. Chang, S.-E. Yoon: Spherical hashing. CVPR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> SphericalHashing(n_bits=16, random_state=0).fit(X).encode(X[:3]).shape
    (3, 2)
    """

    _accepts_sparse = False

    mean_tol: float = 0.10
    deviation_tol: float = 0.15
    max_iter: int = 100

    def fit(self, X: Any, y: Any = None) -> SphericalHashing:
        """Place the spheres; y is ignored."""
        X, _ = self._training(X)
        self._require_positive("mean_tol", "deviation_tol")
        self._require_whole("max_iter")
        rng = generator(self.random_state)
        scale = float(max(X.max(), -X.min())) or 1.0
        rows = X / X.dtype.type(scale)
        origin = rows.mean(axis=0, dtype=np.float64)
        rows -= origin.astype(X.dtype)

        n = len(rows)
        drawn = [rng.choice(n, min(POINTS_PER_CENTER, n), replace=False) for _ in range(self.n_bits)]
        centers = np.array([rows[few].mean(axis=0, dtype=np.float64) for few in drawn])
        squared_radii, overlaps = _balanced(rows, centers)
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            excess = 4.0 * overlaps - 1.0
            np.fill_diagonal(excess, 0.0)
            centers += 0.5 / self.n_bits * (excess.sum(axis=1)[:, None] * centers - excess @ centers)
            squared_radii, overlaps = _balanced(rows, centers)
            uneven = 4.0 * overlaps[np.triu_indices(self.n_bits, 1)] - 1.0
            if not uneven.size or (np.abs(uneven).mean() <= self.mean_tol and uneven.std() <= self.deviation_tol):
                break
        else:
            log.warning("spherical hashing: overlaps still uneven after %d moves", self.max_iter)
        words, every = f"{self.n_bits} spheres", every_bit(self.n_bits)
        self.hash_functions_ = SphereMargins(centers, squared_radii, origin, scale, every, words)
        return self


def _balanced(rows: NDArray[Any], centers: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Squared radii that have half the rows inside, and the share of rows inside both of two spheres."""
    n = len(rows)
    columns = centers.T.astype(rows.dtype)

    def distances(a: int, b: int) -> NDArray[Any]:
        block = rows[a:b]
        return (block * block).sum(axis=1)[:, None] - 2.0 * (block @ columns)

    with one_blas_thread():
        squares = np.concatenate(map_row_blocks(distances, n, rows.shape[1])).astype(np.float64)
        squares += (centers * centers).sum(axis=1)
        middle = np.partition(squares, (n // 2 - 1, n // 2), axis=0)[n // 2 - 1 : n // 2 + 1]
        squared_radii = np.maximum(middle.mean(axis=0), 0.0)
        inside = (squares <= squared_radii).astype(np.float64)
        return squared_radii, inside.T @ inside / n


@dataclass(eq=False)
class SphereMargins(FittedHashFunctions):
    """Margins radius² − ‖x − center‖², with x divided by ``scale`` and seen from ``origin``."""

    kind = "spheres"

    centers: Annotated[NDArray[Any], Stored("n_distinct", "n_features")]
    squared_radii: Annotated[NDArray[Any], Stored("n_distinct")]
    origin: Annotated[NDArray[Any], Stored("n_features")]
    scale: Annotated[float, Stored(kind="number", most=LARGEST_FEATURE)]
    bits: DistinctBits
    description: str

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        columns = np.ascontiguousarray(2.0 * self.centers.T, dtype=dtype)
        power = (self.squared_radii - (self.centers * self.centers).sum(axis=1)).astype(dtype)
        origin, scale = self.origin.astype(dtype), dtype.type(self.scale)

        def margins(panel: Rows) -> NDArray[Any]:
            rows = full_panel(panel) / scale - origin
            return rows @ columns + power - (rows * rows).sum(axis=1)[:, None]

        return margins, [columns]
