"""CSV: a line of names, then rows. Columns of numbers are features; ids and kept columns stand apart.

Features are read in batches. Ids and kept columns are in memory: they are read once, when the file is opened, because
their kind depends on all of their values. A column of ids is integers if every value is written as one (without a sign
and without leading zeros), UUIDs if every value is one in lower case with hyphens, and else text.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.streams.columns import Columns, Wanted, choose, few, tables_of
from hashlearn.streams.parquet_files import damage_named, label_columns, labels_of
from hashlearn.streams.rows import RowSource, rebatched

PURPOSE = "reading CSV files"
WHOLE = r"^(0|[1-9][0-9]{0,18})$"
SIGNED = r"^(0|-?[1-9][0-9]{0,18})$"
UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
TRUTH = r"^(true|false)$"


class CsvRows(RowSource):
    """Rows of the columns of numbers of a CSV file."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        schema = _first_schema(path)
        self.columns = _chosen_columns(wanted, schema.names, str(path))
        features, beside = self.columns.features, self.columns.beside
        with damage_named(str(path), "CSV"):
            table = _typed(_text_table(path, beside), self.columns) if beside else None
            n_rows = sum(len(part) for part in _texts(path, features[:1])) if table is None else table.num_rows
        self._beside: Any = table
        super().__init__(path, wanted.part, (n_rows, len(features)), tuple(features))
        if any(schema.field(name).type == require("pyarrow", "parquet", PURPOSE).string() for name in features):
            self._refuse_bad_cell()

    def beside(self, size: int) -> Iterator[Any]:
        """The id column and the kept columns, as tables of Arrow with ``size`` rows, the last one shorter."""
        return iter(()) if self._beside is None else tables_of(self._beside.to_batches(), size)

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        return rebatched(self._between(first, last), size)

    def _between(self, first: int, last: int) -> Iterator[NDArray[Any]]:
        """Rows ``first`` to ``last``. The rows before them are read too: lines have no fixed length."""
        arrow, at = require("pyarrow", "parquet", PURPOSE), 0
        try:
            for batch in _reader(self.path, self.columns.features, arrow.float64()):
                low, high = max(0, first - at), min(batch.num_rows, last - at)
                if low < high:
                    yield self._numbers(batch.slice(low, high - low), at + low)
                at += batch.num_rows
        except arrow.ArrowInvalid as error:
            self._refuse_bad_cell()
            raise ValueError(f"{self.name}: cannot be read as CSV: {' '.join(str(error).split())}") from None

    def _numbers(self, batch: Any, first: int) -> NDArray[Any]:
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            if values.null_count:
                row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
                raise ValueError(f"{self.name}: has no value at row {row}, column {name!r}; every feature is needed")
        return np.column_stack([values.to_numpy(zero_copy_only=False) for values in batch.columns])

    def _refuse_bad_cell(self) -> None:
        """Name the first cell that is not a number, if there is one."""
        row = 0
        for batch in _texts(self.path, self.columns.features):
            bad = [(place, name) for name in batch.schema.names if (place := _first_bad(batch[name])) is not None]
            if bad:
                place, name = min(bad, key=lambda found: found[0])
                text = batch[name][place].as_py()
                raise ValueError(
                    f"{self.name}: holds {text!r} at row {row + place}, column {name!r}; features are numbers: name "
                    f"the columns to take, as {self.path}::a,b,c"
                )
            row += batch.num_rows


def column_names(path: Path) -> list[str]:
    """The columns of a CSV file, from its first line."""
    return list(_first_schema(path).names)


def _first_schema(path: Path) -> Any:
    """The columns, with the types that their first values have."""
    csv = require("pyarrow.csv", "parquet", PURPOSE)
    with damage_named(str(path), "CSV"):
        schema = csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True)).schema
    if all(map(_is_number, schema.names)):
        raise ValueError(f"{path}: its first line must name the columns, got numbers: {few(schema.names)}")
    return schema


def csv_labels(path: Path, part: str | None) -> NDArray[Any]:
    """One column of labels, or several named ones as 0/1 indicators."""
    wanted = label_columns(part, column_names(path), str(path))
    with damage_named(str(path), "CSV"):
        return labels_of(_typed(_text_table(path, wanted), Columns([], None, tuple(wanted))), wanted, str(path))


def _chosen_columns(wanted: Wanted, names: list[str], file: str) -> Columns:
    found = choose(wanted, names, file, can_be_id=lambda name: True, default=lambda free: free)
    if not found.features:
        raise ValueError(f"{file}: has no columns of features beside {few(found.beside)}")
    return found


def _reader(path: Path, columns: list[str], kind: Any) -> Any:
    """Batches of these columns, all of one type."""
    csv = require("pyarrow.csv", "parquet", PURPOSE)
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(columns, kind),
        include_columns=columns,
        null_values=[""],
        strings_can_be_null=True,
    )
    return csv.open_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=convert)


def _texts(path: Path, columns: list[str]) -> Any:
    return _reader(path, columns, require("pyarrow", "parquet", PURPOSE).string())


def _text_table(path: Path, columns: list[str]) -> Any:
    return _texts(path, columns).read_all()


def _typed(table: Any, columns: Columns) -> Any:
    """The table with each column as what all its values fit: `_typed_ids` or `_typed_values`."""
    for place, name in enumerate(table.schema.names):
        kind = _typed_ids if name == columns.id else _typed_values
        table = table.set_column(place, name, kind(table[name]))
    return table


def _typed_ids(column: Any) -> Any:
    """Integers, UUIDs or text."""
    arrow = require("pyarrow", "parquet", PURPOSE)
    if _all_match(column, UUID):
        storage = [None if text is None else uuid.UUID(text).bytes for text in column.to_pylist()]
        return arrow.ExtensionArray.from_storage(arrow.uuid(), arrow.array(storage, arrow.binary(16)))
    whole = _cast(column, arrow.int64()) if _all_match(column, WHOLE) else None
    return column if whole is None else whole


def _typed_values(column: Any) -> Any:
    """Integers, truth values, numbers or text."""
    arrow = require("pyarrow", "parquet", PURPOSE)
    kinds = [(SIGNED, arrow.int64()), (TRUTH, arrow.bool_()), (".", arrow.float64())]
    typed = (_cast(column, kind) for pattern, kind in kinds if _all_match(column, pattern))
    return next((found for found in typed if found is not None), column)


def _cast(column: Any, kind: Any) -> Any:
    """The column in another type, or None if a value does not fit."""
    try:
        return column.cast(kind)
    except require("pyarrow", "parquet", PURPOSE).ArrowInvalid:
        return None


def _all_match(column: Any, pattern: str) -> bool:
    """Whether every value that is there matches, and there is one."""
    compute = require("pyarrow.compute", "parquet", PURPOSE)
    return compute.all(compute.match_substring_regex(column, pattern)).as_py() is True


def _first_bad(column: Any) -> int | None:
    """The place of the first value that is not a number."""
    if _cast(column, require("pyarrow", "parquet", PURPOSE).float64()) is not None:
        return None
    return next((i for i, text in enumerate(column.to_pylist()) if text is not None and not _is_number(text)), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
