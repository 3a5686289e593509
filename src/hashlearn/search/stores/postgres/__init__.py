"""PostgreSQL with pgvector: codes as ``bit(n)``, neighbors by ``<~>``, an HNSW index with ``bit_hamming_ops``.

``bit(n)`` has the bit order of packed codes (the first bit is the highest of the first byte), so codes are sent
unchanged, in COPY's binary format. The files: `store` the class, `tables` what a table must have, `connection`
addresses and errors, `copy_format` the rows as COPY reads them.
"""

from __future__ import annotations

from hashlearn.search.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
