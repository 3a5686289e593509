"""Linear hash functions: margins X @ weights + intercepts, for all bits at once. Sparse X stays sparse.

``"linear_svm"`` fits one linear classifier for each distinct bit, O(nnz) for each pass.
``"linear_ridge"`` is least squares on the codes ±1, all bits in one Cholesky solve, O(n · n_features²) in one pass. It
needs only the mean of the rows, their scatter and their products with the codes. These are sums over blocks of rows, so
`hashlearn.distributed` fits the same functions on rows that do not fit into one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.svm import LinearSVC

from hashlearn.core.arrays import FloatArray, tensor_like
from hashlearn.core.checks import positive, whole_number
from hashlearn.core.memory import FLOAT64_BYTES
from hashlearn.core.rows import largest_entry
from hashlearn.core.threads import one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import LARGEST_DENSE_FORM
from hashlearn.hash_functions.distinct_bits import DistinctBits, every_bit
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, Stored, full_panel
from hashlearn.hash_functions.hash_function import HashFunction, Training, fit_each
from hashlearn.linalg.gram import column_means

DEFAULT_ALPHA = 1e-4


@dataclass(eq=False)
class LinearMargins(FittedHashFunctions):
    """A weight for each feature and distinct bit, an intercept for each distinct bit."""

    kind = "linear"

    weights: Annotated[FloatArray, Stored("n_features", "n_distinct")]
    intercepts: Annotated[FloatArray, Stored("n_distinct")]
    bits: DistinctBits
    description: str

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        weights, intercepts = self.weights.astype(dtype), self.intercepts.astype(dtype)
        if sparse:
            return lambda panel: panel @ weights + intercepts, []
        return lambda panel: full_panel(panel) @ weights + intercepts, [weights]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        weights, intercepts = tensor_like(self.weights, X), tensor_like(self.intercepts, X)
        return lambda rows: rows @ weights + intercepts, self.bits.n_distinct


def linear_functions(weights: NDArray[Any], origin: NDArray[Any], description: str) -> LinearMargins:
    """Margins (x − origin) @ weights, one column of ``weights`` for each bit."""
    return LinearMargins(weights, -(origin @ weights), every_bit(weights.shape[1]), description)


def usable_scale(scale: float, dtype: np.dtype[Any]) -> float:
    """``scale``, or 0 if it is so small that a number divided by it can overflow: X is then practically constant."""
    return scale if scale > 1e8 * float(np.finfo(dtype).tiny) else 0.0


def positive_norm(X: Rows) -> float:
    """The root of the mean squared row norm; 1 if X is zero. Dividing by it makes C mean the same for any units."""
    entries = X.data if sp.issparse(X) else X
    largest = largest_entry(entries)
    if not 0.0 < largest < np.inf:
        return 1.0
    power = 2.0 ** np.floor(np.log2(largest))  # so that no square overflows or loses digits, and none rounds
    norm = power * float(np.sqrt(np.square(np.divide(entries, power, dtype=np.float64)).sum() / X.shape[0]))
    return max(norm, 1e8 * float(np.finfo(X.dtype).tiny))  # weights are divided by it, and must stay finite


@dataclass(frozen=True)
class LinearSVM(HashFunction):
    """Support vector machines with the squared hinge: LibLinear through scikit-learn's `LinearSVC`, bit by bit.

    X is divided by one number, the root of its mean squared row norm, so that C means the same for any units of X.
    Features are neither centered nor scaled one by one, and sparse X stays sparse. Weights are in the units of X.

    LibLinear's dual solver, which is used with fewer rows than features, draws from one generator for the whole
    process. Bits are then fitted one after another, so that results depend on the seed alone. The primal solver draws
    nothing and runs in threads.

    Parameters
    ----------
    C : weight of the loss, for rows of typical norm 1
    max_iter : LibLinear's limit; reaching it is a `ConvergenceWarning`
    """

    C: float = 1.0
    max_iter: int = 10_000

    name: ClassVar[str] = "linear_svm"

    def __post_init__(self) -> None:
        positive(self.C, "C")
        whole_number(self.max_iter, "max_iter", least=1)

    def _fit(self, data: Training) -> LinearMargins:
        X, bits = data.X, data.bits
        dual = X.shape[0] < X.shape[1]
        seed = int(data.rng.integers(2**31 - 1))
        svc = LinearSVC(C=self.C, dual=dual, max_iter=self.max_iter, random_state=seed)
        scale = positive_norm(X)
        scaled = X / X.dtype.type(scale)

        def fit_one(y: NDArray[np.int8]) -> tuple[NDArray[Any], float]:
            model = clone(svc).fit(scaled, y)
            return model.coef_.ravel(), float(model.intercept_[0])

        with one_blas_thread():
            fits = fit_each(fit_one, list(data.codes.T), data._replace(n_jobs=1) if dual else data)
        weights = np.array([w for w, _ in fits], dtype=np.float64).reshape(len(fits), X.shape[1]).T / scale
        intercepts = np.array([intercept for _, intercept in fits])
        return LinearMargins(weights, intercepts, bits, f"linear SVM, C={self.C:.4g}, {bits.describe()}")


@dataclass(frozen=True)
class LinearRidge(HashFunction):
    """Minimize Σ (y − w·x − b)² + alpha · s ‖w‖², with s the mean of the scatter's diagonal.

    Sparse X is made dense in blocks of rows. It is refused if a matrix of its columns × columns takes more than 2 GB.

    Parameters
    ----------
    alpha : weight of ‖w‖², free of units
    """

    alpha: float = DEFAULT_ALPHA

    name: ClassVar[str] = "linear_ridge"

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")

    def require_rows(self, X: Rows) -> None:
        """Refuse sparse rows if the scatter, columns × columns, would take more than `LARGEST_DENSE_FORM` bytes."""
        size = FLOAT64_BYTES * X.shape[1] ** 2
        if sp.issparse(X) and size > LARGEST_DENSE_FORM:
            raise ValueError(
                f"{self.name} forms a dense matrix of columns × columns, and X is sparse with {X.shape[1]:,} columns, "
                f"which take {size / 1e9:,.1f} GB; choose linear_svm, which keeps X sparse, or reduce the columns "
                "with sklearn.decomposition.TruncatedSVD"
            )

    def _fit(self, data: Training) -> LinearMargins:
        """There is one solve, and nothing is random."""
        X, codes, bits = data.X, data.codes, data.bits
        mean = column_means(X)
        n, d = X.shape

        def sums_of(first: int, last: int) -> FloatArray:
            block = X[first:last]
            rows = (block.toarray() if sp.issparse(block) else block).astype(np.float64) - mean
            return np.hstack([rows.T @ rows, rows.T @ codes[first:last].astype(np.float64)])

        with one_blas_thread():
            sums = sum_row_blocks(sums_of, n, d)
        data.tell_done()
        return ridge_margins(mean, sums[:, :d], sums[:, d:], codes.mean(axis=0, dtype=np.float64), bits, self.alpha)


def ridge_margins(
    mean: FloatArray, scatter: FloatArray, moments: FloatArray, bit_means: FloatArray, bits: DistinctBits, alpha: float
) -> LinearMargins:
    """The fitted functions from Σ (x − mean)(x − mean)ᵀ and Σ (x − mean) yᵀ, with y the distinct bits."""
    # 1e-300 keeps the matrix regular if all features are constant.
    penalty = max(alpha * float(np.trace(scatter)) / len(scatter), 1e-300)
    with one_blas_thread():
        factor = cho_factor(scatter + penalty * np.eye(len(scatter)), lower=True, check_finite=False)
        weights = cho_solve(factor, moments, check_finite=False)
    intercepts = bit_means - mean @ weights
    return LinearMargins(weights, intercepts, bits, f"linear ridge, alpha={alpha:.4g}, {bits.describe()}")
