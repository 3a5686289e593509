"""``"rbf_svm"``: one support vector machine for each distinct bit, all on one Gram matrix.

The kernel is computed once, O(n² n_features). LibSVM (through scikit-learn) solves each bit on it, in threads, because
it releases the GIL. Only rows that support some bit are stored. With more than `max_gram_rows` rows Nyström landmarks
are used, linear in n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.jobs import fit_each
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.base import Training
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.expansion import KernelExpansion
from hashlearn.hash_functions.kernel_method import KernelMethod
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.nystroem import nystroem_svm

DEFAULT_C = 10.0
CACHE_MEGABYTES = 500


@dataclass(frozen=True)
class RBFSVM(KernelMethod):
    """Support vector machines with the kernel exp(−γ‖x − x'‖²).

    Parameters
    ----------
    C : weight of the hinge loss, or "cv"
    gamma : "neighbors", "median", "scale" (see `bandwidth`), a positive number, or "cv"; "cv" selects on held-out
        rows from a grid around the default (see `kernel_method`)
    tol : LibSVM's stopping tolerance
    max_gram_rows : with more rows than this, Nyström landmarks replace the Gram matrix; None: 20,000, or fewer if a
        quarter of the machine's memory cannot hold that matrix
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

    C: float | str = DEFAULT_C
    gamma: float | str = "neighbors"
    tol: float = 1e-3
    max_gram_rows: int | None = None
    n_landmarks: int = 3000

    name: ClassVar[str] = "rbf_svm"

    def __post_init__(self) -> None:
        if isinstance(self.C, str) and self.C != "cv":
            raise ValueError(f"C must be a positive number or 'cv', got {self.C!r}")
        if not isinstance(self.C, str):
            positive(self.C, "C")
        positive(self.tol, "tol")
        self._check_kernel()

    def _fit(self, data: Training) -> KernelExpansion:
        with one_blas_thread():
            gamma, C, origin = self._choose(data, self.C, DEFAULT_C)
            many = self._landmarks(data, gamma)
            if many is None:
                points, coefficients, intercepts = self._fit_gram(data, gamma, C)
                words = f"{len(coefficients)} support vectors"
            else:
                features, words = many
                coefficients, intercepts = nystroem_svm(features, data.codes, C)
                points = features.landmarks
                data.tell_done()
        title = f"RBF-SVM, gamma={gamma:.4g} ({origin}), C={C:.4g}, {words}, {data.bits.describe()}"
        return KernelExpansion(points, gamma, coefficients, intercepts, data.bits, title)

    def _fit_gram(self, data: Training, gamma: float, C: float) -> tuple[Rows, FloatArray, FloatArray]:
        """Support vectors, coefficients and intercepts."""
        machines = []
        if data.bits.n_distinct:
            K = RBFPoints(data.X, gamma).gram()
            machines = fit_each(lambda y: _fit_one(K, y, C, self.tol), list(data.codes.T), data.n_jobs, data.progress)
        support = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *(m.support for m in machines)]))
        coefficients = np.zeros((len(support), len(machines)))
        for b, machine in enumerate(machines):
            coefficients[np.searchsorted(support, machine.support), b] = machine.coefficients
        return data.X[support], coefficients, np.array([m.intercept for m in machines])

    def _trial(self, K: FloatArray, codes: NDArray[np.int8], K_held: FloatArray, strength: float) -> FloatArray:
        machines = fit_each(lambda y: _fit_one(K, y, strength, self.tol), list(codes.T), None, None)
        return np.column_stack([K_held[:, m.support] @ m.coefficients + m.intercept for m in machines])


class _Machine(NamedTuple):
    support: NDArray[np.intp]
    coefficients: FloatArray
    intercept: float


def _fit_one(K: FloatArray, y: NDArray[np.int8], C: float, tol: float) -> _Machine:
    """One bit on the shared Gram matrix. A sample of rows may hold a single class; its margin is then constant."""
    if (y == y[0]).all():
        return _Machine(np.empty(0, dtype=np.intp), np.empty(0), float(y[0]))
    svc = SVC(kernel="precomputed", C=C, tol=tol, cache_size=CACHE_MEGABYTES).fit(K, y)
    return _Machine(svc.support_.astype(np.intp), svc.dual_coef_.ravel(), float(svc.intercept_[0]))
