"""``hashlearn bqp-verify``: accepted, refused and unreadable proofs, and what `write_proof` leaves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.cli.bqp_verify import write_proof
from hashlearn.cli.exits import Failure
from tests.cli.files import invoke


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A QUBO with the optimum −7, and the proof of it."""
    file, proof = tmp_path / "small.sparse", tmp_path / "proof.json"
    file.write_text("3 4\n1 1 -3\n2 2 -4\n1 2 5\n3 3 -3\n")
    problem = bqp.read_problem(file)
    write_proof(proof, bqp.solve(problem.operator, "branch_and_bound", random_state=0))
    return file, proof


def test_an_accepted_proof(files: tuple[Path, Path]) -> None:
    result = invoke("bqp-verify", *files)
    assert result.exit_code == 0, result.output
    assert "accepted, optimal" in result.stdout
    assert "energy" in result.stdout
    report = json.loads(invoke("bqp-verify", *files, "--json").stdout)
    assert (report["accepted"], report["optimal"], report["value"], report["bound"]) == (True, True, -7.0, -7.0)
    assert report["leaves"] == 1


def test_a_refused_proof(files: tuple[Path, Path]) -> None:
    file, proof = files
    content = json.loads(proof.read_text())
    content["bound"] += 4
    proof.write_text(json.dumps(content))
    result = invoke("bqp-verify", file, proof)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the proof is refused: node 0: " in result.stderr
    result = invoke("bqp-verify", file, proof, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["accepted"] is False


def test_another_problem_and_a_cut_file(files: tuple[Path, Path]) -> None:
    file, proof = files
    file.write_text(file.read_text().replace("-4", "-2"))
    result = invoke("bqp-verify", file, proof)
    assert result.exit_code == 1
    assert "another problem" in result.stderr
    proof.write_bytes(proof.read_bytes()[:-9])
    result = invoke("bqp-verify", file, proof)
    assert result.exit_code == 2
    assert "truncated" in result.stderr


def test_there_is_no_proof_of_other_methods_or_of_open_trees(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    rng = np.random.default_rng(0)
    half = rng.standard_normal((80, 80))
    with pytest.raises(Failure, match="the status is 'time_limit'"):
        write_proof(path, bqp.solve(half + half.T, "branch_and_bound", random_state=0, time_limit=1e-6))
    with pytest.raises(Failure, match="the same value"):
        write_proof(path, bqp.solve([[2.0]], "branch_and_bound", random_state=0))
    assert not list(tmp_path.iterdir())


def test_weights_that_float64_cannot_add_are_proven_as_they_are(tmp_path: Path) -> None:
    """2⁵³ + 0.1 rounds in A. The least energy is 0, not the 0.05 that is left of the rounded problem."""
    file, proof = tmp_path / "large.sparse", tmp_path / "proof.json"
    file.write_text("2 2\n1 2 4503599627370496\n2 2 0.1\n")
    assert invoke("bqp", file, "--method", "branch_and_bound", "--proof", proof).exit_code == 0
    report = json.loads(invoke("bqp-verify", file, proof, "--json").stdout)
    assert (report["accepted"], report["optimal"], report["value"], report["bound"]) == (True, True, 0.0, 0.0)


def test_too_little_memory_is_said_in_words(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr("hashlearn.bqp.proof.check.read_proof", no_memory)
    result = invoke("bqp-verify", *files)
    assert result.exit_code == 1
    assert "there is not enough memory to check a proof of this size" in result.stderr
