"""Statements and transactions on one connection, for one table whose names are quoted."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from hashlearn.core.packages import require

# Two stores over one connection share a lock, because transactions belong to the connection.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()

SECRET = ("password", "sslpassword")  # libpq repeats neither
SHOWN = ("service", "host", "hostaddr", "port", "dbname", "user")  # parts of an address that are no secret
# The reason that libpq gives is repeated only if the parts that it may hold look like names. Others may be a piece of a
# password that was not encoded.
USUAL = {"host": r"[\w.:,/~+-]*", "dbname": r"[\w.~+-]*", "user": r"[\w.@~+-]*", "service": r"[\w.~+-]*"}
ENCODED = "in a URL, write @, :, / and ? of the user, password and database as %40, %3A, %2F and %3F"
NO_ADDRESS = "connection must be a URL such as postgresql://user@host/name, or a connection string such as dbname=name"


def package(module: str) -> Any:
    """A module of psycopg."""
    return require(module, "postgres", "a PostgresStore")


def connected(address: str) -> Any:
    """A connection in autocommit mode, or an error that says why there is none, and never shows a password.

    A host with @ and a port that is no number come from a password that is not encoded. They are refused before a name
    server is asked for them.
    """
    psycopg = package("psycopg")
    try:
        parts = _parts(address)
        if "@" in parts.get("host", "") or re.search(r"[^\d,]", parts.get("port", "")):
            raise ValueError(f"connection has a host or port that cannot be one: {ENCODED}")
        return psycopg.connect(address, autocommit=True)
    except psycopg.OperationalError as error:
        usual = all(re.fullmatch(USUAL.get(key, "[^@]*"), value) for key, value in parts.items() if key not in SECRET)
        raise ConnectionError(f"cannot connect to PostgreSQL: {_one_line(error) if usual else ENCODED}") from None
    except (psycopg.Error, UnicodeError):
        raise ValueError(NO_ADDRESS) from None


def shown_address(address: str) -> str:
    """Where a URL or connection string leads, as ``host=… port=… dbname=… user=…``, and nothing else of it."""
    parts = _parts(address)
    shown = {key: parts[key] for key in SHOWN if key in parts}
    return str(package("psycopg.conninfo").make_conninfo(**shown)) or "the server of the environment"


def _parts(address: str) -> dict[str, str]:
    return {key: str(value) for key, value in package("psycopg.conninfo").conninfo_to_dict(address).items()}


def shared_lock(connection: Any, lock: Any) -> Any:
    """The lock of the connection; ``lock`` becomes it if there is none."""
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(connection, lock)


class Session:
    """A connection, and names that statements hold in braces: ``{table}``, ``{id}``, ``{code}``, ``{type}`` …"""

    def __init__(self, connection: Any, names: dict[str, Sequence[str]]) -> None:
        self.connection, self.names = connection, names
        self._sql = package("psycopg.sql")
        self.n_bits = 0  # until the table is there

    def quoted(self, *parts: str) -> str:
        """A name as it stands in a statement without parameters."""
        return str(self._sql.Identifier(*parts).as_string(self.connection))

    def run(self, text: str, parameters: Sequence[Any] = (), **more: str) -> Any:
        """Execute a statement; ``more`` are pieces of SQL for further braces, with percent signs doubled."""
        pieces = {key: self._sql.SQL(piece) for key, piece in more.items()}
        names = {key: self._identifier(parts, "%%") for key, parts in self.names.items()}
        statement = self._sql.SQL(text).format(**names, **pieces, type=self._sql.SQL(f"bit({self.n_bits})"))
        return self.execute(statement, parameters)

    @contextmanager
    def copying(self) -> Iterator[Any]:
        """COPY in binary format into the temporary table."""
        beside = self._identifier(self.names["beside"], "%")
        statement = self._sql.SQL("COPY {beside} FROM STDIN (FORMAT BINARY)").format(beside=beside)
        with _missing_rights(), self._cursor() as cursor, cursor.copy(statement) as copy:
            yield copy

    def execute(self, text: Any, parameters: Any) -> Any:
        """Execute a statement as it is written."""
        with _missing_rights():
            return self._cursor().execute(text, parameters)

    @property
    def is_free(self) -> bool:
        """Whether the connection is in autocommit mode and in no transaction: what we commit is committed."""
        return bool(self.connection.autocommit) and self._is_idle

    @contextmanager
    def transaction(self, *, one_state: bool = False) -> Iterator[None]:
        """A transaction, or a savepoint inside a transaction of the user, which stays usable after an error.

        ``one_state``: all statements see the same rows, unless the transaction is the user's.
        """
        free = self.is_free
        if self._is_idle and not free:
            self.run("SELECT 1")  # begins a transaction that the user will commit
        with self.connection.transaction():
            if one_state and free:
                self.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    @property
    def _is_idle(self) -> bool:
        status = self.connection.info.transaction_status
        return bool(status == package("psycopg.pq").TransactionStatus.IDLE)

    def _cursor(self) -> Any:
        """A plain cursor, even if a connection of the user's is set to other cursors and rows."""
        return package("psycopg").Cursor(self.connection, row_factory=package("psycopg.rows").tuple_row)

    def _identifier(self, parts: Sequence[str], percent: str) -> Any:
        return self._sql.Identifier(*(part.replace("%", percent) for part in parts))


@contextmanager
def refused_rows(described: str) -> Iterator[None]:
    """Rows that break a rule of the table, such as a CHECK, the length of a column or a trigger, as a ValueError."""
    psycopg = package("psycopg")
    try:
        yield
    except (psycopg.IntegrityError, psycopg.DataError, psycopg.errors.RaiseException) as error:
        raise ValueError(f"{described} refuses the rows, and nothing is stored: {_one_line(error)}") from None


@contextmanager
def refused_condition(described: str) -> Iterator[None]:
    """A value in ``where`` that does not fit its column, as a ValueError."""
    psycopg = package("psycopg")
    wrong = (psycopg.errors.UndefinedFunction, psycopg.errors.DatatypeMismatch, psycopg.DataError)
    try:
        yield
    except wrong as error:
        raise ValueError(f"where does not fit the columns of {described}: {_one_line(error)}") from None


@contextmanager
def _missing_rights() -> Iterator[None]:
    """A right that the role does not have, or a server that is read-only, as a PermissionError."""
    errors = package("psycopg.errors")
    try:
        yield
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        raise PermissionError(errno.EACCES, f"PostgreSQL refuses it: {_one_line(error)}") from None


@contextmanager
def lost_connections(described: str) -> Iterator[None]:
    """A full disk or a lost connection while rows are written as an OSError that says what to do."""
    psycopg = package("psycopg")
    again = "nothing is stored; do the same again"
    try:
        yield
    except psycopg.errors.DiskFull as error:
        text = f"the server's disk is full while {described} is written ({_one_line(error)}): {again}"
        raise OSError(errno.ENOSPC, text) from None
    except psycopg.OperationalError as error:
        raise ConnectionError(
            f"writing to {described} has ended, because the connection is lost or the server refuses to go on "
            f"({_one_line(error)}): {again}"
        ) from None


def _one_line(error: Exception) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    detail = getattr(getattr(error, "diag", None), "message_detail", None)
    return " ".join(" ".join(filter(None, (primary, detail))).split() or str(error).split())
