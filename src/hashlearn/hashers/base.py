"""What every hasher shares: margins → bits → packed bytes, scikit-learn's contract, and a score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from hashlearn import bits, metrics
from hashlearn.bqp.rows import checked_matrix
from hashlearn.core.arrays import is_tensor
from hashlearn.hash_functions import FittedHashFunctions
from hashlearn.hash_functions.stored import largest_entry
from hashlearn.inference.objective import objective
from hashlearn.targets import Distance

MAX_BITS = 4096
LARGEST_ENTRY = 1e18  # squares, and sums of them, stay finite in float32 too


class BaseHasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A hasher fits on X (and y, if it is supervised) and turns anything new into n_bits bits.

    A subclass provides ``fit`` and ``_margins``; margins of at least 0 become 1-bits.
    """

    n_bits: int
    _takes_tensors: bool = False  # whether a PyTorch tensor stays one, on its device
    _learns_from_labels: bool = True  # False: fit ignores y

    @abstractmethod
    def _margins(self, X: Any) -> NDArray[Any]:
        """Real margins (n, n_bits) for validated X."""

    def _row_functions(self) -> Any:
        """The hash functions, where they alone make margins of the rows as they are; they then look at the rows too."""
        return None

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Margins, shape (n_samples, n_bits): the bit is 1 where the margin is at least 0, surer the farther from 0."""
        return self._evaluated(X, lambda margins: margins)

    def transform(self, X: Any) -> NDArray[np.uint8]:
        """Bits 0/1, shape (n_samples, n_bits)."""
        return self._evaluated(X, bits_of)

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes, shape (n_samples, ⌈n_bits/8⌉): big-endian bit order, pad bits zero."""
        return self._evaluated(X, packed_bits_of)

    def score(self, X: Any, y: Any = None) -> float:
        """How good the codes of X are, the higher the better, for model selection.

        With labels: mean average precision of every row of X as a query against all of X (itself included). Without:
        minus the mean squared error between code inner products and cosines of the centred rows, eq. (3).
        """
        if y is not None:
            packed = self.encode(X)
            return float(metrics.mean_average_precision(packed, packed, y, y))
        signs = bits.bits_to_signs(self.transform(X)).astype(np.float64)
        return -objective(Distance().build(self._validated(X, reset=False), None, np.random.default_rng(0)), signs)

    def save(self, path: str | PathLike[str], *, codes: bool = True, notes: str = "") -> None:
        """Write this fitted hasher to one file, which `hashlearn.load` reads; see `hashlearn.persistence.save`."""
        import_module("hashlearn.persistence").save(self, path, codes=codes, notes=notes)

    def _evaluated(self, X: Any, finish: Callable[[Any], Any]) -> Any:
        """``finish`` of the margins; dense rows are looked at panel by panel, so that memory is read once for both."""
        check_is_fitted(self)
        functions = self._row_functions()
        if is_tensor(X) or not isinstance(functions, FittedHashFunctions):
            return finish(self._margins(self._validated(X, reset=False)))
        X = self._validated(X, reset=False, entries=False)
        if hasattr(X, "toarray"):
            self._require_usable_entries(X)
            return functions.evaluate(X, finish)

        def look_at(panel: NDArray[Any]) -> None:
            if not largest_entry(panel) <= LARGEST_ENTRY:
                self._require_usable_entries(X)  # all of them, so that the error does not depend on panels

        return functions.evaluate(X, finish, look_at)

    def _validated(self, X: Any, *, reset: bool, accepts_sparse: bool = True, entries: bool = True) -> Any:
        """X as finite float32 or float64 rows, C-contiguous or CSR; two rows at least to learn from.

        Not ``entries``: whoever calls sees to it that the entries are looked at.
        """
        require_unmasked(X, "X")
        if reset:
            self._take_plain_integers()
        if is_tensor(X) and self._takes_tensors:
            return self._validated_tensor(X, reset=reset)
        X = validate_data(
            self,
            X,
            accept_sparse="csr" if accepts_sparse else False,
            dtype=(np.float64, np.float32),
            order="C",
            ensure_all_finite=False,  # `_require_usable_entries` sees to it, in one pass
            ensure_min_samples=2 if reset else 1,
            reset=reset,
        )
        if entries:
            self._require_usable_entries(X)
        if reset:
            self.n_samples_fit_ = int(X.shape[0])
        return X

    def _take_plain_integers(self) -> None:
        """Make Python integers of parameters that are NumPy's: small ones overflow, ``np.uint8(200) + 100`` is 44."""
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, np.integer):
                setattr(self, name, int(value))

    def _require_usable_entries(self, X: Any) -> None:
        largest = largest_entry(X.data if hasattr(X, "toarray") else X)
        if not largest < np.inf:
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        if largest > LARGEST_ENTRY:
            raise ValueError(
                f"X has an entry of size {largest:.3g}, whose square overflows; scale it below {LARGEST_ENTRY:.0e}"
            )

    def _validated_tensor(self, X: Any, *, reset: bool) -> Any:
        X = checked_matrix(X, "X")
        n, n_features = X.shape
        if reset:
            if n < 2:
                raise ValueError(f"X has n_samples=1 (shape {tuple(X.shape)}), and at least 2 are needed to learn from")
            self.n_features_in_, self.n_samples_fit_ = int(n_features), int(n)
            self.__dict__.pop("feature_names_in_", None)
        elif n_features != self.n_features_in_:
            name = type(self).__name__
            raise ValueError(
                f"X has {n_features} features, but {name} is expecting {self.n_features_in_} features as input"
            )
        return X

    @property
    def _n_features_out(self) -> int:
        """For ``get_feature_names_out``."""
        return int(self.n_bits)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _check_n_bits(self, n_samples: int) -> None:
        if isinstance(self.n_bits, bool) or not isinstance(self.n_bits, int | np.integer) or self.n_bits < 1:
            raise ValueError(f"n_bits must be a positive integer, got {self.n_bits!r}")
        if self.n_bits > MAX_BITS:
            raise ValueError(f"n_bits must be at most {MAX_BITS}, got {self.n_bits}; codes this long save nothing")
        if n_samples < self.n_bits:
            raise ValueError(
                f"n_bits={self.n_bits} needs at least as many samples to learn from, got n_samples={n_samples}; "
                "give more samples or fewer bits"
            )


def require_unmasked(values: Any, name: str) -> None:
    """Refuse a NumPy masked array with masked entries: they would be taken as the values under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {np.ma.count_masked(values)} masked entries, which cannot be left out; "
            f"fill them first: {name}.filled(value)"
        )


def bits_of(margins: Any) -> Any:
    """1 where the margin is at least 0, as uint8; of a tensor a tensor."""
    if is_tensor(margins):
        return (margins >= 0.0).byte()
    return (margins >= 0.0).astype(np.uint8)


def packed_bits_of(margins: Any) -> Any:
    """`bits_of`, packed."""
    if is_tensor(margins):
        return bits.pack_bits(bits_of(margins))
    return np.packbits(margins >= 0.0, axis=1)
