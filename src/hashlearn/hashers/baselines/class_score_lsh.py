"""Random hyperplanes through class scores: the other baseline that only classifies."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.baselines.one_hot_class import ClassScorer


@dataclass(eq=False, repr=False)
class ClassScoreLSH(ClassScorer):
    """Bits are the sides of random hyperplanes on which a sample's vector of class scores lies.

    The scores are one-against-rest margins minus their mean over the training samples. Unlike `OneHotClass` it keeps
    how sure the classifier is, and what else a sample looks like.

    Parameters
    ----------
    n_bits : code length
    hash_function : the classifier, one against rest, as in `TwoStepHasher`
    random_state : seed or Generator
    n_jobs : threads for fitting; None or -1 for all cores

    Attributes
    ----------
    classes_ : the labels, sorted
    hash_functions_ : the functions that score classes
    hyperplanes_ : LinearMargins from scores to bits

    References
    ----------
    A. Sablayrolles, M. Douze, N. Usunier, H. Jégou: How should we evaluate supervised hashing? ICASSP 2017.
    M. Charikar: Similarity estimation techniques from rounding algorithms. STOC 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.class_score_lsh import ClassScoreLSH
    >>> X, y = load_digits(return_X_y=True)
    >>> ClassScoreLSH(n_bits=16, random_state=0).fit(X[:500], y[:500]).encode(X[:2]).shape
    (2, 2)
    """

    n_bits: int = 32
    _: KW_ONLY
    hash_function: Any = "rbf_svm"
    random_state: Any = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any = None) -> ClassScoreLSH:
        """Learn to classify, and draw hyperplanes; y: labels (n,)."""
        X, rng = self._fit_scores(X, y)
        mean = self.hash_functions_.decision_function(X).mean(axis=0, dtype=np.float64)
        normals = rng.standard_normal((len(mean), self.n_bits))
        self.hyperplanes_ = linear_functions(normals, mean, f"random hyperplanes through {len(mean)} class scores")
        return self

    def _margins(self, X: Any) -> NDArray[Any]:
        """Distances of the scores from the hyperplanes, up to their length."""
        return self.hyperplanes_.decision_function(self.hash_functions_.decision_function(X))
