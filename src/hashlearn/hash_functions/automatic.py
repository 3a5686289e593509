"""``"auto"``: kernel ridge whose size fits the rows. What it chose is in ``hash_function_`` of the fitted hasher.

With labels it is ``KernelRidge()``. Without labels it has a Gram matrix up to 5,000 rows and 1,000 landmarks beyond.
More than a million rows get `LinearRidge`. Measurements are in docs/quality.md.
"""

from __future__ import annotations

from typing import Any

from hashlearn.core import thresholds
from hashlearn.hash_functions.base import HashFunction
from hashlearn.hash_functions.kernel_ridge import KernelRidge
from hashlearn.hash_functions.linear import LinearRidge

FEW_LANDMARKS = 1_000


def is_automatic(value: Any) -> bool:
    """Whether this parameter leaves the choice to the rule."""
    return isinstance(value, str) and value == "auto"


def automatic(n: int, with_labels: bool) -> HashFunction:
    """The hash function for n rows; ``with_labels`` if their codes come from labels.

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
