"""CSV: a line of names, then rows. Columns of numbers are features; ids and kept columns stand apart.

Features are read in batches. Ids and kept columns are in memory: they are read once, when the file is opened, because
their kind depends on all of their values. A column of ids is integers if every value is written as one (without a sign
and without leading zeros), and else text. pyarrow finds the types of other columns; dates and
times stay text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.files.columns import Columns, Wanted, choose, few
from hashlearn.files.parquet_files import label_columns, labels_of
from hashlearn.files.rows import RowSource, rebatched, tables_of
from hashlearn.search.arrow import field_type, reading

PURPOSE = "reading CSV files"
WHOLE = r"^(0|[1-9][0-9]{0,18})$"


class CsvRows(RowSource):
    """Rows of the columns of numbers of a CSV file."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.columns = _chosen_columns(wanted, column_names(path), str(path))
        features, beside = self.columns.features, self.columns.beside
        text = require("pyarrow", "parquet", PURPOSE).string()
        with reading(str(path), "CSV"):
            table: Any = _table(path, beside, self.columns.id) if beside else None
            self._beside = table
            first = beside or features[:1]
            parts = table.to_batches() if beside else _reader(path, first, dict.fromkeys(first, text))
            n_rows = sum(len(part) for part in parts)
        super().__init__(path, wanted.part, (n_rows, len(features)), tuple(features))

    def beside(self, size: int) -> Iterator[Any]:
        """The id column and the kept columns, as tables of Arrow with ``size`` rows, the last one shorter."""
        return iter(()) if self._beside is None else tables_of(self._beside.to_batches(), size)

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        return rebatched(self._between(first, last), size)

    def _between(self, first: int, last: int) -> Iterator[NDArray[Any]]:
        """Rows ``first`` to ``last``. The rows before them are read too: lines have no fixed length."""
        arrow, features, at = require("pyarrow", "parquet", PURPOSE), self.columns.features, 0
        try:
            for batch in _reader(self.path, features, dict.fromkeys(features, arrow.float64())):
                low, high = max(0, first - at), min(batch.num_rows, last - at)
                if low < high:
                    yield self._numbers(batch.slice(low, high - low), at + low)
                at += batch.num_rows
        except arrow.ArrowInvalid as error:
            raise ValueError(
                f"{self.name}: cannot be read as CSV: {' '.join(str(error).split())}; features are numbers: name the "
                f"columns to take, as {self.path}::a,b,c"
            ) from None

    def _numbers(self, batch: Any, first: int) -> NDArray[Any]:
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if values.null_count:
                row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
                raise ValueError(f"{self.name}: has no value at row {row}, column {name!r}; every feature is needed")
        return np.column_stack([values.to_numpy(zero_copy_only=False) for values in batch.columns])


def column_names(path: Path) -> list[str]:
    """The columns of a CSV file, from its first line."""
    with reading(str(path), "CSV"):
        names = list(_reader(path, [], {}).schema.names)
    if all(map(_is_number, names)):
        raise ValueError(f"{path}: its first line must name the columns, got numbers: {few(names)}")
    return names


def csv_labels(path: Path, part: str | None) -> NDArray[Any]:
    """One column of labels, or several named ones as 0/1 indicators."""
    wanted = label_columns(part, column_names(path), str(path))
    with reading(str(path), "CSV"):
        return labels_of(_table(path, wanted, None), wanted, str(path))


def _chosen_columns(wanted: Wanted, names: list[str], file: str) -> Columns:
    found = choose(wanted, names, file, can_be_id=lambda name: True, default=lambda free: free)
    if not found.features:
        raise ValueError(f"{file}: has no columns of features beside {few(found.beside)}")
    return found


def _options(columns: list[str], types: dict[str, Any]) -> dict[str, Any]:
    """How pyarrow reads these columns; it finds the types that are not given. With one thread, errors name the line."""
    csv = require("pyarrow.csv", "parquet", PURPOSE)
    return {
        "read_options": csv.ReadOptions(use_threads=False),
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=types, include_columns=columns, null_values=[""], strings_can_be_null=True
        ),
    }


def _reader(path: Path, columns: list[str], types: dict[str, Any]) -> Any:
    """Batches of these columns; of all columns, if there are none."""
    return require("pyarrow.csv", "parquet", PURPOSE).open_csv(path, **_options(columns, types))


def _table(path: Path, columns: list[str], id_column: str | None) -> Any:
    """These columns in memory."""
    read, text = require("pyarrow.csv", "parquet", PURPOSE).read_csv, require("pyarrow", "parquet", PURPOSE).string()
    types = {} if id_column is None else {id_column: text}
    table = read(path, **_options(columns, types))
    if others := [field.name for field in table.schema if field_type(field.type) is None]:
        table = read(path, **_options(columns, types | dict.fromkeys(others, text)))
    if id_column is not None:
        place = table.schema.names.index(id_column)
        table = table.set_column(place, id_column, _typed_ids(table[id_column]))
    return table


def _typed_ids(column: Any) -> Any:
    """Integers or text."""
    arrow = require("pyarrow", "parquet", PURPOSE)
    try:
        return column.cast(arrow.int64()) if _all_match(column, WHOLE) else column
    except arrow.ArrowInvalid:  # an integer that is too large
        return column


def _all_match(column: Any, pattern: str) -> bool:
    """Whether every value that is there matches, and there is one."""
    compute = require("pyarrow.compute", "parquet", PURPOSE)
    return compute.all(compute.match_substring_regex(column, pattern)).as_py() is True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
