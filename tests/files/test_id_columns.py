"""Ids and kept columns go from files of rows into files of codes; missing and repeated ones are refused by row."""

from __future__ import annotations

import csv
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.core.progress import Progress
from hashlearn.files import codes_and_ids, describe_codes, encode_file, open_rows, read_labels
from hashlearn.hashers import LSH

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

N = 90
ROWS = np.random.default_rng(0).standard_normal((N, 4))
LANGUAGES = ["en", "de", None] * (N // 3)
TEXTS = [f"doc {i}" for i in range(N - 3)] + ["it's", 'two\nlines, "quoted"', "ü"]
IDS: dict[str, list[Any]] = {
    "int64": [2**63 - 1, *range(5, N + 4)],
    "string": TEXTS,
    "uuid": [uuid.UUID(int=7919 * i + 2**100) for i in range(N)],
}


def column(ids: list[Any]) -> Any:
    if isinstance(ids[0], uuid.UUID):
        storage = pyarrow.array([item.bytes for item in ids], pyarrow.binary(16))
        return pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), storage)
    return pyarrow.array(ids)


def write(name: str, ids: Any, **columns: Any) -> None:
    """rows in columns f0 … f3, ids in front and other columns behind."""
    features = {f"f{i}": ROWS[: len(ids), i] for i in range(4)}
    table = {"id": ids, **features, **columns}
    if name.endswith(".parquet"):
        parquet.write_table(pyarrow.table(table), name, row_group_size=17)
        return
    lists = [values.tolist() if hasattr(values, "tolist") else list(values) for values in table.values()]
    with open(name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*lists, strict=True))


@pytest.fixture(autouse=True)
def hasher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hasher; the current folder is empty."""
    monkeypatch.chdir(tmp_path)
    return LSH(n_bits=12, random_state=0).fit(ROWS)


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_ids_and_columns_come_through(hasher: Any, name: str, kind: str) -> None:
    ids = IDS[kind]
    columns: dict[str, Any] = {"lang": LANGUAGES, "year": np.arange(N) - 3, "day": ["2020-01-01"] * N}
    write(name, column(ids) if name.endswith("parquet") else ids, **columns)
    source = open_rows(name, keep=list(columns))
    assert (source.n_features, source.columns.id) == (4, "id")
    expected = [str(item) for item in ids] if kind == "uuid" else ids  # UUIDs are read as text
    assert source.read_ids().tolist() == expected
    done = encode_file(hasher, source, "codes.parquet", batch_rows=7)
    codes, found = codes_and_ids("codes.parquet", 12)
    np.testing.assert_array_equal(codes, hasher.encode(ROWS))
    assert (found.tolist(), done.id_column) == (expected, "id")
    about = describe_codes("codes.parquet")
    id_type = "int64" if kind == "int64" else "string"
    assert (about.id_type, about.fields, about.rows) == (id_type, ("lang", "year", "day"), N)
    table = parquet.read_table("codes.parquet")
    assert table["lang"].to_pylist() == LANGUAGES
    assert table["year"].to_pylist() == list(range(-3, N - 3))
    assert table["day"].to_pylist() == ["2020-01-01"] * N


def test_a_file_is_the_same_after_an_interruption_and_its_digest_knows_the_columns(hasher: Any) -> None:
    write("rows.parquet", TEXTS, lang=LANGUAGES)
    whole = encode_file(hasher, open_rows("rows.parquet", keep=["lang"]), "whole.parquet")

    def stop(progress: Progress) -> None:
        if progress.done >= 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_file(hasher, open_rows("rows.parquet", keep=["lang"]), "codes.parquet", batch_rows=10, progress=stop)
    write("rows.parquet", TEXTS[::-1], lang=LANGUAGES)  # the same rows under other ids
    other = encode_file(hasher, open_rows("rows.parquet", keep=["lang"]), "codes.parquet", batch_rows=10)
    assert other.resumed_rows == 50
    assert codes_and_ids("codes.parquet", 12)[1].tolist() == TEXTS[::-1]
    write("rows.parquet", TEXTS, lang=LANGUAGES)
    again = encode_file(hasher, open_rows("rows.parquet", keep=["lang"]), "codes.parquet", batch_rows=10)
    assert again.sha256 == whole.sha256
    without = encode_file(hasher, open_rows("rows.parquet::f0,f1,f2,f3"), "codes.parquet")
    assert again.work_sha256 == whole.work_sha256
    assert len({whole.work_sha256, other.work_sha256, without.work_sha256}) == 3


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a", "b", "c", "b"], "column 'id': ids must be distinct, got 'b' at row 1 and again at row 3"),
        ([7, 8, 7], "column 'id': ids must be distinct, got 7 at row 0 and again at row 2"),
        (["a", None, "c"], "column 'id' has no id at row 1; every row needs one"),
        (["a", "", "c"], "column 'id' has no id at row 1; every row needs one"),
        ([4, 5, None], "column 'id' has no id at row 2; every row needs one"),
        (["a", "b" * 2001], "column 'id': ids must not be empty text, and have at most 2,000 bytes"),
    ],
)
def test_missing_and_repeated_ids_are_refused_before_anything_is_written(
    hasher: Any, name: str, ids: list[Any], words: str
) -> None:
    write(name, ids)
    before = sorted(os.listdir())
    with pytest.raises(ValueError, match=f"^{name}: {words}"):
        encode_file(hasher, open_rows(name), "codes.parquet")
    assert sorted(os.listdir()) == before
    assert encode_file(hasher, open_rows(name, id_column=False), "codes.parquet").id_column is None
    assert codes_and_ids("codes.parquet", 12)[1].tolist() == list(range(len(ids)))


def test_ids_that_are_too_large_or_negative_are_refused(hasher: Any) -> None:
    for ids in (pyarrow.array([1, 2**63], pyarrow.uint64()), pyarrow.array([1, -4])):
        write("rows.parquet", ids)
        with pytest.raises(ValueError, match="column 'id': ids must be from 0 to 2"):
            encode_file(hasher, open_rows("rows.parquet"), "codes.parquet")
    write("rows.csv", [1, 2**63])  # text, since it is no 64-bit integer
    assert open_rows("rows.csv").read_ids().tolist() == ["1", str(2**63)]
    write("rows.csv", ["007", "8"])
    assert open_rows("rows.csv").read_ids().tolist() == ["007", "8"]


def test_which_column_holds_the_ids(hasher: Any) -> None:
    write("rows.parquet", np.arange(N) / 2.0, key=TEXTS)
    assert open_rows("rows.parquet::f0,f1,f2,f3").columns.id is None  # numbers with a fraction are no ids
    assert open_rows("rows.parquet::id,f1").columns[:3] == (["id", "f1"], None, ())
    named = open_rows("rows.parquet::f0,f1,f2,f3", id_column="key")
    assert named.read_ids().tolist() == TEXTS
    encode_file(hasher, named, "codes.parquet")
    assert codes_and_ids("codes.parquet", 12)[1].tolist() == TEXTS
    write("rows.parquet", np.arange(N), key=TEXTS)
    assert open_rows("rows.parquet::id,f0").columns.id is None  # it is a feature
    for arguments, words in (
        ({"id_column": "kye"}, "has no column 'kye'; .* did you mean 'key'"),
        ({"id_column": "f0"}, "column 'f0' cannot hold ids, which are integers, text or UUIDs"),
        ({"id_column": "key", "keep": ["key"]}, "column 'key' is the id column"),
        ({"id_column": "key", "keep": ["id"]}, "column 'id' cannot be kept under this name"),
        ({"keep": ["key", "key"]}, "column 'key' is asked for 2 times"),
    ):
        with pytest.raises(ValueError, match=words):
            open_rows("rows.parquet::f1,f2", **arguments)
    with pytest.raises(TypeError, match="keep must be a list of column names"):
        open_rows("rows.parquet", keep="key")
    np.save("rows.npy", ROWS)
    with pytest.raises(ValueError, match=r"rows\.npy: has no columns"):
        open_rows("rows.npy", id_column="id")


def test_ids_of_queries_may_repeat() -> None:
    for ids in (["a", "b", "a"], [3, 1, 3]):
        write("rows.parquet", column(ids))
        assert open_rows("rows.parquet").read_ids(distinct=False).tolist() == ids


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "id,a,b\nx,1,2\ny,3,oops\n",
            "cannot be read as CSV of numbers .*::a,b,c.: In CSV column #2: Row #3: .*'oops'",
        ),
        ("id,a,b\nx,1,2\ny,,3\n", "has no value at row 1, column 'a'; every feature is needed"),
        ("id,a,b\nx,1,2\ny,nan,3\n", "contains NaN at row 1, column 0; features must be finite"),
        ("id,a,b\nx,1,2\ny,1\n", "cannot be read as CSV: .*Expected 3 columns, got 2"),
        ("1,2,3\n4,5,6\n", "its first line must name the columns, got numbers: 1, 2, 3"),
        ("id,a,a\nx,1,2\n", "has 2 columns named 'a'"),
        ("id\nx\n", "has no columns of features beside id"),
        ("id,a\n", r"has shape \(0, 1\)"),
        ("", "cannot be read as CSV: Empty CSV file"),
    ],
)
def test_bad_csv_is_refused_with_its_place(text: str, words: str) -> None:
    Path("rows.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"^rows\.csv: {words}"):
        open_rows("rows.csv").read()


def test_a_bad_cell_far_from_the_start_has_its_row(hasher: Any) -> None:
    lines = [f"{i},{i}.5,{i}" for i in range(200_000)]
    lines[190_000] = "190000,1.5,bad"
    Path("rows.csv").write_text("\n".join(["id,a,b", *lines]))
    with pytest.raises(ValueError, match=r"^rows\.csv: .* Row #190002: .* invalid value 'bad'"):
        open_rows("rows.csv").read()


def test_labels_from_a_csv_file() -> None:
    write("rows.csv", TEXTS, label=["cat", "dog", "cow"] * (N // 3), y=np.arange(N))
    assert read_labels("rows.csv::label")[:3].tolist() == ["cat", "dog", "cow"]
    np.testing.assert_array_equal(read_labels("rows.csv::y"), np.arange(N))
    with pytest.raises(ValueError, match="say which one"):
        read_labels("rows.csv")
