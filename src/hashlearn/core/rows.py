"""Rows as people have them: vectors in a column of a frame, in an Arrow array or in a list, as one array.

pandas, Polars and PyArrow are never imported here. An object of theirs is recognized by the module of its type. Arrow
vectors in one chunk without missing values are not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray, is_tensor, to_numpy
from hashlearn.core.checks import finite_float64
from hashlearn.core.labels import require_unmasked
from hashlearn.core.packages import require

ARROW_LISTS = ("list", "large_list", "fixed_size_list")


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
    package = type(X).__module__.partition(".")[0]
    if package == "pandas":
        return _from_pandas(X, name)
    if package == "polars":
        return _from_polars(X, name)
    if package == "pyarrow":
        return _from_arrow(X, name)
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
    """Refuse rows with a column that holds no numbers, and name the column.

    >>> require_numbers(np.array([[1.0, "red"], [2.0, "blue"]], object), "X")
    Traceback (most recent call last):
        ...
    ValueError: X has text or other values that are no numbers in column 1, 'red' for example; leave the column out
    """
    labels = getattr(X, "column_names", getattr(X, "columns", None))
    values = np.asarray(X)
    if values.ndim != 2 or values.dtype.kind not in "OUS":
        return
    for place in range(values.shape[1]):
        for value in values[:, place]:
            try:
                float(value)
            except (TypeError, ValueError):
                if value is None:  # NumPy makes it NaN, which is refused with its place
                    continue
                column = place if labels is None else repr(labels[place])
                raise ValueError(
                    f"{name} has text or other values that are no numbers in column {column}, {value!r} for example; "
                    "leave the column out"
                ) from None


def require_finite(X: Any, name: str) -> None:
    """Refuse NaN and infinity in dense rows, sparse rows or a tensor, and say where the first one is.

    >>> require_finite(np.array([[0.0, 1.0], [np.inf, np.nan]]), "X")
    Traceback (most recent call last):
        ...
    ValueError: X contains NaN at row 1, column 1; features must be finite numbers
    """
    entries = to_numpy(X)
    entries = entries.tocoo() if sp.issparse(entries) else entries
    values = entries.data if sp.issparse(entries) else entries
    for is_wrong in (np.isnan, np.isinf):
        wrong = is_wrong(values)
        if wrong.any():
            place = np.argwhere(wrong)[0]
            if sp.issparse(entries):
                rows, columns = entries.row[wrong], entries.col[wrong]
                first = np.lexsort((columns, rows))[0]
                place, value = (rows[first], columns[first]), values[wrong][first]
            else:
                value = values[tuple(place)]
            what = "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
            raise ValueError(
                f"{name} contains {what} at row {place[0]}, column {place[1]}; features must be finite numbers"
            )


def all_equal(X: Any) -> bool:
    """Whether all rows are one and the same. Most answers come from the first few rows.

    >>> all_equal(np.ones((3, 2))), all_equal(np.eye(2))
    (True, False)
    """
    for some in (X[:8], X):
        if sp.issparse(X):
            if not np.array_equal(some.max(axis=0).toarray(), some.min(axis=0).toarray()):
                return False
        elif not bool((some == some[0]).all()):
            return False
    return True


def _from_pandas(X: Any, name: str) -> Any:
    if X.ndim == 1:
        return _pandas_vectors(X, name) if _has_pandas_vectors(X) or (len(X) == 0 and X.dtype == object) else X
    if not any(map(_can_hold_vectors, set(X.dtypes))):  # a frame of numbers, perhaps of thousands of columns
        return X
    columns = [X.iloc[:, place] for place in range(X.shape[1])]
    if X.shape == (0, 1) and columns[0].dtype == object:
        return np.empty(0)
    found = [column for column in columns if _has_pandas_vectors(column)]
    return _pandas_vectors(_only(found, columns, name), name) if found else X


def _has_pandas_vectors(column: Any) -> bool:
    if column.dtype == object:
        known = (value for value in column if not (value is None or (isinstance(value, float) and value != value)))
        first = next(known, None)
        return _is_vector(first) and np.asarray(first).dtype.kind in "fiub"
    return _can_hold_vectors(column.dtype)


def _can_hold_vectors(dtype: Any) -> bool:
    return str(dtype).startswith(("object", *ARROW_LISTS))  # lists of an ArrowDtype


def _pandas_vectors(column: Any, name: str) -> Any:
    if column.dtype == object:
        return _stacked(column.tolist(), name)
    return _from_arrow(_pyarrow().array(column), name)


def _from_polars(X: Any, name: str) -> Any:
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{name} is a Polars LazyFrame, whose rows are not there yet; pass {name}.collect()")
    if not hasattr(X, "get_columns"):
        return _polars_vectors(X, name) if _has_polars_vectors(X) else X
    columns = X.get_columns()
    found = [column for column in columns if _has_polars_vectors(column)]
    return _polars_vectors(_only(found, columns, name), name) if found else X


def _has_polars_vectors(column: Any) -> bool:
    inner = getattr(column.dtype, "inner", None)  # of a List or an Array
    return inner is not None and inner.is_numeric()


def _polars_vectors(column: Any, name: str) -> Any:
    if column.null_count():
        _refuse_missing(int(np.argmax(column.is_null().to_numpy())), name)
    if hasattr(column.dtype, "size"):  # an Array: every vector has this length
        return column.explode().to_numpy().reshape(len(column), column.dtype.size)
    length = _common_length(column.list.len().to_numpy(), name)
    return column.explode().to_numpy().reshape(len(column), length) if length else np.empty(0)


def _from_arrow(X: Any, name: str) -> Any:
    if hasattr(X, "column_names"):  # a Table or a RecordBatch
        columns = [_Named(label, X.column(place)) for place, label in enumerate(X.column_names)]
        found = [column for column in columns if _has_arrow_vectors(column.values)]
        return _arrow_vectors(_only(found, columns, name).values, name) if found else X
    return _arrow_vectors(X, name) if hasattr(X, "type") and _has_arrow_vectors(X) else X


class _Named:
    """An Arrow column, which does not know its name."""

    def __init__(self, name: str, values: Any) -> None:
        self.name, self.values = name, values


def _has_arrow_vectors(column: Any) -> bool:
    types, kind = _pyarrow().types, column.type
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(is_list and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type)))


def _arrow_vectors(column: Any, name: str) -> Any:
    if column.null_count:
        _refuse_missing(int(np.argmax(np.asarray(column.is_null()))), name)
    if hasattr(column.type, "list_size"):
        length = column.type.list_size
    else:
        length = _common_length(np.asarray(_pyarrow("pyarrow.compute").list_value_length(column)), name)
    chunks = getattr(column, "chunks", [column])
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in chunks]
    values = parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0)])
    return values.reshape(len(column), length) if length else np.empty(0)


def _pyarrow(module: str = "pyarrow") -> Any:
    return require(module, "parquet", "reading Arrow columns")  # whoever has such a column has the package


def _only(found: Sequence[Any], columns: Sequence[Any], name: str) -> Any:
    """The one column of a frame, if it is the only one; else an error that says how to choose one."""
    if len(columns) == 1:
        return columns[0]
    vectors = [column.name for column in found]
    others = [repr(column.name) for column in columns if column.name not in vectors]
    what = f"a column of vectors, {vectors[0]!r}" if len(vectors) == 1 else f"columns of vectors, {_listed(vectors)}"
    beside = f", beside {', '.join(others[:3])}{', …' if len(others) > 3 else ''}" if others else ""
    choice = "pass the vectors alone" if len(vectors) == 1 else "pass one of them"
    raise ValueError(f"{name} has {what}{beside}; {choice}: {name} = {name}[{vectors[0]!r}]")


def _listed(names: Iterable[Any]) -> str:
    return " and ".join(map(repr, names))


def _common_length(lengths: NDArray[Any], name: str) -> int:
    """The length of all vectors; 0 if there are none."""
    if len(lengths) == 0:
        return 0
    lengths = lengths.astype(np.int64)
    wrong = lengths != lengths[0]
    if wrong.any():
        row = int(np.argmax(wrong))
        _refuse_ragged(row, int(lengths[row]), int(lengths[0]), name)
    return int(lengths[0])


def _stacked(vectors: Any, name: str) -> Any:
    """A list of vectors as one array; NumPy's own error is replaced by one that names the row."""
    if len(vectors) and is_tensor(vectors[0]):
        vectors = [to_numpy(vector) for vector in vectors]
    values = vectors.tolist() if isinstance(vectors, np.ndarray) else vectors
    for row, vector in enumerate(values):
        require_unmasked(vector, f"{name}[{row}]")
    try:
        return np.asarray(values)
    except ValueError:
        length = None
        for row, vector in enumerate(values):
            if not _is_vector(vector):
                _refuse_missing(row, name, vector)
            length = len(vector) if length is None else length
            if len(vector) != length:
                _refuse_ragged(row, len(vector), length, name)
        raise


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0


def _refuse_missing(row: int, name: str, found: Any = None) -> NoReturn:
    raise ValueError(f"{name} has no vector at row {row}, got {found!r}; leave such rows out")


def _refuse_ragged(row: int, length: int, first: int, name: str) -> NoReturn:
    raise ValueError(
        f"{name} has {length} number(s) at row {row}, and {first} at row 0; all rows must have the same length"
    )
