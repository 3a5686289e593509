"""``hashlearn demo``: learn, search, score and promise: codes for the digits, as a table and as pages.

``hashlearn demo --solvers`` shows every solver on built-in problems, as tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli import options
from hashlearn.cli.exits import INTERRUPTED, InputError
from hashlearn.cli.text_tables import lower_bound, number, percent, seconds, table, upper_bound, value_and_bound
from hashlearn.core.progress_bar import ProgressBar
from hashlearn.pages.formatting import ABSENT

if TYPE_CHECKING:
    from hashlearn.bqp import Operator, Solution, SolverProgress
    from hashlearn.compression import Compression
    from hashlearn.experiments.bench.digits import DigitsResult

HEADER = ("learned from", "method", "float neighbors", "precision within 2 bits", "mAP", "fit, s", "encode, s", "")
HOW_TO_READ_CODES = """\
How to read it: "float neighbors" is the share of the 10 nearest images by float that the 10 nearest codes find. The
other two scores count images of the same digit. Labels keep classes; RankingHasher, without labels, keeps neighbors."""
SOLVER_HEADER = ("method", "value", "bound", "gap", "seconds", "status")
ROWS_TO_WARM_UP = 200
HOW_TO_READ_SOLVERS = """\
How to read it: "value" is what the solver found, "bound" what it proved that nothing can beat ("–": this
solver proves nothing), "gap" how far its value is from the best bound of the table; 0 % is proven optimal."""
WHERE_NEXT = """\
Where next: README.md shows bqp.solve in Python, docs/solvers.md how to choose a solver, and
`hashlearn bqp FILE` solves your own max-cut or QUBO file."""


@click.command("demo", short_help="Learn, search and score codes on built-in data; writes a page to look at.")
@options.seed_option
@click.option("--bits", "n_bits", type=click.IntRange(1, 256), default=16, help="Code length.")
@options.output_option("Where the page goes.", "hashlearn-demo.html")
@click.option("--solvers", is_flag=True, help="Instead: every bit solver on built-in problems, as tables.")
@options.seconds_option("--time-limit", "With --solvers: for each solver on each problem.", 2.0)
@options.json_option
@options.quiet_option
def demo_command(
    seed: int, n_bits: int, output: Path, solvers: bool, time_limit: float, as_json: bool, quiet: bool
) -> None:
    """Learn binary codes for handwritten digits, with and without labels, beside plain sign codes. Under a minute."""
    if solvers:
        if as_json:
            raise InputError(
                "--json: not with --solvers, which prints tables; hashlearn bqp FILE --json is for scripts"
            )
        limit = f"at most {time_limit:g} s a solve"
        click.echo(f"hashlearn {__version__}: every solver on built-in problems (seed {seed}, {limit})\n")
        if not show_solvers(built_in_examples(seed), seed=seed, time_limit=time_limit, quiet=quiet):
            raise click.exceptions.Exit(INTERRUPTED)
        return
    from hashlearn.experiments.bench import digits
    from hashlearn.experiments.report.page import NEXT_STEPS, digits_page

    options.require_place(output)
    promise_page = output.with_name(f"{output.stem}-promise{output.suffix}")
    options.require_place(promise_page)
    with ProgressBar(quiet) as bar:
        result = digits.run(n_bits, seed, progress=bar)
        plan = _compressed(seed, promise_page, bar)
    options.write_output(output, digits_page(result, promise_page.name))
    rows = [asdict(row) for row in result.rows]
    text = [
        f"hashlearn {__version__}: {result.n_images:,} handwritten digits in {n_bits} bits (seed {seed})\n",
        table(HEADER, [_row(row) for row in result.rows]),
        f"\n{HOW_TO_READ_CODES}",
        f"\n{_worked_search(result)}\n",
        f"Will binary codes hurt my search? hashlearn compress answers, here for the same digits:\n{plan}\n",
        f"To look at: {output} and {promise_page}   Solvers: hashlearn demo --solvers\n",
        "With rows of your own, in X.npy:",
        *(f"  {command}   # {words[0].lower()}{words[1:]}" for words, command in NEXT_STEPS),
    ]
    report = {"n_bits": n_bits, "seed": seed, "output": str(output), "rows": rows}
    report |= {"promise_page": str(promise_page), "certificate": asdict(plan.certificate)}
    options.show(as_json, report, "\n".join(text))


def _compressed(seed: int, page: Path, bar: ProgressBar) -> Compression:
    """The smallest code of the digits that keeps a promise, and its page with pictures."""
    from sklearn.datasets import load_digits

    from hashlearn import compress

    X, _ = load_digits(return_X_y=True)
    plan: Compression = compress(X, random_state=seed, progress=bar)
    plan.page(page, images=(15.0 * X).astype("uint8").reshape(-1, 8, 8))
    return plan


def _row(row: Any) -> tuple[str, ...]:
    scores = (percent(row.neighbors), percent(row.precision), percent(row.mean_average_precision))
    return (row.setting, row.method, *scores, seconds(row.fit_seconds), seconds(row.encode_seconds), "")


def _worked_search(result: DigitsResult) -> str:
    """The nearest digits to the first query, by each method."""
    shown = {name: found["queries"][0] for name, found in result.galleries.items()}
    width = max(map(len, shown))
    label = next(iter(shown.values()))["label"]
    lines = [f"A search: the images nearest to a {label}, with their distances in bits"]
    for name, query in shown.items():
        found = "  ".join(f"{image['label']} ({image['distance']})" for image in query["neighbours"])
        lines.append(f"{name:<{width}}  {found}")
    return "\n".join(lines)


@dataclass(frozen=True)
class Example:
    """A problem with its title. With ``n_edges`` it is a maximum cut of a graph that has this many edges."""

    title: str
    operator: Operator
    n_edges: int | None = None

    def shown(self, value: float) -> float:
        """The number to print for xᵀAx = ``value``."""
        return value if self.n_edges is None else self.n_edges / 2.0 - value / 4.0

    def shown_bound(self, bound: float) -> str:
        """The bound as text, rounded to its safe side."""
        return lower_bound(bound) if self.n_edges is None else upper_bound(self.shown(bound))


def built_in_examples(seed: int, n_bits: int = 16, graph_sizes: Sequence[int] = (24, 800)) -> list[Example]:
    """One bit on the digits with and without labels, and random graphs to cut."""
    from hashlearn.experiments import solver_problems as examples

    shown = [
        Example(
            f"One bit of a {n_bits}-bit code for 1,797 handwritten digits, {source}: minimize xᵀAx",
            examples.digits_bit(supervised, n_bits),
        )
        for supervised, source in ((True, "from their labels"), (False, "from their distances"))
    ]
    for n in graph_sizes:
        graph = examples.random_graph(n, 6, seed)
        shown.append(Example(f"A random graph with {n} nodes, 6 edges at each: maximize the cut", graph, 3 * n))
    return shown


def show_solvers(examples: Sequence[Example], *, seed: int, time_limit: float, quiet: bool) -> bool:
    """Solve each example with each method and print its table; False if Ctrl-C ended it early."""
    from hashlearn import bqp
    from hashlearn.bqp.methods.exact import LIMIT

    _warm_up(examples, quiet)
    for place, example in enumerate(examples, start=1):
        solutions: dict[str, Solution | str] = {}
        for method in bqp.METHODS:
            prefix = f"problem {place} of {len(examples)}, {method}: "
            with ProgressBar(quiet, prefix=prefix, extra=_numbers) as bar:
                try:
                    solutions[method] = bqp.solve(
                        example.operator, method, random_state=seed, time_limit=time_limit, progress=bar
                    )
                except ValueError as error:
                    solutions[method] = f"n > {LIMIT}" if method == "exact" else str(error)
            if _was_interrupted(solutions[method]):
                break
        click.echo(f"{example.title}\n{table(SOLVER_HEADER, list(_rows(example, solutions)))}\n")
        if any(map(_was_interrupted, solutions.values())):
            return False
    click.echo(f"{HOW_TO_READ_SOLVERS}\n\n{WHERE_NEXT}")
    return True


def _warm_up(examples: Sequence[Example], quiet: bool) -> None:
    """Solve small parts first: kernels are compiled on their first use, and that should not be timed."""
    import numpy as np

    from hashlearn import bqp

    parts = {type(e.operator): e.operator.restricted(np.arange(min(e.operator.n, ROWS_TO_WARM_UP))) for e in examples}
    for method in bqp.METHODS:
        with ProgressBar(quiet, prefix=f"compiling {method} (slow only the first time): ") as bar:
            for part in parts.values():
                try:
                    # One node of a tree compiles everything; closing the tree may take hours.
                    solver = bqp.BranchAndBound(max_iter=1) if method == "branch_and_bound" else method
                    solution = bqp.solve(part, solver, random_state=0, progress=bar)
                except ValueError:
                    continue  # not for this size: the table will say so
                if _was_interrupted(solution):
                    raise KeyboardInterrupt


def _rows(example: Example, solutions: dict[str, Solution | str]) -> Iterator[tuple[str, ...]]:
    solved = [s for s in solutions.values() if not isinstance(s, str)]
    best_bound = example.shown(max((s.bound for s in solved), default=-float("inf")))
    for method, solution in solutions.items():
        if isinstance(solution, str):
            yield method, ABSENT, ABSENT, ABSENT, ABSENT, solution
            continue
        value = example.shown(solution.value)
        yield (
            method,
            number(value),
            example.shown_bound(solution.bound),
            percent(_gap(value, best_bound)),
            seconds(solution.seconds),
            str(solution.status),
        )


def _numbers(progress: SolverProgress) -> str:
    return value_and_bound(progress.value, progress.bound)


def _gap(value: float, bound: float) -> float:
    difference = abs(value - bound)
    return difference / abs(bound) if difference and bound else difference


def _was_interrupted(solution: Solution | str) -> bool:
    return not isinstance(solution, str) and solution.status == "interrupted"
