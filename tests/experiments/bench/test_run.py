"""Runs: only what is missing, through kills, Ctrl-C, failures and worker processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import ResultError, read
from hashlearn.experiments.bench.run import run
from hashlearn.experiments.bench.tables import Cell
from tests.experiments.bench import fakes

ROOT = Path(__file__).parents[3]
PATIENCE = 40.0


def small_plan(methods=("Quick",), bits=(2, 4), n_draws=2, datasets=("digits",)):
    return plan("inference", list(datasets), list(methods), list(bits), n_draws)


def digests(folder, wanted):
    return {cell: record["digest"] for cell, record in read(folder, wanted.keys).records.items()}


def test_everything_is_run_once_and_data_loaded_once(tmp_path):
    loads = []

    def load(*arguments, **options):
        loads.append(arguments)
        return fakes.load(*arguments, **options)

    first = run(small_plan(), tmp_path, load=load)
    assert [ended.cell for ended in first.finished] == small_plan().cells
    assert first.n_stored_before == 0
    assert loads == [("digits",)]
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    again = run(small_plan(), tmp_path, load=load)
    assert again.finished == []
    assert again.n_stored_before == 4
    assert loads == [("digits",)]  # nothing to do, nothing to load
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == stamps


def test_only_what_is_missing_is_run(tmp_path):
    run(small_plan(), tmp_path, load=fakes.load)
    before = digests(tmp_path, small_plan())
    gone, key = list(small_plan().keys.items())[2]
    (tmp_path / gone.file(key)).unlink()
    assert [ended.cell for ended in run(small_plan(), tmp_path, load=fakes.load).finished] == [gone]
    wider = small_plan(bits=(2, 3, 4))
    assert {ended.cell.n_bits for ended in run(wider, tmp_path, load=fakes.load).finished} == {3}
    assert digests(tmp_path, small_plan()) == before


def test_a_failing_cell_is_told_of_and_the_others_go_on(tmp_path):
    wanted = small_plan(("Broken", "Quick"), (2, 3))
    outcome = run(wanted, tmp_path, load=fakes.load)
    failed = {Cell("inference", "digits", "Broken", 3, draw) for draw in (0, 1)}
    assert {ended.cell for ended in outcome.failed} == failed
    assert {ended.error for ended in outcome.failed} == {"RuntimeError: odd bits are beyond me"}
    found = read(tmp_path, wanted.keys)
    assert set(found.missing) == failed == set(found.failures)
    (stored,) = (tmp_path / "inference/digits/Broken").glob("3-0-*.error.json")
    assert "in fit" in json.loads(stored.read_text())["traceback"]
    again = run(wanted, tmp_path, load=fakes.load)
    assert {ended.cell for ended in again.finished} == failed  # tried once more, and nothing else


def test_a_data_set_that_cannot_be_loaded_does_not_stop_the_next(tmp_path):
    def load(name, **options):
        if name == "flowers":
            raise ValueError("put flowers.npz there")
        return fakes.load(name, **options)

    outcome = run(small_plan(datasets=("flowers", "digits")), tmp_path, load=load)
    assert outcome.not_loaded == {"flowers": "put flowers.npz there"}
    assert {ended.cell.dataset for ended in outcome.finished} == {"digits"}
    assert len(outcome.finished) == 4


def test_a_data_set_that_does_not_suit_the_protocol_is_told_once(tmp_path):
    outcome = run(small_plan(), tmp_path, load=lambda name, **options: fakes.dataset((50, 50)))
    assert "needs 60 training samples a class" in outcome.not_loaded["digits"]
    assert outcome.finished == []


def test_processes_give_the_same_codes_as_none_and_one_that_dies_costs_one_cell(tmp_path):
    wanted = small_plan(("Quick", "AL", "Broken", "Dying"), (3, 4), n_draws=1)
    outcome = run(wanted, tmp_path / "two", load=fakes.load, jobs=2)
    errors = {(ended.cell.method, ended.cell.n_bits): ended.error for ended in outcome.failed}
    assert errors == {
        ("Broken", 3): "RuntimeError: odd bits are beyond me",
        ("Dying", 4): "the worker process died, perhaps out of memory",
    }
    assert len(outcome.finished) == 8
    found = read(tmp_path / "two", wanted.keys)
    assert {(cell.method, cell.n_bits): text.error for cell, text in found.failures.items()} == errors
    run(small_plan(("Quick", "AL"), (3, 4), n_draws=1), tmp_path / "one", load=fakes.load)
    alone = digests(tmp_path / "one", wanted)
    assert len(alone) == 4
    assert alone.items() <= digests(tmp_path / "two", wanted).items()


@pytest.mark.parametrize("own_handler", [False, True])
def test_an_interrupted_fit_is_never_stored_even_if_the_solver_makes_do(tmp_path, own_handler):
    def press(*_):
        raise KeyboardInterrupt

    handler = press if own_handler else signal.default_int_handler
    wanted = plan("inference", ["digits"], ["Quick", "Interrupted"], [2], 1)
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(wanted, tmp_path, load=fakes.load)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert [cell.method for cell in read(tmp_path, wanted.keys).records] == ["Quick"]


def start(folder, jobs, pids):
    environment = {**os.environ, "FAKES_PIDS": str(pids)}
    command = [sys.executable, "-m", "tests.experiments.bench.fakes", str(folder), str(jobs)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def wait_for(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_midway_then_run_again(tmp_path, jobs):
    folder, pids = tmp_path / "results", tmp_path / "pids"
    pids.mkdir()
    process = start(folder, jobs, pids)
    try:
        wait_for(lambda: _is_midway(folder, pids, jobs) or process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    workers = [int(path.name) for path in pids.iterdir()]
    assert len(workers) == jobs
    wait_for(lambda: not any(_is_running(pid) for pid in workers))  # none goes on by itself
    for path in folder.rglob("*.json"):
        assert json.loads(path.read_text())  # whole files only
    wanted = fakes.PLAN_TO_KILL
    stored = list(read(folder, wanted.keys).records)
    assert [cell.n_bits for cell in stored] == [2, 3]
    outcome = run(wanted, folder, load=fakes.load)
    assert {ended.cell for ended in outcome.finished} == set(wanted.cells) - set(stored)
    assert outcome.n_stored_before == len(stored)
    assert read(folder, wanted.keys).missing == ()


def _is_midway(folder, pids, jobs):
    return len(list(folder.rglob("?-0-*.json"))) >= 2 and len(list(pids.iterdir())) == jobs


def _is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_damaged_file_stops_the_run_before_anything_is_done(tmp_path):
    run(small_plan(), tmp_path, load=fakes.load)
    first, second = (tmp_path / cell.file(key) for cell, key in list(small_plan().keys.items())[:2])
    first.write_text("{")
    second.unlink()
    with pytest.raises(ResultError, match=f"{first.name}: is damaged"):
        run(small_plan(), tmp_path, load=fakes.load)
    assert not second.exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match="cannot be made a results folder"):
        run(small_plan(), tmp_path / "file" / "results", load=fakes.load)
    with pytest.raises(ValueError, match="jobs must be a positive integer, got 0"):
        run(small_plan(), tmp_path, load=fakes.load, jobs=0)


def test_the_first_draw_has_a_gallery(tmp_path):
    wanted = small_plan()
    run(wanted, tmp_path, load=fakes.load)
    records = read(tmp_path, wanted.keys).records
    assert [cell.draw for cell in records if records[cell]["gallery"]] == [0, 0]


def test_progress_counts_up_and_ends_complete(tmp_path):
    heard = []
    run(small_plan(), tmp_path, load=fakes.load, progress=heard.append)
    done = [event.done for event in heard]
    assert done == sorted(done)
    assert (heard[0].done, heard[0].total, heard[-1].done) == (0, 4, 4)
    assert any("learning" in event.stage for event in heard)
