"""Files of codes are those of one process."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hashlearn import distributed
from hashlearn.files import codes_and_ids, encode_file, open_rows
from hashlearn.files.code_files import ORIGIN
from hashlearn.hashers import LSH
from hashlearn.persistence import fingerprint
from hashlearn.search.arrow import about_codes
from tests.distributed.data import clustered, write_files


@pytest.fixture(scope="module")
def fitted():
    X, y = clustered(900, 6)
    return X, y, LSH(n_bits=12, random_state=0).fit(X)


def test_encoding_gives_a_file_for_a_file_and_goes_on_after_a_stop(fitted, tmp_path):
    X, _, hasher = fitted
    files = write_files(tmp_path / "rows", X)
    first = distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    assert (first.rows, first.resumed_files) == (900, 0)
    parts = [codes_and_ids(file, 12) for file in first.files]
    np.testing.assert_array_equal(np.concatenate([codes for codes, _ in parts]), hasher.encode(X))
    np.testing.assert_array_equal(np.concatenate([ids for _, ids in parts]), np.arange(900))
    first.files[1].unlink()
    again = distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    assert again.resumed_files == 2


def test_files_of_codes_name_their_model(fitted, tmp_path):
    X, _, hasher = fitted
    files = write_files(tmp_path / "rows", X)
    found = distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    hasher.save(tmp_path / "model.hashlearn")
    again = distributed.encode(tmp_path / "model.hashlearn", files, tmp_path / "again", n_workers=0)
    assert [file.read_bytes() for file in again.files] == [file.read_bytes() for file in found.files]
    models = {about_codes(pq.read_schema(file)).model for file in found.files}
    assert models == {fingerprint(hasher)}


def encoded(hasher, folder, **options):
    return distributed.encode(hasher, folder / "rows", folder / "codes", n_workers=0, **options)


@pytest.fixture
def done(fitted, tmp_path):
    """Three files of rows, and their codes."""
    X, _, hasher = fitted
    (tmp_path / "rows").mkdir()
    for part in range(3):
        np.save(tmp_path / "rows" / f"part-{part}.npy", X[300 * part : 300 * part + 300])
    return tmp_path, encoded(hasher, tmp_path)


def test_an_input_with_the_old_size_and_time_is_encoded_anew(fitted, done):
    X, _, hasher = fitted
    folder, _ = done
    path = folder / "rows" / "part-1.npy"
    before = path.stat()
    np.save(path, -X[300:600])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = encoded(hasher, folder)
    assert again.resumed_files == 2
    np.testing.assert_array_equal(codes_and_ids(again.files[1], 12)[0], hasher.encode(-X[300:600]))


def test_damaged_outputs_are_made_again(fitted, done):
    _, _, hasher = fitted
    folder, first = done
    whole = first.files[0].read_bytes()
    at = whole.index(codes_and_ids(first.files[0], 12)[0].tobytes()[:8])
    first.files[0].write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
    first.files[1].write_bytes(whole[:100])
    assert encoded(hasher, folder).resumed_files == 1
    assert first.files[0].read_bytes() == whole
    np.testing.assert_array_equal(codes_and_ids(first.files[1], 12)[1], np.arange(300, 600))


@pytest.mark.parametrize("damage", [b"[]", b"\xff", b"null", b'{"work": 1}', b"[" * 100_000])
def test_files_with_damaged_metadata_are_made_again(fitted, done, damage):
    _, _, hasher = fitted
    folder, first = done
    table = pq.read_table(first.files[2])
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, ORIGIN: damage}), first.files[2])
    assert encoded(hasher, folder).resumed_files == 2
    assert encoded(hasher, folder).resumed_files == 3


def test_a_model_file_that_was_replaced_is_read_again(fitted, tmp_path):
    X, _, hasher = fitted
    np.save(tmp_path / "rows.npy", X)
    for model in (hasher, LSH(n_bits=12, random_state=1).fit(X)):
        model.save(tmp_path / "model")
        found = distributed.encode(tmp_path / "model", tmp_path / "rows.npy", tmp_path / "codes", n_workers=0)
        np.testing.assert_array_equal(codes_and_ids(found.files[0], 12)[0], model.encode(X))


def test_codes_of_inputs_that_are_gone_are_removed(fitted, done):
    _, _, hasher = fitted
    folder, _ = done
    (folder / "rows" / "part-0.npy").unlink()
    assert encoded(hasher, folder).rows == 600
    assert {path.name for path in (folder / "codes").iterdir()} == {"part-1.parquet", "part-2.parquet"}


def test_codes_of_other_inputs_are_neither_removed_nor_mixed_with(fitted, done):
    _, _, hasher = fitted
    folder, _ = done
    before = sorted(path.name for path in (folder / "codes").iterdir())
    with pytest.raises(
        ValueError, match=r"codes: holds codes that are not of these inputs \(part-0\.parquet, part-2\.parquet\)"
    ):
        distributed.encode(hasher, folder / "rows" / "part-1.npy", folder / "codes", n_workers=0)
    mine = [folder / "codes" / "mine.parquet", folder / "codes" / "encoded.parquet"]
    mine[0].write_bytes(b"the user's own")
    encode_file(hasher, open_rows(folder / "rows" / "part-1.npy"), mine[1])
    assert encoded(hasher, folder).resumed_files == 3
    for path in mine:
        path.unlink()
    assert sorted(path.name for path in (folder / "codes").iterdir()) == before


def test_parquet_files_without_rows_are_left_out(fitted, tmp_path):
    X, y, hasher = fitted
    rows = write_files(tmp_path / "rows", X, y)
    table = pq.read_table(rows / "part-0.parquet")
    pq.write_table(table.slice(0, 0), rows / "part-00.parquet")
    learned = distributed.fit(rows, "label", n_bits=4, n_workers=0)
    assert learned.n_samples_fit_ == 900
    only_rows = write_files(tmp_path / "only_rows", X)
    pq.write_table(table.select(["x"]).slice(0, 0), only_rows / "part-00.parquet")
    codes = distributed.encode(hasher, only_rows, tmp_path / "codes", n_workers=0)
    assert (codes.rows, len(codes.files)) == (900, 3)
    with pytest.raises(ValueError, match=r"part-00\.parquet: has no rows"):
        distributed.fit(rows / "part-00.parquet", n_workers=0)


@pytest.mark.parametrize("second", ["reversed", "renamed"])
def test_without_feature_names_all_files_need_the_columns_of_the_first(fitted, tmp_path, second):
    X, _, hasher = fitted
    (tmp_path / "rows").mkdir()
    columns = {f"c{column}": X[:450, column] for column in range(X.shape[1])}
    pq.write_table(pa.table(columns), tmp_path / "rows" / "a.parquet")
    columns = {f"c{column}": X[450:, column] for column in range(X.shape[1])}
    other = dict(reversed(columns.items())) if second == "reversed" else {f"b{name}": columns[name] for name in columns}
    pq.write_table(pa.table(other), tmp_path / "rows" / "b.parquet")
    with pytest.raises(
        ValueError,
        match=rf"b\.parquet: its rows .*a\.parquet in .*, got '{next(iter(other))}' as column 0 .* 'c0'",
    ):
        distributed.encode(hasher, tmp_path / "rows", tmp_path / "codes", n_workers=0)
    assert not list((tmp_path / "codes").iterdir())


def test_with_feature_names_files_may_have_their_columns_in_any_order(tmp_path):
    X = np.random.default_rng(0).standard_normal((900, 5))
    names = [f"c{column}" for column in range(5)]
    hasher = LSH(n_bits=12, random_state=0).fit(pd.DataFrame(X, columns=names))
    (tmp_path / "rows").mkdir()
    for part, order in enumerate((range(5), reversed(range(5)))):
        rows = X[450 * part : 450 * part + 450]
        table = pa.table({names[column]: rows[:, column] for column in order})
        pq.write_table(table, tmp_path / "rows" / f"part-{part}.parquet")
    found = distributed.encode(hasher, tmp_path / "rows", tmp_path / "codes", n_workers=0)
    codes = np.concatenate([codes_and_ids(file, 12)[0] for file in found.files])
    np.testing.assert_array_equal(codes, hasher.encode(pd.DataFrame(X, columns=names)))
