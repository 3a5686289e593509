"""LanceDB: codes as lists of bytes in a columnar table on disk, searched by Hamming distance.

LanceDB takes whole bytes, so codes stay padded; the order of bits does not matter. Every change is a new version of the
table and becomes visible as a whole. The id is declared as primary key, so that LanceDB notices when two writers insert
the same id at once; the later writer then tries again on the new version.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import NOWHERE, require_n_bits
from hashlearn.search.model_digest import checked_model
from hashlearn.search.stores.base import Encoder, Store, checked_name

IDS_PER_DELETE = 10_000
QUERIES_AT_ONCE = 64
MOST_NAME_BYTES = 249  # the folder of a table is called NAME.lance, and file systems allow 255 bytes
CREATE_ATTEMPTS = 10
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}


class LanceStore(Store):
    """A table (id, code). Open it with `create`.

    >>> store = LanceStore.create("codes.lance", "codes", 32)  # doctest: +SKIP
    """

    packages, extra = ("lancedb", "pyarrow"), "lancedb"

    def __init__(self, table: Any, n_bits: int, hasher: Encoder | None, model: str | None) -> None:
        super().__init__(n_bits, hasher, model)
        self.table = table
        self._described = f"table {table.name!r}"

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        table: str,
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        model: str | None = None,
    ) -> Self:
        """Open the table in the folder; make both if they are missing.

        A table that this store did not make is refused.
        """
        lancedb, pyarrow = (cls._package(name) for name in cls.packages)
        n_bits, name = require_n_bits(n_bits), checked_name(table, "table", MOST_NAME_BYTES)
        named = {} if checked_model(model) is None else {"model": model}
        schema = pyarrow.schema(
            [
                pyarrow.field("id", pyarrow.int64(), nullable=False, metadata=PRIMARY_KEY),
                pyarrow.field("code", pyarrow.list_(pyarrow.uint8(), -(-n_bits // 8)), nullable=False),
            ],
            metadata={"n_bits": str(n_bits), **named},
        )
        store = cls(_created(lancedb.connect(os.fspath(folder)), name, schema), n_bits, hasher, model)
        store._require_ours(schema)
        return store

    def build_index(self, *, n_lists: int | None = None) -> None:
        """Make the inverted lists that ``search(..., exact=False)`` uses; None: √n of them."""
        lists = self._package("lancedb.index").IvfFlat
        with self._lock:
            n_lists = n_lists or max(1, round(self._count() ** 0.5))
            self.table.create_index("code", config=lists(distance_type="hamming", num_partitions=n_lists), replace=True)

    def _require_ours(self, schema: Any) -> None:
        """Refuse a table that `LanceStore` did not make, or made for another number of bits or another model."""
        there = self.table.schema
        metadata = there.metadata or {}
        n_bits = metadata.get(b"n_bits", b"")
        if n_bits.isdigit():
            self._require_bits(int(n_bits))
        if n_bits != schema.metadata[b"n_bits"] or not there.equals(schema) or not there.field("id").metadata:
            columns = ", ".join(f"{field.name} {field.type}" for field in there)
            raise ValueError(
                f"{self._described} is there already and was not made by this version of LanceStore: it has the "
                f"columns {columns}; choose another name"
            )
        self._require_model(metadata[b"model"].decode() if b"model" in metadata else None)

    def _count(self) -> int:
        """Rows of the newest version. Later reads use this version, until the next call or write."""
        self.table.checkout_latest()
        return int(self.table.count_rows())

    def _close(self) -> None:
        """There is nothing to close."""

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        pyarrow = self._package("pyarrow")
        values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(codes.ravel()), codes.shape[1])
        rows = pyarrow.table({"id": pyarrow.array(ids), "code": values})
        merge = self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows.cast(self.table.schema))

    def _remove(self, ids: NDArray[np.int64]) -> int:
        parts = [ids[first : first + IDS_PER_DELETE].tolist() for first in range(0, len(ids), IDS_PER_DELETE)]
        return sum(int(self.table.delete(f"id IN ({', '.join(map(str, part))})").num_deleted_rows) for part in parts)

    def _ask(self, codes: NDArray[np.uint8], count: int, exact: bool) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        ids = np.full((len(codes), count), NOTHING, np.int64)
        distances = np.full((len(codes), count), NOWHERE, np.int32)
        for first in range(0, len(codes), QUERIES_AT_ONCE):
            part = codes[first : first + QUERIES_AT_ONCE]
            query = self.table.search(list(part), vector_column_name="code").distance_type("hamming").limit(count)
            found = (query.bypass_vector_index() if exact else query).select(["id", "_distance"]).to_arrow()
            numbers = np.zeros(found.num_rows, np.int64)
            if "query_index" in found.column_names:  # missing if there is one query
                numbers = found["query_index"].to_numpy().astype(np.int64)
            order = np.argsort(numbers, kind="stable")
            numbers = numbers[order]
            place = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
            items = found["id"].to_numpy()[order]
            self._require_id(int(items.min(initial=0)))
            ids[first + numbers, place] = items
            distances[first + numbers, place] = found["_distance"].to_numpy()[order].astype(np.int32)
        return ids, distances


def _created(database: Any, name: str, schema: Any, attempts: int = CREATE_ATTEMPTS) -> Any:
    """The table, made if it is missing. Tries again if another writer makes it at the same moment."""
    try:
        return database.create_table(name, schema=schema, exist_ok=True)
    except ValueError as error:
        if "schema" not in str(error).lower():
            raise
        return database.open_table(name)  # it has another schema: our own error says that better
    except RuntimeError as error:
        if "commit conflict" not in str(error) or attempts == 1:
            raise
        return _created(database, name, schema, attempts - 1)
