"""Ctrl-C and time limits in ``fit`` and ``encode``, progress bars, completion: the command among other programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from hashlearn import bqp
from hashlearn.cli import main
from tests.cli.files import N, answer, invoke
from tests.cli.solvers import Endless

HASHLEARN = [sys.executable, "-m", "hashlearn"]
EVERYWHERE = {"--json", "--quiet", "--help"}


# A solver that says when it has begun, and then takes its time: Ctrl-C always finds it at work.
SLOW_FIT = """
from pathlib import Path
from hashlearn import bqp
from hashlearn.cli import main

class Slow(bqp.Solver):
    name = "slow"
    def solve(self, A, state, rng, x0):
        Path("begun").touch()
        while True:
            state.check_time("waiting")

bqp.METHODS["slow"] = Slow
main(["fit", "X.npy", "-o", "new", "--bits", "8", "--solver", "slow"])
"""


def test_ctrl_c_in_the_fit_command(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    process = subprocess.Popen([sys.executable, "-c", SLOW_FIT], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not Path("begun").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"Interrupted before there was an answer.\n")
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "begun"])


def test_ctrl_c_before_the_command_begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hashlearn.cli._Commands.parse_args", interrupted)
    said = invoke("encode", "model", "X.npy", "-o", "codes.npy")
    assert (said.exit_code, said.stdout, said.stderr.strip()) == (130, "", "Interrupted before there was an answer.")


def test_an_end_of_file_is_no_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: Any) -> None:
        raise EOFError("nothing is left")

    monkeypatch.setattr("hashlearn.cli._Commands.parse_args", ended)
    said = invoke("encode", "model", "X.npy", "-o", "codes.npy")
    assert (said.exit_code, str(said.exception)) == (1, "nothing is left")


def test_the_time_limit_of_the_fit_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bqp.METHODS, "endless", Endless)
    result = invoke("fit", "X.npy", "-o", "new", "--bits", 8, "--solver", "endless", "--time-limit", 0.1, "--json")
    assert result.exit_code == 0
    assert result.stderr == "Note: the time limit shortened the inference of codes; some bits are less well solved\n"
    assert json.loads(result.stdout)["notes"]
    assert answer("encode", "new", "Q.npy", "-o", "codes.npy")["rows"] == 40


def test_ctrl_c_in_encode_keeps_what_is_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer("encode", "model", "X.npy", "-o", "whole.npy")["sha256"]
    from hashlearn.hashers import LSH

    calls = []
    real = LSH.encode

    def interrupted(self: Any, rows: Any) -> Any:
        calls.append(len(rows))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(LSH, "encode", interrupted)
        result = invoke("encode", "model", "X.npy", "-o", "codes.npy", "--batch-rows", 50)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Interrupted. The same command goes on where this one stopped.\n"
    assert not Path("codes.npy").exists()
    found = answer("encode", "model", "X.npy", "-o", "codes.npy", "--batch-rows", 50)
    assert (found["resumed_rows"], found["rows"], found["sha256"]) == (100, N, whole)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_emitted_for_every_shell(shell: str) -> None:
    if shell == "bash" and not Path("/bin/bash").exists():
        pytest.skip("needs bash, whose version is asked for")
    environment = {**os.environ, "_HASHLEARN_COMPLETE": f"{shell}_source"}
    done = subprocess.run(HASHLEARN, capture_output=True, text=True, env=environment, timeout=60)
    assert "hashlearn" in done.stdout
    assert f"{shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hashlearn e", {"encode", "evaluate", "explore", "export"}),
        ("hashlearn des", {"describe"}),
        ("hashlearn encode --", {"--output", "--id-column", "--number-rows", "--keep", "--batch-rows", *EVERYWHERE}),
        ("hashlearn export --to sq", {"sqlite_vec"}),
        ("hashlearn export --duplicates re", {"replace", "refuse"}),
        ("hashlearn fit --met", {"--method"}),
        ("hashlearn fit --method itq", {"itq", "itq_cca"}),
        ("hashlearn fit --solver au", {"auto"}),
        ("hashlearn fit --solver sampled", {"sampled_sdr", "sampled_al"}),
        ("hashlearn fit --target shared", {"shared_labels"}),
        ("hashlearn fit --hash-function rbf", {"rbf_svm"}),
        ("hashlearn fit --encoder l", {"linear"}),
        ("hashlearn bqp --method graph", {"graph_cut"}),
    ],
)
def test_completion_knows_commands_options_and_registries(words: str, expected: set[str]) -> None:
    *before, incomplete = words.split()[1:]
    complete = BashComplete(main, {}, "hashlearn", "_HASHLEARN_COMPLETE")
    assert {item.value for item in complete.get_completions(before, incomplete)} == expected
