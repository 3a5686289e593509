"""Fill a store from a Parquet file of codes or an Arrow table: in batches, all rows or none, resumable.

    >>> from hashlearn.search.stores import export_codes
    >>> export_codes("codes.parquet", "postgres", "postgresql://localhost/mine", "images")  # doctest: +SKIP
    Loaded(rows=1000000, resumed_rows=0)

The source says what the store must be: the number of bits, the kind of ids, more columns and the model. A store of
something else is refused before a row is written. PostgreSQL and SQLite keep rows that have arrived in a table beside
the store's, so that a load that was interrupted goes on behind them; see `Store._load` of each. Memory: one batch of
rows, and all ids for the check that none occurs twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn.core.checks import whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.search.ids import WORDS
from hashlearn.search.model_digest import require_same_model
from hashlearn.search.stores.arrow import (
    PURPOSE,
    CodesAbout,
    about_codes,
    codes_of_column,
    plain_id_column,
    require_distinct,
)
from hashlearn.search.stores.base import Batch, Store
from hashlearn.search.stores.fields import checked_fields

DUPLICATES = ("replace", "refuse")
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Loaded:
    """What a load has done: ``rows`` of the source are in the store, ``resumed_rows`` were left by an earlier call."""

    rows: int
    resumed_rows: int


def load_codes(
    store: Store,
    source: Any,
    *,
    duplicates: str = "replace",
    batch_rows: int | None = None,
    progress: ProgressCallback | None = None,
) -> Loaded:
    """Put all rows of a Parquet file of codes, or of an Arrow table, into a store. They become visible together.

    The columns that the store keeps are taken from the source by their names; other columns are left out. An id that is
    stored already has its row replaced, or is refused with ``duplicates="refuse"``. An id that the source has twice is
    always refused. ``progress`` is called with a `hashlearn.core.progress.Progress` after each batch.
    """
    require_choice(duplicates, "duplicates", DUPLICATES)
    size = BATCH_ROWS if batch_rows is None else whole_number(batch_rows, "batch_rows", least=1)
    with _opened(source) as rows:
        _require_fitting(rows.about, store, rows.name)
        batches = _SourceBatches(rows, store.n_bits, store.fields, size, progress)
        if rows.n_rows == 0:
            return Loaded(0, 0)
        require_distinct(rows.ids())
        kept = "\n".join(f"{name} {kind}" for name, kind in store.fields.items())
        digest = hashlib.sha256(f"{rows.digest()}\n{kept}".encode()).hexdigest() if store.resumes else ""
        with store._lock:
            resumed = store._load(batches, duplicates == "replace", digest)
        return Loaded(rows.n_rows, resumed)


def export_codes(
    source: Any,
    to: str,
    *place: Any,
    duplicates: str = "replace",
    batch_rows: int | None = None,
    progress: ProgressCallback | None = None,
    **settings: Any,
) -> Loaded:
    """Open the store called ``to`` in `STORES`, fill it from ``source`` as `load_codes` does, and close it.

    ``place`` are the first arguments of the store's ``create``, such as a path, or a URL and a table; ``settings`` are
    its keywords. The bits, ids, columns and model of a new store are those of the source. A store that keeps ids and
    codes only gets these. ``fields={}`` leaves all other columns out.
    """
    from hashlearn.search.stores import STORES

    require_choice(to, "to", STORES)
    require_choice(duplicates, "duplicates", DUPLICATES)
    kind = STORES[to]
    with _opened(source) as rows:
        about = rows.about
    declared = {"id_type": about.id_type, "model": about.model, "fields": about.fields if kind.has_fields else None}
    with kind.create(*place, about.n_bits, **{**declared, **settings}) as store:  # type: ignore[attr-defined]
        return load_codes(store, source, duplicates=duplicates, batch_rows=batch_rows, progress=progress)


class _SourceBatches:
    """The rows of a source as checked batches."""

    def __init__(
        self, rows: _Rows, n_bits: int, fields: dict[str, str], size: int, progress: ProgressCallback | None
    ) -> None:
        self.n_rows, self._rows, self._n_bits, self._fields, self._size = rows.n_rows, rows, n_bits, fields, size
        self._progress = progress

    def __iter__(self) -> Iterator[Batch]:
        return self.after(0)

    def after(self, n_rows: int) -> Iterator[Batch]:
        """The batches behind the first ``n_rows`` rows."""
        done = n_rows
        for part in self._rows.parts(n_rows, self._size, ["id", "code", *self._fields]):
            codes, column = codes_of_column(part["code"], self._n_bits), plain_id_column(part["id"])
            values = {name: part[name] for name in self._fields}
            yield Batch(codes, None, checked_fields(values, self._fields, len(codes)), column)
            done += len(codes)
            tell(self._progress, f"loading {self._rows.name}", done, self.n_rows)


class _Rows:
    """An open source: a table of Arrow."""

    name = "the table"

    def __init__(self, table: Any) -> None:
        self._table, self.n_rows = table, table.num_rows
        self.about = about_codes(table.schema)

    def ids(self) -> Any:
        """The ids of all rows."""
        return plain_id_column(self._table["id"])

    def digest(self) -> str:
        """The same for the same rows."""
        found = hashlib.sha256()
        with require("pyarrow", "parquet", PURPOSE).ipc.new_stream(_HashFile(found), self._table.schema) as stream:
            stream.write_table(self._table.combine_chunks())
        return found.hexdigest()

    def parts(self, first: int, size: int, columns: list[str]) -> Iterator[Any]:
        """Record batches of at most ``size`` rows, from row ``first`` on."""
        yield from self._table.select(columns).slice(first).combine_chunks().to_batches(size)


class _ParquetRows(_Rows):
    """An open source: a Parquet file."""

    def __init__(self, path: Path, file: Any) -> None:
        self.name, self._handle = path.name, file
        self._file = require("pyarrow.parquet", "parquet", PURPOSE).ParquetFile(file)
        self.n_rows = self._file.metadata.num_rows
        try:
            self.about = about_codes(self._file.schema_arrow)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def ids(self) -> Any:
        """The ids of all rows."""
        return plain_id_column(self._file.read(columns=["id"])["id"])

    def digest(self) -> str:
        """The SHA-256 of the whole file."""
        self._handle.seek(0)
        return hashlib.file_digest(self._handle, "sha256").hexdigest()

    def parts(self, first: int, size: int, columns: list[str]) -> Iterator[Any]:
        """Record batches of at most ``size`` rows, from row ``first`` on. Row groups before it are not read."""
        metadata = self._file.metadata
        ends = np.cumsum([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
        group = int(np.searchsorted(ends, first, side="right"))
        skipped = first - int(ends[group - 1] if group else 0)
        groups = list(range(group, len(ends)))
        for part in self._file.iter_batches(size, row_groups=groups, columns=columns) if groups else ():
            if skipped < part.num_rows:
                yield part.slice(skipped)
            skipped = max(0, skipped - part.num_rows)


class _HashFile:
    """What Arrow writes into goes into a hash."""

    closed = False

    def __init__(self, into: Any) -> None:
        self._into = into

    def write(self, data: Any) -> int:
        self._into.update(data)
        return len(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def writable(self) -> bool:
        return True


@contextmanager
def _opened(source: Any) -> Iterator[_Rows]:
    pyarrow = require("pyarrow", "parquet", PURPOSE)
    if isinstance(source, pyarrow.Table):
        yield _Rows(source)
        return
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            f"source must be the path of a Parquet file of codes, or a pyarrow.Table; got {type(source).__name__}"
        )
    with open(source, "rb") as file:
        try:
            rows = _ParquetRows(Path(source), file)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"{os.fspath(source)}: is no Parquet file of codes: {error}") from None
        yield rows


def _require_fitting(about: CodesAbout, store: Store, name: str) -> None:
    """Refuse a source of other bits, ids or columns than the store's, or of another model."""
    if about.n_bits != store.n_bits:
        raise ValueError(f"{name} has codes of {about.n_bits} bits, and {store._described} of {store.n_bits}")
    if about.id_type != store.id_type:
        raise TypeError(
            f"{name} has ids that are {WORDS[about.id_type]}, and {store._described} ids that are "
            f"{WORDS[store.id_type]}"
        )
    for column, kind in store.fields.items():
        if about.fields.get(column) not in (kind, "integer" if kind == "real" else kind):
            there = about.fields.get(column, "missing")
            raise ValueError(f"{name} has no column {column!r} of {kind} for {store._described}: it is {there}")
    require_same_model(about.model, store.model, name)
