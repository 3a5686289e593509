"""LanceDB: codes as lists of bytes in a columnar table on disk, searched by Hamming distance.

LanceDB takes whole bytes, so codes stay padded; the order of bits does not matter. Every change is a new version of the
table and becomes visible as a whole. The id is declared as primary key, so that LanceDB notices when two writers insert
the same id at once; the later writer then tries again on the new version."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.search.about import About
from hashlearn.search.arrow import ABOUT, arrow_type, ids_to_arrow
from hashlearn.search.fields import checked_field_types
from hashlearn.search.ids import INTEGER, IdArray, as_objects, no_ids
from hashlearn.search.index import HammingIndex
from hashlearn.search.interface import NOWHERE, SearchResult
from hashlearn.search.stores.base import Batch, Store, Where, checked_name
from hashlearn.search.stores.conditions import Condition, as_literal, as_sql

IDS_AT_ONCE = 10_000  # for more, a search reads all rows
QUERIES_AT_ONCE = 64
MOST_NAME_BYTES = 249  # the folder of a table is called NAME.lance, and file systems allow 255 bytes
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
TAKEN = ("_distance", "_rowid", "_rowaddr", "query_index")  # columns of LanceDB's answers


class LanceStore(Store):
    """A table (id, code and more columns) in a folder. Its option is ``table``.

    A table that this store did not make is refused.

    If another writer stores one of the ids of an `add` at the same moment, `add` raises RuntimeError and the other rows
    are stored. `add` still stores nothing if an id was there before.

    >>> store = LanceStore.open("codes.lance", About(32), table="codes")  # doctest: +SKIP
    """

    packages, extra = ("lancedb", "pyarrow"), "lancedb"

    @classmethod
    def is_at(cls, place: str) -> bool:
        """Whether there is a folder with tables of Lance."""
        return any(Path(place).glob("*.lance"))

    def __init__(self, place: str | os.PathLike[str], *, table: str = "codes") -> None:
        super().__init__(place)
        self._name = checked_name(table, "table", MOST_NAME_BYTES)
        self._described = f"table {table!r}"

    def _open(self, asked: About | None) -> None:
        for name in checked_field_types((asked and asked.fields) or {}, TAKEN):
            if set(name) & {".", "`"}:
                raise ValueError(f"fields must have names without dots and backticks in LanceDB, got {name!r}")
        database = self._package("lancedb").connect(os.fspath(self.place))
        self.table = database.open_table(self._name) if asked is None else _created(database, self._name, asked)
        there = self.table.schema
        try:
            stored = About.from_json((there.metadata or {}).get(ABOUT, b"").decode())
            ours = there.equals(_schema(stored)) and there.field("id").metadata
        except ValueError:
            ours = False
        if not ours:
            listed = ", ".join(f"{field.name} {field.type}" for field in there)
            raise ValueError(
                f"{self._described} is there already and was not made by this version of LanceStore: it has the "
                f"columns {listed}; choose another name"
            )
        self._adopt(stored, asked)

    def build_index(self, *, n_lists: int | None = None) -> None:
        """Make the inverted lists that ``search(..., exact=False)`` uses; None: √n of them."""
        lists = self._package("lancedb.index").IvfFlat
        with self._lock:
            n_lists = n_lists or max(1, round(self._count() ** 0.5))
            self.table.create_index("code", config=lists(distance_type="hamming", num_partitions=n_lists), replace=True)

    def _count(self, where: Where = None) -> int:
        """Rows of the newest version. Later reads use this version, until the next call or write."""
        self.table.checkout_latest()
        if isinstance(where, np.ndarray):
            return len(self._rows_among(where, ["id"]))
        return int(self.table.count_rows(_filter(where)))

    def _close(self) -> None:
        """There is nothing to close."""

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """One merge of all batches, which is one new version of the table."""
        if not replace and self._count():
            batches = list(batches)
            for batch in batches:
                known = self._ids_of(self._rows_among(batch.ids, ["id"]))
                if len(known):
                    self._refuse_known(known[0], len(known))
        n = 0

        def rows() -> Iterator[Any]:
            nonlocal n
            for batch in batches:
                n += len(batch.ids)
                yield self._as_rows(batch)

        merge = self.table.merge_insert("id").when_not_matched_insert_all()
        merge = merge.when_matched_update_all() if replace else merge
        reader = self._package("pyarrow").RecordBatchReader.from_batches(self.table.schema, rows())
        stored = merge.execute(reader).num_inserted_rows
        if not replace and stored < n:
            raise RuntimeError(
                f"another writer stored {n - stored} of these ids in {self._described} at the same moment; its rows "
                f"stay, and the other {stored} are stored"
            )

    def _remove(self, where: Any) -> int:
        return int(self.table.delete(_filter(where)).num_deleted_rows)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        """Among given ids, all codes are read and compared here. LanceDB filters by conditions before it searches."""
        if not isinstance(where, np.ndarray):
            return super()._search(codes, k, exact, where)
        require_k(k, self._count())
        rows, among = self._rows_among(where, ["id", "code"]), HammingIndex(self.n_bits)
        among.add(rows["code"].combine_chunks().flatten().to_numpy().reshape(-1, self.n_bytes), self._ids_of(rows))
        ids, distances = no_ids((len(codes), k), self.id_type), np.full((len(codes), k), NOWHERE, np.int32)
        if len(among):
            found = among.search(codes, min(k, len(among)))
            ids[:, : len(among)], distances[:, : len(among)] = found.indices, found.distances
        return SearchResult(ids, distances)

    def _ask(
        self, codes: NDArray[np.uint8], count: int, exact: bool, where: Where
    ) -> tuple[IdArray, NDArray[np.int32]]:
        ids = no_ids((len(codes), count), self.id_type)
        distances = np.full((len(codes), count), NOWHERE, np.int32)
        for first in range(0, len(codes), QUERIES_AT_ONCE):
            part = codes[first : first + QUERIES_AT_ONCE]
            query = self.table.search(list(part), vector_column_name="code").distance_type("hamming").limit(count)
            query = query if where is None else query.where(_filter(where), prefilter=True)
            found = (query.bypass_vector_index() if exact else query).select(["id", "_distance"]).to_arrow()
            numbers = np.zeros(len(found), np.int64)
            if "query_index" in found.column_names:  # missing if there is one query
                numbers = found["query_index"].to_numpy().astype(np.int64)
            order = np.argsort(numbers, kind="stable")
            numbers = numbers[order]
            places = first + numbers, np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
            ids[places], distances[places] = self._ids_of(found)[order], found["_distance"].to_numpy()[order]
        return ids, distances

    def _rows_among(self, ids: IdArray, columns: list[str]) -> Any:
        """These columns of the rows with these ids. For many ids all rows are read."""
        query, few = self.table.search().select(columns).limit(max(1, self.table.count_rows())), len(ids) <= IDS_AT_ONCE
        found = (query.where(_filter(ids)) if few else query).to_arrow()
        return found if few else found.filter(self._package("pyarrow.compute").is_in(found["id"], ids_to_arrow(ids)))

    def _as_rows(self, batch: Batch) -> Any:
        pyarrow, schema = self._package("pyarrow"), self.table.schema
        codes = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(batch.codes.ravel()), self.n_bytes)
        columns = {"id": ids_to_arrow(batch.ids), "code": codes, **batch.fields}
        # The table keeps the order in which its columns were declared.
        arrays = [pyarrow.array(columns[field.name], field.type) for field in schema]
        return pyarrow.record_batch(arrays, schema=schema)

    def _ids_of(self, rows: Any) -> IdArray:
        if self.id_type != INTEGER:
            return as_objects(rows["id"].to_pylist())
        ids: IdArray = rows["id"].to_numpy()
        self._required_id(ids.min(initial=0))
        return ids


def _created(database: Any, name: str, about: About) -> Any:
    """The table, made if it is missing."""
    try:
        return database.create_table(name, schema=_schema(about.for_new_codes()), exist_ok=True)
    except (ValueError, RuntimeError):  # it has another schema, or another writer made it at the same moment
        with suppress(ValueError, RuntimeError):
            return database.open_table(name)
        raise


def _schema(about: About) -> Any:
    """The columns and metadata of a table."""
    pyarrow = LanceStore._package("pyarrow")
    kind = pyarrow.int64() if about.id_type == INTEGER else pyarrow.string()
    return pyarrow.schema(
        [
            pyarrow.field("id", kind, nullable=False, metadata=PRIMARY_KEY),
            pyarrow.field("code", pyarrow.list_(pyarrow.uint8(), about.n_bytes), nullable=False),
            *(pyarrow.field(name, arrow_type(word)) for name, word in (about.fields or {}).items()),
        ],
        metadata={ABOUT: about.to_json()},
    )


def _filter(where: Where) -> str | None:
    """A condition, or ids, as the text of a filter; None for all rows."""
    if where is None:
        return None
    if isinstance(where, Condition):
        return as_sql(where, quoted=lambda name: f"`{name}`", placeholder=as_literal)[0]
    return f"id IN ({', '.join(map(as_literal, where.tolist()))})" if len(where) else "(1 = 0)"
