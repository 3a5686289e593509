"""Step two of two-step hashing: from features to the margins of all bits at once.

To add a hash function, write its file and one line in `HASH_FUNCTIONS`.
"""

from __future__ import annotations

from typing import Any

from hashlearn.core import thresholds
from hashlearn.core.names import is_automatic, require_choice
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits, every_bit
from hashlearn.hash_functions.fitted import FittedHashFunctions
from hashlearn.hash_functions.hash_function import EstimatorMargins, HashFunction, SklearnHashFunctions
from hashlearn.hash_functions.kernel_methods import RBFSVM, KernelRidge
from hashlearn.hash_functions.kernels import KernelExpansion
from hashlearn.hash_functions.linear import LinearMargins, LinearRidge, LinearSVM
from hashlearn.hash_functions.network import NetworkMargins
from hashlearn.hash_functions.trees import ForestMargins, Trees

__all__ = [
    "HASH_FUNCTIONS",
    "RBFSVM",
    "STORABLE",
    "DistinctBits",
    "EstimatorMargins",
    "FittedHashFunctions",
    "ForestMargins",
    "HashFunction",
    "KernelExpansion",
    "KernelRidge",
    "LinearMargins",
    "LinearRidge",
    "LinearSVM",
    "NetworkMargins",
    "SklearnHashFunctions",
    "Trees",
    "accepts_sparse",
    "as_hash_function",
    "automatic",
    "distinct_bits",
    "every_bit",
    "is_automatic",
]

HASH_FUNCTIONS: dict[str, type[HashFunction]] = {
    "rbf_svm": RBFSVM,
    "linear_svm": LinearSVM,
    "trees": Trees,
    "kernel_ridge": KernelRidge,
    "linear_ridge": LinearRidge,
}
__all__ += sorted({kind.__name__ for kind in HASH_FUNCTIONS.values()} - {*__all__})  # also those not in the list

# Fitted functions that can be rebuilt from plain arrays; `hashlearn.persistence` adds those of single hashers.
STORABLE: dict[str, type[FittedHashFunctions]] = {
    kind.kind: kind for kind in (KernelExpansion, LinearMargins, ForestMargins, NetworkMargins)
}

FEW_LANDMARKS = 1_000


def as_hash_function(value: Any) -> HashFunction:
    """The default specification for a name; a specification unchanged; a scikit-learn classifier wrapped.

    >>> as_hash_function("linear_svm")
    LinearSVM(C=1.0, max_iter=10000)
    """
    if isinstance(value, str):
        require_choice(value, "hash_function", HASH_FUNCTIONS)
        return HASH_FUNCTIONS[value]()
    if not isinstance(value, type):
        if hasattr(value, "fit") and hasattr(value, "predict"):
            return SklearnHashFunctions(value)
        if isinstance(value, HashFunction):
            return value
    raise TypeError(
        f"hash_function must be a name ({', '.join(HASH_FUNCTIONS)}), a specification such as RBFSVM(C=10), "
        f"or a scikit-learn classifier object, got {value!r}"
    )


def accepts_sparse(value: Any) -> bool:
    """Whether this hash function learns from sparse rows; "auto" does.

    >>> accepts_sparse("kernel_ridge"), accepts_sparse("trees")
    (True, False)
    """
    return is_automatic(value) or as_hash_function(value).accepts_sparse


def automatic(n: int, with_labels: bool) -> HashFunction:
    """What ``"auto"`` is for n rows: kernel ridge whose size fits them; measurements are in docs/quality.md.

    If codes come from labels it is ``KernelRidge()``. Else it has a Gram matrix up to 5,000 rows and 1,000 landmarks
    beyond. More than a million rows get `LinearRidge`.

    >>> automatic(10_000, with_labels=True) == KernelRidge(), automatic(2_000_000, with_labels=True) == LinearRidge()
    (True, True)
    >>> automatic(10_000, with_labels=False)
    KernelRidge(alpha='loo', gamma='neighbors', max_gram_rows=5000, n_landmarks=1000)
    """
    if n > thresholds.LARGEST_KERNEL_ROWS:
        return LinearRidge()
    if with_labels:
        return KernelRidge()
    return KernelRidge(max_gram_rows=thresholds.UNLABELED_GRAM_ROWS, n_landmarks=FEW_LANDMARKS)
