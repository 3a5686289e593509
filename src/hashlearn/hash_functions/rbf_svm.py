"""``"rbf_svm"``: one support vector machine for each distinct bit, all on one Gram matrix.

The kernel is computed once, O(n² n_features), and LibSVM (through scikit-learn) solves each bit on it, in threads:
it lets go of the GIL. Only rows that support some bit are kept. Past `max_gram_rows` Nyström landmarks take over,
linear in n.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.core.memory import gram_rows_limit
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.bandwidth import check_gamma, choose_gamma
from hashlearn.hash_functions.base import STAGE, training_pair
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits
from hashlearn.hash_functions.expansion import KernelExpansion
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.nystroem import NystroemFeatures, nystroem_svm
from hashlearn.hash_functions.selection import (
    GAMMA_FACTORS,
    STRENGTH_FACTORS,
    candidates,
    select_on_held_out_rows,
)

DEFAULT_C = 10.0
CACHE_MEGABYTES = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RBFSVM:
    """Support vector machines with the kernel exp(−γ‖x − x'‖²).

    Parameters
    ----------
    C : weight of the hinge loss, or "cv"
    gamma : "neighbors", "median", "scale" (see `bandwidth`), a positive number, or "cv"; "cv" selects on held-out
        rows from a grid around the default (see `selection`)
    tol : LibSVM's stopping tolerance
    max_gram_rows : with more rows than this, Nyström landmarks instead of the Gram matrix; None: 20,000, or fewer
        where a quarter of the machine's memory holds no such matrix
    n_landmarks : rows drawn as landmarks then; the loss becomes the squared hinge, all bits in one solve

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
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.C, str) and self.C != "cv":
            raise ValueError(f"C must be a positive number or 'cv', got {self.C!r}")
        if not isinstance(self.C, str):
            positive(self.C, "C")
        check_gamma(self.gamma)
        positive(self.tol, "tol")
        if self.max_gram_rows is not None:
            whole_number(self.max_gram_rows, "max_gram_rows", least=1)
        whole_number(self.n_landmarks, "n_landmarks", least=1)

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> KernelExpansion:
        """Learn all bits; see `HashFunction.fit`."""
        X, codes = training_pair(X, codes)
        bits = distinct_bits(codes)
        codes = codes[:, bits.columns]
        with one_blas_thread():
            gamma, C, origin = self._choose(X, codes, rng)
            title = f"RBF-SVM, gamma={gamma:.4g} ({origin}), C={C:.4g}"
            limit = gram_rows_limit(self.max_gram_rows)
            if X.shape[0] > limit and bits.n_distinct:
                return self._fit_landmarks(X, codes, rng, gamma, C, limit, bits, title, progress)
            return self._fit_gram(X, codes, gamma, C, bits, title, n_jobs, progress)

    def _choose(self, X: Rows, codes: NDArray[np.int8], rng: np.random.Generator) -> tuple[float, float, str]:
        gamma, origin = choose_gamma(self.gamma, X, rng)
        C = DEFAULT_C if isinstance(self.C, str) else float(self.C)
        if "cv" not in (self.gamma, self.C):
            return gamma, C, origin
        gammas = candidates(gamma, self.gamma == "cv", GAMMA_FACTORS)
        Cs = candidates(C, self.C == "cv", STRENGTH_FACTORS)
        choice = select_on_held_out_rows(X, codes, gammas, Cs, self._trial, rng)
        if choice is None:
            return gamma, C, f"{origin}, too few rows for cv"
        words = f"{'cv' if self.gamma == 'cv' else origin}, {choice.accuracy:.3f} of held-out bits right"
        return choice.gamma, choice.strength, words

    def _trial(
        self, K: NDArray[np.float64], codes: NDArray[np.int8], K_held: NDArray[np.float64], C: float
    ) -> NDArray[np.float64]:
        machines = fit_each(lambda y: _fit_one(K, y, C, self.tol), list(codes.T), None, None)
        return np.column_stack([K_held[:, m.support] @ m.coefficients + m.intercept for m in machines])

    def _fit_gram(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        gamma: float,
        C: float,
        bits: DistinctBits,
        title: str,
        n_jobs: int | None,
        progress: ProgressCallback | None,
    ) -> KernelExpansion:
        machines = []
        if bits.n_distinct:
            K = RBFPoints(X, gamma).gram()
            machines = fit_each(lambda y: _fit_one(K, y, C, self.tol), list(codes.T), n_jobs, progress)
        support = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *(m.support for m in machines)]))
        coefficients = np.zeros((len(support), len(machines)))
        for b, machine in enumerate(machines):
            coefficients[np.searchsorted(support, machine.support), b] = machine.coefficients
        intercepts = np.array([m.intercept for m in machines])
        description = f"{title}, {len(support)} support vectors, {bits.describe()}"
        return KernelExpansion(X[support], gamma, coefficients, intercepts, bits, description)

    def _fit_landmarks(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        gamma: float,
        C: float,
        limit: int,
        bits: DistinctBits,
        title: str,
        progress: ProgressCallback | None,
    ) -> KernelExpansion:
        features = NystroemFeatures(X, gamma, self.n_landmarks, rng)
        reason = f"{features.m} Nyström landmarks because {X.shape[0]} rows are more than {limit}"
        log.warning("%s: %s", self.name, reason)
        coefficients, intercepts = nystroem_svm(features, codes, C)
        tell(progress, STAGE, bits.n_distinct, bits.n_distinct)
        description = f"{title}, {reason}, {bits.describe()}"
        return KernelExpansion(features.landmarks, gamma, coefficients, intercepts, bits, description)


class _Machine(NamedTuple):
    support: NDArray[np.intp]
    coefficients: NDArray[np.float64]
    intercept: float


def _fit_one(K: NDArray[np.float64], y: NDArray[np.int8], C: float, tol: float) -> _Machine:
    """One bit on the shared Gram matrix. A single class, possible among sampled rows only, has a constant margin."""
    if (y == y[0]).all():
        return _Machine(np.empty(0, dtype=np.intp), np.empty(0), float(y[0]))
    svc = SVC(kernel="precomputed", C=C, tol=tol, cache_size=CACHE_MEGABYTES).fit(K, y)
    return _Machine(svc.support_.astype(np.intp), svc.dual_coef_.ravel(), float(svc.intercept_[0]))
