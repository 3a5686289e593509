"""Parquet: numeric columns side by side, or one column of lists of equal length, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.files.columns import Columns, Wanted, choose, few, require_distinct, split
from hashlearn.files.rows import RowSource, rebatched, tables_of
from hashlearn.search.arrow import reading

PURPOSE = "reading Parquet files"


class ParquetRows(RowSource):
    """Rows of numeric columns, or of one column of lists."""

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self._file = _opened(path)
        schema = self._file.schema_arrow
        self.columns = _chosen_columns(schema, wanted, str(path))
        self._columns = self.columns.features
        kind = schema.field(self._columns[0]).type
        self._is_list = _is_list(kind)
        with reading(str(path)):
            width = _list_width(self._file, self._columns[0], kind) if self._is_list else len(self._columns)
        names = None if self._is_list else tuple(self._columns)
        super().__init__(path, wanted.part, (self._file.metadata.num_rows, width), names)

    def beside(self, size: int) -> Iterator[Any]:
        """The id column and the kept columns, as tables of Arrow with ``size`` rows, the last one shorter."""
        if self.columns.beside:
            with reading(self.name):
                yield from tables_of(self._file.iter_batches(batch_size=size, columns=self.columns.beside), size)

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        parts = self._parts()
        groups = [group for group, (begin, end) in enumerate(parts) if end > first and begin < last]
        skip = first - parts[groups[0]][0] if groups else 0
        return rebatched(self._between(groups, size, skip, last - first), size)

    def _parts(self) -> list[tuple[int, int]]:
        metadata = self._file.metadata
        ends = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]).tolist()
        return list(pairwise([0, *ends]))

    def _between(self, groups: list[int], size: int, skip: int, count: int) -> Iterator[NDArray[Any]]:
        """``count`` rows of these row groups, after the first ``skip``."""
        at = -skip
        with reading(self.name):
            for batch in self._file.iter_batches(batch_size=size, row_groups=groups, columns=self._columns):
                low, high = max(0, -at), min(batch.num_rows, count - at)
                if low < high:
                    yield self._numbers(batch.slice(low, high - low))
                at += batch.num_rows

    def _numbers(self, batch: Any) -> NDArray[Any]:
        for column, values in zip(self._columns, batch.columns, strict=True):
            inner = values.flatten() if self._is_list else values
            if values.null_count or inner.null_count:
                raise ValueError(f"{self.name}: column {column!r} has rows without a value; every feature is needed")
            if self._is_list:
                if len(inner) != len(values) * self.n_features or not _all_of(values, self.n_features):
                    raise ValueError(
                        f"{self.name}: column {column!r} has lists of other lengths than {self.n_features}, the first"
                    )
                numbers: NDArray[Any] = inner.to_numpy(zero_copy_only=False).reshape(-1, self.n_features)
                return numbers
        return np.column_stack([values.to_numpy(zero_copy_only=False) for values in batch.columns])


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file."""
    return list(_opened(path).schema_arrow.names)


def parquet_labels(path: Path, part: str | None) -> NDArray[Any]:
    """One column of labels, or several named ones as 0/1 indicators."""
    file = _opened(path)
    wanted = label_columns(part, file.schema_arrow.names, str(path))
    with reading(str(path)):
        return labels_of(file.read(columns=wanted), wanted, str(path))


def label_columns(part: str | None, names: list[str], file: str) -> list[str]:
    """The columns that hold labels."""
    if part is None and len(names) != 1:
        raise ValueError(f"{file}: has {len(names)} columns ({few(names)}); say which one, as {file}::NAME")
    wanted = names if part is None else split(part, names, file)
    require_distinct(wanted, names, file)
    return wanted


def labels_of(table: Any, wanted: list[str], file: str) -> NDArray[Any]:
    """Labels from these columns of a table."""
    for name in wanted:
        if table[name].null_count:
            raise ValueError(f"{file}::{name}: has rows without a label; every row needs one")
    columns = [table[name].to_numpy() for name in wanted]
    labels = columns[0] if len(columns) == 1 else np.column_stack(columns)
    return labels.astype(str) if labels.dtype.kind == "O" else labels


def _opened(path: Path) -> Any:
    parquet = require("pyarrow.parquet", "parquet", PURPOSE)
    with reading(str(path)):
        file = parquet.ParquetFile(path, memory_map=True)
        _ = file.schema_arrow.names  # fails here if a name is damaged
        return file


def _chosen_columns(schema: Any, wanted: Wanted, file: str) -> Columns:
    def default(names: list[str]) -> list[str]:
        lists = [name for name in names if _is_list(schema.field(schema.names.index(name)).type)]
        return lists if len(lists) == 1 else names

    found = choose(
        wanted, schema.names, file, can_be_id=lambda name: _can_be_id(schema.field(name).type), default=default
    )
    features = found.features
    odd = [name for name in features if not _is_number(schema.field(name).type)]
    if len(features) == 1 and odd and _is_list(schema.field(odd[0]).type):
        return found
    if odd or not features:
        raise ValueError(
            f"{file}: features are columns of numbers or one column of lists of numbers, but {few(odd)} is neither; "
            f"name the columns to take, as {file}::a,b,c"
        )
    return found


def _list_width(file: Any, column: str, kind: Any) -> int:
    if hasattr(kind, "list_size"):
        return int(kind.list_size)
    for batch in file.iter_batches(batch_size=1, columns=[column]):
        return len(batch.columns[0].flatten())
    return 0


def _all_of(values: Any, width: int) -> bool:
    lengths = np.diff(values.offsets.to_numpy()) if hasattr(values, "offsets") else np.zeros(0)
    return bool((lengths == width).all())


def _is_number(kind: Any) -> bool:
    types = require("pyarrow", "parquet", PURPOSE).types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    types = require("pyarrow", "parquet", PURPOSE).types
    some = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(some and _is_number(kind.value_type))


def _can_be_id(kind: Any) -> bool:
    arrow = require("pyarrow", "parquet", PURPOSE)
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_text or types.is_integer(kind) or kind == arrow.binary(16) or isinstance(kind, arrow.UuidType))
