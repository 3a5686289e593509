"""What every hasher shares: from margins to bits to packed bytes, scikit-learn's contract, and a score."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hashlearn import bits, metrics
from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import LARGEST_FEATURE, positive, whole_number
from hashlearn.core.labels import checked_labels, require_classes, require_unmasked
from hashlearn.core.memory import dense_form
from hashlearn.core.rows import all_equal, as_rows, largest_entry, require_finite, require_numbers
from hashlearn.hash_functions import FittedHashFunctions, accepts_sparse
from hashlearn.hash_functions.fitted import working_rows
from hashlearn.inference.objective import objective
from hashlearn.targets import Distance

MAX_BITS = 4096


@dataclass(eq=False, repr=False)
class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A hasher fits on X (and y, if it is supervised) and encodes any sample in n_bits bits.

    A subclass provides ``fit`` and ``decision_function``, whose margins of at least 0 are bits 1; `transform`,
    `encode` and `score` follow from it. Or its ``fit`` sets ``hash_functions_``. A subclass with parameters of its own
    is a dataclass; all parameters but ``n_bits`` are keywords.

    Examples
    --------
    >>> class FirstSigns(BaseHasher):
    ...     def fit(self, X, y=None):
    ...         self.mean_ = np.mean(X, axis=0)
    ...         return self
    ...
    ...     def decision_function(self, X):
    ...         return (X - self.mean_)[:, : self.n_bits]
    >>> X = np.array([[0.0, 4.0, 1.0], [2.0, 0.0, 1.0]])
    >>> FirstSigns(n_bits=2).fit(X).transform(X)
    array([[0, 1],
           [1, 0]], dtype=uint8)
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Any = None
    hash_functions_: FittedHashFunctions = field(init=False)
    _accepts_sparse: ClassVar[bool] = True  # whether ``fit`` takes sparse rows; see `_takes_sparse`
    _takes_tensors: ClassVar[bool] = False  # whether codes of a PyTorch tensor are a tensor on its device
    _learns_from_labels: ClassVar[bool] = False  # False: ``fit`` ignores y
    _needs_labels: ClassVar[bool] = False  # True: ``fit`` refuses to work without y

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._needs_labels:
            cls._learns_from_labels = True

    def _takes_sparse(self) -> bool:
        return self._accepts_sparse

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Margins, shape (n_samples, n_bits): a bit is 1 if its margin is at least 0, and surer farther from 0."""
        return self._evaluated(X, lambda margins: margins)

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """Bits 0/1, shape (n_samples, n_bits)."""
        return self._coded(X, bits_of)

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes, shape (n_samples, ⌈n_bits/8⌉): big-endian bit order, pad bits zero."""
        return self._coded(X, packed_bits_of)

    def score(self, X: Any, y: Any = None) -> float:
        """How good the codes of X are, the higher the better, for model selection.

        With labels: mean average precision of every row of X as a query against all of X (itself included). Without:
        minus the mean squared error between code inner products and cosines of the centered rows, eq. (3).
        """
        if y is not None:
            packed = self.encode(X)
            return float(metrics.mean_average_precision(packed, packed, y, y))
        signs = bits.bits_to_signs(self.transform(X)).astype(np.float64)
        return -objective(Distance().build(self._validated(X, reset=False), None, np.random.default_rng(0)), signs)

    def save(self, path: str | PathLike[str], *, codes: bool = True, notes: str = "") -> None:
        """Write this fitted hasher to one file, which `hashlearn.load` reads; see `hashlearn.persistence.save`."""
        import_module("hashlearn.persistence").save(self, path, codes=codes, notes=notes)

    def _coded(self, X: Any, finish: Callable[[Any], Any]) -> Any:
        """``finish`` applied to the margins, which are those of a subclass if it has its own ``decision_function``."""
        if type(self).decision_function is BaseHasher.decision_function:
            return self._evaluated(X, finish)
        rows = as_rows(X)
        if getattr(rows, "shape", None) == (0,):  # an empty list or column
            return finish(np.empty((0, int(self.n_bits))))
        margins = self.decision_function(rows)
        margins = margins if is_tensor(margins) else np.asarray(margins)
        if margins.ndim != 2 or margins.shape[1] != self.n_bits:
            raise ValueError(
                f"decision_function of {type(self).__name__} must return margins of shape (n_samples, {self.n_bits}), "
                f"one column for each of n_bits, got shape {tuple(margins.shape)}"
            )
        if not is_tensor(margins) and not np.isfinite(margins).all():
            raise ValueError(f"decision_function of {type(self).__name__} returned NaN or infinity")
        return finish(margins)

    def _evaluated(self, X: Any, finish: Callable[[Any], Any]) -> Any:
        """``finish`` applied to the margins of the hash functions."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if X.shape[0] == 0:
            none = (0, int(self.n_bits))
            return finish(X.new_empty(none) if is_tensor(X) else np.empty(none, X.dtype))
        return self.hash_functions_.evaluate(X, finish)

    def _training(self, X: Any, y: Any = None) -> tuple[Any, Any]:
        """X and the labels to learn from, checked; the labels are None without y, and if ``fit`` ignores y."""
        self._require_labels(y)
        X = working_rows(self._validated(X, reset=True))
        labels = None
        if y is not None and self._learns_from_labels:
            labels = checked_labels(y, X.shape[0])
            require_classes(labels)
        self._check_n_bits(X.shape[0])
        return X, labels

    def _require_labels(self, y: Any) -> None:
        if self._needs_labels and y is None:
            name = type(self).__name__
            raise ValueError(f"{name} requires y to be passed, but the target y is None; call fit(X, y) with labels")

    def _require_whole(self, *names: str, least: int = 1) -> None:
        for name in names:
            whole_number(getattr(self, name), name, least=least)

    def _require_positive(self, *names: str) -> None:
        for name in names:
            positive(getattr(self, name), name)

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """X as finite float32 or float64 rows, C-contiguous or CSR; ``reset``: rows to learn from, at least two."""
        require_unmasked(X, "X")
        if reset:
            self._take_plain_integers()
        if is_tensor(X) and self._takes_tensors:
            X = self._validated_tensor(X, reset=reset)
        else:
            X = self._validated_array(as_rows(X), reset=reset)
            largest = largest_entry(X.data if issparse(X) else X)
            if not largest < np.inf:
                require_finite(X, "X")
            if largest > LARGEST_FEATURE:
                limit = f"scale it below {LARGEST_FEATURE:.0e}"
                raise ValueError(f"X has an entry of size {largest:.3g}, whose square overflows; {limit}")
        if reset:
            self.n_samples_fit_ = int(X.shape[0])
            self._warn_of_rows(X)
        return X

    def _validated_array(self, X: Any, *, reset: bool) -> Any:
        if reset and issparse(X) and not self._takes_sparse():
            raise TypeError(
                f"Sparse data was passed for X, but dense data is required by {type(self).__name__}; {dense_form(X)}"
            )
        if not reset and getattr(X, "shape", None) == (0,):  # an empty list or column, whose width nobody knows
            X = np.empty((0, self.n_features_in_))
        try:
            return validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=(np.float64, np.float32),
                order="C",
                ensure_all_finite=False,  # `_validated` checks this in one pass
                ensure_min_samples=2 if reset else 0,
                reset=reset,
            )
        except ValueError:
            if not issparse(X):
                require_numbers(X, "X")
            raise

    def _warn_of_rows(self, X: Any) -> None:
        """Warn of rows from which no useful code can be learned, whatever the method."""
        if X.shape[1] == 1 and isinstance(self.n_bits, int) and self.n_bits > 1:
            what = f"X has one column, from which n_bits={self.n_bits} bits are learned: many will be copies of others"
            warnings.warn(f"{what}; is it the column that you meant?", stacklevel=5)
        if all_equal(X):
            warnings.warn(f"all {X.shape[0]} rows of X are equal, so all codes will be equal too", stacklevel=5)

    def _take_plain_integers(self) -> None:
        """Turn parameters that are NumPy integers into Python's: small ones overflow, ``np.uint8(200) + 100`` is 44."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.integer):
                setattr(self, name, int(value))

    def _validated_tensor(self, X: Any, *, reset: bool) -> Any:
        from hashlearn.linalg.tensors import checked_tensor

        if reset or X.dim() != 2 or X.shape[0]:
            try:
                X = checked_tensor(X, "X", ndim=2, limit=LARGEST_FEATURE)
            except ValueError:
                if X.dim() == 2 and not X.requires_grad:
                    require_finite(X, "X")
                raise
        if reset and len(X) < 2:
            raise ValueError(f"X has n_samples=1 (shape {tuple(X.shape)}), and at least 2 are needed to learn from")
        return validate_data(self, X, skip_check_array=True, reset=reset)

    @property
    def _n_features_out(self) -> int:
        """Number of output columns, which ``get_feature_names_out`` asks for."""
        return int(self.n_bits)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.sparse = self._takes_sparse()
        tags.target_tags.required = self._needs_labels
        return tags

    def _check_n_bits(self, n_samples: int) -> None:
        if n_samples < whole_number(self.n_bits, "n_bits", least=1, most=MAX_BITS):
            raise ValueError(
                f"n_bits={self.n_bits} needs at least as many samples to learn from, got n_samples={n_samples}; "
                "give more samples or fewer bits"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class BitPredictor(BaseHasher):
    """A hasher with a parameter ``hash_function``, which says how bits are predicted."""

    hash_function: Any
    n_jobs: int | None = None

    def _takes_sparse(self) -> bool:
        return accepts_sparse(self.hash_function)


def bits_of(margins: Any) -> Any:
    """1 if the margin is at least 0, else 0, as uint8; a tensor for a tensor."""
    positive_margins = margins >= 0.0
    return positive_margins.byte() if is_tensor(margins) else positive_margins.astype(np.uint8)


def packed_bits_of(margins: Any) -> Any:
    """The bits of `bits_of`, packed into bytes."""
    return bits.pack_bits(bits_of(margins)) if is_tensor(margins) else np.packbits(margins >= 0.0, axis=1)
