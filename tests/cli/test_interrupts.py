"""Ctrl-C and time limits in ``fit`` and ``encode``, progress bars, completion: the command among other programs."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from hashlearn import TwoStepHasher, bqp
from hashlearn.cli import main
from tests.cli.files import N, X, Y, answer, invoke
from tests.cli.solvers import Endless, Interrupted

HASHLEARN = [sys.executable, "-m", "hashlearn"]
EVERYWHERE = {"--json", "--quiet", "--help"}


# A solver that says when it has begun, and then takes its time: Ctrl-C always finds it at work.
SLOW_FIT = """
from pathlib import Path
from hashlearn import bqp
from hashlearn.cli import main

class Slow:
    name = "slow"
    def run(self, A, run, rng, x0):
        Path("begun").touch()
        while True:
            run.tick("waiting")

bqp.METHODS["slow"] = Slow
main(["fit", "X.npy", "-o", "new", "--bits", "8", "--solver", "slow"])
"""


def test_ctrl_c_in_fit_is_passed_on_and_leaves_no_half_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bqp.METHODS, "interrupted", Interrupted)
    hasher = TwoStepHasher(8, solver="interrupted", random_state=0)
    with pytest.raises(KeyboardInterrupt):
        hasher.fit(X[:100], Y[:100])
    assert not hasattr(hasher, "hash_functions_")


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


# Python runs this file before everything else. Ctrl-C comes when a module is imported, or a file opened. Like some
# packages, the import replaces the exception.
CTRL_C = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["CTRL_C_AT"]:
            sys.meta_path.remove(self)
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError

def hook(event, arguments):
    if event == "open" and arguments[0] == os.environ["CTRL_C_AT"]:
        exec("signal.raise_signal(signal.SIGINT)")

sys.meta_path.insert(0, Finder())
sys.addaudithook(hook)
"""


@pytest.mark.parametrize("at", ["click", "hashlearn.cli.exits", "hashlearn.streams", "numpy", "first/model"])
def test_ctrl_c_at_any_time_is_exit_code_130(folder: Path, at: str) -> None:
    Path("first").mkdir()
    Path("first/sitecustomize.py").write_text(CTRL_C)
    Path("model").rename("first/model")
    path = os.pathsep.join(filter(None, ("first", os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "CTRL_C_AT": at}
    command = [*HASHLEARN, "encode", "first/model", "X.npy", "-o", "codes.npy"]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"Interrupted before there was an answer.\n")
    ignored = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]
    assert subprocess.run(ignored, capture_output=True, env=environment, timeout=60).returncode == 0


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


def test_a_time_limit_ends_inference_with_usable_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bqp.METHODS, "endless", Endless)
    for monotone in (True, False):
        hasher = TwoStepHasher(8, solver="endless", monotone=monotone, init="pca", time_limit=0.2, random_state=0)
        began = time.monotonic()
        hasher.fit(X[:100])
        assert time.monotonic() - began < 10.0
        report = hasher.inference_report_
        assert report.out_of_time
        assert report.bits[-1].status == "time_limit"
        assert "shortened by the time limit" in str(report)
        start = TwoStepHasher(8, solver="spectral", init="pca", n_sweeps=1, random_state=0, spread=False).fit(X[:100])
        assert report.final_objective <= start.inference_report_.start_objective  # no bit was made worse
        assert hasher.encode(X[:3]).shape == (3, 1)
    with pytest.raises(ValueError, match="time_limit must be a positive number"):
        TwoStepHasher(8, time_limit=0.0).fit(X[:100])


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


def test_bars_are_drawn_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    pty, fcntl, termios = (pytest.importorskip(m, reason="needs a terminal") for m in ("pty", "fcntl", "termios"))
    code = (
        "from hashlearn.core.progress_bar import ProgressBar\n"
        "from hashlearn.core.progress import Progress\n"
        "with ProgressBar(quiet=False) as bar:\n"
        "    bar(Progress('encoding', 3, 4)); bar.begin('searching')\n"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert re.search(r"encoding .* 3/4, \? left, 00:0\d", shown)
    assert re.search(r"searching 00:0\d", shown)
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert piped.stderr == piped.stdout == b""


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
