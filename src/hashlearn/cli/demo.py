"""``hashlearn demo``: learn codes for the digits, search and score them; one table, one page to look at."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli.exits import INTERRUPTED, InputError
from hashlearn.cli.inputs import json_option, require_place
from hashlearn.cli.solver_demo import built_in_examples, show
from hashlearn.cli.text_tables import percent, seconds, table
from hashlearn.core.progress import Progress

if TYPE_CHECKING:
    from hashlearn.experiments.bench.digits import DigitsResult

HEADER = ("learned from", "method", "precision within 2 bits", "mean average precision", "fit, s", "encode, s", "")


@click.command("demo", short_help="Learn, search and score codes on built-in data; writes a page to look at.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@click.option("--bits", "n_bits", type=click.IntRange(1, 256), default=16, show_default=True, help="Code length.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("hashlearn-demo.html"),
    show_default=True,
    help="Where the page goes.",
)
@click.option("--solvers", is_flag=True, help="Instead: every bit solver on built-in problems, as tables.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0.0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --solvers: for each solver on each problem.",
)
@json_option
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def demo_command(
    ctx: click.Context,
    seed: int,
    n_bits: int,
    output: Path,
    solvers: bool,
    time_limit: float,
    as_json: bool,
    quiet: bool,
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
            ctx.exit(INTERRUPTED)
        return
    from hashlearn.core.atomic_files import write_atomically
    from hashlearn.experiments.bench import digits
    from hashlearn.experiments.report.digits_page import page

    require_place(output)
    with _Steps(quiet) as steps:
        result = digits.run(n_bits, seed, progress=steps)
    if as_json:
        write_atomically(output, [page(result).encode()])
        rows = [asdict(row) for row in result.rows]
        click.echo(json.dumps({"n_bits": n_bits, "seed": seed, "output": str(output), "rows": rows}))
        return
    click.echo(f"hashlearn {__version__}: {result.n_images:,} handwritten digits in {n_bits} bits (seed {seed})\n")
    click.echo(table(HEADER, [_row(row) for row in result.rows]))
    click.echo(f"\n{_worked_search(result)}\n")
    write_atomically(output, [page(result).encode()])
    click.echo(f"{result.seconds:.1f} s in all. To look at: {output}   Solvers: hashlearn demo --solvers")


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


class _Steps:
    """A bar over the steps of the experiment, on standard error if that is a terminal."""

    def __init__(self, quiet: bool) -> None:
        from tqdm import tqdm

        shape = "{desc} {bar:20} {elapsed}"
        self._bar = tqdm(file=sys.stderr, disable=True if quiet else None, leave=False, bar_format=shape)

    def __call__(self, progress: Progress) -> None:
        self._bar.total, self._bar.n = progress.total, progress.done
        self._bar.set_description_str(progress.stage)

    def __enter__(self) -> _Steps:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
