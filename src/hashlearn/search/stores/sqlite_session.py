"""Transactions, errors and values of SQLite."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hashlearn.core.packages import require
from hashlearn.search.stores.base import Batch

VEC0_FAILED = ("Internal sqlite-vec error", "disk is full")  # what vec0 says if SQLite cannot write


@contextmanager
def writing(connection: Any, described: str) -> Iterator[None]:
    """A transaction that waits for other writers before it reads; inside a transaction of the user's, a savepoint."""
    with plain_errors(described):
        if connection.in_transaction:
            with connection:
                yield
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def plain_errors(described: str) -> Iterator[None]:
    """Errors of SQLite about the file, other writers and names that are taken, as exceptions of Python."""
    apsw = require("apsw", "sqlite-vec", "a SqliteVecStore")
    try:
        yield
    except apsw.FullError as error:
        raise OSError(errno.ENOSPC, f"{described} cannot be written: the disk is full ({error})") from None
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise ValueError(f"the file of {described} is no SQLite database, or it is damaged ({error})") from None
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
        raise PermissionError(errno.EACCES, f"{described} cannot be written ({error})") from None
    except apsw.CantOpenError as error:
        raise OSError(errno.EIO, f"{described}: its file cannot be opened ({error})") from None
    except (apsw.IOError, apsw.SQLError) as error:
        if isinstance(error, apsw.SQLError) and "already exists" in str(error):
            raise ValueError(f"{described} cannot be made: {error}; choose another name") from None
        if isinstance(error, apsw.SQLError) and not any(text in str(error) for text in VEC0_FAILED):
            raise
        raise OSError(errno.EIO, f"{described} cannot be written: the disk may be full ({error})") from None
    except apsw.BusyError as error:
        raise BlockingIOError(f"another process writes to {described} ({error}); try again when it has ended") from None


def code_values(batch: Batch) -> list[bytes]:
    """The bytes of each code."""
    width = batch.codes.shape[1]
    return list(batch.codes.view(f"V{width}").ravel().tolist())
