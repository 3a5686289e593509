"""``"linear_svm"``: one linear support vector machine (squared hinge) for each distinct bit. O(nnz) for each pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.progress import ProgressCallback
from hashlearn.hash_functions.base import training_pair
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.distinct_bits import distinct_bits
from hashlearn.hash_functions.linear import LinearFit, LinearMargins, fit_linear


@dataclass(frozen=True)
class LinearSVM:
    """LibLinear through scikit-learn's `LinearSVC(dual="auto")`.

    X is divided by one number, the root of its mean squared row norm, so that C means the same whatever the units of
    X; features are neither centred nor scaled one by one, and sparse X stays sparse. Weights are given in X's units.

    LibLinear's dual solver, which "auto" takes where there are fewer rows than features, draws from one generator for
    the whole process: bits are then fitted one after another, so that the seed alone decides. The primal solver
    draws nothing and runs in threads.

    Parameters
    ----------
    C : weight of the loss, for rows of typical norm 1
    max_iter : LibLinear's limit; reaching it is a `ConvergenceWarning`
    """

    C: float = 1.0
    max_iter: int = 10_000

    name: ClassVar[str] = "linear_svm"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.C, "C")
        whole_number(self.max_iter, "max_iter", least=1)

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> LinearMargins:
        """Learn all bits; see `HashFunction.fit`."""
        X, codes = training_pair(X, codes)
        seed = int(rng.integers(2**31 - 1))
        dual = X.shape[0] < X.shape[1]

        def fit_one(job: tuple[Rows, NDArray[np.int8]]) -> LinearFit:
            scaled, y = job
            svc = LinearSVC(C=self.C, dual=dual, max_iter=self.max_iter, random_state=seed).fit(scaled, y)
            return LinearFit(svc.coef_.ravel(), float(svc.intercept_[0]))

        title = f"linear SVM, C={self.C:.4g}"
        return fit_linear(fit_one, X, codes, distinct_bits(codes), title, 1 if dual else n_jobs, progress)
