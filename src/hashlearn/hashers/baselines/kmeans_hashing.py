"""K-means hashing: the code of x is the number of its nearest codeword, in each of several subspaces.

The subspaces hold principal components dealt out so that the products of their variances are even. Fitting costs
O(n · n_features²) and, for each step, O(n · n_features · 2^bits_per_subspace).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import LARGEST_FEATURE, generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import MAX_COVARIANCE
from hashlearn.hash_functions import FittedHashFunctions, every_bit
from hashlearn.hash_functions.batch_invariant import PanelFunction
from hashlearn.hash_functions.stored import largest_entry, require_range, stored_array, stored_number
from hashlearn.hashers.base import BaseHasher
from hashlearn.hashers.baselines.affinity_kmeans import affinity_kmeans
from hashlearn.linalg.principal_axes import principal_axes

MOST_BITS_PER_SUBSPACE = 10  # 1,024 codewords
NEGLIGIBLE = 1e-10  # a variance this much smaller than the largest is rounding


@dataclass(eq=False, repr=False)
class KMeansHashing(BaseHasher):
    """K-means hashing (He, Wen and Sun 2013), unsupervised.

    k-means in each subspace, with codewords held so that √(Hamming distance) of their numbers, times one scale, is
    near the distance between them: `affinity_kmeans` states the error that is minimized.

    Parameters
    ----------
    n_bits : code length
    bits_per_subspace : bits of one subspace, 2 to 8 in the publication; raised if features are fewer than subspaces
    affinity_weight : λ, the weight of the affinity error
    n_iter : k-means steps; a subspace stops early when no sample changes its cell
    random_state : seed or Generator, used if a subspace has more bits than dimensions, or X over 2,048 features

    Attributes
    ----------
    errors_ : for each subspace an array (steps, 4): quantization and affinity error after each assignment and after
        each update of the codewords, with X divided by its largest entry
    subspaces_ : for each subspace the numbers of its principal components
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

    n_bits: int = 32
    _: KW_ONLY
    bits_per_subspace: int = 4
    affinity_weight: float = 10.0
    n_iter: int = 50
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> KMeansHashing:
        """Deal out the components and learn the codewords of every subspace; y is ignored."""
        X, _ = self._training(X)
        self._require_whole("bits_per_subspace", "n_iter")
        self._require_positive("affinity_weight")
        rng = generator(self.random_state)
        n_features = X.shape[1]
        axes = principal_axes(X, n_features if n_features <= MAX_COVARIANCE else MAX_COVARIANCE // 2, rng)
        kept = max(1, int((axes.variances > NEGLIGIBLE * axes.variances[0]).sum()))
        axes = axes._replace(directions=axes.directions[:, :kept], variances=axes.variances[:kept])
        sizes = self._subspace_sizes(kept)
        self.subspaces_ = even_subspaces(axes.variances, len(sizes))
        scores = axes.scores(X).astype(X.dtype)

        self.errors_, weights, offsets = [], [], []
        with one_blas_thread():
            for size, components in zip(sizes, self.subspaces_, strict=True):
                part = np.ascontiguousarray(scores[:, components])
                found = affinity_kmeans(part, size, self.affinity_weight, self.n_iter, rng)
                self.errors_.append(found.errors)
                # ‖x‖² − ‖x − c‖² = 2x·c − ‖c‖², and all codewords of a subspace share ‖x‖².
                weights.append(2.0 * axes.directions[:, components] @ found.codewords.T)
                offsets.append(-(found.codewords**2).sum(axis=1))
            columns = np.hstack(weights)
            constant = np.concatenate(offsets) - axes.centre @ columns
        self.hash_functions_ = CodewordMargins(columns, constant, np.array(sizes), axes.scale)
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
        chosen = min(free, key=lambda s: products[s])
        members[chosen].append(component)
        products[chosen] += value
    return [np.array(part, dtype=np.int64) for part in members]


class CodewordMargins(FittedHashFunctions):
    """Bit t's margin: distance² to the nearest codeword with bit t = 0, less that to the nearest one with bit t = 1."""

    kind = "codewords"
    stored = ("weights", "offsets", "sizes", "scale")

    def __init__(self, weights: NDArray[Any], offsets: NDArray[Any], sizes: NDArray[Any], scale: float) -> None:
        description = f"{len(sizes)} subspaces with {len(offsets)} codewords in all"
        super().__init__(weights.shape[0], every_bit(int(sizes.sum())), description)
        self.weights, self.offsets, self.sizes, self.scale = weights, offsets, sizes, scale

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        weights, offsets = np.ascontiguousarray(self.weights, dtype=dtype), self.offsets.astype(dtype)
        scale, sizes = dtype.type(self.scale), [int(size) for size in self.sizes]

        def margins(panel: NDArray[Any]) -> NDArray[Any]:
            nearness = np.ascontiguousarray(((panel / scale) @ weights + offsets).T)
            bits, first = [], 0
            for size in sizes:
                block = nearness[first : first + 2**size]
                first += 2**size
                for t in range(size):
                    without, having = block.reshape(2**t, 2, 2 ** (size - 1 - t), -1).max(axis=(0, 2))
                    bits.append(having - without)
            return np.stack(bits, axis=1)

        return margins, [weights]

    def margin_bound(self, entry: float) -> float:
        """The difference of two numbers of at most Σ|weights · x| + |offset|."""
        products = self.n_features * (entry / self.scale) * largest_entry(self.weights)
        return 2.0 * (products + largest_entry(self.offsets))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CodewordMargins:
        sizes = stored_array(state, "sizes", (None,), "i")
        require_range(sizes, "sizes", 0, MOST_BITS_PER_SUBSPACE)
        count = int((2 ** sizes.astype(np.int64)).sum())
        weights = stored_array(state, "weights", (int(state["n_features"]), count))
        scale = stored_number(state, "scale", most=LARGEST_FEATURE)
        return cls(weights, stored_array(state, "offsets", (count,)), sizes, scale)
