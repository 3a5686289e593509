"""``"linear_svm"`` and ``"logistic"``: one linear classifier for each distinct bit. O(nnz) for each pass."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.linear import LinearMargins, typical_norm


class LinearClassifier(HashFunction):
    """A scikit-learn classifier with ``coef_`` and ``intercept_``, fitted to each distinct bit.

    X is divided by one number, the root of its mean squared row norm, so that C means the same for any units of X.
    Features are neither centered nor scaled one by one, and sparse X stays sparse. Weights are in the units of X.
    """

    C: float
    max_iter: int

    def __post_init__(self) -> None:
        positive(self.C, "C")
        whole_number(self.max_iter, "max_iter", least=1)

    @abstractmethod
    def _classifier(self, data: Training) -> tuple[Any, str, int | None]:
        """An unfitted classifier, a title, and the number of threads that may fit copies of it."""

    def _fit(self, data: Training) -> LinearMargins:
        X, bits = data.X, data.bits
        classifier, title, n_jobs = self._classifier(data)
        scale = typical_norm(X)
        scaled = X / X.dtype.type(scale)

        def fit_one(y: NDArray[np.int8]) -> tuple[NDArray[Any], float]:
            model = clone(classifier).fit(scaled, y)
            return model.coef_.ravel(), float(model.intercept_[0])

        with one_blas_thread():
            fits = fit_each(fit_one, list(data.codes.T), n_jobs, data.progress)
        weights = np.array([w for w, _ in fits], dtype=np.float64).reshape(len(fits), X.shape[1]).T / scale
        intercepts = np.array([intercept for _, intercept in fits])
        return LinearMargins(weights, intercepts, bits, f"{title}, C={self.C:.4g}, {bits.describe()}")


@dataclass(frozen=True)
class LinearSVM(LinearClassifier):
    """Support vector machines with the squared hinge: LibLinear through scikit-learn's `LinearSVC`.

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

    def _classifier(self, data: Training) -> tuple[Any, str, int | None]:
        dual = data.X.shape[0] < data.X.shape[1]
        seed = int(data.rng.integers(2**31 - 1))
        svc = LinearSVC(C=self.C, dual=dual, max_iter=self.max_iter, random_state=seed)
        return svc, "linear SVM", 1 if dual else data.n_jobs


@dataclass(frozen=True)
class Logistic(LinearClassifier):
    """scikit-learn's `LogisticRegression` by L-BFGS; the margin is the log odds of the bit being 1. Nothing is random.

    Parameters
    ----------
    C : inverse weight of the squared norm, for rows of typical norm 1
    max_iter : of L-BFGS; reaching it is a `ConvergenceWarning`
    """

    C: float = 1.0
    max_iter: int = 1000

    name: ClassVar[str] = "logistic"

    def _classifier(self, data: Training) -> tuple[Any, str, int | None]:
        return LogisticRegression(C=self.C, max_iter=self.max_iter), "logistic regression", data.n_jobs
