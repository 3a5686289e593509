"""Codes in Parquet and Arrow come back as they were."""

from __future__ import annotations

import uuid
from pathlib import Path

import numpy as np
import pytest

from hashlearn.search import arrow
from hashlearn.search.about import About
from hashlearn.search.ids import TEXT
from tests.search.codes import engine, random_codes, some_ids

WIDTHS = [12, 33, 64, 100]
IDS = np.random.default_rng(0).permutation(1000)[:80]


@pytest.mark.parametrize("n_bits", WIDTHS)
@pytest.mark.parametrize("n", [0, 80])
def test_parquet(tmp_path: Path, n_bits: int, n: int) -> None:
    parquet = engine("pyarrow.parquet")
    codes = random_codes(80, n_bits)[:n]
    parquet.write_table(arrow.to_arrow(codes, IDS[:n], n_bits), tmp_path / "a.parquet")
    back, ids, bits = arrow.from_arrow(parquet.read_table(tmp_path / "a.parquet"))
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(ids, IDS[:n])
    assert bits == n_bits


def test_parquet_with_text(tmp_path: Path) -> None:
    pyarrow, parquet = engine("pyarrow"), engine("pyarrow.parquet")
    codes, ids = random_codes(80, 33), some_ids(TEXT, 80)
    parquet.write_table(arrow.to_arrow(codes, ids, 33, fields={"lang": ["en"] * 80}), tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    back, back_ids, _ = arrow.from_arrow(table)
    np.testing.assert_array_equal(back, codes)
    assert back_ids.tolist() == ids
    assert table["id"].type == pyarrow.string()
    assert table["lang"].to_pylist() == ["en"] * 80


@pytest.mark.parametrize("named", [True, False])
def test_uuids_are_read_as_text(named: bool) -> None:
    pyarrow = engine("pyarrow")
    ids = [uuid.UUID(int=7919 * number + 2**100) for number in range(80)]
    storage = pyarrow.array([item.bytes for item in ids], pyarrow.binary(16))
    column = pyarrow.ExtensionArray.from_storage(pyarrow.uuid(), storage) if named else storage
    table = arrow.to_arrow(random_codes(80, 33), IDS, 33).set_column(0, "id", column)
    assert arrow.about_codes(table.schema).id_type == TEXT
    assert arrow.from_arrow(table)[1].tolist() == [str(item) for item in ids]


def test_arrow_slices_chunks_and_foreign_tables() -> None:
    pyarrow = engine("pyarrow")
    codes = random_codes(80, 33)
    table = arrow.to_arrow(codes, IDS, 33)
    np.testing.assert_array_equal(arrow.from_arrow(table.slice(7, 20))[0], codes[7:27])
    joined = pyarrow.concat_tables([table.slice(0, 30), table.slice(30)])
    np.testing.assert_array_equal(arrow.from_arrow(joined)[0], codes)
    assert table["code"][0].as_py() == codes[0].tobytes()
    with pytest.raises(ValueError, match="metadata of to_arrow"):
        arrow.from_arrow(table.replace_schema_metadata({}))
    for text in ("", "7", "{}", '{"n_bits": 33}', "[" * 100_000):
        with pytest.raises(ValueError, match="metadata of to_arrow"):
            arrow.from_arrow(table.replace_schema_metadata({arrow.ABOUT: text}))
    with pytest.raises(ValueError, match=r"5 byte\(s\)"):
        arrow.from_arrow(table.replace_schema_metadata({arrow.ABOUT: About(41).to_json()}))


def test_a_file_of_codes_is_read_once_in_batches_with_the_fields_that_are_asked_for(tmp_path: Path) -> None:
    pyarrow, parquet = engine("pyarrow"), engine("pyarrow.parquet")
    codes, path = random_codes(80, 33), tmp_path / "a.parquet"
    fields = {"lang": ["en"] * 80, "year": IDS, "vector": [[1.0]] * 80}  # stores keep no vectors
    parquet.write_table(arrow.to_arrow(codes, IDS, 33, model="a" * 64, fields=fields), path)
    reader = arrow.read_codes(path)
    assert isinstance(reader, pyarrow.RecordBatchReader)
    assert arrow.about_codes(reader.schema) == About(33, "int64", "a" * 64, {"lang": "text", "year": "integer"})
    path.unlink()  # it is open
    assert reader.read_all()["year"].to_pylist() == IDS.tolist()
    parquet.write_table(arrow.to_arrow(codes, IDS, 33, fields=fields), path)
    assert arrow.read_codes(path, fields=["year"]).read_all().column_names == ["id", "code", "year"]
    assert About.from_json(arrow.read_codes(path, fields=[]).schema.metadata[arrow.ABOUT]).fields == {}
    with pytest.raises(ValueError, match=r"fields must be .*'lang'.*, got 'lnag'"):
        arrow.read_codes(path, fields=["lnag"])


def test_damaged_and_other_files_are_refused_by_name(tmp_path: Path) -> None:
    pyarrow, parquet = engine("pyarrow"), engine("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"id": [1]}), path)
    with pytest.raises(ValueError, match=r"a\.parquet: is not a file of codes, as encode writes them"):
        arrow.read_codes(path)
    codes = random_codes(2000, 64)
    parquet.write_table(arrow.to_arrow(codes, np.arange(2000), 64), path, compression="snappy", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[200:4000] = bytes(3800)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.parquet: cannot be read as Parquet"):
        arrow.read_codes(path).read_all()
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match=r"a\.parquet: cannot be read as Parquet"):
        arrow.read_codes(path)
    with pytest.raises(FileNotFoundError):
        arrow.read_codes(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="not a regular file"):
        arrow.read_codes(tmp_path)
