"""Codes as Arrow: columns id and code, any others behind them, and one `About` in the metadata.

The id column is int64 or text; UUIDs are read as text. ``code`` is fixed-size binary.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import require_choice
from hashlearn.core.packages import require
from hashlearn.search.about import About, require_same_model
from hashlearn.search.ids import INTEGER, TEXT, IdArray, checked_ids, shown, type_of
from hashlearn.search.interface import checked_codes

ABOUT = b"hashlearn"  # the key of the metadata that holds About
ROWS = b"hashlearn rows"  # the key of the number of rows that a reader gives, for progress
PURPOSE = "Arrow and Parquet"
BATCH_ROWS = 65_536


def to_arrow(
    codes: Any, ids: Any, n_bits: int, *, model: str | None = None, fields: Mapping[str, Any] | None = None
) -> Any:
    """A pyarrow table (id, code, fields) with an `About` in its metadata.

    ``model`` is the digest of the hasher that made the codes, from `hashlearn.persistence.fingerprint`. ``fields`` are
    more columns: arrays of Arrow, or anything that Arrow makes one of.
    """
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    codes = checked_codes(codes, n_bits)
    ids = checked_ids(ids, len(codes))
    columns = {"id": ids_to_arrow(ids), "code": codes_to_arrow(codes)}
    for name, values in (fields or {}).items():
        if name in columns:
            raise ValueError(f"fields must have names of their own, but {name!r} is taken")
        columns[name] = values if isinstance(values, pyarrow.ChunkedArray) else pyarrow.array(values)
    table = pyarrow.table(columns)
    about = About(n_bits, type_of(ids), model, _field_types(table.schema))
    return table.replace_schema_metadata({ABOUT: about.to_json()})


def codes_to_arrow(codes: NDArray[np.uint8]) -> Any:
    """Checked codes as fixed-size binary, not copied if they are contiguous."""
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    buffer = pyarrow.py_buffer(np.ascontiguousarray(codes))
    return pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(codes.shape[1]), len(codes), [None, buffer])


def ids_to_arrow(ids: IdArray) -> Any:
    """Checked ids as an array of Arrow."""
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    return pyarrow.array(ids) if ids.dtype.kind == "i" else pyarrow.array(ids.tolist(), pyarrow.string())


def ids_from_arrow(column: Any, *, distinct: bool = True) -> IdArray:
    """Ids from a column of integers, text or UUIDs. 16 bytes without a name are UUIDs as well."""
    types, column = require("pyarrow", "parquet", PURPOSE).types, id_column(column)
    if not types.is_integer(column.type) and not types.is_string(column.type):
        raise TypeError(f"the id column must hold integers, text or UUIDs, and not {column.type}")
    return checked_ids(column.to_numpy() if types.is_integer(column.type) else column.to_pylist(), distinct=distinct)


def id_column(column: Any) -> Any:
    """The column in a type that Arrow can compare, refused if an id is missing."""
    if column.null_count:
        raise ValueError(f"the id column has {column.null_count} row(s) without an id")
    return comparable_column(column)


def comparable_column(column: Any) -> Any:
    """The column in a type that Arrow can compare: UUIDs, also those of 16 bytes, and every kind of text as one."""
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column.type, pyarrow.UuidType) or column.type == pyarrow.binary(16):
        texts = pyarrow.array([item and _uuid_text(item) for item in column.to_pylist()], pyarrow.string())
        return texts if isinstance(column, pyarrow.Array) else pyarrow.chunked_array([texts])
    return column.cast(pyarrow.string()) if field_type(column.type) == "text" else column


def _uuid_text(item: uuid.UUID | bytes) -> str:
    return str(uuid.UUID(bytes=item) if isinstance(item, bytes) else item)


def require_distinct(column: Any) -> None:
    """Refuse a column of ids if one occurs twice, with two of its rows. It needs memory for all ids."""
    if len(column.unique()) == len(column):
        return
    rows: dict[Any, int] = {}
    for row, item in enumerate(column.to_pylist()):
        if rows.setdefault(item, row) != row:
            raise ValueError(f"ids must be distinct, got {shown(item)} at row {rows[item]} and again at row {row}")


def about_codes(schema: Any) -> About:
    """What the schema says, or a ValueError if it is none of a table of codes. Its columns say ids and fields."""
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    try:
        stored = About.from_json((schema.metadata or {})[ABOUT])
        kind, width = schema.field("id").type, schema.field("code").type.byte_width
    except (KeyError, ValueError, AttributeError) as error:
        raise ValueError(f"table must have columns id and code and the metadata of to_arrow: {error}") from None
    if width != stored.n_bytes:
        raise ValueError(f"table has codes of {width} byte(s), and its metadata say {stored.n_bits} bits")
    id_type = INTEGER if pyarrow.types.is_integer(kind) else TEXT
    return About(stored.n_bits, id_type, stored.model, _field_types(schema))


def _field_types(schema: Any) -> dict[str, str]:
    """The columns that stores can keep beside id and code."""
    others = [field for field in schema if field.name not in ("id", "code")]
    return {field.name: word for field in others if (word := field_type(field.type)) is not None}


def field_type(kind: Any) -> str | None:
    """The word for a type of Arrow, or None if stores cannot keep it."""
    types = require("pyarrow", "parquet", PURPOSE).types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "real": types.is_floating,
        "text": lambda kind: types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind),
    }
    return next((word for word, test in tests.items() if test(kind)), None)


def arrow_type(word: str) -> Any:
    """The type of Arrow for a stored column; `field_type` is the inverse.

    >>> arrow_type("real")
    DataType(double)
    """
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    types = {"text": pyarrow.string, "integer": pyarrow.int64, "real": pyarrow.float64, "boolean": pyarrow.bool_}
    return types[word]()


def from_arrow(table: Any, *, model: str | None = None) -> tuple[NDArray[np.uint8], IdArray, int]:
    """Codes, ids and n_bits of a table (or batch) like those of `to_arrow`. Refuse codes of another model."""
    about = about_codes(table.schema)
    require_same_model(about.model, model, "table")
    codes = codes_of_column(table["code"], about.n_bits)
    return codes, checked_ids(ids_from_arrow(table["id"]), len(codes)), about.n_bits


def codes_of_column(column: Any, n_bits: int) -> NDArray[np.uint8]:
    """The checked codes of a column of fixed-size binary."""
    if column.null_count:
        raise ValueError(f"table has {column.null_count} row(s) without a code")
    width = column.type.byte_width
    parts = [
        np.frombuffer(part.buffers()[1], np.uint8)[part.offset * width : (part.offset + len(part)) * width]
        for part in getattr(column, "chunks", [column])
        if len(part)
    ]
    codes = np.concatenate(parts).reshape(-1, width) if parts else np.zeros((0, width), np.uint8)
    return checked_codes(codes, n_bits)


def read_codes(path: str | os.PathLike[str], fields: Sequence[str] | None = None) -> Any:
    """A Parquet file of codes as a `pyarrow.RecordBatchReader` of id, code and fields, with `About` in its schema.

    ``fields`` are the names of more columns to read; None: all that stores can keep. The file is opened once. Rows are
    read when the reader is asked for them, and values are checked where they are used: see `codes_of_column` and
    `ids_from_arrow`.
    """
    pyarrow, parquet = require("pyarrow", "parquet", PURPOSE), require("pyarrow.parquet", "parquet", PURPOSE)
    name = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe could keep a reader waiting
        raise ValueError(f"{name}: it is not a regular file")
    with reading(name):
        file = parquet.ParquetFile(name)
    try:
        about_codes(file.schema_arrow)
    except ValueError as error:
        raise ValueError(f"{name}: is not a file of codes, as encode writes them: {error}") from None
    schema = _selected(file.schema_arrow, fields, file.metadata.num_rows)

    def batches() -> Iterator[Any]:
        with reading(name):
            yield from file.iter_batches(BATCH_ROWS, columns=schema.names)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def codes_reader(source: Any, fields: Sequence[str] | None = None) -> Any:
    """A `pyarrow.RecordBatchReader` of codes from a path, as `read_codes` reads it, from a table, or from a reader."""
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    if isinstance(source, str | os.PathLike):
        return read_codes(source, fields)
    if isinstance(source, pyarrow.Table):
        schema = _selected(source.schema, fields, source.num_rows)
        batches = source.select(schema.names).combine_chunks().to_batches(BATCH_ROWS)
    elif isinstance(source, pyarrow.RecordBatchReader):
        schema = _selected(source.schema, fields, (source.schema.metadata or {}).get(ROWS, 0))
        batches = (batch.select(schema.names) for batch in source)
    else:
        kind = type(source).__name__
        raise TypeError(f"source must be a Parquet file of codes, a pyarrow.Table or RecordBatchReader; got {kind}")
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def _selected(schema: Any, fields: Sequence[str] | None, n_rows: Any) -> Any:
    """The schema of id, code and these fields; None: all that stores can keep."""
    about = about_codes(schema)
    there = about.fields or {}
    for field in fields or ():
        require_choice(field, "fields", there)
    about = replace(about, fields={field: there[field] for field in (there if fields is None else fields)})
    columns = [schema.field(name) for name in ("id", "code", *(about.fields or ()))]
    metadata = {**schema.metadata, ABOUT: about.to_json(), ROWS: str(int(n_rows))}
    return require("pyarrow", "parquet", PURPOSE).schema(columns, metadata)


@contextmanager
def reading(name: str, format: str = "Parquet") -> Iterator[None]:
    """Turn what pyarrow raises for a damaged file into a ValueError that names it. Errors of the system stay."""
    arrow = require("pyarrow", "parquet", f"reading {format} files")
    try:
        yield
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{name}: cannot be read as {format}: {' '.join(str(error).split())}") from None
