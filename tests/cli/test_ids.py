"""Ids of the user's own through ``encode`` and ``search``: text with quotes and line breaks, UUIDs, large integers."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import load
from hashlearn.bits import hamming_distances
from hashlearn.hashers import LSH
from tests.cli.files import N, X, answer, invoke, refused

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

TEXTS = ["it's", 'two\nlines "quoted"', *(f"doc {i:03}" for i in range(N - 2))]
UUIDS = [uuid.UUID(int=2**90 - i) for i in range(N)]


def write(name: str, ids: Any, rows: np.ndarray, **more: Any) -> None:
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), rows.shape[1])
    parquet.write_table(pyarrow.table({"id": ids, "vector": vectors, **more}), name)


def as_uuids(ids: list[uuid.UUID]) -> Any:
    storage = pyarrow.array([item.bytes for item in ids], pyarrow.binary(16))
    return pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), storage)


def nearest(ids: list[Any], k: int) -> list[list[Any]]:
    """A full sort by (distance, id), for the 40 queries."""
    hasher = load("model")
    distances = hamming_distances(hasher.encode(X[N : N + 40]), hasher.encode(X[:N]))
    return [[item for _, item in sorted(zip(row.tolist(), ids, strict=True))[:k]] for row in distances]


@pytest.mark.parametrize(
    ("ids", "column"),
    [(TEXTS, TEXTS), (UUIDS, as_uuids(UUIDS)), ([2**63 - 1 - i for i in range(N)], None)],
    ids=["text", "UUIDs", "integers"],
)
def test_answers_are_in_the_ids_of_the_user(folder: Path, ids: list[Any], column: Any) -> None:
    write("docs.parquet", ids if column is None else column, X[:N])
    write("asked.parquet", [f"query {i}" for i in range(40)], X[N : N + 40])
    expected = [[item if isinstance(item, int) else str(item) for item in row] for row in nearest(ids, 4)]
    answer("encode", "model", "docs.parquet", "-o", "codes.parquet")
    for database in (["--database", "docs.parquet"], ["--database-codes", "codes.parquet"]):
        found = answer("search", "model", *database, "--queries", "asked.parquet", "-k", 4)["neighbors"]
        assert [item["ids"] for item in found] == expected
        assert [item["query"] for item in found] == [f"query {i}" for i in range(40)]
    by_floats = ["-k", 1, "--rescore", "docs.parquet", "--depth", N]
    rescored = answer("search", "model", *database, "--queries", "Q.npy", *by_floats)
    cosines = (X[N : N + 40] @ X[:N].T) / np.linalg.norm(X[:N], axis=1)
    best = [str(ids[row]) for row in cosines.argmax(axis=1)]
    assert [str(item["ids"][0]) for item in rescored["neighbors"]] == best
    assert [item["query"] for item in rescored["neighbors"]] == list(range(40))


def test_a_line_of_text_stays_one_line(folder: Path) -> None:
    write("docs.parquet", TEXTS, X[:N])
    lines = invoke("search", "model", "--database", "docs.parquet", "--queries", "docs.parquet", "-k", 1).stdout
    assert len(lines.splitlines()) == N
    assert [json.loads(line.partition("\t")[0]) for line in lines.splitlines()[1:2]] == [TEXTS[1]]


def test_encode_keeps_ids_and_columns_and_says_when_it_cannot(folder: Path) -> None:
    write("docs.parquet", TEXTS, X[:N], lang=["en", "de", None] * (N // 3), key=np.arange(N) + 7)
    report = answer("encode", "model", "docs.parquet", "-o", "codes.parquet", "--keep", "lang,key")
    assert (report["id_column"], report["kept"]) == ("id", ["lang", "key"])
    assert parquet.read_table("codes.parquet").column_names == ["id", "code", "lang", "key"]
    assert answer("encode", "model", "docs.parquet", "-o", "b.parquet", "--id-column", "key")["id_column"] == "key"
    assert parquet.read_table("b.parquet")["id"].to_pylist() == list(range(7, N + 7))
    answer("encode", "model", "docs.parquet", "-o", "c.parquet", "--number-rows")
    assert parquet.read_table("c.parquet")["id"].to_pylist() == list(range(N))
    said = invoke("encode", "model", "docs.parquet", "-o", "codes.npy")
    assert said.stderr == "Note: the ids in column 'id' were not kept; write .parquet to keep them\n"
    write("odd.parquet", np.arange(N) / 2.0, X[:N])
    said = invoke("encode", "model", "odd.parquet", "-o", "d.parquet")
    assert said.stderr == "Note: column 'id' holds neither integers nor text nor UUIDs, so ids are row numbers\n"
    for option in (["--keep", "lang"], ["--id-column", "key"]):
        words = f"{option[0]}: codes in a .npy have no columns; write .parquet"
        refused("encode", "model", "docs.parquet", "-o", "codes.npy", *option, words=words)
    both = ["--id-column", "key", "--number-rows"]
    refused("encode", "model", "docs.parquet", "-o", "e.parquet", *both, words="--number-rows: takes row numbers")
    write("twice.parquet", [*TEXTS[:-1], TEXTS[0]], X[:N])
    words = f"twice.parquet: column 'id': ids must be distinct, got {TEXTS[0]!r} at row 0 and again at row {N - 1}"
    refused("encode", "model", "twice.parquet", "-o", "e.parquet", words=words)
    assert not Path("e.parquet").exists()


def test_float_rows_are_found_by_their_ids(folder: Path) -> None:
    write("docs.parquet", TEXTS, X[:N])
    write("turned.parquet", TEXTS[::-1], X[:N][::-1])
    write("others.parquet", TEXTS[1:], X[1:N])
    files = ["--database", "docs.parquet", "--queries", "Q.npy", "--depth", N, "--rescore"]
    found, turned = (
        answer("search", "model", *files, name)["neighbors"] for name in ("docs.parquet", "turned.parquet")
    )
    assert found == turned
    refused(
        "search", "model", *files, "others.parquet", words="but database_vectors (299 row(s)) have no vector for it"
    )


def test_a_csv_file_from_fit_to_search(folder: Path) -> None:
    header = ",".join(["id", *(f"p{i}" for i in range(64))])
    lines = [",".join([f"digit-{row}", *map(str, X[row].tolist())]) for row in range(N)]
    Path("digits.csv").write_text("\n".join([header, *lines]))
    answer("fit", "digits.csv", "--method", "lsh", "--bits", 12, "-o", "of csv")
    answer("encode", "of csv", "digits.csv", "-o", "codes.parquet")
    found = answer("search", "of csv", "--database-codes", "codes.parquet", "--queries", "digits.csv", "-k", 1)
    codes = LSH(n_bits=12, random_state=0).fit(X[:N]).encode(X[:N])
    same = [np.flatnonzero((codes == code).all(axis=1)) for code in codes]
    assert [item["ids"][0] for item in found["neighbors"]] == [min(f"digit-{row}" for row in rows) for rows in same]
    assert sum(len(rows) == 1 for rows in same) > 100
