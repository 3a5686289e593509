"""The results folder: what is read back, what is refused and how, what counts as missing."""

from __future__ import annotations

import json

import pytest

from hashlearn.experiments.bench import asked
from hashlearn.experiments.bench.blocks import blocks
from hashlearn.experiments.bench.cell import run_cell
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import ResultError, as_text, read, write_cell, write_error
from hashlearn.experiments.bench.tables import Cell
from tests.experiments.bench import fakes

CELL = Cell("inference", "digits", "Quick", 8, 1)


@pytest.fixture(scope="module")
def record():
    fakes.register()
    made = json.loads(as_text(run_cell(CELL, fakes.dataset())))
    fakes.unregister()  # before each test's own registration, which restores what it found
    return made


@pytest.fixture
def folder(tmp_path, record):
    write_cell(tmp_path, CELL, as_text(record))
    return tmp_path


def test_what_is_written_is_read_back(folder, record):
    assert (folder / "inference" / "digits" / "Quick" / "8-1.json").is_file()
    found = read(folder)
    assert found.records == {CELL: record}
    assert found.cells == (record,)
    (block,) = blocks(found.cells)
    assert (block.table.name, block.dataset) == ("inference", "digits")
    assert block.at("Quick", 8) == [record]
    assert block.at("Quick", 16) == []


def test_missing_are_the_cells_that_were_asked_for(folder):
    asked.record(folder, plan("inference", ["digits"], ["Quick", "SDR"], [8], 2), "digits")
    asked.record(folder, plan("inference", ["digits"], ["AL"], [4], 1), "digits")
    pairs = [("SDR", 8, 0), ("SDR", 8, 1), ("AL", 4, 0), ("Quick", 8, 0)]
    assert read(folder).missing == tuple(Cell("inference", "digits", *pair) for pair in pairs)


def test_methods_are_shown_in_the_order_in_which_they_were_asked_for():
    names = ("mine:Mine", "ITQ", "SDH", "KSH")
    records = [{"cell": {"table": "supervised", "dataset": "d", "method": name, "n_bits": 8}} for name in sorted(names)]
    asked_for = {("supervised", "d"): asked.Asked("d.npz", runs=(asked.Run(names, (8,), 1),))}
    assert blocks(records, asked_for)[0].methods == list(names)
    assert blocks(records)[0].methods == ["KSH", "ITQ", "SDH", "mine:Mine"]


def test_what_was_asked_is_written_once(folder):
    wide, narrow = (plan("inference", ["digits"], ["Quick", "SDR"], bits, 2) for bits in ([8, 16], [8]))
    for wanted in (narrow, wide, narrow):
        asked.record(folder, wanted, "digits")
    found = asked.read_asked(folder, "inference", "digits")
    assert found is not None
    assert found.runs == tuple(asked.Run(("Quick", "SDR"), bits, 2) for bits in ((8,), (8, 16)))
    path = folder / "inference" / "digits" / "asked.json"
    path.write_text('{"schema": 1}')
    with pytest.raises(ResultError, match=r"asked\.json: is damaged; delete it"):
        read(folder)


def test_with_cells_only_those_count(folder, record):
    absent, never = Cell("inference", "digits", "Quick", 8, 0), Cell("inference", "digits", "Slow", 8, 0)
    found = read(folder, [CELL, absent, never])
    assert found.records == {CELL: record}
    assert found.missing == (absent, never)
    assert found.reason(absent) == "not run yet"
    assert found.reason(never) == "not run yet"


def test_the_last_error_of_a_missing_cell_is_told_until_it_succeeds(folder, record):
    other = Cell("inference", "digits", "SDR", 8, 0)
    write_error(folder, other, "RuntimeError: out of luck", "Traceback\n  somewhere\n")
    found = read(folder)
    assert found.reason(other) == "failed: RuntimeError: out of luck"
    assert found.failures[other].traceback == "Traceback\n  somewhere\n"
    assert json.loads(found.failures[other].path.read_text())["cell"]["method"] == "SDR"
    write_cell(folder, other, as_text({**record, "cell": {**record["cell"], "method": "SDR", "draw": 0}}))
    assert read(folder).failures == {}
    assert not list(folder.rglob("*.error.*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": 1, "cell"', "8-1.json: is damaged, not whole JSON; delete it"),
        (b"", "8-1.json: is damaged"),
        (b"\xff\xfe\x00", "8-1.json: is damaged"),
        (b"[1, 2]", "8-1.json: is not a result of `hashlearn bench`; move it away"),
        (b'{"precision": 0.5}', "8-1.json: is not a result of `hashlearn bench`"),
        (b'{"schema": 2, "cell": {}}', "8-1.json: lacks cell, protocol"),
    ],
)
def test_damaged_and_foreign_files_are_refused_by_name(folder, content, message):
    (folder / CELL.path).write_bytes(content)
    for cells in (None, [CELL]):
        with pytest.raises(ResultError, match=message):
            read(folder, cells)


def test_another_schema_is_refused(folder, record):
    (folder / CELL.path).write_text(json.dumps({**record, "schema": 1}))
    with pytest.raises(ResultError, match=r"8-1.json: was stored in format 1, this version reads and writes 2"):
        read(folder)


def test_a_result_in_the_wrong_place_is_refused(folder, record):
    wrong = folder / "inference" / "digits" / "Quick" / "16-0.json"
    wrong.write_text(as_text(record))
    with pytest.raises(ResultError, match=r"16-0.json: holds another cell's result"):
        read(folder)


@pytest.mark.parametrize("name", ["inference/notes.json", "inference/digits/Quick/first.json", "knn/a/b/c/8-0.json"])
def test_other_json_files_in_a_tables_folder_are_refused(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    with pytest.raises(ResultError, match=f"{path.name}: is not a result"):
        read(folder)


def test_what_lies_beside_the_tables_is_no_concern(folder):
    (folder / "other.json").write_text("nonsense")
    (folder / "bqp").mkdir()
    (folder / "bqp" / "1-1.json").write_text("{}")
    (folder / "inference" / "notes.txt").write_text("mine")
    assert len(read(folder).records) == 1


def test_no_folder_and_no_results(tmp_path):
    with pytest.raises(ResultError, match="nowhere: there is no such folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(ResultError, match="no results of `hashlearn bench` in this folder"):
        read(tmp_path)


def test_half_written_files_are_ignored(folder):
    (folder / CELL.path).with_name(".8-2.json.xyz.unfinished").write_text('{"schema"')
    assert len(read(folder).records) == 1
