"""COSDISH, column-sampling discrete supervised hashing (Kang et al. 2016): codes that fit a few columns of Y at a time.

O(n · (n_columns + n_bits)) memory; a round costs O(n · n_columns · n_bits) and n_bits small binary quadratic problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions import as_hash_function
from hashlearn.hashers.base import BitPredictor
from hashlearn.inference.starts import random_codes
from hashlearn.targets import as_target

COLUMNS_PER_LABEL, MOST_COLUMNS = 4, 1000
SEARCH = bqp.LocalSearch(n_starts=2, max_iter=500)


@dataclass(eq=False, repr=False, kw_only=True)
class COSDISH(BitPredictor):
    """Codes B with B B_Ωᵀ ≈ n_bits · Y_Ω for a random sample Ω of columns, a new one in every round; similar pairs have
    the one entry with which they weigh as much as all dissimilar pairs, whose entry is −1.

    In turn, ``n_alternations`` times: every row outside Ω takes sgn(Y_Ω B_Ω), its best code in the sense of absolute
    errors; then every bit of the rows in Ω is a binary quadratic problem of |Ω| variables. Linear functions learn the
    codes in the end.

    Parameters
    ----------
    n_bits : code length
    n_columns : |Ω|; None: n_bits, or 4 for each label if that is more (1,000 at most)
    n_rounds : samples of columns, one after another
    n_alternations : turns for each sample
    monotone : a row takes its new code only if that lowers the squared error; False: always, as published
    hash_function : how bits are predicted, as in `TwoStepHasher`; "trees" is the publication's other choice
    random_state : seed or Generator
    n_jobs : threads for fitting hash functions; None or -1 for all cores

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the inferred codes of the training samples
    objectives_ : for each round the mean of (B B_Ωᵀ / n_bits − Y_Ω)², before and after every step of its turns
    hash_functions_ : the fitted functions

    Deviations
    ----------
    The quadratic problems are solved by local search from the present signs instead of a 2-approximation by clustering.
    The linear functions are support vector machines instead of ridge regressions. Ω is at least four times the number
    of labels, because rows of a class without any column cannot be distinguished.

    References
    ----------
    W.-C. Kang, W.-J. Li, Z.-H. Zhou: Column sampling based discrete supervised hashing. AAAI 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.cosdish import COSDISH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = COSDISH(n_bits=8, random_state=0).fit(X[:500], y[:500])
    >>> hasher.objectives_[-1][-1] < hasher.objectives_[0][0]
    True
    """

    _needs_labels = True

    n_columns: int | None = None
    n_rounds: int = 10
    n_alternations: int = 3
    monotone: bool = True
    hash_function: Any = "linear_svm"

    def fit(self, X: Any, y: Any = None) -> COSDISH:
        """Learn from labels (n,) or 0/1 indicators (n, n_labels)."""
        hash_function = as_hash_function(self.hash_function)
        X, labels = self._training(X, y)
        self._require_whole("n_rounds", "n_alternations")
        n_labels = len(np.unique(labels)) if labels.ndim == 1 else labels.shape[1]
        n_columns = max(self.n_bits, min(COLUMNS_PER_LABEL * n_labels, MOST_COLUMNS))
        if self.n_columns is not None:
            self._require_whole("n_columns")
            n_columns = self.n_columns
        rng = generator(self.random_state)
        target = as_target("auto", labels).build(X, labels, rng)
        B = random_codes(X, self.n_bits, rng)
        with one_blas_thread():
            self.objectives_ = [
                self._round(B, target, np.sort(rng.choice(target.n, min(n_columns, target.n), replace=False)), rng)
                for _ in range(self.n_rounds)
            ]
        self.codes_ = B.astype(np.int8)
        self.hash_functions_ = hash_function.fit(X, self.codes_, rng, n_jobs=self.n_jobs)
        return self

    def _round(
        self, B: FloatArray, target: bqp.Operator, columns: NDArray[np.intp], rng: np.random.Generator
    ) -> list[float]:
        """All turns for one sample of columns; B changes in place."""
        Y = _balanced(np.column_stack([target.row(int(j)) for j in columns]))
        outside = np.ones(len(B), dtype=bool)
        outside[columns] = False

        def objective() -> float:
            return float(np.square(B @ B[columns].T / self.n_bits - Y).mean())

        values = [objective()]
        for _ in range(self.n_alternations):
            self._rows_outside(B, Y, columns, outside)
            values.append(objective())
            self._rows_inside(B, Y, columns, outside, rng)
            values.append(objective())
        return values

    def _rows_outside(
        self, B: FloatArray, Y: FloatArray, columns: NDArray[np.intp], outside: NDArray[np.bool_]
    ) -> None:
        wanted = Y @ B[columns]
        new = np.where(wanted == 0.0, B, np.sign(wanted))
        taken = outside
        if self.monotone:
            old_error, new_error = (np.square(codes @ B[columns].T - self.n_bits * Y).sum(axis=1) for codes in (B, new))
            taken = outside & (new_error < old_error)
        B[taken] = new[taken]

    def _rows_inside(
        self,
        B: FloatArray,
        Y: FloatArray,
        columns: NDArray[np.intp],
        outside: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        """Each bit of the rows in Ω: −2 bᵀ(n_bits Y_ΩΩ − B̄_Ω B̄_Ωᵀ)b − 2 bᵀ(n_bits Y_Ω − B̄ B̄_Ωᵀ)ᵀ b_outside."""
        m = len(columns)
        others, inside = B[outside], Y[columns]
        sums = self.n_bits * (Y[outside].T @ others)  # row j: Σ_i n_bits y_ij b_i, for every bit
        gram = others.T @ others
        for b in range(self.n_bits):
            own = B[columns]
            rest = np.delete(own, b, axis=1)
            linear = sums[:, b] - rest @ np.delete(gram[:, b], b)
            A = np.zeros((m + 1, m + 1))  # the linear part becomes one more variable, +1
            A[:m, :m] = rest @ rest.T - self.n_bits * 0.5 * (inside + inside.T)
            A[:m, m] = A[m, :m] = -0.5 * linear
            A[np.diag_indices_from(A)] = 0.0
            x = bqp.solve(bqp.Dense.unchecked(A), SEARCH, random_state=rng, x0=np.r_[own[:, b], 1.0]).x
            B[columns, b] = x[:m] * x[m]


def _balanced(Y: FloatArray) -> FloatArray:
    """Y with positive entries scaled so that their sum equals that of the negative ones, which are far more."""
    positive, negative = np.maximum(Y, 0.0), np.maximum(-Y, 0.0)
    total = float(positive.sum())
    return positive * (float(negative.sum()) / total if total > 0.0 else 1.0) - negative
