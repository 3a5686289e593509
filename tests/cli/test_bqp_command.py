"""``hashlearn bqp``: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hashlearn import __version__, bqp
from hashlearn.bqp.modeling import problem_files as files
from hashlearn.cli import main
from tests.cli.solvers import Endless, Interrupted

TRIANGLE = "3 3\n1 2 1\n2 3 1\n1 3 1\n"
QUBO = "3 4\n1 1 -3\n2 2 2\n1 3 -2\n2 3 1\n"  # best: y = (1, 0, 1), energy −3 − 4 = −7
KEYS = ["file", "sense", "n", "method", "value", "bound", "gap", "status", "seconds"]


@dataclass(frozen=True)
class Enumerate(bqp.Solver):
    """All assignments, in one go; proves its answer, or keeps the proof to itself."""

    name: ClassVar[str] = "enumerate"
    proves: bool = True

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        for x in itertools.product((-1.0, 1.0), repeat=A.n):
            state.check_time("enumerating", 0.5)
            state.propose(np.array(x))
        if self.proves:
            state.propose_bound(state.value)
        return bqp.Status.CONVERGED


@dataclass(frozen=True)
class Small(bqp.Solver):
    """Refuses any problem, as a method with a size limit does."""

    name: ClassVar[str] = "small"

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        raise ValueError(f"method 'small' is for n <= 2, got n = {A.n}")


@pytest.fixture(autouse=True)
def _extra_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for solver in (Enumerate, Interrupted, Endless, Small):
        monkeypatch.setitem(bqp.METHODS, solver.name, solver)
    monkeypatch.setitem(bqp.METHODS, "unproven", lambda: Enumerate(proves=False))


@pytest.fixture
def triangle(tmp_path: Path) -> Path:
    path = tmp_path / "triangle.txt"
    path.write_text(TRIANGLE)
    return path


@pytest.fixture
def qubo(tmp_path: Path) -> Path:
    path = tmp_path / "three.sparse"
    path.write_text(QUBO)
    return path


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["bqp", *map(str, arguments)])


def strict_json(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_text_of_a_cut(triangle: Path) -> None:
    result = invoke(triangle, "--method", "enumerate")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert shown["cut"] == "2"
    assert shown["upper"].split() == ["bound", "2", "(no", "cut", "is", "larger)"]
    assert shown["gap"] == "0 %"
    assert shown["status"] == "optimal"
    assert shown["method"] == "enumerate"
    assert "max-cut, n = 3" in shown["file"]
    assert float(shown["seconds"]) >= 0.0


def test_text_of_an_energy_without_a_bound(qubo: Path) -> None:
    result = invoke(qubo, "--method", "unproven")
    assert result.exit_code == 0
    assert "energy       -7\n" in result.stdout
    assert "lower bound  none\n" in result.stdout
    assert "gap          –\n" in result.stdout


def test_json_of_a_cut(triangle: Path) -> None:
    result = invoke(triangle, "--method", "enumerate", "--json", "--seed", 3)
    report = strict_json(result.stdout)
    assert list(report)[: len(KEYS)] == KEYS
    assert result.stdout.count("\n") == 1
    assert report["seconds"] >= 0.0
    expected = {"file": str(triangle), "sense": "max-cut", "n": 3, "method": "enumerate", "value": 2.0}
    expected |= {"bound": 2.0, "gap": 0.0, "status": "optimal", "seconds": report["seconds"], "seed": 3}
    assert report == expected


def test_json_without_a_bound_holds_null(qubo: Path) -> None:
    report = strict_json(invoke(qubo, "--method", "unproven", "--json").stdout)
    assert (report["sense"], report["n"], report["value"]) == ("qubo", 3, -7.0)
    assert report["bound"] is None
    assert report["gap"] is None
    assert report["status"] == "converged"


def test_a_gap_that_has_no_size_is_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of zero under a value that is not zero has no relative gap."""

    @dataclass(frozen=True)
    class Zero(bqp.Solver):
        name: ClassVar[str] = "zero"

        def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
            state.propose_bound(-6.0)  # energy 0 in the file's units: 1.5 + (−6) / 4
            return bqp.Status.CONVERGED

    monkeypatch.setitem(bqp.METHODS, "zero", Zero)
    path = tmp_path / "positive.sparse"
    path.write_text("2 3\n1 1 1\n2 2 1\n1 2 1\n")
    report = strict_json(invoke(path, "--method", "zero", "--json").stdout)
    assert (report["value"], report["bound"], report["gap"]) == (4.0, 0.0, None)


@pytest.mark.parametrize(("name", "n_variables"), [("triangle", 3), ("qubo", 3)])
def test_output_holds_the_assignment(
    name: str, n_variables: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = request.getfixturevalue(name)
    output = tmp_path / "assignment.txt"
    result = invoke(file, "--method", "enumerate", "--json", "--output", output)
    written = dict([int(word) for word in line.split()] for line in output.read_text().splitlines())
    assert list(written) == list(range(1, n_variables + 1))
    entries = list(written.values())
    if name == "triangle":
        assert abs(sum(entries)) == 1
        assert set(entries) == {-1, 1}
    else:
        assert entries == [1, 0, 1]
    assert strict_json(result.stdout)["value"] == (2.0 if name == "triangle" else -7.0)


def test_notes_on_a_graph_go_to_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "path.mc"
    file.write_text("3 3\n1 2 2\n2 3 1\n3 3 9\n")
    result = invoke(file, "--method", "enumerate", "--json")
    assert strict_json(result.stdout)["value"] == 3.0
    assert result.stderr == "Note: 1 self-loop(s) are in no cut and were left out\n"


def test_format_and_sense_of_an_ising_file(tmp_path: Path) -> None:
    file = tmp_path / "spins"
    file.write_text("0 1 2\n1 1 0.5\n")
    result = invoke(file, "--method", "enumerate", "--format", "coo", "--sense", "ising", "--json")
    report = strict_json(result.stdout)
    assert (report["sense"], report["value"], report["bound"]) == ("ising", -2.5, -2.5)
    refused = invoke(file, "--format", "cool")
    assert refused.exit_code == 2
    assert "did you mean 'coo'?" in refused.stderr


def test_proof_is_written_and_checked(tmp_path: Path) -> None:
    file, proof = tmp_path / "spins.coo", tmp_path / "proof.json"
    file.write_text("# vartype=SPIN\n" + "".join(f"{k} {(k + 1) % 7} 1\n" for k in range(7)))
    result = invoke(file, "--method", "branch_and_bound", "--json", "--proof", proof)
    assert (result.exit_code, strict_json(result.stdout)["status"]) == (0, "optimal")
    checked = CliRunner().invoke(main, ["bqp-verify", str(file), str(proof), "--json"])
    assert strict_json(checked.stdout)["value"] == strict_json(result.stdout)["value"] == -5.0
    without = invoke(file, "--method", "exact", "--proof", tmp_path / "none.json")
    assert without.exit_code == 2
    assert "use --method branch_and_bound" in without.stderr


def test_sense_overrides_the_name(qubo: Path) -> None:
    report = strict_json(invoke(qubo, "--method", "enumerate", "--sense", "max-cut", "--json").stdout)
    assert (report["sense"], report["value"]) == ("max-cut", 1.0)


def test_time_limit(triangle: Path) -> None:
    result = invoke(triangle, "--method", "endless", "--time-limit", "0.05", "--json")
    assert result.exit_code == 0
    assert strict_json(result.stdout)["status"] == "time_limit"


def test_interrupt_prints_the_best_so_far_and_exits_with_130(triangle: Path, tmp_path: Path) -> None:
    output = tmp_path / "best.txt"
    result = invoke(triangle, "--method", "interrupted", "--json", "--output", output)
    assert result.exit_code == 130
    report = strict_json(result.stdout)
    assert (report["status"], report["value"]) == ("interrupted", 2.0)
    assert output.read_text() == "1 -1\n2 1\n3 1\n"


def test_interrupt_while_reading(triangle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_problem(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "read_problem", read_problem)
    result = invoke(triangle)
    assert (result.exit_code, result.stdout) == (130, "")
    assert "Interrupted" in result.stderr


BAD_INPUT = [
    (["{folder}/missing.txt"], "missing.txt: No such file"),
    (["{folder}"], "is not a regular file"),
    (["{folder}/triangle.txt", "--method", "enumerat"], "did you mean 'enumerate'?"),
    (["{folder}/triangle.txt", "--method", ""], "method must be one of"),
    (["{folder}/triangle.txt", "--method", "small"], "n <= 2, got n = 3"),
    (["{folder}/triangle.txt", "--time-limit", "-1"], "--time-limit"),
    (["{folder}/triangle.txt", "--time-limit", "nan"], "time_limit must be a positive number"),
    (["{folder}/triangle.txt", "--time-limit", "soon"], "--time-limit"),
    (["{folder}/triangle.txt", "--seed", "-1"], "--seed"),
    (["{folder}/triangle.txt", "--seed", "x"], "--seed"),
    (["{folder}/triangle.txt", "--sense", "min-cut"], "'max-cut', 'qubo'"),
    (["{folder}/triangle.txt", "--output", "{folder}/nowhere/x.txt"], "folder does not exist"),
    (["{folder}/triangle.txt", "--output", "{folder}/triangle.txt"], "is an input of this command"),
    (["{folder}/triangle.txt", "--output", "{folder}"], "is a folder"),
    (["{folder}/triangle.txt", "--method", "sdr", "--nonsense"], "--nonsense"),
    (["{folder}/cut-off.txt"], "cut-off.txt: it has 1 of 3 rows"),
    (["{folder}/binary.txt"], "binary.txt: "),
    ([], "Missing argument"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_INPUT)
def test_bad_input_is_a_message_and_exit_code_2(
    arguments: list[str], said: str, triangle: Path, tmp_path: Path
) -> None:
    (tmp_path / "cut-off.txt").write_text(TRIANGLE[:10])
    (tmp_path / "binary.txt").write_bytes(b"\x80\xff\x00" * 99)
    result = invoke(*(argument.format(folder=tmp_path) for argument in arguments))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert triangle.read_text() == TRIANGLE


def test_version_and_help() -> None:
    assert __version__ in CliRunner().invoke(main, ["--version"]).stdout
    text = CliRunner().invoke(main, ["--help"]).stdout
    assert "bqp" in text
    assert "demo" in text


def test_as_a_module_in_its_own_process(qubo: Path) -> None:
    command = [sys.executable, "-m", "hashlearn", "bqp", str(qubo), "--json", "--method", "local_search"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert strict_json(done.stdout)["value"] == -7.0
    done = subprocess.run([*command[:4], "missing"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: missing: No such file or directory\n"
