"""Every store × every kind of ids × every operation gives the answers of a full sort, or a refusal that docs name.

The full sort is Python's own, over integers, so it shares no code with any store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from hashlearn.search.interface import NOWHERE
from hashlearn.search.stores import STORES, column
from tests.search import server
from tests.search.codes import engine, random_codes
from tests.search.conftest import opened

N_BITS = 33
NAMES = ("numpy", "faiss", "postgres", "sqlite_vec", "usearch", "lancedb", "duckdb")
WITHOUT_COLUMNS = {"numpy", "faiss", "usearch"}  # docs/searching.md says so
FIELDS = {"lang": str, "year": int, "score": float, "open": bool}
IDS: dict[str, list[Any]] = {
    # Most differ by 2**31 or more, some by a multiple of 2**32, as the ids of distributed systems do.
    "int64": [
        *(2**63 - 1, 0, 2**53 + 1, *range(7, 19)),
        *(8 + row * 2**32 for row in range(1, 13)),
        *(2**62 - row * 3**35 for row in range(13)),
    ],
    "string": [
        *("it's", 'say "a"', "new\nline", "tab\t", "ü😀", "%s {} $1 ?", "back\\slash\\n", "-- ; DROP TABLE x", " a"),
        *("A", "a", "Z", "é", "\uffff", "10", "9", "NULL", "x" * 500),
        *(f"doc-{number}" for number in range(22)),
    ],
}
CODES = random_codes(40, N_BITS)
QUERIES = random_codes(5, N_BITS, seed=1)
VALUES: dict[str, list[Any]] = {
    "lang": [("en", "de", "it's", None)[row % 4] for row in range(40)],
    "year": [2000 + row % 7 for row in range(40)],
    "score": [None if row % 9 == 0 else row / 8 for row in range(40)],
    "open": [row % 3 == 0 for row in range(40)],
}


class Index:
    """A `HammingIndex` that is used like a store: a file that `close` writes."""

    has_fields = False

    def __init__(self, path: Path, n_bits: int, model: str | None) -> None:
        self.path = path
        self.index = HammingIndex.load(path, model=model) if path.exists() else HammingIndex(n_bits, model=model)
        self.add, self.upsert = self.index.add, self.index.upsert
        self.count, self.search = self.index.count, self.index.search
        self.search_rescored = self.index.search_rescored

    def remove(self, ids: Any = None, *, where: Any = None) -> int:
        return self.index.remove(where=ids if where is None else where)

    def close(self) -> None:
        self.index.save(self.path)


class Sorted:
    """What must be stored, and the answers of a full sort over it."""

    def __init__(self) -> None:
        self.rows: dict[Any, tuple[int, dict[str, Any]]] = {}

    def put(self, rows: Iterable[int], ids: Iterable[Any]) -> None:
        for row, item in zip(rows, ids, strict=True):
            self.rows[item] = int.from_bytes(CODES[row].tobytes()), {name: VALUES[name][row] for name in FIELDS}

    def among(self, keep: Callable[[dict[str, Any]], bool | None]) -> list[Any]:
        return [item for item, (_, fields) in self.rows.items() if keep(fields)]

    def require_same(self, store: Any, k: int, ids: Iterable[Any] | None = None, where: Any = None) -> None:
        """The store finds what the sort finds among these ids, and counts as many."""
        seen = list(self.rows if ids is None else set(ids) & set(self.rows))
        assert store.count(where) == len(seen)
        found = store.search(QUERIES, k, **({} if where is None else {"where": where}))
        assert found.indices.shape == found.distances.shape == (len(QUERIES), k)
        for query, items, distances in zip(QUERIES, found.indices.tolist(), found.distances.tolist(), strict=True):
            code = int.from_bytes(query.tobytes())
            ranked = sorted(((self.rows[item][0] ^ code).bit_count(), item) for item in seen)[:k]
            empty = k - len(ranked)
            nothing = -1 if isinstance(next(iter(self.rows)), int) else None
            assert items == [item for _, item in ranked] + [nothing] * empty
            assert distances == [distance for distance, _ in ranked] + [NOWHERE] * empty


class Cell:
    """One store with one kind of ids, and the rows that it must hold."""

    def __init__(self, name: str, kind: str, folder: Path, test: str) -> None:
        self.name, self.kind, self.ids = name, kind, IDS[kind]
        self._folder, self._test = folder, test
        self.has_columns = name not in WITHOUT_COLUMNS
        self.expected = Sorted()
        self.store = self.open(id_type=kind, fields=FIELDS if self.has_columns else None)

    def open(self, n_bits: int = N_BITS, **settings: Any) -> Any:
        if self.name == "numpy":
            return Index(self._folder / "index", n_bits, settings.get("model"))
        return opened(self.name, self._folder, self._test, n_bits, **settings)

    def put(self, method: str, rows: Iterable[int], ids: Iterable[Any]) -> None:
        rows, ids = list(rows), list(ids)
        fields = {name: [VALUES[name][row] for row in rows] for name in FIELDS}
        given = (fields,) if self.has_columns else ()
        getattr(self.store, method)(CODES[rows], ids, *given)
        self.expected.put(rows, ids)

    def fill(self) -> None:
        self.put("upsert", range(40), self.ids)


def check_add(cell: Cell) -> None:
    cell.put("add", range(20), cell.ids[:20])
    cell.put("add", range(20, 40), cell.ids[20:])
    cell.expected.require_same(cell.store, 40)
    cell.store.remove([cell.ids[5]])
    del cell.expected.rows[cell.ids[5]]
    with pytest.raises(ValueError, match=r"ids must be new, but .* \(1 such id"):
        cell.put("add", [5, 6], [cell.ids[5], cell.ids[6]])
    cell.expected.require_same(cell.store, 39)


def check_upsert(cell: Cell) -> None:
    cell.put("upsert", range(30), cell.ids[:30])
    cell.put("upsert", range(39, 9, -1), cell.ids[10:])  # 20 are there, with other codes and values
    cell.expected.require_same(cell.store, 40)
    if cell.has_columns:
        even = cell.expected.among(lambda row: row["year"] == 2003)
        cell.expected.require_same(cell.store, 3, even, {"year": 2003})


def check_delete(cell: Cell) -> None:
    cell.fill()
    assert cell.store.remove(cell.ids[:5]) == 5
    assert cell.store.remove(where=[cell.ids[4], cell.ids[5]]) == 1
    for item in cell.ids[:6]:
        del cell.expected.rows[item]
    if cell.has_columns:
        gone = cell.expected.among(lambda row: row["year"] == 2001)
        assert cell.store.remove(where=column("year") == 2001) == len(gone)
        for item in gone:
            del cell.expected.rows[item]
    cell.expected.require_same(cell.store, len(cell.expected.rows))


CONDITIONS: list[tuple[Any, Callable[[dict[str, Any]], bool | None]]] = [
    ({"lang": "it's"}, lambda row: row["lang"] == "it's"),
    ({"lang": ["en", "de"], "open": True}, lambda row: row["lang"] in ("en", "de") and row["open"]),
    (column("year") >= 2004, lambda row: row["year"] >= 2004),
    (column("score") < 2, lambda row: row["score"] is not None and row["score"] < 2),
    (column("lang").is_missing(), lambda row: row["lang"] is None),
    (~(column("lang") == "en"), lambda row: row["lang"] not in ("en", None)),
    ((column("year") == 2001) | (column("lang") > "en"), lambda row: row["year"] == 2001 or (row["lang"] or "") > "en"),
    (column("year").among([]), lambda row: False),
]


def check_filter(cell: Cell) -> None:
    cell.fill()
    some = cell.ids[3:20:2]
    unknown: Any = {"int64": 2**40, "string": "unknown"}[cell.kind]
    cell.expected.require_same(cell.store, 4, some, some)
    cell.expected.require_same(cell.store, 12, some, [*some, unknown])  # more than there are: the last places are empty
    cell.expected.require_same(cell.store, 2, [], [unknown])
    if not cell.has_columns:
        with pytest.raises((TypeError, ValueError), match="where"):
            cell.store.search(QUERIES, 1, where={"lang": "en"})
        with pytest.raises((TypeError, ValueError), match="where"):
            cell.store.remove(where=column("lang") == "en")
        return
    for where, keep in CONDITIONS:
        cell.expected.require_same(cell.store, 15, cell.expected.among(keep), where)
    with pytest.raises(ValueError, match=r"where: .* has no column 'town'"):
        cell.store.count({"town": "x"})
    with pytest.raises(TypeError, match=r"column 'year' holds integer values and cannot be compared with '2004'"):
        cell.store.search(QUERIES, 1, where={"year": "2004"})


def check_search(cell: Cell) -> None:
    cell.fill()
    for k in (1, 7, 40):
        cell.expected.require_same(cell.store, k)
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 40 item"):
        cell.store.search(QUERIES, 41)
    with pytest.raises(TypeError, match=r"ids must be .*, as those that are stored, got"):
        cell.store.upsert(CODES[:1], [7] if cell.kind == "string" else ["7"], *_no_values(cell))


def check_rescore(cell: Cell) -> None:
    """Vectors in an array, whose rows are in another order than those of the store."""
    cell.fill()
    vectors = np.random.default_rng(0).standard_normal((45, 3))
    queries, names = vectors[40:], cell.ids[::-1]
    settings: dict[str, Any] = {"database_vectors": vectors[:40], "ids": names, "metric": "dot"}
    for depth, where in ((12, None), (100, None), (3, cell.ids[:4])):
        found = cell.store.search_rescored(QUERIES, queries, 3, depth=depth, where=where, **settings)
        near = cell.store.search(QUERIES, min(depth, 40), where=where).indices
        for query, items, best, scores in zip(queries, near, found.indices, found.scores, strict=True):
            sums = {item: float(sum(query * vectors[names.index(item)])) for item in items.tolist()}
            expected = sorted(sums, key=lambda item: (-sums[item], item))[:3]
            assert best.tolist() == expected
            np.testing.assert_allclose(scores, [sums[item] for item in expected])
    with pytest.raises(ValueError, match="depth must be an integer of at least 3"):
        cell.store.search_rescored(QUERIES, queries, 3, depth=2, **settings)
    with pytest.raises(ValueError, match=r"database_vectors|vector_column"):
        cell.store.search_rescored(QUERIES, queries, 3, depth=9)


def check_reload(cell: Cell) -> None:
    cell.store.close()
    cell.store = cell.open(id_type=cell.kind, fields=FIELDS if cell.has_columns else None, model="a" * 64)
    cell.fill()
    cell.store.close()
    cell.store = cell.open()
    cell.expected.require_same(cell.store, 40)
    cell.put("upsert", [0], [cell.ids[1]])
    cell.store.close()
    if cell.name != "numpy":  # its file says what it holds, and an index of another width or kind is another object
        other = "int64" if cell.kind == "string" else "string"
        with pytest.raises(ValueError, match=r"is there already, with ids that are .* and not"):
            cell.open(id_type=other)
        with pytest.raises(ValueError, match=r"is there already, with codes of 33 bits and not n_bits=34"):
            cell.open(34)
    cell.store = cell.open()
    cell.expected.require_same(cell.store, 40)


def _no_values(cell: Cell) -> tuple[Any, ...]:
    return ({name: [None] for name in FIELDS},) if cell.has_columns else ()


OPERATIONS = {
    "add": check_add,
    "upsert": check_upsert,
    "delete": check_delete,
    "filter": check_filter,
    "search": check_search,
    "rescore": check_rescore,
    "reload": check_reload,
}
CELLS = [(name, kind, operation) for name in NAMES for kind in IDS for operation in OPERATIONS]


@pytest.mark.parametrize(("name", "kind", "operation"), CELLS, ids=["-".join(cell) for cell in CELLS])
def test_cell(name: str, kind: str, operation: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name != "numpy":
        engine(*STORES[name].packages)
    if name == "postgres":
        server.start()
    cell = Cell(name, kind, tmp_path, request.node.name)
    try:
        OPERATIONS[operation](cell)
    finally:
        cell.store.close()


def test_the_table_has_every_store() -> None:
    assert {*NAMES} == {"numpy", *STORES}


def test_docs_name_every_refusal() -> None:
    text = (Path(__file__).parents[2] / "docs" / "searching.md").read_text()
    lines = re.findall(r"^\| `(\w+)` \|.*\| (yes|refused) \|$", text, re.MULTILINE)
    names = {"HammingIndex": "numpy"} | {kind.__name__: name for name, kind in STORES.items()}
    assert {names[line[0]]: line[1] for line in lines} == {
        name: "refused" if name in WITHOUT_COLUMNS else "yes" for name in NAMES
    }
    assert {name for name, kind in STORES.items() if not kind.has_fields} == WITHOUT_COLUMNS - {"numpy"}
