"""Connections to PostgreSQL, and its errors as exceptions of Python. No error shows a password."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Iterator
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
UNFIT = "where does not fit the columns of {}"
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


@contextmanager
def plain_errors(described: str, *, writing: bool) -> Iterator[None]:
    """Errors of PostgreSQL about rights, rows, conditions, the disk and the connection, as exceptions of Python."""
    psycopg, errors = package("psycopg"), package("psycopg.errors")
    again = "nothing is stored; do the same again"
    try:
        yield
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction) as error:
        raise PermissionError(errno.EACCES, f"PostgreSQL refuses it: {_one_line(error)}") from None
    except (psycopg.IntegrityError, psycopg.DataError, errors.RaiseException) as error:
        # A rule of the table, such as a CHECK, the length of a column or a trigger; or a value in ``where``.
        refused = f"{described} refuses the rows, and nothing is stored"
        raise ValueError(f"{refused if writing else UNFIT.format(described)}: {_one_line(error)}") from None
    except (errors.UndefinedFunction, errors.DatatypeMismatch) as error:
        raise ValueError(f"{UNFIT.format(described)}: {_one_line(error)}") from None
    except errors.DiskFull as error:
        text = f"the server's disk is full while {described} is written ({_one_line(error)}): {again}"
        raise OSError(errno.ENOSPC, text) from None
    except psycopg.OperationalError as error:
        if not writing:
            raise
        raise ConnectionError(
            f"writing to {described} has ended, because the connection is lost or the server refuses to go on "
            f"({_one_line(error)}): {again}"
        ) from None


def _one_line(error: Exception) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    detail = getattr(getattr(error, "diag", None), "message_detail", None)
    return " ".join(" ".join(filter(None, (primary, detail))).split() or str(error).split())
