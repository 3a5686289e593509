"""A toy store: a table of SQLite without any index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER
from hashlearn.search.stores.base import Batch, Encoder, Store, Where
from hashlearn.search.stores.conditions import Condition


class ToyStore(Store):
    """A table (id, code) of SQLite, with integers as ids. Open it with `create`."""

    packages, extra = ("sqlite3",), "toy"
    has_fields = False

    def __init__(self, connection: Any, n_bits: int, hasher: Encoder | None, model: str | None) -> None:
        super().__init__(n_bits, hasher, model)
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
        opened = cls._package("sqlite3").connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        store = cls(opened, n_bits, hasher, model)
        store._take_ids(INTEGER, id_type)
        store._take_fields({}, fields)
        with store.connection as connection:
            connection.execute("begin immediate")
            connection.execute("create table if not exists codes (id integer primary key, code blob)")
            connection.execute("create table if not exists made (only integer primary key, bits integer, model text)")
            connection.execute("insert or ignore into made values (0, ?, ?)", (store.n_bits, store.model))
            bits, made_by = connection.execute("select bits, model from made").fetchone()
        store._require_bits(bits)
        store._require_model(made_by)
        return store

    def _count(self, where: Where = None) -> int:
        return len(self._rows(where)[0])

    def _close(self) -> None:
        self.connection.close()

    def _upsert(self, batch: Batch, replace: bool) -> None:
        rows = [(int(key), code.tobytes()) for key, code in zip(batch.ids, batch.codes, strict=True)]
        with self.connection as connection:
            connection.execute("begin immediate")
            known = np.intersect1d(batch.ids, self._rows(None)[0])
            if len(known) and not replace:
                self._refuse_known(known[0], len(known))
            connection.executemany("insert or replace into codes values (?, ?)", rows)

    def _remove(self, ids: NDArray[Any]) -> int:
        with self.connection as connection:
            connection.execute("begin immediate")
            return sum(connection.execute("delete from codes where id = ?", (int(key),)).rowcount for key in ids)

    def _remove_where(self, where: Condition) -> int:
        raise AssertionError("there are no columns")

    def _rows(self, where: Where) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        rows = self.connection.execute("select id, code from codes order by id").fetchall()
        ids = np.array([key for key, _ in rows], np.int64)
        codes = np.frombuffer(b"".join(code for _, code in rows), np.uint8).reshape(len(rows), self.n_bytes)
        seen = np.ones(len(ids), bool) if where is None else np.isin(ids, where)
        return ids[seen], codes[seen]

    def _ask(
        self, codes: NDArray[np.uint8], count: int, exact: bool, where: Where
    ) -> tuple[NDArray[Any], NDArray[np.int32]]:
        ids, stored = self._rows(where)
        distances = np.array([np.bitwise_count(stored ^ code).sum(axis=1) for code in codes], np.int32)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :count]
        return ids[nearest], np.take_along_axis(distances, nearest, axis=1)
