"""Labels of samples: classes of any kind, shape (n,), or 0/1 indicators, shape (n, n_labels)."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray, to_numpy

log = logging.getLogger(__name__)


def checked_labels(labels: Any, n: int, name: str = "y", rows: str = "X") -> NDArray[Any]:
    """Labels as an array of n rows, refused if any is missing. A single column counts as classes.

    Objects become numbers or text. Numbers beside text are refused, as in scikit-learn: 1 and "1" would be one class.

    ``name`` and ``rows`` name the labels and the samples in errors.

    >>> checked_labels([["a"], ["b"]], 2)
    array(['a', 'b'], dtype='<U1')
    """
    require_unmasked(labels, name)
    labels = to_numpy(labels)
    array = _of_one_type(labels.toarray() if hasattr(labels, "toarray") else labels, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must be labels (n_samples,) or 0/1 indicators (n_samples, n_labels), got {array.shape}"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold labels")
    if len(array) != n:
        raise ValueError(f"{rows} and {name} have inconsistent numbers of samples: {n} and {len(array)}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} contains NaN or infinity; every sample needs a label")
    if array.dtype.kind in "Mm" and np.isnat(array).any():
        raise ValueError(f"{name} contains missing labels (NaT); every sample needs a label")
    if array.ndim == 2 and not np.isin(array, (0, 1)).all():
        raise ValueError(f"a two-dimensional {name} must hold 0/1 indicators, one column a label")
    return array


def _of_one_type(labels: Any, name: str) -> NDArray[Any]:
    """Labels as an array: objects as numbers if all of them are numbers, else as text.

    >>> _of_one_type([1, "1"], "y")
    Traceback (most recent call last):
        ...
    ValueError: y has text and other labels, such as '1' and 1; give labels of one type
    """
    array = np.asarray(labels)
    if isinstance(labels, list | tuple) and array.dtype.kind == "U":  # NumPy writes numbers beside text as text
        array = np.asarray(labels, dtype=object)
    if array.dtype.kind != "O":
        return array
    values = array.ravel().tolist()
    if any(value is None or value != value for value in values):
        raise ValueError(f"{name} contains missing labels (None or NaN); every sample needs a label")
    examples = {isinstance(value, str): value for value in reversed(values)}
    if len(examples) == 2:
        raise ValueError(
            f"{name} has text and other labels, such as {examples[True]!r} and {examples[False]!r}; "
            "give labels of one type"
        )
    numbers = np.array(values).reshape(array.shape)
    is_numeric = numbers.dtype.kind in "biuf" and all(isinstance(value, int | float | np.number) for value in values)
    return numbers if is_numeric else array.astype(str)


def require_classes(labels: NDArray[Any], name: str = "y") -> None:
    """Refuse labels from which nothing can be learned: a single class, or no label that two rows share."""
    n, problem = len(labels), ""
    if labels.ndim == 2:
        if labels.sum(axis=0, dtype=np.int64).max(initial=0) < 2:
            problem = f"{name} has no label that two rows share"
    elif (n_classes := len(np.unique(labels))) < 2:
        problem = f"{name} holds only one class"
    elif n_classes == n:
        problem = f"{name} has {n} different labels for {n} rows: a class needs two rows"
    elif 2 * n_classes > n:
        words = "%s has %d classes for %d rows: are these class labels? Many classes make a fit slow"
        log.warning(words, name, n_classes, n)
    if problem:
        raise ValueError(f"{problem}. Leave {name} out to learn without labels")


def label_indicators(labels: NDArray[Any]) -> FloatArray:
    """0/1 (n, n_labels): one-hot for classes; indicators unchanged.

    >>> label_indicators(np.array(["b", "a", "b"]))
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    if labels.ndim == 2:
        return labels.astype(np.float64)
    classes, member = np.unique(labels, return_inverse=True)
    return np.eye(len(classes))[member]


def require_unmasked(values: Any, name: str) -> None:
    """Refuse a NumPy masked array with masked entries; they would be read as the values under the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {int(np.sum(np.ma.getmaskarray(values)))} masked entries, which cannot be left out; "
            f"fill them first: {name}.filled(value)"
        )
