"""``hashlearn bqp FILE``: solve a max-cut or QUBO file and report in the file's own sense."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli.exits import INTERRUPTED, InputError, refusals
from hashlearn.cli.inputs import require_place
from hashlearn.cli.progress import Bar
from hashlearn.cli.text_tables import lower_bound, number, pairs, percent, seconds, upper_bound

if TYPE_CHECKING:
    from hashlearn.bqp import Solution
    from hashlearn.bqp.problem_files import Problem, Sense


@click.command("bqp", short_help="Solve a max-cut or QUBO file, with a proven bound.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--method", default="sdr", show_default=True, help="Solver; an unknown name lists them all.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="SECONDS",
    help="Stop after this long with the best so far; sdr has little before it rounds, at its end.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.option("--sense", type=click.Choice(["max-cut", "qubo"]), help="What the file holds.  [default: by its name]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the assignment: one line for each variable, ±1 for a cut, 0 or 1 for a QUBO.",
)
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def bqp_command(
    ctx: click.Context,
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

    The cut is maximised, the QUBO energy minimised; value and bound are given in that sense. Ctrl-C stops the
    solver, prints the best so far with status "interrupted" and ends with exit code 130. Exit code 2 means
    bad input.
    """
    from hashlearn import bqp
    from hashlearn.bqp.problem_files import ProblemFileError, read_problem

    if output is not None:
        _check_output(output, file)
    try:
        problem = read_problem(file, sense)
    except ProblemFileError as error:
        raise InputError(str(error)) from None
    with Bar(quiet=quiet, time_limit=time_limit, value=problem.objective, bound=problem.objective_bound) as bar:
        try:
            solution = bqp.solve(problem.operator, method, random_state=seed, time_limit=time_limit, progress=bar)
        except ValueError as error:
            raise InputError(str(error)) from None
    report = _report(file, problem, solution) | {"seed": seed}
    click.echo(json.dumps(report, allow_nan=False) if as_json else _text(problem, solution))
    if output is not None:
        _write(output, problem, solution)
    if solution.status == bqp.Status.INTERRUPTED:
        ctx.exit(INTERRUPTED)


def _check_output(output: Path, file: Path) -> None:
    """Refuse before the solve what could not be written after it."""
    if os.path.realpath(output) == os.path.realpath(file):
        raise InputError(f"{output}: --output names the problem file itself")
    require_place(output)


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
    value = number(problem.objective(solution.value))
    bound = problem.objective_bound(solution.bound)
    proven = math.isfinite(bound)
    if problem.sense == "max-cut":
        rows = [
            ("cut", value),
            ("upper bound", f"{upper_bound(bound)}  (no cut is larger)" if proven else "none"),
        ]
    else:
        rows = [
            ("energy", value),
            ("lower bound", f"{lower_bound(bound)}  (no energy is smaller)" if proven else "none"),
        ]
    return pairs(
        [
            ("file", f"{problem.name}  ({problem.sense}, n = {problem.n:,})"),
            ("method", solution.method),
            *rows,
            ("gap", percent(problem.objective_gap(solution.value, solution.bound))),
            ("status", str(solution.status)),
            ("seconds", seconds(solution.seconds)),
        ]
    )


def _write(output: Path, problem: Problem, solution: Solution) -> None:
    from hashlearn.core.atomic_files import write_atomically

    lines = "".join(f"{entry}\n" for entry in problem.assignment(solution.x).tolist())
    with refusals("--output"):
        write_atomically(output, [lines.encode()])
