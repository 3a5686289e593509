"""What the tests of stores share."""

from __future__ import annotations

import pytest

from tests.search import server


@pytest.fixture
def postgres_url() -> str:
    """The address of a PostgreSQL server with pgvector."""
    return server.start()
