"""``"logistic"``: one logistic regression for each distinct bit, by L-BFGS. O(nnz) for each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.progress import ProgressCallback
from hashlearn.hash_functions.base import training_pair
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.distinct_bits import distinct_bits
from hashlearn.hash_functions.linear import LinearFit, LinearMargins, fit_linear


@dataclass(frozen=True)
class Logistic:
    """scikit-learn's `LogisticRegression`; the margin is the log odds of the bit being 1.

    X is divided by one number first, as in `LinearSVM`. Sparse X stays sparse.

    Parameters
    ----------
    C : inverse weight of the squared norm, for rows of typical norm 1
    max_iter : of L-BFGS; reaching it is a `ConvergenceWarning`
    """

    C: float = 1.0
    max_iter: int = 1000

    name: ClassVar[str] = "logistic"
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
        """Learn all bits; see `HashFunction.fit`. Nothing is random here."""
        X, codes = training_pair(X, codes)

        def fit_one(job: tuple[Rows, NDArray[np.int8]]) -> LinearFit:
            model = LogisticRegression(C=self.C, max_iter=self.max_iter).fit(*job)
            return LinearFit(model.coef_.ravel(), float(model.intercept_[0]))

        title = f"logistic regression, C={self.C:.4g}"
        return fit_linear(fit_one, X, codes, distinct_bits(codes), title, n_jobs, progress)
