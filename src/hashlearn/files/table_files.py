"""Rows in Parquet and CSV files: columns of features, one of ids, and columns that are carried along.

Parquet: columns of numbers side by side, or one column of lists of equal length. Row groups are read one by one.

CSV: a line of names, then rows. Features are read in batches. Ids and kept columns are in memory: they are read once,
when the file is opened, because their type depends on all of their values. A column of ids is integers if every value
is written as one, without a sign and without leading zeros, and else text. pyarrow finds the types of kept columns;
dates and times stay text.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import did_you_mean
from hashlearn.core.packages import require
from hashlearn.files.row_source import Columns, RowSource, rebatched
from hashlearn.search.arrow import comparable_column, field_type, ids_from_arrow, reading, require_distinct
from hashlearn.search.ids import IdArray

ID = "id"  # the column that is taken for the ids, unless one is named
TAKEN = ("id", "code")  # columns of a table of codes
GROUP_ROWS = 65_536  # read at a time; also the row groups of a Parquet file of codes, for every size of batches
PICKED_NUMBERS = 4_000_000  # read at a time where only some rows are needed
PURPOSE = "reading Parquet and CSV files"
WHOLE = r"^(0|[1-9][0-9]{0,18})$"
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*|nan|[-+]?inf", re.IGNORECASE)


class TableRows(RowSource):
    """Rows of columns of numbers, or of one column of lists of numbers. ``width``: the length of the lists."""

    def __init__(self, path: Path, part: str | None, columns: Columns, n_rows: int, width: int | None = None) -> None:
        self.columns = columns
        self._width = width
        names = tuple(columns.features)
        super().__init__(path, part, (n_rows, len(names) if width is None else width), names if width is None else None)

    def read_ids(self, *, distinct: bool = True) -> IdArray:
        """The ids of all rows: see `RowSource.read_ids`."""
        name = self.columns.id
        if name is None:
            return super().read_ids()
        arrow, compute = require("pyarrow", "parquet", PURPOSE), require("pyarrow.compute", "parquet", PURPOSE)
        chunks = [chunk for table in self.extra_columns(GROUP_ROWS) for chunk in table[name].chunks]
        column = comparable_column(arrow.chunked_array(chunks))
        absent = compute.is_null(column)
        if arrow.types.is_string(column.type):
            absent = compute.or_(absent, compute.fill_null(compute.equal(column, ""), False))
        row = compute.index(absent, True).as_py()
        if row >= 0:
            raise ValueError(f"{self.name}: column {name!r} has no id at row {row}; every row needs one")
        try:
            if distinct:
                require_distinct(column)
            return ids_from_arrow(column, distinct=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name}: column {name!r}: {error}") from None

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        return rebatched(self._between(first, last, size), size)

    def _picked(self, rows: NDArray[np.int64], size: int) -> Iterator[NDArray[Any]]:
        at_once = max(1, PICKED_NUMBERS // self.n_features)
        for begin, end in self._parts():
            here = rows[slice(*np.searchsorted(rows, (begin, end)))]
            first = begin
            for batch in self._between(begin, int(here[-1]) + 1, at_once) if len(here) else ():
                yield batch[here[slice(*np.searchsorted(here, (first, first + len(batch))))] - first]
                first += len(batch)

    def _between(self, first: int, last: int, size: int) -> Iterator[NDArray[Any]]:
        """Rows ``first`` to ``last`` in arrays of at most ``size`` rows, or of as many as pyarrow reads together."""
        at, batches = self._batches(first, last, size)
        for batch in batches:
            low, high = max(0, first - at), min(batch.num_rows, last - at)
            if low < high:
                yield self._numbers(batch.slice(low, high - low), at + low)
            at += batch.num_rows
            if at >= last:
                break

    def _numbers(self, batch: Any, first: int) -> NDArray[Any]:
        """The features in a batch, whose first row is ``first``."""
        compute = require("pyarrow.compute", "parquet", PURPOSE)

        def refuse_missing(name: str, values: Any, width: int) -> None:
            if values.null_count:
                row = first + compute.index(values.is_null(), True).as_py() // width
                raise ValueError(f"{self.name}: has no value at row {row}, column {name!r}; every feature is needed")

        for name, values in zip(self.columns.features, batch.columns, strict=True):
            refuse_missing(name, values, 1)
        if self._width is None:
            return np.column_stack([values.to_numpy(zero_copy_only=False) for values in batch.columns])
        name, lists = self.columns.features[0], batch.columns[0]
        lengths = compute.list_value_length(lists)
        other = compute.index(compute.not_equal(lengths, self._width), True).as_py()
        if other >= 0:
            raise ValueError(
                f"{self.name}: column {name!r} has a list of length {lengths[other]} at row {first + other}, and of "
                f"{self._width} at row 0; all need the same length"
            )
        values = lists.flatten()
        refuse_missing(name, values, self._width)
        numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False).reshape(-1, self._width)
        return numbers

    def _parts(self) -> list[tuple[int, int]]:
        """First row and end of each part of the file that can be read without the others."""
        return [(0, self.n_rows)]

    @abstractmethod
    def _batches(self, first: int, last: int, size: int) -> tuple[int, Iterable[Any]]:
        """Batches of the features with rows ``first`` to ``last`` and perhaps others, and the row where they begin."""


class ParquetRows(TableRows):
    """Rows of a Parquet file."""

    def __init__(self, path: Path, part: str | None, **choice: Any) -> None:
        self._file = _opened(path)
        schema = self._file.schema_arrow
        columns = choose_columns(schema, part, file=str(path), **choice)
        width = None
        if _is_list(schema.field(columns.features[0]).type):
            with reading(str(path)):
                firsts = self._file.iter_batches(1, columns=columns.features)
                width = next((len(first.columns[0].flatten()) for first in firsts), 0)
        super().__init__(path, part, columns, self._file.metadata.num_rows, width)

    def extra_columns(self, size: int) -> Iterator[Any]:
        """See `RowSource.extra_columns`."""
        if self.columns.extra:
            with reading(self.name):
                yield from _tables_of(self._file.iter_batches(size, columns=self.columns.extra), size)

    def _parts(self) -> list[tuple[int, int]]:
        groups = map(self._file.metadata.row_group, range(self._file.metadata.num_row_groups))
        return list(pairwise([0, *np.cumsum([group.num_rows for group in groups]).tolist()]))

    def _batches(self, first: int, last: int, size: int) -> tuple[int, Iterable[Any]]:
        parts = self._parts()
        groups = [group for group, (begin, end) in enumerate(parts) if end > first and begin < last]
        batches = partial(self._file.iter_batches, size, row_groups=groups, columns=self.columns.features)
        return parts[groups[0]][0] if groups else first, _guarded(batches, self.name, "Parquet")


class CsvRows(TableRows):
    """Rows of a CSV file."""

    def __init__(self, path: Path, part: str | None, **choice: Any) -> None:
        arrow = require("pyarrow", "parquet", PURPOSE)
        unknown = arrow.schema([(name, arrow.null()) for name in column_names(path)])
        columns = choose_columns(unknown, part, file=str(path), **choice)
        self._extra: Any = None
        with reading(str(path), "CSV"):
            if columns.extra:
                self._extra = _csv_table(path, columns.extra, columns.id)
                n_rows = self._extra.num_rows
            else:
                first = columns.features[:1]
                n_rows = sum(len(batch) for batch in _csv_batches(path, first, dict.fromkeys(first, arrow.string())))
        super().__init__(path, part, columns, n_rows)

    def extra_columns(self, size: int) -> Iterator[Any]:
        """See `RowSource.extra_columns`."""
        return iter(()) if self._extra is None else _tables_of(self._extra.to_batches(), size)

    def _batches(self, first: int, last: int, size: int) -> tuple[int, Iterable[Any]]:
        """Batches from the start, because lines have no fixed length."""
        features, number = self.columns.features, require("pyarrow", "parquet", PURPOSE).float64()
        batches = partial(_csv_batches, self.path, features, dict.fromkeys(features, number))
        return 0, _guarded(batches, self.name, f"CSV of numbers (name the columns to take, as {self.path}::a,b,c)")


def choose_columns(
    schema: Any,
    part: str | None,
    *,
    names: Sequence[str] | None,
    id_column: str | bool | None,
    keep: Sequence[str],
    file: str,
) -> Columns:
    """The columns that `hashlearn.files.open_rows` is asked for; the type null stands for one that is not known yet.

    A column of ids is no feature, unless it is named as one, even if rows are to be numbered.
    """
    there = schema.names
    if isinstance(keep, str):
        raise TypeError(f"keep must be a list of column names, got the text {keep!r}")
    if not (id_column is None or id_column is False or isinstance(id_column, str)):
        raise TypeError(f"id_column must be the name of a column, None or False, got {id_column!r}")
    _require_columns(keep, there, file)
    for name in keep:
        if name in TAKEN:
            raise ValueError(f"{file}: column {name!r} cannot be kept under this name, which codes and ids have")
    features: list[str] | None = None
    if part is not None:
        features = _named(part, there)
    elif names is not None and set(names) <= set(there):
        features = list(names)
    ids = None
    if isinstance(id_column, str):
        _require_columns([id_column], there, file)
        if id_column in keep:
            raise ValueError(f"{file}: column {id_column!r} is the id column; leave it out of keep")
        if not _can_be_id(schema.field(id_column).type):
            raise ValueError(f"{file}: column {id_column!r} cannot hold ids, which are integers, text or UUIDs")
        ids = id_column
    elif there.count(ID) == 1 and ID not in (features or ()) and _can_be_id(schema.field(ID).type):
        ids = ID
    if features is None:
        free = [field for field in schema if field.name != ids and field.name not in keep]
        lists = [field for field in free if _is_list(field.type)]
        features = [field.name for field in (lists if len(lists) == 1 else free)]
    _require_columns(features, there, file)
    if not features:
        raise ValueError(f"{file}: has no columns of features beside {few(there)}")
    odd = [name for name in features if not _is_number(schema.field(name).type)]
    if odd and not (len(features) == 1 and _is_list(schema.field(odd[0]).type)):
        raise ValueError(
            f"{file}: features are columns of numbers or one column of lists of numbers, but {few(odd)} is neither; "
            f"name the columns to take, as {file}::a,b,c"
        )
    unused = [name for name in there if name not in {*features, *keep, ids}]
    return Columns(features, None if id_column is False else ids, tuple(keep), unused)


def column_names(path: Path) -> list[str]:
    """The columns of a table. A CSV file must name them in its first line."""
    if path.suffix.lower() != ".csv":
        return list(_opened(path).schema_arrow.names)
    with reading(str(path), "CSV"):
        names = list(_csv_batches(path, [], {}).schema.names)
    if all(map(NUMBER.fullmatch, names)):
        raise ValueError(f"{path}: its first line must name the columns, got numbers: {few(names)}")
    return names


def label_columns(path: Path, part: str | None) -> NDArray[Any]:
    """One column of labels, or several named ones as 0/1 indicators."""
    names, is_csv = column_names(path), path.suffix.lower() == ".csv"
    if part is None and len(names) != 1:
        raise ValueError(f"{path}: has {len(names)} columns ({few(names)}); say which one, as {path}::NAME")
    chosen = names if part is None else _named(part, names)
    _require_columns(chosen, names, str(path))
    with reading(str(path), "CSV" if is_csv else "Parquet"):
        table = _csv_table(path, chosen, None) if is_csv else _opened(path).read(columns=chosen)
    for name in chosen:
        if table[name].null_count:
            raise ValueError(f"{path}::{name}: has rows without a label; every row needs one")
    columns = [table[name].to_numpy() for name in chosen]
    labels = columns[0] if len(columns) == 1 else np.column_stack(columns)
    return labels.astype(str) if labels.dtype.kind == "O" else labels


def few(names: Sequence[str]) -> str:
    """The first names, for messages."""
    return (", ".join(names[:20]) or "nothing") + (f", and {len(names) - 20} more" if len(names) > 20 else "")


def _named(part: str, names: list[str]) -> list[str]:
    """Names with commas between them, or one name that contains commas."""
    return [part] if part in names else part.split(",")


def _require_columns(chosen: Sequence[str], names: list[str], file: str) -> None:
    """Refuse names that no column has or that several columns have, and names that occur twice."""
    for name in chosen:
        if name not in names:
            raise ValueError(f"{file}: has no column {name!r}; it has {few(names)}{did_you_mean(name, names)}")
        if names.count(name) > 1:
            raise ValueError(f"{file}: has {names.count(name)} columns named {name!r}; names must differ")
        if chosen.count(name) > 1:
            raise ValueError(f"{file}: column {name!r} is asked for {chosen.count(name)} times; name it once")


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", "parquet", PURPOSE).types
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    return any(test(kind) for test in tests)


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", "parquet", PURPOSE).types
    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in tests) and _is_number(kind.value_type)


def _can_be_id(kind: Any) -> bool:
    arrow = require("pyarrow", "parquet", PURPOSE)
    is_uuid = kind == arrow.binary(16) or isinstance(kind, arrow.UuidType)
    return is_uuid or arrow.types.is_null(kind) or field_type(kind) in ("integer", "text")


def _opened(path: Path) -> Any:
    """A Parquet file."""
    parquet = require("pyarrow.parquet", "parquet", PURPOSE)
    with reading(str(path)):
        file = parquet.ParquetFile(path, memory_map=True)
        _ = file.schema_arrow.names  # fails here if a name is damaged
        return file


def _csv_options(columns: list[str], types: dict[str, Any]) -> dict[str, Any]:
    """How pyarrow reads these columns; it finds the types that are not given. With one thread, errors name the line."""
    csv = require("pyarrow.csv", "parquet", PURPOSE)
    return {
        "read_options": csv.ReadOptions(use_threads=False),
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            column_types=types, include_columns=columns, null_values=[""], strings_can_be_null=True
        ),
    }


def _csv_batches(path: Path, columns: list[str], types: dict[str, Any]) -> Any:
    """Batches of these columns; of all columns, if there are none."""
    return require("pyarrow.csv", "parquet", PURPOSE).open_csv(path, **_csv_options(columns, types))


def _csv_table(path: Path, columns: list[str], id_column: str | None) -> Any:
    """These columns in memory, the ids as integers or text."""
    arrow, compute = require("pyarrow", "parquet", PURPOSE), require("pyarrow.compute", "parquet", PURPOSE)
    read, text = require("pyarrow.csv", "parquet", PURPOSE).read_csv, arrow.string()
    types = {} if id_column is None else {id_column: text}
    table = read(path, **_csv_options(columns, types))
    if others := [field.name for field in table.schema if field_type(field.type) is None]:
        table = read(path, **_csv_options(columns, types | dict.fromkeys(others, text)))
    if id_column is not None and compute.all(compute.match_substring_regex(table[id_column], WHOLE)).as_py() is True:
        try:
            integers = table[id_column].cast(arrow.int64())
        except arrow.ArrowInvalid:  # one is too large: the ids stay text
            return table
        table = table.set_column(table.schema.names.index(id_column), id_column, integers)
    return table


def _guarded(opened: Callable[[], Iterable[Any]], name: str, format: str) -> Iterator[Any]:
    """The batches of a file; what pyarrow raises names it."""
    with reading(name, format):
        yield from opened()


def _tables_of(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """The rows of batches of Arrow in tables of ``size`` rows each, without dictionaries and each in one piece."""
    arrow = require("pyarrow", "parquet", PURPOSE)
    for table in rebatched((arrow.Table.from_batches([batch]) for batch in batches), size, arrow.concat_tables):
        for place, field in enumerate(table.schema):
            if arrow.types.is_dictionary(field.type):
                table = table.set_column(place, field.name, table[field.name].cast(field.type.value_type))
        yield table.combine_chunks()
