"""``hashlearn bqp FILE``: solve a max-cut or QUBO file and report in the file's own sense."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import INTERRUPTED, refusals
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.text_tables import lower_bound, number, pairs, percent, seconds, upper_bound, value_and_bound

if TYPE_CHECKING:
    from hashlearn.bqp import Solution, SolverProgress
    from hashlearn.bqp.problem_files import Problem, Sense


@click.command("bqp", short_help="Solve a max-cut or QUBO file, with a proven bound.")
@click.argument("file", type=click.Path(path_type=Path))
@options.named_option("--method", "solvers of one problem", "Solver: NAMES.", default="sdr")
@options.seconds_option(
    "--time-limit", "Stop after this long with the best so far; sdr has little before it rounds, at its end."
)
@options.seed_option
@click.option("--sense", type=click.Choice(["max-cut", "qubo"]), help="What the file holds.  [default: by its name]")
@options.json_option
@options.output_option(
    "Write the assignment: one line for each variable, ±1 for a cut, 0 or 1 for a QUBO.", required=False
)
@options.quiet_option
def bqp_command(
    file: Path,
    method: str,
    time_limit: float | None,
    seed: int,
    sense: Sense | None,
    as_json: bool,
    output: Path | None,
    quiet: bool,
) -> None:
    """Solve a max-cut (Gset, rudy) or QUBO (BiqMac .sparse) FILE, plain or gzipped.

    The cut is maximized, the QUBO energy minimized; value and bound are given in that sense. Ctrl-C stops the
    solver, prints the best so far with status "interrupted" and ends with exit code 130. Exit code 2 means
    bad input.
    """
    from hashlearn import bqp
    from hashlearn.bqp.problem_files import read_problem

    if output is not None:
        options.require_place(output, file)
    with refusals():
        problem = read_problem(file, sense)

    def numbers(progress: SolverProgress) -> str:
        return value_and_bound(problem.objective(progress.value), problem.objective_bound(progress.bound))

    with refusals(), ProgressBar(quiet, time_limit=time_limit, extra=numbers) as bar:
        solution = bqp.solve(problem.operator, method, random_state=seed, time_limit=time_limit, progress=bar)
    options.show(as_json, _report(file, problem, solution) | {"seed": seed}, _text(problem, solution))
    if output is not None:
        lines = [f"{entry}\n" for entry in problem.assignment(solution.x).tolist()]
        options.write_output(output, "".join(lines))
    if solution.status == bqp.Status.INTERRUPTED:
        raise click.exceptions.Exit(INTERRUPTED)


def _report(file: Path, problem: Problem, solution: Solution) -> dict[str, Any]:
    """What --json prints; None where there is no bound."""
    return {
        "file": str(file),
        "sense": problem.sense,
        "n": problem.n,
        "method": solution.method,
        "value": problem.objective(solution.value),
        "bound": _finite(problem.objective_bound(solution.bound)),
        "gap": _finite(problem.objective_gap(solution.value, solution.bound)),
        "status": str(solution.status),
        "seconds": solution.seconds,
    }


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _text(problem: Problem, solution: Solution) -> str:
    bound = problem.objective_bound(solution.bound)
    if problem.sense == "max-cut":
        names, proof = ("cut", "upper bound"), f"{upper_bound(bound)}  (no cut is larger)"
    else:
        names, proof = ("energy", "lower bound"), f"{lower_bound(bound)}  (no energy is smaller)"
    return pairs(
        [
            ("file", f"{problem.name}  ({problem.sense}, n = {problem.n:,})"),
            ("method", solution.method),
            (names[0], number(problem.objective(solution.value))),
            (names[1], proof if math.isfinite(bound) else "none"),
            ("gap", percent(problem.objective_gap(solution.value, solution.bound))),
            ("status", str(solution.status)),
            ("seconds", seconds(solution.seconds)),
        ]
    )
