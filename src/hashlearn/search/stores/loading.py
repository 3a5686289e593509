"""Fill a store from a Parquet file of codes or an Arrow table: in batches, all rows or none.

    >>> from hashlearn.search.stores import export_codes
    >>> export_codes("codes.parquet", "postgres", "postgresql://localhost/mine", table="images")  # doctest: +SKIP
    1000000

The source says what the store must be: the number of bits, the kind of ids, more columns and the model. A store of
something else is refused before a row is written. A load is one transaction, or one atomic save. Memory: one batch of
rows, and all ids for the check that none occurs twice; for stores in a file of FAISS or usearch, all rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hashlearn.core.checks import whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.search.about import About, require_same_model
from hashlearn.search.arrow import (
    PURPOSE,
    about_codes,
    codes_of_column,
    id_column,
    ids_from_arrow,
    require_distinct,
)
from hashlearn.search.fields import checked_fields
from hashlearn.search.ids import WORDS
from hashlearn.search.stores.base import Batch, Store

DUPLICATES = ("replace", "refuse")
BATCH_ROWS = 65_536


def load_codes(
    store: Store,
    source: Any,
    *,
    duplicates: str = "replace",
    batch_rows: int | None = None,
    progress: ProgressCallback | None = None,
) -> int:
    """Put all rows of a Parquet file of codes, or of an Arrow table, into a store, and return how many.

    They become visible together. The columns that the store keeps are taken from the source by their names; other
    columns are left out. An id that is stored already has its row replaced, or is refused with
    ``duplicates="refuse"``. An id that the source has twice is always refused. ``progress`` is called with a
    `hashlearn.core.progress.Progress` after each batch.
    """
    require_choice(duplicates, "duplicates", DUPLICATES)
    size = BATCH_ROWS if batch_rows is None else whole_number(batch_rows, "batch_rows", least=1)
    rows = _opened(source)
    _require_fitting(rows.about, store, rows.name)
    require_distinct(rows.ids())
    if rows.n_rows:
        with store._lock:
            store._load(_batches(rows, store, size, progress), duplicates == "replace")
    return rows.n_rows


def export_codes(
    source: Any,
    to: str,
    place: Any,
    *,
    fields: Sequence[str] | None = None,
    duplicates: str = "replace",
    batch_rows: int | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> int:
    """Open the store called ``to`` in `STORES`, fill it from ``source`` as `load_codes` does, and close it.

    ``place`` and ``options`` are the arguments of the store's ``open``: a path or a URL, and such as ``table``. The
    bits, ids, columns and model of a new store are those of the source. ``fields`` are the columns to take along; None:
    all, where the store can keep columns.
    """
    from hashlearn.search.stores import STORES

    require_choice(to, "to", STORES)
    require_choice(duplicates, "duplicates", DUPLICATES)
    kind = STORES[to]
    about = _opened(source).about
    with kind.open(place, replace(about, fields=_taken(about, fields, kind)), **options) as store:
        return load_codes(store, source, duplicates=duplicates, batch_rows=batch_rows, progress=progress)


def _taken(about: About, names: Sequence[str] | None, kind: type[Store]) -> dict[str, str]:
    """The columns that go into the store, with their types."""
    there = dict(about.fields or {})
    if names is None:
        return there if kind.has_fields else {}
    for name in names:
        require_choice(name, "fields", there)
    return {name: there[name] for name in names}


class _Rows:
    """An open source: a table of Arrow."""

    name = "the table"

    def __init__(self, table: Any) -> None:
        self._table, self.n_rows = table, table.num_rows
        self.about = about_codes(table.schema)

    def ids(self) -> Any:
        """The ids of all rows."""
        return id_column(self._table["id"])

    def parts(self, size: int, columns: list[str]) -> Iterable[Any]:
        """Record batches of at most ``size`` rows."""
        return self._table.select(columns).combine_chunks().to_batches(size)


class _ParquetRows(_Rows):
    """An open source: a Parquet file."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = require("pyarrow.parquet", "parquet", PURPOSE).ParquetFile(path)
        self.n_rows = self._file.metadata.num_rows
        try:
            self.about = about_codes(self._file.schema_arrow)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def ids(self) -> Any:
        """The ids of all rows."""
        return id_column(self._file.read(columns=["id"])["id"])

    def parts(self, size: int, columns: list[str]) -> Iterable[Any]:
        """Record batches of at most ``size`` rows."""
        return self._file.iter_batches(size, columns=columns)


def _batches(rows: _Rows, store: Store, size: int, progress: ProgressCallback | None) -> Iterator[Batch]:
    """The rows as checked batches."""
    done = 0
    for part in rows.parts(size, ["id", "code", *store.fields]):
        codes, ids = codes_of_column(part["code"], store.n_bits), ids_from_arrow(part["id"])
        values = {name: part[name] for name in store.fields}
        yield Batch(codes, ids, checked_fields(values, store.fields, len(codes)))
        done += len(codes)
        tell(progress, f"loading {rows.name}", done, rows.n_rows)


def _opened(source: Any) -> _Rows:
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    if isinstance(source, pyarrow.Table):
        return _Rows(source)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"source must be the path of a Parquet file of codes, or a pyarrow.Table; got {type(source).__name__}"
        )
    try:
        return _ParquetRows(Path(source))
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{os.fspath(source)}: is no Parquet file of codes: {error}") from None


def _require_fitting(about: About, store: Store, name: str) -> None:
    """Refuse a source of other bits, ids or columns than the store's, or of another model."""
    if about.n_bits != store.n_bits:
        raise ValueError(f"{name} has codes of {about.n_bits} bits, and {store._described} of {store.n_bits}")
    if about.id_type != store.id_type:
        raise TypeError(
            f"{name} has ids that are {WORDS[str(about.id_type)]}, and {store._described} ids that are "
            f"{WORDS[store.id_type]}"
        )
    fields = about.fields or {}
    for column, kind in store.fields.items():
        if fields.get(column) not in (kind, "integer" if kind == "real" else kind):
            there = fields.get(column, "missing")
            raise ValueError(f"{name} has no column {column!r} of {kind} for {store._described}: it is {there}")
    require_same_model(about.model, store.model, name)
