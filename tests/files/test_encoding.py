"""Encoding by shards: after kills, full disks and changes the file is the one that an undisturbed run writes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hashlearn.core.progress import Progress
from hashlearn.files import CodesFile, codes_and_ids, codes_table, describe_codes, encode_file, encode_rows, open_rows
from hashlearn.hashers import LSH
from hashlearn.persistence import fingerprint
from hashlearn.search.about import About
from hashlearn.search.arrow import about_codes
from hashlearn.search.stores import STORES, export_codes
from tests.search.codes import engine

ROWS = np.random.default_rng(0).standard_normal((1000, 16)).astype(np.float32)


@pytest.fixture
def hasher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hasher, with its model and rows in the current folder."""
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", ROWS)
    fitted = LSH(n_bits=33, random_state=0).fit(ROWS)
    fitted.save("model")
    return fitted


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Stop(Exception):
    """Raised in the middle."""


def stopped_after(rows: int) -> Any:
    def stop(progress: Progress) -> None:
        if progress.done >= rows:
            raise Stop

    return stop


@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
def test_the_file_is_the_same_however_often_it_was_stopped(hasher: Any, output: str) -> None:
    if output.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    source = open_rows("rows.npy")
    whole = encode_file(hasher, source, f"whole-{output}")
    for rows in (50, 200, 700):
        with pytest.raises(Stop):
            encode_file(hasher, source, output, batch_rows=50, progress=stopped_after(rows))
        assert not Path(output).exists()
    done = encode_file(hasher, source, output, batch_rows=50)
    assert (done.resumed_rows, done.rows, done.n_bits) == (700, 1000, 33)
    assert done.sha256 == whole.sha256 == digest(output) == digest(f"whole-{output}")
    np.testing.assert_array_equal(encode_rows(hasher, source, batch_rows=77), hasher.encode(ROWS))
    assert [path.name for path in Path().glob(".*")] == []


def test_codes_of_another_model_are_refused_with_both_names(hasher: Any) -> None:
    pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    name = "codes.parquet"
    model, other = fingerprint(hasher), fingerprint(LSH(n_bits=33, random_state=1).fit(ROWS))
    assert model is not None
    assert other is not None
    encode_file(hasher, open_rows("rows.npy"), name, model_name="old.model")
    np.testing.assert_array_equal(codes_and_ids(name, 33, model)[0], hasher.encode(ROWS))
    work_sha256 = describe_codes(name).work_sha256
    assert describe_codes(name) == CodesFile(1000, 33, model, "old.model", work_sha256=work_sha256)
    words = rf"^{re.escape(name)}: has codes of model {model[:12]} \(old\.model\), not of {other[:12]} \(new\); encode"
    with pytest.raises(ValueError, match=words):
        codes_and_ids(name, 33, other, "new")
    with pytest.raises(ValueError, match="these are codes of 33 bits, the model makes 34"):
        codes_and_ids(name, 34)


def test_codes_of_a_hasher_without_a_digest_name_no_model(hasher: Any) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

    class Mine(LSH):
        """Not one of `HASHERS`."""

    encode_file(Mine(n_bits=33, random_state=0).fit(ROWS), open_rows("rows.npy"), "codes.parquet")
    assert about_codes(parquet.read_schema("codes.parquet")).model is None
    assert len(codes_and_ids("codes.parquet", 33, fingerprint(hasher))[0]) == 1000


def stopped_halfway(hasher: Any, **changes: Any) -> None:
    arguments = {"batch_rows": 50, "identity": "a", **changes}
    with pytest.raises(Stop):
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", progress=stopped_after(500), **arguments)


def test_shards_of_other_work_are_not_taken_up(hasher: Any) -> None:
    expected = encode_file(hasher, open_rows("rows.npy"), "whole.npy").sha256
    for change in ({"identity": "b"}, {"batch_rows": 49}):
        stopped_halfway(hasher, **change)
        done = encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=50, identity="a")
        assert (done.resumed_rows, done.sha256) == (0, expected)
    stopped_halfway(hasher)
    np.save("rows.npy", -ROWS)
    done = encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=50, identity="a")
    assert done.resumed_rows == 0
    np.testing.assert_array_equal(np.load("codes.npy"), hasher.encode(-ROWS))


def swap_in(rows: np.ndarray, name: str) -> None:
    """Replace the content of a file; name, size and mtime stay."""
    before = os.stat(name)
    np.save(name, rows)
    os.utime(name, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(name)
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_only_what_comes_before_a_change_is_taken_up(hasher: Any) -> None:
    stopped_halfway(hasher)
    changed = ROWS.copy()
    changed[210] *= -1.0
    swap_in(changed, "rows.npy")
    done = encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=50, identity="a")
    assert done.resumed_rows == 200
    np.testing.assert_array_equal(np.load("codes.npy"), hasher.encode(changed))


def test_another_hasher_is_not_taken_for_the_first(hasher: Any) -> None:
    other = LSH(n_bits=33, random_state=1).fit(ROWS)
    stopped_halfway(hasher, identity="")
    done = encode_file(other, open_rows("rows.npy"), "codes.npy", batch_rows=50)
    assert done.resumed_rows == 0
    np.testing.assert_array_equal(np.load("codes.npy"), other.encode(ROWS))
    stopped_halfway(hasher, identity="")
    again = LSH(n_bits=33, random_state=0).fit(ROWS)
    assert encode_file(again, open_rows("rows.npy"), "codes.npy", batch_rows=50).resumed_rows == 500


def test_a_hasher_that_cannot_be_saved_needs_an_identity(hasher: Any) -> None:
    class Mine(LSH):
        """A hasher of the user's."""

    mine = Mine(n_bits=33, random_state=0).fit(ROWS)
    for identity, resumed in (("", 0), ("mine", 500)):
        stopped_halfway(mine, identity=identity)
        done = encode_file(mine, open_rows("rows.npy"), "codes.npy", batch_rows=50, identity=identity)
        assert done.resumed_rows == resumed


def test_the_digest_of_the_work_is_that_of_hasher_and_rows(hasher: Any) -> None:
    source = open_rows("rows.npy")
    (digest,) = {encode_file(hasher, source, "codes.npy", batch_rows=size).work_sha256 for size in (1000, 70)}
    other = LSH(n_bits=33, random_state=1).fit(ROWS)
    assert encode_file(other, source, "codes.npy").work_sha256 != digest
    assert encode_file(hasher, source, "codes.npy", first_id=7).work_sha256 != digest
    np.save("rows.npy", ROWS.astype(np.float64))
    assert encode_file(hasher, open_rows("rows.npy"), "codes.npy").work_sha256 != digest


def test_a_whole_file_of_the_same_codes_is_left_as_it_is(hasher: Any) -> None:
    engine("pyarrow")

    def encoded(source: Any, **more: Any) -> tuple[int, bool]:
        """Resumed rows, and whether the file was written."""
        before = os.stat("codes.parquet").st_ino
        done = encode_file(hasher, source, "codes.parquet", **more)
        assert (done.sha256, done.bytes) == (digest("codes.parquet"), os.path.getsize("codes.parquet"))
        return done.resumed_rows, os.stat("codes.parquet").st_ino != before

    source = open_rows("rows.npy")
    whole = encode_file(hasher, source, "codes.parquet")
    assert encoded(source, batch_rows=70) == (1000, False)
    data = bytearray(Path("codes.parquet").read_bytes())
    data[data.index(hasher.encode(ROWS).tobytes()[:8])] ^= 1
    Path("codes.parquet").write_bytes(data)
    assert encoded(source) == (0, True)
    assert digest("codes.parquet") == whole.sha256
    for change in ({"first_id": 5}, {"model_name": "other"}):
        assert encoded(source, **change) == (0, True)
    assert encoded(source) == (0, True)
    np.save("rows.npy", -ROWS)
    assert encoded(open_rows("rows.npy")) == (0, True)
    np.testing.assert_array_equal(codes_and_ids("codes.parquet", 33)[0], hasher.encode(-ROWS))


def test_damaged_shards_are_made_again(hasher: Any) -> None:
    expected = encode_file(hasher, open_rows("rows.npy"), "whole.npy").sha256
    stopped_halfway(hasher)
    shards = sorted(Path(".codes.npy.shards").iterdir())
    damaged, cut, gone, other = (shards[place] for place in (1, 4, 7, 8))
    data = bytearray(damaged.read_bytes())
    data[3] ^= 1
    damaged.write_bytes(data)
    cut.write_bytes(cut.read_bytes()[:-1])
    gone.unlink()
    other.write_bytes(shards[0].read_bytes())
    done = encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=50, identity="a")
    assert (done.resumed_rows, done.sha256) == (300, expected)


def test_two_at_once_mix_nothing_and_foreign_files_stay(hasher: Any) -> None:
    def second(progress: Progress) -> None:
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500)

    Path(".codes.npy.shards").mkdir()
    Path(".codes.npy.shards/mine.txt").write_text("keep me")
    with pytest.raises(ValueError, match="was damaged or removed just now; run again"):
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500, progress=second)
    np.testing.assert_array_equal(np.load("codes.npy"), hasher.encode(ROWS))
    encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500)
    assert [path.name for path in Path(".codes.npy.shards").iterdir()] == ["mine.txt"]


def test_an_input_that_changes_meanwhile_is_refused(hasher: Any) -> None:
    def grow(progress: Progress) -> None:
        os.utime("rows.npy", ns=(0, int(progress.done)))

    with pytest.raises(ValueError, match=r"rows\.npy: changed while it was encoded"):
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500, progress=grow)
    assert not Path("codes.npy").exists()
    assert encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500).resumed_rows == 1000
    assert sorted(os.listdir()) == ["codes.npy", "model", "rows.npy"]


def test_an_input_that_changes_under_its_old_time_is_refused(hasher: Any) -> None:
    def swap(progress: Progress) -> None:
        time.sleep(0.05)  # more than a tick of the clock of the file system
        swap_in(-ROWS, "rows.npy")

    with pytest.raises(ValueError, match=r"rows\.npy: changed while it was encoded"):
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=500, progress=swap)
    assert not Path("codes.npy").exists()


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from hashlearn import load
from hashlearn.files import encode_file, open_rows
hasher = load("wide")
hasher.encode(np.zeros((3, 2000)))
pages = int(Path("/proc/self/statm").read_text().split()[5])  # of data; a mapped file is none
limit = pages * resource.getpagesize() + 300 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
print(encode_file(hasher, open_rows(sys.argv[1]), "codes.npy", batch_rows=4000).rows)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to know how much is in use")
def test_a_file_larger_than_the_memory_that_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hasher = LSH(n_bits=33, random_state=0).fit(np.random.default_rng(0).standard_normal((10, 2000)))
    hasher.save("wide")
    n = 60_000
    with open("large.npy", "wb") as file:  # 480 MB of zeros that take no space
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, 2000)})
        file.truncate(file.tell() + n * 8000)
    command = [sys.executable, "-c", LIMITED, "large.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == (f"{n}\n", 0), done.stderr
    codes = np.load("codes.npy", mmap_mode="r")
    assert codes.shape == (n, 5)
    np.testing.assert_array_equal(codes[[0, n // 2, n - 1]], hasher.encode(np.zeros((3, 2000), np.float32)))


def test_one_line_from_a_plan_or_a_hasher_to_a_store(hasher: Any) -> None:
    engine("pyarrow")
    engine("sqlite_vec")
    ids, year = [f"doc {row}" for row in range(len(ROWS))], np.arange(len(ROWS))
    plan = SimpleNamespace(hasher=hasher)
    for model in (hasher, plan):
        export_codes(codes_table(model, ROWS, ids=ids, fields={"year": year}), "sqlite_vec", "codes.db", table="docs")
    with STORES["sqlite_vec"].open("codes.db", About(33, "string", fields={"year": int}), table="docs") as store:
        found = store.search(hasher.encode(ROWS[7:8]), k=1, where={"year": 7})
        assert (len(store), store.model, found.indices.tolist()) == (1000, fingerprint(hasher), [["doc 7"]])
    table = codes_table(hasher, ROWS[:3])
    assert (table["id"].to_pylist(), about_codes(table.schema).model) == ([0, 1, 2], fingerprint(hasher))
    with pytest.raises(ValueError, match="ids must have one entry for each of the 3"):
        codes_table(hasher, ROWS[:3], ids=[1])


def test_bad_rows_name_file_and_place(hasher: Any) -> None:
    rows = ROWS.astype(np.float64)
    rows[730] = 1e200
    np.save("rows.npy", rows)
    with pytest.raises(ValueError, match=r"rows\.npy: rows 700 to 799: X has an entry of size 1e\+200"):
        encode_file(hasher, open_rows("rows.npy"), "codes.npy", batch_rows=100)
    with pytest.raises(ValueError, match="codes are written as"):
        encode_file(hasher, open_rows("rows.npy"), "codes.bin")
    assert sorted(os.listdir()) == [".codes.npy.shards", "model", "rows.npy"]


@pytest.mark.parametrize("bad", [np.nan, 1e200])  # refused by the reader, and by the hasher
@pytest.mark.parametrize("output", ["codes.npy", "codes.parquet"])
def test_batches_before_a_bad_row_are_not_encoded_again(hasher: Any, bad: float, output: str) -> None:
    if output.endswith(".parquet"):
        pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = ROWS.astype(np.float64)
    np.save("rows.npy", rows)
    expected = encode_file(hasher, open_rows("rows.npy"), f"whole-{output}").sha256
    before = sorted(os.listdir())
    np.save("rows.npy", np.full_like(rows, bad))
    with pytest.raises(ValueError, match=r"rows\.npy: "):
        encode_file(hasher, open_rows("rows.npy"), output, batch_rows=100)
    assert sorted(os.listdir()) == before  # no batch was done
    rows[970] = bad
    np.save("rows.npy", rows)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"rows\.npy: .*(row 970|rows 900 to 999)"):
            encode_file(hasher, open_rows("rows.npy"), output, batch_rows=100)
    rows[970] = ROWS[970]
    np.save("rows.npy", rows)
    done = encode_file(hasher, open_rows("rows.npy"), output, batch_rows=100)
    assert (done.resumed_rows, done.sha256) == (900, expected)
    assert set(os.listdir()) - set(before) == {output}
