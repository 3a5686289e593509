"""``"trees"``: boosted trees for each distinct bit, as in FastHash: 200 trees of depth 4.

Gentle AdaBoost (Friedman, Hastie and Tibshirani 2000): trees of fixed depth fitted to the signs by weighted squares,
weights exp(−y F). A tree ignores the lightest samples, which have a tenth of the weight together, and uses a random
quarter of the features. Features are divided into a few bins once for all bits, and weights are summed for each bin row
by row: at most O(n · n_features) for a level of a tree. A forest is complete trees as plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.checks import whole_number
from hashlearn.core.threads import map_threads, n_threads, on_this_thread
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, Stored
from hashlearn.hash_functions.hash_function import HashFunction, Training, fit_each

DEEPEST = 12  # a complete tree has 2 ** depth leaves
N_BINS = 32
SAMPLED_ROWS = 20_000  # for the edges of the bins
HEAVY_SHARE = 0.9  # of all weight, which a tree is fitted to
FEATURE_SHARE, FEWEST_FEATURES = 0.25, 16
LEAST_SHARE = 0.005  # least share of a node's weight on each side of a split
BLOCK = 32  # features summed together: 16 KiB, which fits the processor's first cache


class BinnedRows(NamedTuple):
    """X as bin numbers: codes[i, f] is how many of edges[f] lie below X[i, f]. Features without edges are dropped."""

    codes: NDArray[np.uint8]  # (n, len(features))
    edges: NDArray[np.float64]  # (len(features), N_BINS − 1), +inf if there are fewer
    features: NDArray[np.int32]  # those that have edges


class Forest(NamedTuple):
    """Complete trees: node k has children 2k + 1 (x ≤ threshold) and 2k + 2; the leaves come after all nodes."""

    features: NDArray[np.int32]  # (n_trees, 2 ** depth − 1)
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]  # (n_trees, 2 ** depth)


@dataclass(frozen=True)
class Trees(HashFunction):
    """The boosted trees of FastHash (see `hash_functions.trees`), all samples of equal weight. Dense X only.

    Parameters
    ----------
    n_trees : of each distinct bit
    max_depth : of every tree, at most 12
    """

    n_trees: int = 200
    max_depth: int = 4

    name: ClassVar[str] = "trees"
    accepts_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole_number(self.n_trees, "n_trees", least=1)
        whole_number(self.max_depth, "max_depth", least=1, most=DEEPEST)

    def _fit(self, data: Training) -> ForestMargins:
        X, bits = data.X, data.bits
        if sp.issparse(X):
            raise TypeError("trees need dense X, got a sparse matrix; pass X.toarray(), or use linear_svm or rbf_svm")
        rows, weights = bin_rows(X), np.ones(X.shape[0])

        def fit_one(job: tuple[NDArray[np.int8], np.random.Generator]) -> Forest:
            with on_this_thread():  # several bits are fitted at a time
                return boost(rows, job[0], weights, self.n_trees, self.max_depth, job[1])[0]

        jobs = list(zip(data.codes.T, data.rng.spawn(bits.n_distinct), strict=True))
        forests = fit_each(fit_one, jobs, data)
        title = f"boosted trees, {self.n_trees} of depth {self.max_depth}"
        return forest_margins(forests, X.shape[1], bits, f"{title}, {bits.describe()}")


@dataclass(eq=False)
class ForestMargins(FittedHashFunctions):
    """A forest for each distinct bit; the margin is the sum of its leaves. A threshold of +inf sends every row left."""

    kind = "forests"

    forest_features: Annotated[
        NDArray[np.int32], Stored("n_distinct", "n_trees", "n_nodes", kind="integer", least=0, most="n_features")
    ]
    forest_thresholds: Annotated[NDArray[np.float64], Stored("n_distinct", "n_trees", "n_nodes", kind="threshold")]
    forest_leaves: Annotated[NDArray[np.float64], Stored("n_distinct", "n_trees", "n_leaves")]
    n_features: int
    bits: DistinctBits
    description: str

    def __post_init__(self) -> None:
        super().__post_init__()
        n_leaves = self.forest_leaves.shape[2]
        self.depth = n_leaves.bit_length() - 1
        if n_leaves != 2**self.depth or self.forest_features.shape[2] != n_leaves - 1:
            raise ValueError(
                "forest_leaves must have a power of two of leaves a tree, one more than nodes, "
                f"got shape {self.forest_leaves.shape}"
            )

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        arrays = (self.forest_features, self.forest_thresholds, self.forest_leaves)

        def margins(panel: Rows) -> NDArray[Any]:
            out = np.empty((panel.shape[0], self.bits.n_distinct))
            dense = panel.toarray() if sp.issparse(panel) else np.ascontiguousarray(panel)
            _evaluate(dense, *arrays, self.depth, out)
            return out.astype(dtype)

        return margins, []


def forest_margins(forests: Sequence[Forest], n_features: int, bits: DistinctBits, description: str) -> ForestMargins:
    """The fitted functions of one forest for each distinct bit."""
    nothing = Forest(np.zeros((0, 0, 0), np.int32), np.zeros((0, 0, 0)), np.zeros((0, 0, 1)))
    stacked = Forest(*(np.array(part) for part in zip(*forests, strict=True))) if forests else nothing
    return ForestMargins(*stacked, n_features=n_features, bits=bits, description=description)


def bin_rows(X: NDArray[Any]) -> BinnedRows:
    """Edges midway between neighboring values, or between equally full bins if there are more than N_BINS values."""
    n, n_features = X.shape
    rows = X if n <= SAMPLED_ROWS else X[np.linspace(0, n - 1, SAMPLED_ROWS).astype(np.intp)]
    edges_of = [_edges(rows[:, f].astype(np.float64)) for f in range(n_features)]
    features = np.array([f for f in range(n_features) if len(edges_of[f])], dtype=np.int32)
    codes = np.empty((n, len(features)), dtype=np.uint8)
    edges = np.full((len(features), N_BINS - 1), np.inf)
    for k, f in enumerate(features):
        codes[:, k] = np.searchsorted(edges_of[f], X[:, f].astype(np.float64), side="left")
        edges[k, : len(edges_of[f])] = edges_of[f]
    return BinnedRows(codes, edges, features)


def boost(
    rows: BinnedRows,
    y: NDArray[np.int8],
    weights: NDArray[np.float64],
    n_trees: int,
    depth: int,
    rng: np.random.Generator,
) -> tuple[Forest, NDArray[np.float64]]:
    """A forest whose sum over trees has the signs y, and that sum; ``weights`` are the samples' own.

    >>> rows = bin_rows(np.arange(8.0)[:, None])
    >>> y = np.array([-1, -1, -1, 1, 1, 1, -1, -1], dtype=np.int8)
    >>> forest, margins = boost(rows, y, np.ones(8), n_trees=3, depth=2, rng=np.random.default_rng(0))
    >>> np.sign(margins)
    array([-1., -1., -1.,  1.,  1.,  1., -1., -1.])
    """
    n_nodes = 2**depth - 1
    features = np.zeros((n_trees, n_nodes), dtype=np.int32)
    thresholds = np.full((n_trees, n_nodes), np.inf)
    leaves = np.zeros((n_trees, n_nodes + 1))
    signs, margins = y.astype(np.float64), np.zeros(len(y))
    if len(rows.features) == 0:
        leaves[0] = margins[:] = np.average(signs, weights=weights)
        return Forest(features, thresholds, leaves), margins
    n_columns = min(len(rows.features), max(FEWEST_FEATURES, round(FEATURE_SHARE * len(rows.features))))
    for t in range(n_trees):
        agreement = signs * margins
        current = weights * np.exp(agreement.min() - agreement)
        heavy = _heaviest(current)
        columns = np.sort(rng.choice(len(rows.features), n_columns, replace=False))
        splits, cuts = _grow(rows.codes, heavy, current, signs, depth, columns)
        place = _places(rows.codes, splits, cuts, depth)
        mass = np.bincount(place[heavy], current[heavy], n_nodes + 1)
        signed = np.bincount(place[heavy], (current * signs)[heavy], n_nodes + 1)
        leaves[t] = np.divide(signed, mass, out=np.zeros(n_nodes + 1), where=mass > 0.0)
        margins += leaves[t][place]
        features[t] = rows.features[splits]
        real = cuts < N_BINS
        thresholds[t, real] = rows.edges[splits[real], cuts[real]]
    return Forest(features, thresholds, leaves), margins


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) > N_BINS:
        share = np.cumsum(counts) / len(values)
        last = np.unique(np.searchsorted(share, np.arange(1, N_BINS) / N_BINS))
        last = last[last < len(distinct) - 1]
    else:
        last = np.arange(len(distinct) - 1)
    edges = 0.5 * distinct[last] + 0.5 * distinct[last + 1]
    return np.unique(np.minimum(np.maximum(edges, distinct[last]), distinct[last + 1]))


def _heaviest(weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """The samples that hold HEAVY_SHARE of all weight, in ascending order."""
    order = np.argsort(-weights, kind="stable")
    total = np.cumsum(weights[order])
    return np.sort(order[: int(np.searchsorted(total, HEAVY_SHARE * total[-1])) + 1])


def _grow(
    codes: NDArray[np.uint8],
    heavy: NDArray[np.intp],
    weights: NDArray[np.float64],
    signs: NDArray[np.float64],
    depth: int,
    columns: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Column and cut of every node, level by level, among ``columns``; the cut N_BINS sends all to the left.

    Features are shared out among threads. Each is summed by one of them, so their number changes nothing.
    """
    used, cuts = np.zeros(2**depth - 1, dtype=np.intp), np.full(2**depth - 1, N_BINS, dtype=np.intp)
    node = np.zeros(len(heavy), dtype=np.intp)
    shares = np.array_split(columns, min(n_threads(), -(-len(columns) // BLOCK)))
    for level in range(depth):
        first, count = 2**level - 1, 2**level
        order = np.argsort(node, kind="stable")
        rows, ends = heavy[order], np.searchsorted(node[order], np.arange(count), side="right")
        job = partial(_best_splits, codes, rows, ends, weights, signs)
        gains, splits, places = (np.array(parts) for parts in zip(*map_threads(job, shares), strict=True))
        best = gains.argmax(axis=0), np.arange(count)
        gaining = np.flatnonzero(gains[best] > 0.0)
        used[first + gaining], cuts[first + gaining] = splits[best][gaining], places[best][gaining]
        node = 2 * node + (codes[heavy, used[first + node]] > cuts[first + node])
    return used, cuts


@njit(cache=True, nogil=True)
def _best_splits(codes, rows, ends, weights, signs, columns):  # type: ignore[no-untyped-def]
    """For each node of a level, whose rows end at ``ends``: the best gain, its column and its cut."""
    n_nodes = len(ends)
    gains = np.zeros(n_nodes)
    used = np.zeros(n_nodes, dtype=np.intp)
    cuts = np.full(n_nodes, N_BINS, dtype=np.intp)
    sums = np.empty((BLOCK, N_BINS, 2))
    for block in range(0, len(columns), BLOCK):
        width = min(BLOCK, len(columns) - block)
        start = 0
        for k in range(n_nodes):
            sums[:] = 0.0
            all_mass, all_signed = 0.0, 0.0
            for p in range(start, ends[k]):
                i = rows[p]
                w, s = weights[i], weights[i] * signs[i]
                all_mass += w
                all_signed += s
                for f in range(width):
                    c = codes[i, columns[block + f]]
                    sums[f, c, 0] += w
                    sums[f, c, 1] += s
            start = ends[k]
            if abs(all_signed) >= all_mass * (1.0 - 1e-12):
                continue  # a single sign, or no samples
            base = all_signed * all_signed / all_mass
            least = LEAST_SHARE * all_mass
            for f in range(width):
                m, s = 0.0, 0.0
                for b in range(N_BINS - 1):
                    m += sums[f, b, 0]
                    s += sums[f, b, 1]
                    rest = all_mass - m
                    if m < least or rest < least:
                        continue
                    gain = s * s / m + (all_signed - s) * (all_signed - s) / rest - base
                    if gain > gains[k]:
                        gains[k], used[k], cuts[k] = gain, columns[block + f], b
    return gains, used, cuts


@njit(cache=True, nogil=True)
def _places(codes, columns, cuts, depth):  # type: ignore[no-untyped-def]
    """The leaf of every sample."""
    out = np.empty(len(codes), dtype=np.intp)
    for i in range(len(codes)):
        k = 0
        for _ in range(depth):
            k = 2 * k + 1 + (codes[i, columns[k]] > cuts[k])
        out[i] = k - len(cuts)
    return out


@njit(cache=True, nogil=True)
def _evaluate(X, features, thresholds, leaves, depth, out):  # type: ignore[no-untyped-def]
    n_bits, n_trees, n_nodes = features.shape
    for i in range(len(X)):
        for b in range(n_bits):
            total = 0.0
            for t in range(n_trees):
                k = 0
                for _ in range(depth):
                    k = 2 * k + 1 + (X[i, features[b, t, k]] > thresholds[b, t, k])
                total += leaves[b, t, k - n_nodes]
            out[i, b] = total
