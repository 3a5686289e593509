"""BRE, binary reconstructive embeddings (Kulis and Darrell 2009): kernel hash functions by exact coordinate descent.

O(n · (n_pairs + n_bits + n_anchors)) memory; a sweep costs O(n · n_bits · n_anchors · (n_pairs + log n)).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions import KernelExpansion, every_bit
from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.baselines.anchors import AnchorKernel, anchor_gamma, draw_anchors
from hashlearn.hashers.baselines.bre_descent import Pairs, descend_bit, distance_pairs, labeled_pairs

Anchors = list[NDArray[np.intp]]


@dataclass(eq=False, repr=False)
class BRE(BaseHasher):
    """Hash functions h_b(x) = [Σ_j w_bj k(a_bj, x) ≥ 0] with Hamming distance / n_bits ≈ wanted distance, least squares
    over sampled pairs; with labels (0 similar, 1 not) or without (distances of unit rows).

    Each function has anchors of its own. Its weights start at random and are changed one at a time, each to its exact
    optimum, so the objective never rises.

    Parameters
    ----------
    n_bits : code length
    n_anchors : for each bit, rows drawn as its anchors
    n_pairs : random partners drawn for each sample; more of them reduce overfitting to the drawn pairs
    gamma : of the kernel exp(−γ‖x − a‖²): "mean" (1 / (2 · mean squared distance)), "neighbors", "median", "scale", or
        a positive number
    n_sweeps : passes over all weights, at most
    tol : a sweep that lowers the objective by less, relatively, is the last
    random_state : seed or Generator
    progress : called with a `hashlearn.core.progress.Progress` after each bit of a sweep

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), codes of the training samples
    objectives_ : mean squared error over the pairs, at the start and after each sweep
    hash_functions_ : the fitted functions

    Deviations
    ----------
    The kernel values are centered over the training samples.

    References
    ----------
    B. Kulis, T. Darrell: Learning to hash with binary reconstructive embeddings. NIPS 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.bre import BRE
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = BRE(n_bits=8, n_anchors=20, random_state=0).fit(X[:300], y[:300])
    >>> hasher.objectives_[-1] < hasher.objectives_[0]
    True
    """

    _learns_from_labels = True

    n_bits: int = 32
    _: KW_ONLY
    n_anchors: int = 50
    n_pairs: int = 200
    gamma: float | str = "mean"
    n_sweeps: int = 3
    tol: float = 1e-3
    random_state: Any = None
    progress: ProgressCallback | None = None

    def fit(self, X: Any, y: Any = None) -> BRE:
        """Learn from labels (n,), from 0/1 indicators (n, n_labels), or from the distances in X if y is None."""
        X, labels = self._training(X, y)
        self._require_whole("n_anchors", "n_pairs", "n_sweeps")
        self._require_positive("tol")
        rng = generator(self.random_state)
        with one_blas_thread():
            n_pairs = self.n_pairs
            pairs = distance_pairs(X, n_pairs, rng) if labels is None else labeled_pairs(labels, n_pairs, rng)
            gamma, origin = anchor_gamma(self.gamma, X, rng)
            anchors = [draw_anchors(X.shape[0], self.n_anchors, rng) for _ in range(self.n_bits)]
            weights = rng.standard_normal((self.n_bits, len(anchors[0])))
            self.codes_, means = _start(X, anchors, weights, gamma)
            self._descend(X, anchors, weights, gamma, pairs, self.codes_, rng)
        points = np.unique(np.concatenate(anchors))
        coefficients = np.zeros((len(points), self.n_bits))
        for b, index in enumerate(anchors):
            coefficients[np.searchsorted(points, index), b] = weights[b]
        intercepts = -np.einsum("bj,bj->b", means, weights)
        title = f"BRE, gamma={gamma:.4g} ({origin}), {len(points)} anchors"
        every = every_bit(self.n_bits)
        self.hash_functions_ = KernelExpansion(X[points], gamma, coefficients, intercepts, every, title)
        return self

    def _descend(
        self,
        X: Any,
        anchors: Anchors,
        weights: FloatArray,
        gamma: float,
        pairs: Pairs,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
    ) -> None:
        """Sweeps over bits and weights; ``weights`` and ``codes`` change in place."""
        L, owners = self.n_bits, pairs.owners
        hamming = np.zeros(len(owners), dtype=np.float32)
        for b in range(L):
            hamming += codes[owners, b] != codes[pairs.partners, b]

        def objective() -> float:
            return float(np.square(pairs.distances - hamming / L).mean())

        self.objectives_ = [objective()]
        for sweep in range(self.n_sweeps):
            for done, b in enumerate(rng.permutation(L)):
                kernel = AnchorKernel(
                    X, anchors[b], gamma
                )  # computed again: storing all of them would take n × n_bits × n_anchors numbers
                bit = codes[:, b].astype(np.float64)
                hamming -= bit[owners] != bit[pairs.partners]
                costs = 1.0 / L**2 - (2.0 / L) * (pairs.distances - hamming / L)
                descend_bit(kernel.values, weights[b], rng.permutation(kernel.m), pairs, costs, bit)
                hamming += bit[owners] != bit[pairs.partners]
                codes[:, b] = bit
                tell(self.progress, "bits", sweep * L + done + 1, self.n_sweeps * L)
            self.objectives_.append(objective())
            if self.objectives_[-2] - self.objectives_[-1] <= self.tol * self.objectives_[-2]:
                break


def _start(X: Any, anchors: Anchors, weights: FloatArray, gamma: float) -> tuple[NDArray[np.int8], FloatArray]:
    """Codes of all samples under the first weights, and the mean kernel values of each bit's anchors."""
    codes, means = np.empty((X.shape[0], len(anchors)), dtype=np.int8), np.empty(weights.shape)
    for b, index in enumerate(anchors):
        kernel = AnchorKernel(X, index, gamma)
        means[b] = kernel.mean
        codes[:, b] = np.where(kernel.values @ weights[b] >= 0.0, 1, -1)
    return codes, means
