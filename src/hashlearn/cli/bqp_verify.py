"""``hashlearn bqp-verify FILE PROOF``: check a proof of optimality in exact arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import Failure, InputError, refusals
from hashlearn.cli.text_tables import number, pairs

if TYPE_CHECKING:
    from hashlearn.bqp import Solution
    from hashlearn.bqp.modeling.problem import Problem, Sense
    from hashlearn.bqp.proof_check import Verdict


@click.command("bqp-verify", short_help="Check a proof that a solution of a problem file is optimal.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("proof", type=click.Path(path_type=Path))
@options.sense_option
@options.format_option
@options.json_option
def bqp_verify_command(file: Path, proof: Path, sense: Sense | None, format: str | None, as_json: bool) -> None:
    """Check that PROOF, written by `hashlearn bqp --proof`, proves the optimum of the max-cut, QUBO or Ising FILE.

    The check uses integers only and trusts no solver. Exit code 0: the proof is accepted. 1: it is refused, and
    the reason names the node of its tree. 2: a file cannot be read.
    """
    from hashlearn.bqp.problem_files import read_problem
    from hashlearn.bqp.proof_check import check_proof, read_proof
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
        options.show(as_json, _report(file, proof, problem, verdict), _text(proof, problem, verdict))
    if not verdict.accepted:
        raise Failure(f"{proof}: the proof is refused: {verdict.reason}")


def write_proof(path: Path, solution: Solution) -> None:
    """Write the proof of an optimal solution; an error for the user if there is none."""
    proof = solution.details.get("proof")
    if proof is not None:
        with refusals():
            proof.save(path)
    elif solution.method != "branch_and_bound":
        raise InputError(f"--proof: method {solution.method!r} writes no proofs; use --method branch_and_bound")
    elif solution.status == "optimal":
        raise Failure("--proof: no proof was written, since all assignments have the same value")
    else:
        raise Failure(f"--proof: no proof was written, since the status is {str(solution.status)!r}, not 'optimal'")


def _is_optimal(problem: Problem, verdict: Verdict) -> bool:
    """Whether an accepted proof makes its assignment optimal, by the rule of `bqp.solve_problem`."""
    if not verdict.accepted or verdict.value is None or verdict.bound is None:
        return False
    return problem.is_optimal(problem.exact_objective(verdict.value), problem.exact_objective(verdict.bound))


def _report(file: Path, proof: Path, problem: Problem, verdict: Verdict) -> dict[str, Any]:
    """What --json prints; values are in the file's own sense, None if the proof is refused."""
    return {
        "file": str(file),
        "proof": str(proof),
        "accepted": verdict.accepted,
        "reason": verdict.reason,
        "value": None if verdict.value is None else problem.objective(verdict.value),
        "bound": None if verdict.bound is None else problem.rounded_bound(problem.exact_objective(verdict.bound)),
        "optimal": _is_optimal(problem, verdict),
        "leaves": verdict.n_leaves,
    }


def _text(proof: Path, problem: Problem, verdict: Verdict) -> str:
    if verdict.value is None or verdict.bound is None:
        return ""
    name = "cut" if problem.sense == "max-cut" else "energy"
    optimal = _is_optimal(problem, verdict)
    return pairs(
        [
            ("proof", proof.name),
            ("problem", f"{problem.name}  ({problem.sense}, n = {problem.n:,})"),
            (name, number(problem.objective(verdict.value))),
            ("bound", number(problem.rounded_bound(problem.exact_objective(verdict.bound)))),
            ("leaves", f"{verdict.n_leaves:,}"),
            ("verdict", "accepted, optimal" if optimal else f"accepted, no {name} is better than the bound"),
        ]
    )
