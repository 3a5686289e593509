"""Two-stage search in one statement: the nearest by Hamming distance, ranked again by their vectors.

The vectors are a column ``vector`` or ``halfvec`` of the same table. `two_stage_sql` writes the statement, so that an
application can use it without this library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import unpack_bits
from hashlearn.core.arrays import to_numpy
from hashlearn.core.names import require_choice
from hashlearn.core.rows import as_rows, require_finite
from hashlearn.search.stores.postgres.session import Session
from hashlearn.search.stores.postgres.tables import Table

# The operator that orders by a metric, and the score that it gives.
OPERATORS = {"cosine": ("<=>", "1 - ({})"), "l2": ("<->", "-({})"), "dot": ("<#>", "-({})")}
VECTOR_TYPES = ("vector", "halfvec")


def two_stage_sql(
    session: Session,
    table: Table,
    n_bits: int,
    where: str,
    *,
    k: int,
    depth: int,
    vector_column: str,
    metric: str,
    exact: bool,
) -> str:
    """The statement, with parameters ``code`` and ``vector`` as psycopg writes them; ``where`` is a piece of SQL."""
    require_choice(metric, "metric", OPERATORS)
    key, code, vector = (
        session.quoted(name).replace("%", "%%")
        for name in (session.names["id"][0], session.names["code"][0], vector_column)
    )
    operator, score = OPERATORS[metric]
    distance = f"{vector} {operator} %(vector)s::{_vector_type(table, vector_column)}"
    near = f"{code} <~> %(code)s::bit({n_bits})"
    # Ordering by the integer distance is a full scan, because the index applies to the operator's result only.
    first = f"({near})::int, {key}{table.ordered}" if exact else near
    return f"""SELECT {key}, {score.format(distance)} AS score
FROM (
    SELECT {key}, {vector} FROM {session.quoted(*session.names["table"]).replace("%", "%%")}
    WHERE {code} IS NOT NULL AND {vector} IS NOT NULL{where}
    ORDER BY {first}
    LIMIT {depth}
) AS nearest
ORDER BY {distance}, {key}{table.ordered}
LIMIT {k}"""


def code_text(codes: NDArray[np.uint8], n_bits: int) -> list[str]:
    """Codes as PostgreSQL writes bit strings."""
    return ["".join(map(str, bits)) for bits in unpack_bits(codes, n_bits).tolist()] if len(codes) else []


def vector_text(vectors: Any, n: int) -> list[str]:
    """Vectors as pgvector writes them; refused unless there is a row of finite numbers for each of ``n`` codes."""
    array = np.asarray(to_numpy(as_rows(vectors, "vectors")), np.float32)
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"vectors must have a row for each of the {n} code(s), got shape {array.shape}")
    require_finite(array, "vectors")
    return [f"[{','.join(map(str, row))}]" for row in array.tolist()]


def _vector_type(table: Table, column: str) -> str:
    there = table.columns.get(column)
    kind = (there or "").partition("(")[0]
    if kind not in VECTOR_TYPES:
        found = "is not there" if there is None else f"has type {there}"
        raise ValueError(f"vector_column must be a column of vector or halfvec, but {column!r} {found}")
    return kind
