"""Two baselines that only classify: the code of the predicted class, and random hyperplanes through class scores.

Codes that only name a class score high wherever relevance means "same class" (Sablayrolles et al. 2017), although they
do no hashing. These baselines show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.labels import label_indicators
from hashlearn.core.names import require_choice
from hashlearn.hash_functions import as_hash_function
from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.base import BitPredictor
from hashlearn.inference import infer_codes
from hashlearn.inference.starts import random_codes
from hashlearn.targets import Labels

CODEWORDS = ("auto", "one_hot", "spread")
SEARCH = bqp.LocalSearch(n_starts=4, max_iter=5000)  # of one bit of all codewords: milliseconds for 1,000 classes


@dataclass(eq=False, repr=False, kw_only=True)
class ClassScorer(BitPredictor):
    """One-against-rest scores of classes, for the two baselines that only classify."""

    _needs_labels = True

    hash_function: Any = "rbf_svm"

    def _fit_scores(self, X: Any, y: Any) -> tuple[Any, np.random.Generator]:
        """Sets ``classes_`` and the class functions ``hash_functions_``; gives X checked, and the generator."""
        hash_function = as_hash_function(self.hash_function)
        X, labels = self._training(X, y)
        if labels.ndim != 1:
            raise ValueError(f"y must hold one class for each sample, got indicators of shape {labels.shape}")
        rng = generator(self.random_state)
        self.classes_ = np.unique(labels)
        signs = (2.0 * label_indicators(labels) - 1.0).astype(np.int8)
        self.hash_functions_ = hash_function.fit(X, signs, rng, n_jobs=self.n_jobs)
        return X, rng


@dataclass(eq=False, repr=False, kw_only=True)
class OneHotClass(ClassScorer):
    """A classifier whose answer is written as a code: one codeword for each class.

    Parameters
    ----------
    n_bits : code length
    codewords : "one_hot": class k owns bits k, k + n_classes, …, which are 1 for it alone (n_bits of at least
        n_classes). "spread": codewords as far apart as n_bits allow, by the inference of `TwoStepHasher` on one sample
        for each class; classes share codewords if 2 ** n_bits is less than their number. "auto": "one_hot" if
        n_bits equals the number of classes, else "spread"
    hash_function : the classifier, one against rest, as in `TwoStepHasher`; the class of the largest margin wins
    random_state : seed or Generator
    n_jobs : threads for fitting; None or -1 for all cores

    Two one-hot codewords of one bit a class differ in exactly two bits: within a radius of 2 lies the whole database.

    Attributes
    ----------
    classes_ : the labels, sorted
    codewords_ : int8 ±1 (n_classes, n_bits)
    hash_functions_ : the functions that score classes

    References
    ----------
    A. Sablayrolles, M. Douze, N. Usunier, H. Jégou: How should we evaluate supervised hashing? ICASSP 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers import OneHotClass
    >>> X, y = load_digits(return_X_y=True)
    >>> OneHotClass(n_bits=10, random_state=0).fit(X[:500], y[:500]).transform(X[:2])
    array([[1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
           [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]], dtype=uint8)
    """

    codewords: str = "auto"

    def fit(self, X: Any, y: Any = None) -> OneHotClass:
        """Learn to classify, and give each class a codeword; y: labels (n,)."""
        require_choice(self.codewords, "codewords", CODEWORDS)
        _, rng = self._fit_scores(X, y)
        n_classes = len(self.classes_)
        if self.codewords == "one_hot" or (self.codewords == "auto" and self.n_bits == n_classes):
            words = _one_hot(n_classes, self.n_bits)
        else:
            words = _spread(n_classes, self.n_bits, rng)
        self.codewords_ = words.astype(np.int8)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose codeword ``transform`` writes, for each row."""
        check_is_fitted(self)
        return self.classes_[self.hash_functions_.decision_function(self._validated(X, reset=False)).argmax(axis=1)]

    def _margins(self, X: Any) -> NDArray[Any]:
        """The codeword's signs times the lead of the best class over the next."""
        scores = self.hash_functions_.decision_function(X)
        best = scores.argmax(axis=1)
        lead = np.diff(np.partition(scores, -2, axis=1)[:, -2:], axis=1)
        return self.codewords_[best] * np.maximum(lead, np.finfo(scores.dtype).tiny)


def _one_hot(n_classes: int, n_bits: int) -> FloatArray:
    if n_bits < n_classes:
        raise ValueError(
            f"codewords='one_hot' needs n_bits of at least the number of classes, {n_classes}, got {n_bits}; "
            "take more bits or codewords='spread'"
        )
    return np.where(np.arange(n_bits) % n_classes == np.arange(n_classes)[:, None], 1.0, -1.0)


def _spread(n_classes: int, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Algorithm 1 on the classes alone, each twice, so that codewords are spread as those of equal samples are."""
    member = np.repeat(np.arange(n_classes), 2)
    target = Labels().build(None, member, rng)
    start = random_codes(member, n_bits, rng)[member]
    return infer_codes(target, start, solver=SEARCH, rng=rng)[0][::2].astype(np.float64)


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
    >>> from hashlearn.hashers import ClassScoreLSH
    >>> X, y = load_digits(return_X_y=True)
    >>> ClassScoreLSH(n_bits=16, random_state=0).fit(X[:500], y[:500]).encode(X[:2]).shape
    (2, 2)
    """

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
