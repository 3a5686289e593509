"""``hashlearn demo``: learn codes for the digits, search and score them; one table, one page to look at."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli import options
from hashlearn.cli.exits import INTERRUPTED, InputError
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.solver_demo import built_in_examples, show
from hashlearn.cli.text_tables import percent, seconds, table

if TYPE_CHECKING:
    from hashlearn.experiments.bench.digits import DigitsResult

HEADER = ("learned from", "method", "precision within 2 bits", "mean average precision", "fit, s", "encode, s", "")


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
        if not show(built_in_examples(seed), seed=seed, time_limit=time_limit, quiet=quiet):
            raise click.exceptions.Exit(INTERRUPTED)
        return
    from hashlearn.experiments.bench import digits
    from hashlearn.experiments.report.page import digits_page

    options.require_place(output)
    with ProgressBar(quiet) as bar:
        result = digits.run(n_bits, seed, progress=bar)
    options.write_output(output, digits_page(result))
    rows = [asdict(row) for row in result.rows]
    text = [
        f"hashlearn {__version__}: {result.n_images:,} handwritten digits in {n_bits} bits (seed {seed})\n",
        table(HEADER, [_row(row) for row in result.rows]),
        f"\n{_worked_search(result)}\n",
        f"{result.seconds:.1f} s in all. To look at: {output}   Solvers: hashlearn demo --solvers",
    ]
    options.show(as_json, {"n_bits": n_bits, "seed": seed, "output": str(output), "rows": rows}, "\n".join(text))


def _row(row: Any) -> tuple[str, ...]:
    scores = (percent(row.precision), percent(row.mean_average_precision))
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
