"""A toy store: a table of SQLite without any index."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER, UUID
from hashlearn.search.stores.base import Batch, Encoder, Store, Where


class ToyStore(Store):
    """A table (id, code) of SQLite; UUIDs are text in it. Open it with `create`."""

    packages, extra = ("sqlite3",), "toy"
    has_fields = False

    def __init__(
        self, connection: Any, n_bits: int, hasher: Encoder | None, model: str | None, id_type: str | None
    ) -> None:
        super().__init__(n_bits, hasher, model, id_type)
        self.connection = connection

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        model: str | None = None,
        id_type: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open the table, or make it if there is none."""
        connect = cls._package("sqlite3").connect
        with ExitStack() as on_error:
            opened = connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            on_error.callback(opened.close)
            store = cls(opened, n_bits, hasher, model, id_type)
            store._take_fields({}, fields)
            with opened as connection:
                connection.execute("begin immediate")
                connection.execute("create table if not exists codes (id primary key, code blob)")
                connection.execute("create table if not exists made (only integer primary key, bits, model, ids)")
                made = (store.n_bits, store.model, store.id_type)
                connection.execute("insert or ignore into made values (0, ?, ?, ?)", made)
                bits, made_by, ids = connection.execute("select bits, model, ids from made").fetchone()
            store._require_bits(bits)
            store._take_ids(ids, id_type)
            store._require_model(made_by)
            on_error.pop_all()
        return store

    def _count(self, where: Where = None) -> int:
        return len(self._rows(where)[0])

    def _close(self) -> None:
        self.connection.close()

    def _upsert(self, batch: Batch, replace: bool) -> None:
        rows = [(self._key(item), code.tobytes()) for item, code in zip(batch.ids.tolist(), batch.codes, strict=True)]
        with self.connection as connection:
            connection.execute("begin immediate")
            known = {*batch.ids.tolist()} & {*self._rows(None)[0].tolist()}
            if known and not replace:
                self._refuse_known(min(known), len(known))
            connection.executemany("insert or replace into codes values (?, ?)", rows)

    def _remove(self, where: Any) -> int:
        with self.connection as connection:
            connection.execute("begin immediate")
            keys = [(self._key(item),) for item in where.tolist()]
            return sum(connection.execute("delete from codes where id = ?", key).rowcount for key in keys)

    def _key(self, item: Any) -> Any:
        return str(item) if self.id_type == UUID else item

    def _rows(self, where: Where) -> tuple[NDArray[Any], NDArray[np.uint8]]:
        rows = self.connection.execute("select id, code from codes order by id").fetchall()
        ids = np.empty(len(rows), np.int64 if self.id_type == INTEGER else object)
        ids[:] = [uuid.UUID(key) if self.id_type == UUID else key for key, _ in rows]
        codes = np.frombuffer(b"".join(code for _, code in rows), np.uint8).reshape(len(rows), self.n_bytes)
        seen = np.ones(len(ids), bool) if where is None else np.isin(ids, np.asarray(where))
        return ids[seen], codes[seen]

    def _ask(
        self, codes: NDArray[np.uint8], count: int, exact: bool, where: Where
    ) -> tuple[NDArray[Any], NDArray[np.int32]]:
        ids, stored = self._rows(where)
        distances = np.array([np.bitwise_count(stored ^ code).sum(axis=1) for code in codes], np.int32)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :count]
        return ids[nearest], np.take_along_axis(distances, nearest, axis=1)
