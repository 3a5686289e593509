"""Rows as people have them: every column of vectors is the same array, and what is wrong is named by its row."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from hashlearn.core.rows import all_equal, as_rows, require_finite

X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
VECTORS, LISTS = list(X), X.tolist()
FIXED = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
SINGLES = pa.list_(pa.float32())


def polars() -> Any:
    return pytest.importorskip("polars", reason="polars is not installed")


COLUMNS: dict[str, Callable[[], Any]] = {
    "list of arrays": lambda: VECTORS,
    "list of lists": lambda: LISTS,
    "tuple": lambda: tuple(VECTORS),
    "object array": lambda: pd.Series(VECTORS).to_numpy(),
    "pandas Series": lambda: pd.Series(VECTORS, index=range(100, 130)),
    "pandas Series of lists": lambda: pd.Series(LISTS),
    "pandas Series of Arrow": lambda: pd.Series(VECTORS, dtype=pd.ArrowDtype(SINGLES)),
    "pandas frame": lambda: pd.DataFrame({"embedding": VECTORS}),
    "Polars list": lambda: polars().Series("embedding", LISTS, dtype=polars().List(polars().Float32)),
    "Polars array": lambda: polars().Series("embedding", LISTS, dtype=polars().Array(polars().Float32, 4)),
    "Polars frame": lambda: polars().DataFrame(
        {"embedding": polars().Series(LISTS, dtype=polars().List(polars().Float32))}
    ),
    "Arrow list": lambda: pa.array(LISTS, SINGLES),
    "Arrow large list": lambda: pa.array(LISTS, pa.large_list(pa.float32())),
    "Arrow fixed": lambda: FIXED,
    "Arrow slice": lambda: pa.concat_arrays([FIXED[:7], FIXED])[7:],
    "Arrow list slice": lambda: pa.array([[9.0], *LISTS], SINGLES)[1:],
    "Arrow chunks": lambda: pa.chunked_array([FIXED[:7], FIXED[7:]]),
    "Arrow table": lambda: pa.table({"embedding": FIXED}),
    "Arrow batch": lambda: pa.RecordBatch.from_arrays([FIXED], ["embedding"]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_column_of_vectors_is_the_same_array(kind: str) -> None:
    rows = as_rows(COLUMNS[kind]())
    assert type(rows) is np.ndarray
    np.testing.assert_array_equal(rows, X)
    assert rows.dtype == (np.float64 if kind in ("list of lists", "pandas Series of lists") else np.float32)


def test_a_list_of_tensors_is_an_array() -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(as_rows(list(torch.as_tensor(X))), X)


FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "Polars": lambda columns: polars().DataFrame(columns),
    "Arrow": pa.table,
}


@pytest.mark.parametrize("kind", [*FRAMES, "array", "sparse"])
def test_numbers_stay_as_they_are(kind: str) -> None:
    others: dict[str, Any] = {"array": X, "sparse": sp.csr_array(X)}
    frame = others[kind] if kind in others else FRAMES[kind]({"a": X[:, 0], "b": X[:, 1]})
    assert as_rows(frame) is frame


@pytest.mark.parametrize("kind", FRAMES)
def test_vectors_beside_other_columns_are_named(kind: str) -> None:
    frame = FRAMES[kind](
        {"id": [1, 2], "text": ["a", "b"], "tags": [["x"], ["y"]], "label": [0, 1], "embedding": LISTS[:2]}
    )
    with pytest.raises(
        ValueError, match=r"X has a column of vectors, 'embedding', beside 'id', 'text', 'tags', …; "
    ) as e:
        as_rows(frame)
    assert str(e.value).endswith("pass the vectors alone: X = X['embedding']")
    np.testing.assert_array_equal(as_rows(frame["embedding"]), LISTS[:2])
    two = FRAMES[kind]({"title": LISTS[:2], "body": LISTS[:2]})
    with pytest.raises(ValueError, match="columns of vectors, 'title' and 'body'; pass one of them"):
        as_rows(two)


KINDS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "pandas": pd.Series,
    "Polars": lambda values: polars().Series(values),
    "Arrow": pa.array,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ragged_and_missing_vectors_are_named_by_their_row(kind: str) -> None:
    made = KINDS[kind]
    with pytest.raises(
        ValueError, match=r"rows has 1 number\(s\) at row 2, and 2 at row 0; all rows must have the same"
    ):
        as_rows(made([[1.0, 2.0], [3.0, 4.0], [5.0]]), "rows")
    with pytest.raises(ValueError, match="X has no vector at row 1, got None; leave such rows out"):
        as_rows(made([[1.0, 2.0], None]))


def test_a_missing_value_of_pandas_is_no_vector() -> None:
    with pytest.raises(ValueError, match="X has no vector at row 0, got nan"):
        as_rows(pd.Series([np.nan, *VECTORS]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_number_is_nan(kind: str) -> None:
    rows = as_rows(KINDS[kind]([[1.0, 2.0], [3.0, None]]))
    with pytest.raises(ValueError, match="X contains NaN at row 1, column 1; features must be finite numbers"):
        require_finite(np.asarray(rows, dtype=float), "X")


def test_rows_of_a_lazy_frame_are_asked_for() -> None:
    with pytest.raises(TypeError, match=r"LazyFrame.*pass X\.collect\(\)"):
        as_rows(polars().DataFrame(X).lazy())


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
def test_the_first_bad_entry_is_named(kind: Any, value: float, word: str) -> None:
    changed = X.copy()
    changed[7, 3] = changed[9, 0] = value
    with pytest.raises(ValueError, match=f"queries contains {word} at row 7, column 3; "):
        require_finite(kind(changed), "queries")
    require_finite(kind(X), "queries")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_equal_rows(kind: Any) -> None:
    same = np.tile([0.0, 2.0], (20, 1))
    assert all_equal(kind(same))
    same[19, 0] = 1.0
    assert not all_equal(kind(same))


def test_nothing_is_imported_to_look_at_rows() -> None:
    code = (
        "import sys, numpy as np; from hashlearn.core.rows import as_rows; as_rows([np.ones(2)]); as_rows(np.eye(2)); "
        "print({'pandas', 'polars', 'pyarrow', 'torch'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "set()\n"


def test_a_frame_of_numbers_is_not_cut_into_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd.DataFrame, "__getitem__", None)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1, 2], "c": [True, False], "d": pd.Categorical(["x", "y"])})
    assert as_rows(frame) is frame
    assert as_rows(frame.head(0)).shape == (0, 4)


@pytest.mark.parametrize("kind", [list, tuple])
def test_masks_inside_of_a_list_are_refused(kind: type) -> None:
    vectors = kind([np.ma.masked_array(row, mask=number == 2) for number, row in enumerate(X)])
    with pytest.raises(ValueError, match=r"queries\[2\] has 4 masked entries"):
        as_rows(vectors, "queries")
    assert np.array_equal(as_rows(vectors[:2]), X[:2])
