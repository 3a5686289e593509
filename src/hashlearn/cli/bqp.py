"""``hashlearn bqp FILE``: solve a max-cut, QUBO or Ising file and report in the file's own words."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.bqp_verify import write_proof
from hashlearn.cli.exits import INTERRUPTED, refusals, refuse
from hashlearn.cli.text_tables import number, pairs
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import percent, seconds

if TYPE_CHECKING:
    from hashlearn.bqp import Answer, SolverProgress
    from hashlearn.bqp.modeling.problem import Sense


@click.command("bqp", short_help="Solve a max-cut, QUBO or Ising file, with a proven bound.")
@click.argument("file", type=click.Path(path_type=Path))
@options.named_option("--method", "solvers of one problem", "Solver: NAMES.", default="auto")
@options.seconds_option("--time-limit", "Stop after this long with the best answer and bound so far.")
@options.seed_option
@options.sense_option
@options.format_option
@options.file_option("--proof", "branch_and_bound: write the proof as JSON, gzipped if it ends in .gz, for bqp-verify.")
@options.json_option
@options.output_option(
    "Write the assignment: a line 'label value' for each variable; ±1 for sides and spins, 0 or 1 for a QUBO.",
    required=False,
)
@options.quiet_option
def bqp_command(
    file: Path,
    method: str,
    time_limit: float | None,
    seed: int,
    sense: Sense | None,
    format: str | None,
    proof: Path | None,
    as_json: bool,
    output: Path | None,
    quiet: bool,
) -> None:
    """Solve a max-cut, QUBO or Ising FILE, plain or gzipped.

    A cut is maximized, an energy minimized; value and bound are given in that sense. Formats by ending:

    \b
      .txt .rud .gset .mc  rudy, Gset, BiqMac: max-cut, 'n m' and lines 'i j w'
      .sparse              BiqMac: QUBO, 'n m' and lines 'i j w'
      .coo                 dimod COO: QUBO or Ising, by '# vartype='

    Ctrl-C stops the solver and prints the best so far with status "interrupted".
    """
    from hashlearn import bqp
    from hashlearn.bqp.modeling import problem_files

    if output is not None:
        options.require_place(output, file)
    if proof is not None:
        options.require_place(proof, file, output, option="--proof")
    exact = bqp.BranchAndBound.name
    refuse((proof is not None and method != exact, f"--proof: method {method} writes no proof; use --method {exact}"))
    with refusals():
        problem = problem_files.read_problem(file, sense, format)
    for note in problem.notes:
        click.echo(f"Note: {note}", err=True)

    def numbers(progress: SolverProgress) -> str:
        return f"value {number(progress.value, 6)}, bound {number(progress.bound, 6)}"

    with refusals(), ProgressBar(quiet, extra=numbers) as bar:
        answer = bqp.solve_problem(problem, method=method, random_state=seed, time_limit=time_limit, progress=bar)
    options.show(as_json, _report(file, answer) | {"seed": seed}, _text(answer))
    if output is not None:
        values = zip(problem.index, problem.assignment(answer.solution.x).tolist(), strict=True)
        options.write_output(output, "".join(f"{label} {value}\n" for label, value in values))
    if proof is not None:
        write_proof(proof, answer.solution)
    if answer.status == bqp.Status.INTERRUPTED:
        raise click.exceptions.Exit(INTERRUPTED)


def _report(file: Path, answer: Answer) -> dict[str, Any]:
    """What --json prints; None where there is no bound."""
    return {
        "file": str(file),
        "sense": answer.problem.sense,
        "n": answer.problem.n,
        "method": answer.solution.method,
        "value": answer.objective,
        "bound": _finite(answer.bound),
        "gap": _finite(answer.gap),
        "status": str(answer.status),
        "seconds": answer.solution.seconds,
    }


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _text(answer: Answer) -> str:
    problem, bound = answer.problem, answer.bound
    if problem.sense == "max-cut":
        names, proof = ("cut", "upper bound"), f"{number(bound, rounding=ROUND_CEILING)}  (no cut is larger)"
    else:
        names, proof = ("energy", "lower bound"), f"{number(bound, rounding=ROUND_FLOOR)}  (no energy is smaller)"
    return pairs(
        [
            ("file", f"{problem.name}  ({problem.sense}, n = {problem.n:,})"),
            ("method", answer.solution.method),
            (names[0], number(answer.objective)),
            (names[1], proof if math.isfinite(bound) else "none"),
            ("gap", percent(answer.gap, 3)),
            ("status", str(answer.status)),
            ("seconds", seconds(answer.solution.seconds)),
        ]
    )
