"""Many rows into a table, so that all become visible at once, and a call that was interrupted can go on.

Each batch is copied into an unlogged table beside the store's and committed. One transaction then moves all rows and
drops that table. Its name holds the digest of the source, so the next call for the same source finds it, counts its
rows and goes on behind them. The rows of an unlogged table are gone after a crash of the server; then the count is 0.

An advisory lock keeps a second connection from loading the same source at once. A load that ends well drops what
interrupted loads of other sources into the same table have left. Without the right to make tables in the schema, and
inside a transaction of the user's, the table beside is temporary, and nothing is left to go on with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hashlearn.search.stores.base import Batch, Batches
from hashlearn.search.stores.postgres import copying
from hashlearn.search.stores.postgres.merging import columns_beside, merge
from hashlearn.search.stores.postgres.session import Session, package
from hashlearn.search.stores.postgres.tables import Table

PREFIX = "hashlearn_load_"
DIGITS = 24  # of the digest, in the name
LOCK_TIMEOUT = "20s"  # the server may still be ending the transaction of a client that was killed


class Loader:
    """Loads into one table. ``refuse_known`` is called if ids have codes already; None replaces these."""

    def __init__(self, session: Session, table: Table, n_bits: int, described: str) -> None:
        self.session, self.table, self.n_bits, self.described = session, table, n_bits, described

    def load(self, batches: Batches, refuse_known: Callable[[Any, int], None] | None, source: str) -> int:
        """Load all rows; return how many an earlier call had left."""
        kept = self.session.is_free and not self.table.schema.startswith("pg_temp")
        if not kept or not self._may_make_tables():
            self._load_at_once(batches, refuse_known)
            return 0
        name = PREFIX + hashlib.sha256(f"{self._table_text}\n{source}".encode()).hexdigest()[:DIGITS]
        with self._only_loader(name):
            return self._load_kept(batches, refuse_known, name)

    def unfinished(self) -> dict[str, int]:
        """The tables that interrupted loads have left, and how many rows they have."""
        found = self.session.run(
            "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'r' AND "
            "nspname = %s AND starts_with(relname, %s) AND obj_description(pg_class.oid, 'pg_class') = %s "
            "ORDER BY relname",
            (self.table.schema, PREFIX, self._comment),
        )
        return {name: self._count(name) for (name,) in found.fetchall()}

    def drop_unfinished(self) -> int:
        """Drop these tables, but those of loads that are running; return how many."""
        dropped = 0
        for name in self.unfinished():
            with self.session.transaction():
                if self.session.run("SELECT pg_try_advisory_xact_lock(%s)", (_key(name),)).fetchone()[0]:
                    self.session.run("DROP TABLE IF EXISTS {old}", old=self._quoted(name))
                    dropped += 1
        return dropped

    def _load_at_once(self, batches: Batches, refuse_known: Callable[[Any, int], None] | None) -> None:
        """In one transaction."""
        free = self.session.is_free
        with self.session.transaction():
            self.session.run("CREATE TEMP TABLE {new} " + columns_beside(self.table) + " ON COMMIT DROP")
            self.session.names["beside"] = ("pg_temp", *self.session.names["new"])
            for batch in batches:
                self._copy(batch)
            # In a transaction of the user's, a lock would stay until it ends.
            self._merge(batches.n_rows, refuse_known, alone=free)
            self.session.run("DROP TABLE {beside}")

    def _load_kept(self, batches: Batches, refuse_known: Callable[[Any, int], None] | None, name: str) -> int:
        run = self.session.run
        self.session.names["beside"] = (self.table.schema, name)
        with self.session.transaction():
            run("CREATE UNLOGGED TABLE IF NOT EXISTS {beside} " + columns_beside(self.table))
            comment = package("psycopg.sql").Literal(self._comment).as_string(self.session.connection)
            run("COMMENT ON TABLE {beside} IS {comment}", comment=comment.replace("%", "%%"))
        resumed = self._count(name)
        try:
            for batch in batches.after(resumed):
                with self.session.transaction():
                    self._copy(batch)
            with self.session.transaction():
                self._merge(batches.n_rows, refuse_known, alone=True)
                run("DROP TABLE {beside}")
        except package("psycopg").OperationalError:  # a full disk or a lost connection: the next call goes on
            raise
        except Exception:  # the rows are refused, also next time
            run("DROP TABLE {beside}")
            raise
        self.drop_unfinished()
        return resumed

    def _copy(self, batch: Batch) -> None:
        with self.session.copying("beside") as copy:
            copying.write_rows(copy, batch, self.table.id_type, self.n_bits, self.table.fields)

    def _merge(self, n_rows: int, refuse_known: Callable[[Any, int], None] | None, *, alone: bool) -> None:
        merge(self.session, self.table, n_rows, self.described, refuse_known, alone=alone)

    @contextmanager
    def _only_loader(self, name: str) -> Iterator[None]:
        """Hold the advisory lock of a source. It belongs to the connection, so it ends with it."""
        try:
            with self.session.transaction():
                self.session.run("SELECT set_config('lock_timeout', %s, true)", (LOCK_TIMEOUT,))
                self.session.run("SELECT pg_advisory_lock(%s)", (_key(name),))
        except package("psycopg.errors").LockNotAvailable:
            raise BlockingIOError(
                f"another process is loading the same source into {self.described}; wait until it has ended"
            ) from None
        try:
            yield
        finally:
            if not self.session.connection.closed and self.session.is_free:
                self.session.run("SELECT pg_advisory_unlock(%s)", (_key(name),))

    def _may_make_tables(self) -> bool:
        query = "SELECT has_schema_privilege(%s, 'CREATE')"
        return bool(self.session.run(query, (self.table.schema,)).fetchone()[0])

    def _count(self, name: str) -> int:
        return int(self.session.run("SELECT count(*) FROM {old}", old=self._quoted(name)).fetchone()[0])

    def _quoted(self, name: str) -> str:
        return self.session.quoted(self.table.schema, name).replace("%", "%%")

    @property
    def _table_text(self) -> str:
        return self.session.quoted(self.table.schema, self.session.names["table"][-1])

    @property
    def _comment(self) -> str:
        return f"hashlearn load into {self._table_text}"


def _key(name: str) -> int:
    """The advisory lock of a table beside, 64 bits."""
    return int.from_bytes(bytes.fromhex(name.removeprefix(PREFIX)[:16]), signed=True)
