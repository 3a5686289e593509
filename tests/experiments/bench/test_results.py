"""The results folder: what is read back, what is ignored or refused, what counts as missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from hashlearn.experiments.bench import plans
from hashlearn.experiments.bench.blocks import blocks
from hashlearn.experiments.bench.cell import run_cell
from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.methods import METHODS, UNSUPERVISED
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import (
    PLAN_FILE,
    Request,
    ResultError,
    Run,
    read,
    read_requests,
    store,
    store_error,
    store_request,
)
from hashlearn.experiments.bench.tables import TABLES, Cell
from hashlearn.experiments.datasets import Source
from tests.experiments.bench import fakes

CELL = Cell("inference", "digits", "Quick", 8, 1)


def small_plan(methods=("Quick",), bits=(8,), n_draws=2, choice=None):
    return plan("inference", ["digits"], list(methods), list(bits), n_draws, choice=choice)


@pytest.fixture(scope="module")
def record():
    fakes.register()
    made = run_cell(CELL, fakes.dataset())
    fakes.unregister()  # before each test's own registration, which restores what it found
    return made


@pytest.fixture
def wanted():
    return small_plan()


@pytest.fixture
def folder(tmp_path, record, wanted):
    """A folder with the second of two draws."""
    store_request(tmp_path, wanted, "digits")
    store(tmp_path, CELL, wanted.keys[CELL], record)
    return tmp_path


@pytest.fixture
def file(folder, wanted):
    return folder / CELL.file(wanted.keys[CELL])


def test_what_is_written_is_read_back(folder, file, record, wanted):
    assert file.is_file()
    stored = {**json.loads(json.dumps(record)), "key": wanted.keys[CELL]}
    found = read(folder)
    assert found.records == read(folder, wanted.keys).records == {CELL: stored}
    assert found.missing == (replace(CELL, draw=0),)
    assert found.reason(found.missing[0]) == "not run yet"
    (block,) = blocks(found.cells)
    assert (block.table.name, block.dataset) == ("inference", "digits")
    assert block.at("Quick", 8) == [stored]
    assert block.at("Quick", 16) == []


def test_missing_are_the_cells_that_were_asked_for(folder):
    store_request(folder, small_plan(["Quick", "SDR"]), "digits")
    store_request(folder, small_plan(["AL"], [4], 1), "digits")
    pairs = [("SDR", 8, 0), ("SDR", 8, 1), ("AL", 4, 0), ("Quick", 8, 0)]
    assert read(folder).missing == tuple(Cell("inference", "digits", *pair) for pair in pairs)


def test_methods_are_shown_in_the_order_in_which_they_were_asked_for():
    names = ("mine:Mine", "ITQ", "SDH", "KSH")
    records = [{"cell": {"table": "supervised", "dataset": "d", "method": name, "n_bits": 8}} for name in sorted(names)]
    requests = {("supervised", "d"): Request("d.npz", runs=(Run(names, (8,), 1),))}
    assert blocks(records, requests)[0].methods == list(names)
    assert blocks(records)[0].methods == ["KSH", "ITQ", "SDH", "mine:Mine"]


def test_what_was_asked_is_written_once(tmp_path):
    narrow, wide = small_plan(["Quick", "SDR"]), small_plan(["Quick", "SDR"], [8, 16])
    for wanted in (narrow, wide):
        assert not store_request(tmp_path, wanted, "digits")
    stamp = (tmp_path / PLAN_FILE).stat().st_mtime_ns
    assert not store_request(tmp_path, narrow, "digits")
    assert (tmp_path / PLAN_FILE).stat().st_mtime_ns == stamp
    (request,) = read_requests(tmp_path).values()
    assert request.runs == tuple(Run(("Quick", "SDR"), bits, 2) for bits in ((8,), (8, 16)))
    assert request.keys == wide.keys


def test_a_request_with_other_options_takes_the_place_of_the_one_before_and_its_results_stay(folder, wanted):
    smaller = small_plan(choice=Choice(train_per_class=20))
    assert store_request(folder, smaller, "digits")
    assert not set(smaller.keys.values()) & set(wanted.keys.values())
    with pytest.raises(ResultError, match="no results of `hashlearn bench` in this folder"):
        read(folder)
    assert store_request(folder, wanted, "digits")
    assert list(read(folder).records) == [CELL]


def test_the_last_error_of_a_missing_cell_is_told_until_it_succeeds(folder, record):
    wanted = small_plan(["Quick", "SDR"])
    store_request(folder, wanted, "digits")
    other = Cell("inference", "digits", "SDR", 8, 0)
    store_error(folder, other, wanted.keys[other], "RuntimeError: out of luck", "Traceback\n  somewhere\n")
    found = read(folder)
    assert found.reason(other) == "failed: RuntimeError: out of luck"
    held = json.loads(found.failures[other].path.read_text())
    assert (held["cell"]["method"], held["traceback"]) == ("SDR", "Traceback\n  somewhere\n")
    described = {**record["cell"], "method": "SDR", "draw": 0}
    store(folder, other, wanted.keys[other], {**record, "cell": described})
    assert read(folder).failures == {}
    assert not list(folder.rglob("*.error.*"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"schema": 1, "cell"', "is damaged, no whole JSON file; move it away"),
        (b"", "is damaged"),
        (b"\xff\xfe\x00", "is damaged"),
        (b"[1, 2]", "is no file of `hashlearn bench`; move it away"),
        (b'{"precision": 0.5}', "is not the result that its name says"),
        (b'{"key": 3, "cell": []}', "is not the result that its name says"),
        ("without protocol", "is not the result that its name says"),
        ("with another key", "is not the result that its name says"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_and_stays(folder, file, wanted, content, message):
    held = json.loads(file.read_bytes())
    if content == "without protocol":
        content = json.dumps({**held, "protocol": {}}).encode()
    elif content == "with another key":
        content = json.dumps({**held, "key": "0" * 16}).encode()
    file.write_bytes(content)
    for keys in (None, wanted.keys):
        with pytest.raises(ResultError, match=f"{file.name}: {message}"):
            read(folder, keys)
    assert file.read_bytes() == content


def test_the_result_of_another_cell_is_refused(folder, file, wanted):
    moved = folder / replace(CELL, draw=0).file(wanted.keys[replace(CELL, draw=0)])
    moved.write_bytes(file.read_bytes())
    with pytest.raises(ResultError, match=f"{moved.name}: is not the result that its name says"):
        read(folder)


ODD = '{"table": "knn", "dataset": "d", "source": "d", "sha256": "", "options": {}, "runs": [], "keys": [["SDR", "x"]]}'


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"a": 1}',
        '{"scoring": 2}',
        '{"scoring": 3, "requests": [{}]}',
        f'{{"scoring": 3, "requests": [{ODD}]}}',
    ],
)
def test_a_plan_that_is_none_is_refused_and_stays(folder, wanted, content):
    path = folder / PLAN_FILE
    path.write_text(content)
    for use in (lambda: read(folder), lambda: store_request(folder, wanted, "digits")):
        with pytest.raises(ResultError, match=r"plan\.json: is .*; move it away, or name another results folder"):
            use()
    assert path.read_text() == content


@pytest.mark.parametrize(
    "name",
    [
        "inference/digits/Quick/8-1.json",
        "inference/digits/Quick/8-0-0123456789abcdef.json",
        "inference/digits/Quick/.8-0-1.json.xyz.unfinished",
        "inference/digits/asked.json",
        "inference/notes.txt",
        "knn/a/b/c/8-0.json",
        "other.json",
    ],
)
def test_other_files_are_ignored(folder, wanted, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"schema"')
    assert list(read(folder).records) == list(read(folder, wanted.keys).records) == [CELL]
    assert path.read_text() == '{"schema"'


def test_no_folder_and_no_results(tmp_path):
    with pytest.raises(ResultError, match="nowhere: there is no such folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(ResultError, match="no results of `hashlearn bench` in this folder"):
        read(tmp_path)


def test_all_that_determines_a_result_is_in_its_key(monkeypatch):
    def key(table="unsupervised", method="SDR", n_bits=8, draw=0, source=None, **choice):
        wanted = plan(table, ["digits"], [method], [n_bits], draw + 1, choice=Choice(**choice))
        if source is not None:
            wanted = replace(wanted, datasets={"digits": source})
        return wanted.keys[Cell(table, "digits", method, n_bits, draw)]

    same = [key(), key(), key(metrics=("map",)), key(metrics=("precision-radius", "map")), key(protocol="digits")]
    assert len(set(same)) == 1
    digests = [Source("digits", sha256=digit * 64) for digit in "ab"]
    others = [
        key(table="knn"),
        key(table="inference"),
        key(table="supervised"),
        key(table="neighbors"),
        key(method="AL"),
        key(n_bits=9),
        key(draw=1),
        *(key(source=source) for source in digests),
        key(source=Source("digits", has_labels=False), table="neighbors"),
        key(protocol="all-rows"),
        key(train_per_class=20),
        key(queries=10),
        key(metrics=("map@10",)),
        key(metrics=("map@10", "p@5")),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(plans, "SCORING", 99)
        others.append(key())
    with monkeypatch.context() as patch:
        patch.setitem(METHODS, "SDR", METHODS["SDR distance"])
        others.append(key())
    with monkeypatch.context() as patch:
        patch.setitem(plans.TABLES, "unsupervised", replace(TABLES["unsupervised"], hash_function="linear_svm"))
        others.append(key())
    with monkeypatch.context() as patch:
        patch.setitem(plans.PROTOCOLS, "digits", replace(plans.PROTOCOLS["digits"], train_per_class=50))
        others.append(key())
    assert len({*same, *others}) == 1 + len(others)
    assert key(metrics=("map@10", "p@5")) == key(metrics=("p@5", "map", "map@10"))


KEYS = """
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.tables import TABLES
for name, table in TABLES.items():
    methods = [method for method, one in METHODS.items() if one.setting_in(table.setting)]
    print(*plan(name, ["digits"], methods, [8, 16], 2).keys.values())
"""


def test_keys_are_the_same_in_every_process():
    runs = [
        subprocess.run(
            [sys.executable, "-c", KEYS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    ]
    assert runs[0] == runs[1]
    keys = runs[0].split()
    assert len(keys) == len(set(keys)) > 300


def test_unsupervised_methods_stand_in_supervised_tables_with_keys_of_their_own():
    assert METHODS["ITQ"].setting_in("supervised") == UNSUPERVISED
    by_table = {name: plan(name, ["digits"], ["ITQ"], [8], 1).keys.values() for name in ("supervised", "unsupervised")}
    assert not set(by_table["supervised"]) & set(by_table["unsupervised"])
