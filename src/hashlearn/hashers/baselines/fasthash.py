"""FastHash (Lin et al. 2014): bit after bit, inferred by graph cuts over the classes and learned by boosted trees.

Samples of one label set and one code so far are interchangeable. The inference runs on such groups as one variable
each: exact, and far smaller than n × n. The coupling of two groups is that of two samples times the number of such
pairs. Couplings are computed when they are used, in blocks of rows; at most max_groups² are in memory.
O(n · n_features) for a tree, O(n · max_groups) for a bit's inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.labels import label_indicators
from hashlearn.core.progress import ProgressCallback, tell, watched
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.trees import bin_rows, boost, forest_margins
from hashlearn.hashers.base import BaseHasher

SMALLEST_WEIGHT = 0.01
IndexArray = NDArray[np.intp]


@dataclass(eq=False, repr=False, kw_only=True)
class FastHash(BaseHasher):
    """Two-step hashing by stages: bit b is inferred given the outputs of the b − 1 hash functions before it.

    The loss of a pair at Hamming distance d after b bits is d² if similar and max(0, b/2 − d)² if not. What one more
    bit changes of it is a binary quadratic problem, whose in-class couplings are never positive: two random sweeps of
    minimum cuts over the classes, from all ones. Trees are then boosted to predict the bit. A sample weighs what a
    wrong bit would cost it in loss. Mistakes made by earlier bits are there for later ones to mend.

    Parameters
    ----------
    n_bits : code length
    n_trees, max_depth : of the boosting
    n_sweeps : of graph cuts for each bit
    max_groups : with more groups of interchangeable samples than this, this many are drawn and solved, and the others
        follow them
    random_state : seed or Generator
    progress : called with a `hashlearn.core.progress.Progress` after each bit
    verbose : draw a progress bar with the time left

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the hash functions' outputs for the training samples
    hash_functions_ : the fitted functions

    Deviations
    ----------
    Gentle AdaBoost instead of AdaBoost, with the publication's weight trimming and random features (see
    `hash_functions.trees`).

    References
    ----------
    G. Lin, C. Shen, Q. Shi, A. van den Hengel, D. Suter: Fast supervised hashing with decision trees for
    high-dimensional data. CVPR 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.fasthash import FastHash
    >>> X, y = load_digits(return_X_y=True)
    >>> FastHash(n_bits=6, n_trees=10, random_state=0).fit(X[:300], y[:300]).encode(X[:2]).shape
    (2, 1)
    """

    _accepts_sparse = False
    _needs_labels = True

    n_trees: int = 200
    max_depth: int = 4
    n_sweeps: int = 2
    max_groups: int = 3000
    progress: ProgressCallback | None = None
    verbose: bool = False

    def fit(self, X: Any, y: Any = None) -> FastHash:
        """Learn from labels (n,) or 0/1 indicators (n, n_labels)."""
        X, labels = self._training(X, y)
        self._require_whole("n_trees", "max_depth", "n_sweeps", "max_groups")
        rng = generator(self.random_state)
        groups = CodeGroups(label_indicators(labels), self.max_groups)
        source, signs = np.full(self.n_bits, -1, dtype=np.intp), np.ones(self.n_bits, dtype=np.int8)
        forests: list[Any] = []
        with watched(self.progress, self.verbose) as progress:
            rows = bin_rows(X)
            for b in range(self.n_bits):
                z, costs = self._infer(groups, rng)
                outputs = z
                if (z == z[0]).all():
                    signs[b] = int(z[0])
                else:
                    weights = np.maximum(costs / costs.mean(), SMALLEST_WEIGHT) if costs.any() else np.ones(len(costs))
                    forest, margins = boost(rows, z, weights, self.n_trees, self.max_depth, rng)
                    outputs = np.where(margins >= 0.0, 1, -1).astype(np.int8)
                    source[b] = len(forests)
                    forests.append(forest)
                groups.append(outputs)
                tell(progress, "bits", b + 1, self.n_bits)
        self.codes_ = groups.codes
        bits = DistinctBits(np.flatnonzero(source >= 0).astype(np.intp), source, signs)
        title = f"FastHash, {self.n_trees} trees of depth {self.max_depth}, {bits.describe()}"
        self.hash_functions_ = forest_margins(forests, X.shape[1], bits, title)
        return self

    def _infer(self, groups: CodeGroups, rng: np.random.Generator) -> tuple[NDArray[np.int8], FloatArray]:
        """The next bit, and what a sample's loss would rise by if it alone had the other sign."""
        sample = groups.draw(rng)
        # Groups of one label set are cut together.
        solver = bqp.GraphCut(blocks=groups.kinds[sample].astype(np.int64), max_iter=self.n_sweeps)
        return groups.complete(sample, bqp.solve(groups.problem(sample), solver, random_state=rng).x.astype(np.float64))


class CodeGroups:
    """A partition of the samples that is refined with every bit."""

    def __init__(self, indicators: FloatArray, max_groups: int) -> None:
        self.max_groups = max_groups
        _, first, kinds = np.unique(indicators, axis=0, return_index=True, return_inverse=True)
        self.label_sets = indicators[first].astype(np.float32)
        self.codes = np.empty((len(indicators), 0), dtype=np.int8)
        self._kinds = kinds.ravel()
        self._partition(self._kinds)

    def append(self, bit: NDArray[np.int8]) -> None:
        """Add a bit to the code of every sample."""
        self.codes = np.column_stack([self.codes, bit])
        self._partition(2 * self.member + (bit > 0))

    def draw(self, rng: np.random.Generator) -> IndexArray:
        """All groups, or ``max_groups`` of them, larger ones more likely."""
        n = len(self.counts)
        if n <= self.max_groups:
            return np.arange(n)
        return np.sort(rng.choice(n, self.max_groups, replace=False, p=self.counts / self.counts.sum()))

    def problem(self, sample: IndexArray) -> bqp.Dense:
        """A with xᵀAx = what the next bit x of the drawn groups adds to the loss, up to a constant and a factor."""
        sizes = self.counts[sample] / self.counts[sample].mean()
        with one_blas_thread():
            A = self._couplings(sample, sample)
        A *= sizes[:, None]
        A *= sizes
        np.fill_diagonal(A, 0.0)
        return bqp.Dense.unchecked(A)

    def complete(self, sample: IndexArray, x: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
        """The next bit of every sample, and what the wrong sign would cost.

        Groups of the sample have x; any other group gets its best sign given these.
        """
        weighted = self.counts[sample] * x

        def field(first: int, last: int) -> FloatArray:
            return self._couplings(np.arange(first, last), sample) @ weighted

        with one_blas_thread():
            fields = np.concatenate(map_row_blocks(field, len(self.counts), len(sample)))
        signs = np.where(fields > 0.0, -1.0, 1.0)
        signs[sample] = x
        own = np.zeros(len(self.counts))
        own[sample] = -1.0  # the coupling of a sample with itself does not depend on its sign
        costs = np.maximum(own - signs * fields, 0.0)
        return signs[self.member].astype(np.int8), costs[self.member]

    def _partition(self, keys: NDArray[np.intp]) -> None:
        _, self.first, self.member, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        self.counts, self.n_bits = counts.astype(np.float64), self.codes.shape[1]
        self.kinds = self._kinds[self.first]

    def _couplings(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Loss with equal minus loss with different bits: ≤ 0 for similar pairs, ≥ 0 for the others."""
        left, right = (self.codes[self.first[index]].astype(np.float32) for index in (rows, columns))
        distance = 0.5 * (self.n_bits - (left @ right.T).astype(np.float64))
        similar = self.label_sets[self.kinds[rows]] @ self.label_sets[self.kinds[columns]].T > 0.0
        short = 0.5 * (self.n_bits + 1) - distance
        apart = np.maximum(short, 0.0) ** 2 - np.maximum(short - 1.0, 0.0) ** 2
        return np.where(similar, -(2.0 * distance + 1.0), apart)
