"""BRE, binary reconstructive embeddings (Kulis and Darrell 2009): kernel hash functions by exact coordinate descent.

O(n · (n_pairs + n_bits + n_anchors)) memory; a sweep costs O(n · n_bits · n_anchors · (n_pairs + log n)).

Every sample has the same number of random partners. Pairs are uniform, so the objective is an unbiased estimate of the
one over all pairs, and memory is linear in n.

With the other bits fixed, a pair costs (target − hamming/n_bits)², so the objective of one bit is a constant plus the
sum of ``costs`` over pairs whose bits differ. Along one weight w the margins are rest + w · k, and every sample changes
its bit at one value of w. Visiting these values in order, with one update for each partner, visits every value that
the objective can take. O(n log n + pairs) for a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.progress import ProgressCallback, tell, watched
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hash_functions import KernelExpansion, every_bit
from hashlearn.hash_functions.kernels import AnchorKernel, choose_gamma, draw_anchors
from hashlearn.hashers.base import BaseHasher


@dataclass(eq=False, repr=False, kw_only=True)
class BRE(BaseHasher):
    """Hash functions h_b(x) = [Σ_j w_bj k(a_bj, x) ≥ 0] with Hamming distance / n_bits ≈ target distance, least squares
    over sampled pairs; with labels (0 similar, 1 not) or without (distances of unit rows).

    Each function has anchors of its own. Its weights start at random and are changed one at a time, each to its exact
    optimum, so the objective never rises.

    Parameters
    ----------
    n_bits : code length
    n_anchors : for each bit, rows drawn as its anchors
    n_pairs : random partners drawn for each sample; more of them reduce overfitting to the drawn pairs
    gamma : of the kernel exp(−γ‖x − a‖²): "mean" (1 / (2 · mean squared distance)), "neighbors", "scale", or
        a positive number
    n_sweeps : passes over all weights, at most
    tol : a sweep that lowers the objective by less, relatively, is the last
    random_state : seed or Generator
    progress : called with a `hashlearn.core.progress.Progress` after each bit of a sweep
    verbose : draw a progress bar with the time left

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

    n_anchors: int = 50
    n_pairs: int = 200
    gamma: float | str = "mean"
    n_sweeps: int = 3
    tol: float = 1e-3
    progress: ProgressCallback | None = None
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> BRE:
        """Learn from labels (n,), from 0/1 indicators (n, n_labels), or from the distances in X if y is None."""
        X, labels = self._training(X, y)
        self._require_whole("n_anchors", "n_pairs", "n_sweeps")
        self._require_positive("tol")
        rng = generator(self.random_state)
        with one_blas_thread(), watched(self.progress, self.verbose) as progress:
            draw = distance_pairs if labels is None else labeled_pairs
            pairs = draw(X if labels is None else labels, self.n_pairs, rng)
            gamma, origin = choose_gamma(self.gamma, X, rng)
            anchors = [draw_anchors(X.shape[0], self.n_anchors, rng) for _ in range(self.n_bits)]
            weights = rng.standard_normal((self.n_bits, len(anchors[0])))
            means = self._descend(lambda b: AnchorKernel(X, anchors[b], gamma), weights, pairs, rng, progress)
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
        kernel_of: Callable[[int], AnchorKernel],
        weights: FloatArray,
        pairs: Pairs,
        rng: np.random.Generator,
        progress: ProgressCallback | None,
    ) -> FloatArray:
        """Sweeps over bits and weights, which change in place. Returns the mean kernel values of each bit's anchors.

        ``kernel_of`` computes a bit's kernel again: all of them would take n × n_bits × n_anchors numbers.
        """
        L = self.n_bits
        owners, partners, distances = pairs.owners, pairs.partners, pairs.distances
        self.codes_ = codes = np.empty((len(pairs.starts) - 1, L), dtype=np.int8)
        means, hamming = np.empty(weights.shape), np.zeros(len(owners), dtype=np.float32)
        for b in range(L):
            kernel = kernel_of(b)
            means[b], codes[:, b] = kernel.mean, np.where(kernel.values @ weights[b] >= 0.0, 1, -1)
            hamming += codes[owners, b] != codes[partners, b]
        self.objectives_ = [float(np.square(distances - hamming / L).mean())]
        for sweep in range(self.n_sweeps):
            for done, b in enumerate(rng.permutation(L)):
                kernel = kernel_of(b)
                bit = codes[:, b].astype(np.float64)
                hamming -= bit[owners] != bit[partners]
                costs = 1.0 / L**2 - (2.0 / L) * (distances - hamming / L)
                descend_bit(kernel.values, weights[b], rng.permutation(kernel.m), pairs, costs, bit)
                hamming += bit[owners] != bit[partners]
                codes[:, b] = bit
                tell(progress, "bits", sweep * L + done + 1, self.n_sweeps * L)
            self.objectives_.append(float(np.square(distances - hamming / L).mean()))
            if self.objectives_[-2] - self.objectives_[-1] <= self.tol * self.objectives_[-2]:
                break
        return means


class Pairs(NamedTuple):
    """Each pair twice, (i, j) and (j, i): the partners of sample i are partners[starts[i] : starts[i + 1]]."""

    starts: NDArray[np.intp]
    owners: NDArray[np.int32]  # i of every (i, j)
    partners: NDArray[np.int32]
    distances: FloatArray  # the targets, in [0, 1]


def labeled_pairs(labels: NDArray[Any], n_pairs: int, rng: np.random.Generator) -> Pairs:
    """Distance 0 between samples that share a label, 1 between others."""
    if labels.ndim == 1:
        return _pairs(len(labels), 1, n_pairs, rng, lambda i, j: (labels[i] != labels[j]).astype(np.float64))
    sets = labels.astype(bool)
    return _pairs(len(sets), sets.shape[1], n_pairs, rng, lambda i, j: 1.0 - (sets[i] & sets[j]).any(axis=1))


def distance_pairs(X: Any, n_pairs: int, rng: np.random.Generator) -> Pairs:
    """½‖x − x'‖² between rows brought to unit length, divided by the largest of the drawn ones if that is above 1."""
    unit = normalize(X)

    def distances(i: NDArray[np.intp], j: NDArray[np.intp]) -> FloatArray:
        if sp.issparse(X):
            dots = unit[i].multiply(unit[j]).sum(axis=1)
        else:
            dots = np.einsum("ij,ij->i", unit[i], unit[j], dtype=np.float64)
        return np.maximum(1.0 - dots, 0.0)

    return _pairs(X.shape[0], X.shape[1], n_pairs, rng, distances)


def _pairs(
    n: int, width: int, n_pairs: int, rng: np.random.Generator, distances_of: Callable[..., FloatArray]
) -> Pairs:
    """``n_pairs`` other samples for each of n; a pair may come twice. Distances are those of rows of this width."""
    i = np.repeat(np.arange(n), n_pairs)
    j = (i + rng.integers(1, n, len(i))) % n
    distances = np.concatenate(map_row_blocks(lambda a, b: distances_of(i[a:b], j[a:b]), len(i), width))
    owners = np.concatenate([i, j])
    order = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[order], np.arange(n + 1))
    partners = np.concatenate([j, i])[order].astype(np.int32)
    distances = np.tile(distances / max(1.0, float(distances.max())), 2)[order]
    return Pairs(starts, owners[order].astype(np.int32), partners, distances)


def descend_bit(
    K: FloatArray, weights: FloatArray, order: NDArray[np.intp], pairs: Pairs, costs: FloatArray, signs: FloatArray
) -> float:
    """Improve ``weights`` (m,) and ``signs`` (n,) of one hash function in place, weight after weight in this order; the
    change of Σ costs, never above 0."""
    margins = K @ weights
    total = 0.0
    for q in order:
        k = np.ascontiguousarray(K[:, q])
        new = _best_weight(k, weights[q], margins, pairs, costs)
        moved = margins + (new - weights[q]) * k
        new_signs = np.where(moved >= 0.0, 1.0, -1.0)
        change = _change(signs, new_signs, pairs.starts, pairs.partners, costs)  # with what rounding made of the signs
        if change < 0.0:
            total += change
            weights[q], margins, signs[:] = new, moved, new_signs
    return total


def _best_weight(k: FloatArray, w: float, margins: FloatArray, pairs: Pairs, costs: FloatArray) -> float:
    """The value of one weight that minimizes Σ costs, in the middle of its interval."""
    rest = margins - w * k
    moving = np.flatnonzero(k)
    crossings = -rest[moving] / k[moving]
    order = np.argsort(crossings, kind="stable")
    crossings, walk = crossings[order], moving[order]
    signs = np.where(np.where(k == 0.0, rest >= 0.0, k < 0.0), 1.0, -1.0)  # for w → −∞
    if len(walk) == 0:
        return w
    place = int(_walk(crossings, walk, signs, pairs.starts, pairs.partners, costs))
    beyond = 2.0 + 2.0 * np.abs(crossings[[0, -1]])  # as far from the outermost crossings
    edges = np.concatenate([crossings[:1] - beyond[0], crossings, crossings[-1:] + beyond[1]])
    return float(0.5 * (edges[place + 1] + edges[place + 2]))


@njit(cache=True, nogil=True)
def _walk(crossings, walk, signs, starts, partners, costs):  # type: ignore[no-untyped-def]
    """The crossing after which the sum of costs is least, −1 for none; equal crossings count as one."""
    value, best, place = 0.0, 0.0, -1
    for p in range(len(walk)):
        value += _flip(walk[p], signs, starts, partners, costs)
        if value < best and (p + 1 == len(walk) or crossings[p + 1] > crossings[p]):
            best, place = value, p
    return place


@njit(cache=True, nogil=True)
def _change(signs, new_signs, starts, partners, costs):  # type: ignore[no-untyped-def]
    """The change of the sum of costs from ``signs`` to ``new_signs``."""
    change = 0.0
    now = signs.copy()
    for i in range(len(now)):
        if now[i] != new_signs[i]:
            change += _flip(i, now, starts, partners, costs)
    return change


@njit(cache=True, nogil=True)
def _flip(i, signs, starts, partners, costs):  # type: ignore[no-untyped-def]
    """Flip the sign of sample i and return the change of the cost; a pair costs something if its signs differ."""
    change = 0.0
    for e in range(starts[i], starts[i + 1]):
        change += costs[e] * signs[partners[e]]
    change *= signs[i]
    signs[i] = -signs[i]
    return change
