"""Rows as people have them: vectors in a column of a frame, in an Arrow array or in a list, as one array.

pandas, Polars and PyArrow are never imported here. An object of theirs is recognized by the module of its type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray, to_numpy
from hashlearn.core.checks import finite_float64
from hashlearn.core.labels import require_unmasked
from hashlearn.core.threads import map_row_blocks

VECTOR_TYPES = ("list", "large_list", "fixed_size_list", "array")  # how the names of types begin, beside "object"


def as_rows(X: Any, name: str = "X") -> Any:
    """A column or list of vectors as an array (n, length); anything else unchanged, a frame of numbers too.

    ``name`` names the rows in errors. An empty column has shape (0,), because nobody knows the length of its vectors.

    >>> as_rows([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).shape
    (2, 2)
    >>> as_rows([[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
        ...
    ValueError: X has 1 number(s) at row 1, and 2 at row 0; all rows must have the same length
    """
    if type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
        return _from_frame(X, name)
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1):
        return _stacked(X, name)
    return X


def float64_rows(X: Any, name: str, *, may_be_empty: bool = False) -> FloatArray:
    """Dense rows of any kind as finite float64 numbers (n, n_features).

    >>> float64_rows([[1, 2], [3, 4]], "queries").dtype
    dtype('float64')
    """
    return finite_float64(to_numpy(as_rows(X, name)), name, ndim=2, may_be_empty=may_be_empty)


def column_names(X: Any) -> NDArray[Any] | None:
    """The names of columns, taken as scikit-learn does: of frames, and only if all of them are text.

    A column of vectors must be an array already, so call `as_rows` first.
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import validate_data

    learner = BaseEstimator()
    validate_data(learner, X, reset=True, skip_check_array=True, ensure_2d=False)
    return getattr(learner, "feature_names_in_", None)


def require_same_columns(names: Any, expected: Any, rows: str, owner: str) -> None:
    """Refuse names of the columns of ``rows`` that are not those of ``owner``, in this order. None: no names.

    >>> require_same_columns(["b", "a"], ["a", "b"], "queries", "X")
    Traceback (most recent call last):
        ...
    ValueError: queries must have the columns of X in the same order, got 'b' as column 0 instead of 'a'
    """
    if names is None or expected is None:
        return
    for place, (here, there) in enumerate(zip(names, expected, strict=False)):
        if here != there:
            raise ValueError(
                f"{rows} must have the columns of {owner} in the same order, got {here!r} as column {place} instead of "
                f"{there!r}"
            )


def require_numbers(X: Any, name: str) -> None:
    """Refuse rows with a column that holds no numbers, and name the column. None counts as NaN.

    >>> require_numbers(np.array([[1.0, "red"], [2.0, "blue"]], object), "X")
    Traceback (most recent call last):
        ...
    ValueError: X has values that are no numbers in column 1, could not convert string to float: 'red'; leave it out
    """
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "OUS":
        return
    labels = getattr(X, "column_names", getattr(X, "columns", None))
    for place, column in enumerate(values.T):
        try:
            column.astype(np.float64)
        except (TypeError, ValueError) as error:
            label = place if labels is None else repr(labels[place])
            raise ValueError(
                f"{name} has values that are no numbers in column {label}, {error}; leave it out"
            ) from None


def require_finite(X: Any, name: str, row_numbers: Any = None) -> None:
    """Refuse NaN and infinity in dense rows, sparse rows or a tensor, and say where the first one is.

    ``row_numbers`` are those that errors name, if they are not 0, 1, …

    >>> require_finite(np.array([[0.0, 1.0], [np.inf, np.nan]]), "X")
    Traceback (most recent call last):
        ...
    ValueError: X contains infinity at row 1, column 0; features must be finite numbers
    """
    entries = to_numpy(X)
    if np.isfinite(entries.data if sp.issparse(entries) else entries).all():
        return
    if sp.issparse(entries):  # only the rows up to the first bad one are needed, and of these one is made dense
        entries = sp.csr_array(entries)
        row = int(np.searchsorted(entries.indptr, np.argmin(np.isfinite(entries.data)), side="right")) - 1
        numbers = entries[[row]].toarray()[0]
    else:
        row = int(np.argmin(np.isfinite(entries).all(axis=1)))
        numbers = entries[row]
    column = int(np.argmin(np.isfinite(numbers)))
    value = numbers[column]
    what = "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
    number = row if row_numbers is None else row_numbers[row]
    raise ValueError(f"{name} contains {what} at row {number}, column {column}; features must be finite numbers")


def all_equal(X: Any) -> bool:
    """Whether all rows are one and the same. Most answers come from the first few rows.

    >>> all_equal(np.ones((3, 2))), all_equal(np.eye(2))
    (True, False)
    """
    if sp.issparse(X):
        return all(np.array_equal(rows.max(axis=0).toarray(), rows.min(axis=0).toarray()) for rows in (X[:8], X))
    return all(bool((rows == rows[0]).all()) for rows in (X[:8], X))


def largest_entry(entries: NDArray[Any]) -> float:
    """The largest magnitude, NaN if there is one; every entry comes from memory once, on all cores."""
    if entries.size == 0:
        return 0.0

    def block(first: int, last: int) -> float:
        part = entries[first:last]
        return float(np.maximum(part.max(), -part.min()))

    return float(np.max(map_row_blocks(block, len(entries), entries.size // len(entries))))


def _from_frame(X: Any, name: str) -> Any:
    """The column of vectors that ``X`` is, or that is its only column; ``X`` itself if it has no such column."""
    if hasattr(X, "collect"):
        raise TypeError(f"{name} is a Polars LazyFrame, whose rows are not there yet; pass {name}.collect()")
    types = _column_types(X)
    vectors = [label for label, kind in types if _holds_vectors(X, label, kind, len(types) == 1)]
    if not vectors:
        return X
    if len(types) > 1:
        others = [repr(label) for label, _ in types if label not in vectors]
        suffix = f", beside {', '.join(others[:3])}{', …' if len(others) > 3 else ''}" if others else ""
        what, choice = f"a column of vectors, {vectors[0]!r}", "pass the vectors alone"
        if len(vectors) > 1:
            what, choice = f"columns of vectors, {' and '.join(map(repr, vectors))}", "pass one of them"
        raise ValueError(f"{name} has {what}{suffix}; {choice}: {name} = {name}[{vectors[0]!r}]")
    values = np.asarray(X if vectors[0] is None else X[vectors[0]])
    return values if values.ndim == 2 else _stacked(values, name)


def _column_types(X: Any) -> list[tuple[Any, str]]:
    """Names of columns and of their types; a column alone has no name. No column is touched."""
    if getattr(X, "ndim", 1) == 2 and hasattr(X, "dtypes") and hasattr(X, "iloc"):  # pandas
        types = X.dtypes.items()
    elif hasattr(X, "schema"):  # Polars, whose schema is a dict, or Arrow
        types = X.schema.items() if hasattr(X.schema, "items") else zip(X.schema.names, X.schema.types, strict=True)
    else:
        types = [(None, X.dtype if hasattr(X, "dtype") else X.type)]
    return [(label, str(kind).lower()) for label, kind in types]


def _holds_vectors(X: Any, label: Any, kind: str, is_only: bool) -> bool:
    """Whether a column, of which objects are looked at, holds vectors of numbers."""
    if not kind.startswith("object"):
        return kind.startswith(VECTOR_TYPES) and "str" not in kind
    column = X if label is None else X[label]
    first = next(
        (value for value in column if not (value is None or (isinstance(value, float) and value != value))), None
    )
    return (_is_vector(first) and np.asarray(first).dtype.kind in "fiub") or (is_only and len(column) == 0)


def _stacked(vectors: Any, name: str) -> Any:
    """A list of vectors as one array; NumPy's own error is replaced by one that names the row."""
    values = vectors.tolist() if isinstance(vectors, np.ndarray) else [to_numpy(vector) for vector in vectors]
    for row, vector in enumerate(values):
        require_unmasked(vector, f"{name}[{row}]")
    try:
        return np.asarray(values)
    except ValueError:
        for row, vector in enumerate(values):
            if not _is_vector(vector):
                raise ValueError(f"{name} has no vector at row {row}, got {vector!r}; leave such rows out") from None
            if len(vector) != len(values[0]):
                raise ValueError(
                    f"{name} has {len(vector)} number(s) at row {row}, and {len(values[0])} at row 0; "
                    "all rows must have the same length"
                ) from None
        raise


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0
