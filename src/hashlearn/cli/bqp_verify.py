"""``hashlearn bqp-verify FILE PROOF``: check a proof of optimality in exact arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import Failure, refusals
from hashlearn.cli.text_tables import number, pairs

if TYPE_CHECKING:
    from hashlearn.bqp import Solution
    from hashlearn.bqp.modeling.problem import Problem, Sense
    from hashlearn.bqp.proof.check import Verdict


@click.command("bqp-verify", short_help="Check a proof that a solution of a problem file is optimal.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("proof", type=click.Path(path_type=Path))
@options.sense_option
@options.format_option
@options.json_option
def bqp_verify_command(file: Path, proof: Path, sense: Sense | None, format: str | None, as_json: bool) -> None:
    """Check that PROOF, written by `hashlearn bqp --proof`, proves the optimum of the max-cut, QUBO or Ising FILE.

    The check uses integers only and trusts no solver. Exit code 1 if the proof is refused; the
    reason names the node of its tree.
    """
    from hashlearn.bqp.modeling.problem_files import read_problem
    from hashlearn.bqp.proof.check import check_proof, read_proof
    from hashlearn.core.atomic_files import regular_file

    with refusals():
        problem = read_problem(file, sense, format)
    with refusals(str(proof)), regular_file(proof):
        pass
    with refusals():
        try:
            verdict = check_proof(problem, read_proof(proof))
        except MemoryError:
            raise Failure(f"{proof}: there is not enough memory to check a proof of this size") from None
    if as_json or verdict.accepted:
        report = _report(file, proof, problem, verdict)
        options.show(as_json, report, _text(report, problem) if verdict.accepted else "")
    if not verdict.accepted:
        raise Failure(f"{proof}: the proof is refused: {verdict.reason}")


def write_proof(path: Path, solution: Solution) -> None:
    """Write the proof of an optimal solution; an error for the user if there is none."""
    proof = solution.details.get("proof")
    if proof is not None:
        with refusals():
            proof.save(path)
    elif solution.status == "optimal":
        raise Failure("--proof: no proof was written, since all assignments have the same value")
    else:
        raise Failure(f"--proof: no proof was written, since the status is {str(solution.status)!r}, not 'optimal'")


def _report(file: Path, proof: Path, problem: Problem, verdict: Verdict) -> dict[str, Any]:
    """What --json prints; values are in the file's own sense, None if the proof is refused."""
    value, bound = (None if x is None else problem.exact_objective(x) for x in (verdict.value, verdict.bound))
    return {
        "file": str(file),
        "proof": str(proof),
        "accepted": verdict.accepted,
        "reason": verdict.reason,
        "value": None if value is None else float(value),
        "bound": None if bound is None else problem.rounded_bound(bound),
        "optimal": value is not None and bound is not None and verdict.accepted and problem.is_optimal(value, bound),
        "leaves": verdict.n_leaves,
    }


def _text(report: dict[str, Any], problem: Problem) -> str:
    name = "cut" if problem.sense == "max-cut" else "energy"
    proven = "optimal" if report["optimal"] else f"no {name} is better than the bound"
    return pairs(
        [
            ("proof", Path(report["proof"]).name),
            ("problem", f"{problem.name}  ({problem.sense}, n = {problem.n:,})"),
            (name, number(report["value"])),
            ("bound", number(report["bound"])),
            ("leaves", f"{report['leaves']:,}"),
            ("verdict", f"accepted, {proven}"),
        ]
    )
