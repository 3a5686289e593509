"""``"rbf_svm"``: one support vector machine for each distinct bit, all on one Gram matrix.

The kernel is computed once, O(n² n_features). LibSVM (through scikit-learn) solves each bit on it, in threads, because
it releases the GIL. Only rows that support some bit are stored. With more than `max_gram_rows` rows Nyström landmarks
are used, linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.jobs import fit_each
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.base import Training
from hashlearn.hash_functions.expansion import KernelExpansion
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.kernel_method import KernelMethod, nystroem_svm
from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma

CACHE_MEGABYTES = 500


@dataclass(frozen=True)
class RBFSVM(KernelMethod):
    """Support vector machines with the kernel exp(−γ‖x − x'‖²).

    Parameters
    ----------
    C : weight of the hinge loss
    gamma : "neighbors", "scale" (see `kernels`), or a positive number
    tol : LibSVM's stopping tolerance
    max_gram_rows : with more rows than this, Nyström landmarks replace the Gram matrix; None: 20,000.
        A matrix that takes more than half of the machine's memory is refused
    n_landmarks : number of rows drawn as landmarks then; the loss becomes the squared hinge, all bits in one solve

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> codes = np.array([[-1, 1], [-1, 1], [1, -1], [1, -1]], dtype=np.int8)
    >>> functions = RBFSVM(gamma=0.5).fit(X, codes, np.random.default_rng(0))
    >>> functions.decision_function(X) >= 0
    array([[False,  True],
           [False,  True],
           [ True, False],
           [ True, False]])
    >>> functions.description
    'RBF-SVM, gamma=0.5 (given), C=10, 4 support vectors, 1 of 2 bits fitted (1 repeated or complementary)'
    """

    C: float = 10.0
    gamma: float | str = "neighbors"
    tol: float = 1e-3
    max_gram_rows: int | None = None
    n_landmarks: int = 3000

    name: ClassVar[str] = "rbf_svm"

    def __post_init__(self) -> None:
        positive(self.C, "C")
        positive(self.tol, "tol")
        self._check_kernel()

    def _fit(self, data: Training) -> KernelExpansion:
        with one_blas_thread():
            gamma, origin = choose_gamma(self.gamma, data.X, data.rng)
            many = self._landmarks(data, gamma)
            if many is None:
                points, coefficients, intercepts = self._fit_gram(data, gamma)
                words = f"{len(coefficients)} support vectors"
            else:
                features, words = many
                coefficients, intercepts = nystroem_svm(features, data.codes, self.C)
                points = features.landmarks
                data.tell_done()
        title = f"RBF-SVM, gamma={gamma:.4g} ({origin}), C={self.C:.4g}, {words}, {data.bits.describe()}"
        return KernelExpansion(points, gamma, coefficients, intercepts, data.bits, title)

    def _fit_gram(self, data: Training, gamma: float) -> tuple[Rows, FloatArray, FloatArray]:
        """Support vectors, coefficients and intercepts."""
        if data.bits.n_distinct == 0:
            return data.X[:0], np.zeros((0, 0)), np.zeros(0)
        K = RBFPoints(data.X, gamma).gram()
        machines = fit_each(lambda y: _fit_one(K, y, self.C, self.tol), list(data.codes.T), data.n_jobs, data.progress)
        columns, intercepts = zip(*machines, strict=True)
        coefficients = np.column_stack(columns)
        support = np.flatnonzero(coefficients.any(axis=1))
        return data.X[support], coefficients[support], np.array(intercepts)


def _fit_one(K: FloatArray, y: NDArray[np.int8], C: float, tol: float) -> tuple[FloatArray, float]:
    """Coefficients of all rows and the intercept, for one bit on the shared Gram matrix."""
    coefficients = np.zeros(len(y))
    svc = SVC(kernel="precomputed", C=C, tol=tol, cache_size=CACHE_MEGABYTES).fit(K, y)
    coefficients[svc.support_] = svc.dual_coef_.ravel()
    return coefficients, float(svc.intercept_[0])
