"""K-means hashing: the code of x is the number of its nearest codeword, in each of several subspaces.

The subspaces hold principal components dealt out so that the products of their variances are even. Fitting costs
O(n · n_features²) and, for each step, O(n · n_features · 2^bits_per_subspace).

In each subspace, cells of k-means are numbered so that Hamming distances of the numbers approximate distances of the
codewords: minimize E_quan + weight · E_aff with

    E_quan = mean ‖x − c(x)‖²,    E_aff = Σ_ij n_i n_j / n² (‖c_i − c_j‖ − s √h(i, j))²,

h the Hamming distance of the numbers i and j, n_i the samples in cell i, s a scale set once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import LARGEST_FEATURE, generator
from hashlearn.core.threads import map_row_blocks, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import MAX_COVARIANCE
from hashlearn.hash_functions import DistinctBits, FittedHashFunctions, every_bit
from hashlearn.hash_functions.fitted import PanelFunction, Rows, Stored, full_panel
from hashlearn.hashers.base import BaseHasher
from hashlearn.linalg.principal_axes import principal_axes

MOST_BITS_PER_SUBSPACE = 10  # 1,024 codewords
NEGLIGIBLE = 1e-10  # a variance this much smaller than the largest is rounding
UPDATES = 10  # majorization steps for codewords between two assignments; each lowers the error
SETTLED = 2e-3  # stop if no sample changed its cell and codewords moved by at most this, relatively


@dataclass(eq=False, repr=False, kw_only=True)
class KMeansHashing(BaseHasher):
    """K-means hashing (He, Wen and Sun 2013), unsupervised.

    k-means in each subspace, with codewords held so that √(Hamming distance) of their numbers, times one scale, is
    near the distance between them: the module states the error that is minimized.

    Parameters
    ----------
    n_bits : code length
    bits_per_subspace : bits of one subspace, 2 to 8 in the publication; raised if features are fewer than subspaces
    affinity_weight : λ, the weight of the affinity error
    n_iter : k-means steps; a subspace stops early when no sample changes its cell
    random_state : seed or Generator, used if a subspace has more bits than dimensions, or X over 2,048 features

    Attributes
    ----------
    hash_functions_ : the fitted functions
    n_features_in_, feature_names_in_ : as in scikit-learn

    Deviations
    ----------
    Codewords are updated together by majorization, which lowers the same error without a line search; the publication
    moves them one at a time by a quasi-Newton method. Past 2,048 features the first 1,024 components are used.

    References
    ----------
    K. He, F. Wen, J. Sun: K-means hashing: an affinity-preserving quantization method for learning binary compact
    codes. CVPR 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> KMeansHashing(n_bits=16, random_state=0).fit(X).encode(X[:2]).shape
    (2, 2)
    """

    _accepts_sparse = False

    bits_per_subspace: int = 4
    affinity_weight: float = 10.0
    n_iter: int = 50

    def fit(self, X: Any, y: Any = None) -> KMeansHashing:
        """Deal out the components and learn the codewords of every subspace; y is ignored."""
        X, _ = self._training(X)
        self._require_whole("bits_per_subspace", "n_iter")
        self._require_positive("affinity_weight")
        rng = generator(self.random_state)
        n_features = X.shape[1]
        axes = principal_axes(X, n_features if n_features <= MAX_COVARIANCE else MAX_COVARIANCE // 2, rng)
        n_axes = max(1, int((axes.variances > NEGLIGIBLE * axes.variances[0]).sum()))
        axes = axes._replace(directions=axes.directions[:, :n_axes], variances=axes.variances[:n_axes])
        sizes = self._subspace_sizes(n_axes)
        scores = axes.scores(X).astype(X.dtype)
        weights, offsets = [], []
        with one_blas_thread():
            for size, components in zip(sizes, even_subspaces(axes.variances, len(sizes)), strict=True):
                part = np.ascontiguousarray(scores[:, components])
                codewords = affinity_kmeans(part, size, self.affinity_weight, self.n_iter, rng)
                # ‖x‖² − ‖x − c‖² = 2x·c − ‖c‖², and all codewords of a subspace share ‖x‖².
                weights.append(2.0 * axes.directions[:, components] @ codewords.T)
                offsets.append(-(codewords**2).sum(axis=1))
            columns = np.hstack(weights)
            constant = np.concatenate(offsets) - axes.center @ columns
        words = f"{len(sizes)} subspaces with {len(constant)} codewords in all"
        every = every_bit(self.n_bits)
        self.hash_functions_ = CodewordMargins(columns, constant, np.array(sizes), axes.scale, every, words)
        return self

    def _subspace_sizes(self, n_components: int) -> list[int]:
        """Bits of each subspace: as even as can be, no more subspaces than components."""
        count = min(-(-self.n_bits // self.bits_per_subspace), n_components)
        sizes = [len(part) for part in np.array_split(np.arange(self.n_bits), count)]
        if sizes[0] > MOST_BITS_PER_SUBSPACE:
            raise ValueError(
                f"n_bits={self.n_bits} in {count} subspace(s) would need 2^{sizes[0]} codewords each; ask for at most "
                f"{MOST_BITS_PER_SUBSPACE} bits a subspace: fewer n_bits, fewer bits_per_subspace, or more features "
                f"(X has {n_components} independent one(s), n_features={self.n_features_in_})"
            )
        return sizes


def even_subspaces(variances: NDArray[Any], count: int) -> list[NDArray[np.int64]]:
    """Assign components, largest variance first, to the subspace that is not full and has the smallest product.

    >>> [list(map(int, part)) for part in even_subspaces(np.array([8.0, 4.0, 2.0, 1.0]), 2)]
    [[0, 3], [1, 2]]
    """
    most = -(-len(variances) // count)
    least = max(float(variances[-1]), np.finfo(np.float64).tiny)
    logs = np.log(np.maximum(variances, least)) - np.log(least)  # products grow with every factor of at least 1
    members: list[list[int]] = [[] for _ in range(count)]
    products = np.zeros(count)
    for component, value in enumerate(logs):
        empty = [s for s in range(count) if not members[s]]
        # Every subspace gets one component first.
        free = empty or [s for s in range(count) if len(members[s]) < most]
        smallest = min(free, key=lambda s: products[s])
        members[smallest].append(component)
        products[smallest] += value
    return [np.array(part, dtype=np.int64) for part in members]


@dataclass(eq=False)
class CodewordMargins(FittedHashFunctions):
    """Bit t's margin: distance² to the nearest codeword with bit t = 0, less that to the nearest one with bit t = 1."""

    kind = "codewords"

    weights: Annotated[NDArray[Any], Stored("n_features", "n_codewords")]
    offsets: Annotated[NDArray[Any], Stored("n_codewords")]
    sizes: Annotated[NDArray[Any], Stored("n_subspaces", kind="integer", least=0, most=MOST_BITS_PER_SUBSPACE)]
    scale: Annotated[float, Stored(kind="number", most=LARGEST_FEATURE)]
    bits: DistinctBits
    description: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if (2 ** self.sizes.astype(np.int64)).sum() != len(self.offsets) or self.sizes.sum() != self.bits.n_distinct:
            raise ValueError("sizes must say how many of the codewords and bits belong to each subspace")

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        weights, offsets = self.weights.astype(dtype), self.offsets.astype(dtype)
        scale, sizes = dtype.type(self.scale), [int(size) for size in self.sizes]

        def margins(panel: Rows) -> NDArray[Any]:
            nearness = np.ascontiguousarray(((full_panel(panel) / scale) @ weights + offsets).T)
            bits, first = [], 0
            for size in sizes:
                block = nearness[first : first + 2**size]
                first += 2**size
                for t in range(size):
                    without, having = block.reshape(2**t, 2, 2 ** (size - 1 - t), -1).max(axis=(0, 2))
                    bits.append(having - without)
            return np.stack(bits, axis=1)

        return margins, [weights]


def affinity_kmeans(X: NDArray[Any], n_bits: int, weight: float, n_iter: int, rng: np.random.Generator) -> FloatArray:
    """Codewords (2^n_bits, n_features) in the order of their numbers, the first bit of a number the highest.

    Cells start as the signs of the first n_bits columns, which should be those of most variance.
    """
    n = len(X)
    numbers = np.arange(2**n_bits)
    hamming = np.bitwise_count(numbers[:, None] ^ numbers).astype(np.float64)
    cells, vertices = _sign_cells(X, n_bits, rng)
    counts, codewords = _cell_means(X, cells, vertices)
    pairs = np.multiply.outer(counts / n, counts / n)
    # The s that minimizes E_aff for these codewords; 0 if one cell holds all rows.
    scale = (pairs * cdist(codewords, codewords) * np.sqrt(hamming)).sum() / max((pairs * hamming).sum(), 1e-300)
    distances = scale * np.sqrt(hamming)
    for _ in range(n_iter):
        nearest = _nearest(X, codewords)
        counts, means = _cell_means(X, nearest, codewords)
        before, codewords = codewords, _update(codewords, means, counts / n, distances, weight)
        settled = np.linalg.norm(codewords - before) <= SETTLED * np.linalg.norm(codewords)
        if settled and np.array_equal(nearest, cells):
            break
        cells = nearest
    return codewords


def _sign_cells(X: NDArray[Any], n_bits: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], FloatArray]:
    """Cell numbers from signs, and a vertex of their box for each; random directions if columns are too few."""
    directions = np.eye(X.shape[1], n_bits)
    directions[:, X.shape[1] :] = rng.standard_normal((X.shape[1], max(0, n_bits - X.shape[1])))
    values = np.asarray(X @ directions.astype(X.dtype), dtype=np.float64)
    powers = 2 ** np.arange(n_bits - 1, -1, -1)
    vertex_signs = np.where(np.arange(2**n_bits)[:, None] & powers, 1.0, -1.0)
    return (values >= 0.0) @ powers, (vertex_signs * np.abs(values).mean(axis=0)) @ np.linalg.pinv(directions)


def _nearest(X: NDArray[Any], codewords: FloatArray) -> NDArray[np.int64]:
    columns, half = codewords.T.astype(X.dtype), (0.5 * (codewords * codewords).sum(axis=1)).astype(X.dtype)
    blocks = map_row_blocks(lambda a, b: (X[a:b] @ columns - half).argmax(axis=1), len(X), max(X.shape[1], len(half)))
    return np.concatenate(blocks)


def _cell_means(X: NDArray[Any], cells: NDArray[np.int64], empty: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Samples in each cell and their mean; a cell without samples keeps its row of ``empty``."""
    counts = np.bincount(cells, minlength=len(empty)).astype(np.float64)
    member = np.eye(len(empty), dtype=X.dtype)
    width = max(X.shape[1], len(empty))
    sums = sum_row_blocks(lambda a, b: (member[cells[a:b]].T @ X[a:b]).astype(np.float64), len(X), width)
    filled = counts > 0.0
    means = empty.copy()
    means[filled] = sums[filled] / counts[filled, None]
    return counts, means


def _update(
    codewords: FloatArray, means: FloatArray, shares: FloatArray, distances: FloatArray, weight: float
) -> FloatArray:
    """Codewords by majorization (SMACOF): ‖c_i − c_j‖ is replaced by its tangent, which gives linear systems."""
    filled = np.flatnonzero(shares)
    C, p, ideal = codewords[filled], shares[filled], distances[np.ix_(filled, filled)]
    weights = np.multiply.outer(p, p)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(np.diag(p) + 2.0 * weight * laplacian)
    data_term = p[:, None] * means[filled]
    for _ in range(UPDATES):
        now = cdist(C, C)
        ratio = -weights * np.divide(ideal, now, out=np.zeros_like(ideal), where=now > 0.0)
        np.fill_diagonal(ratio, 0.0)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        C = inverse @ (data_term + 2.0 * weight * (ratio @ C))
    updated = codewords.copy()
    updated[filled] = C
    return updated
