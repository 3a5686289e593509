"""``hashlearn tune FEATURES -o MODEL``: choose a configuration on held-out rows, and write it fitted on all of them."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli.exits import InputError, one_line, refusals
from hashlearn.cli.fit_and_tune import keep_names, learned_from, notices, open_samples
from hashlearn.cli.inputs import json_option, quiet_option, require_place, rows_option, show
from hashlearn.cli.steps import Steps
from hashlearn.cli.text_tables import number, pairs, seconds, table

if TYPE_CHECKING:
    from hashlearn.hashers.tuning import TuningProgress

OPTIONS = {"n_bits": "--bits", "seconds": "--seconds", "held_out": "--held-out", "y": "--labels"}


@click.command("tune", short_help="Try configurations on held-out rows; writes the best as a model.")
@click.argument("features", metavar="FEATURES")
@rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels); without, the judge is the nearest rows")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="Where the model goes.")
@click.option("--bits", "n_bits", type=int, default=32, show_default=True, help="Code length.")
@click.option(
    "--seconds", "budget", type=click.FloatRange(min=0.0, min_open=True), default=300.0, show_default=True,
    help="Then no further trial begins; learning the best from all rows comes on top.",
)  # fmt: skip
@click.option(
    "--held-out", type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True), default=0.2, show_default=True,
    help="Share of the rows to judge by, at most 2,000 of them.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
@json_option
@quiet_option
def tune_command(
    features: str,
    labels: str | None,
    output: Path,
    n_bits: int,
    budget: float,
    held_out: float,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Choose target, hash function and more for FEATURES, a file of rows, and write the best to a model file.

    One choice is varied at a time, beginning with the defaults, and the best so far is kept. Held-out rows are queries
    against the codes of the others; with labels the score is mean average precision, without, the share of the 10
    nearest rows that codes find. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C, and no model then.
    """
    require_place(output, features, labels)
    from hashlearn.hashers import tune

    trials: list[dict[str, Any]] = []
    with Steps(quiet) as steps, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        steps.begin("reading")
        source, y = open_samples(features, labels)
        warned: list[warnings.WarningMessage] = list(heard)
        heard.clear()

        def tried(progress: TuningProgress) -> None:
            trial = progress.trial
            changes = {name: _plain(value) for name, value in trial.changes.items()}
            trials.append({"changes": changes, "score": trial.score, "seconds": trial.seconds, "notes": notices(heard)})
            heard.clear()  # a rival's warnings are not the model's
            steps.begin(f"{len(trials)} tried, best score {max(row['score'] for row in trials):.4f}")

        steps.begin("trying the defaults")
        began = time.perf_counter()
        with refusals(), _options_named():
            found = tune(
                source.read(), y, n_bits=n_bits, seconds=budget, held_out=held_out, random_state=seed, progress=tried
            )
            keep_names(found.hasher, source)
        spent = time.perf_counter() - began
        steps.begin("writing")
        with refusals(f"--output {output}"):
            found.hasher.save(output)
    remarks = notices([*warned, *heard])
    for remark in remarks:
        click.echo(f"Note: {remark}", err=True)
    report = {
        "model": str(output),
        "n_bits": found.hasher.n_bits,
        "n_samples": source.n_rows,
        "n_features": source.n_features,
        "labels": labels is not None,
        "seed": seed,
        "held_out": held_out,
        "metric": found.metric,
        "trials": trials,
        "best": found.trials.index(found.best),
        "stopped": found.stopped,
        "seconds": spent,
        "bytes": output.stat().st_size,
        "notes": remarks,
    }
    show(as_json, report, _text(report, budget))


@contextmanager
def _options_named() -> Iterator[None]:
    """Put the option in front of an error that begins with the argument it is for."""
    try:
        yield
    except ValueError as error:
        argument = re.match(r"\w*", str(error))
        option = OPTIONS.get(argument[0]) if argument else None
        if option is None:
            raise
        raise InputError(f"{option}: {one_line(error)}") from None


def _plain(value: Any) -> Any:
    """A value of a parameter for JSON and tables: objects as text that leaves out what is their default.

    >>> from hashlearn.hash_functions import RBFSVM
    >>> _plain(RBFSVM(C=1.0)), _plain(RBFSVM()), _plain("local_search"), _plain(3)
    ('RBFSVM(C=1.0)', 'RBFSVM()', 'local_search', 3)
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    said = []
    for part in fields(value):
        default = part.default if part.default_factory is MISSING else part.default_factory()
        held = getattr(value, part.name)
        if repr(held) != repr(default):
            said.append(f"{part.name}={_plain(held) if is_dataclass(held) else repr(held)}")
    return f"{type(value).__name__}({', '.join(said)})"


def _text(report: dict[str, Any], budget: float) -> str:
    rows = [
        [
            ", ".join(f"{name}={value}" for name, value in trial["changes"].items()) or "none",
            f"{trial['score']:.4f}",
            seconds(trial["seconds"]),
            "best" if place == report["best"] else "",
        ]
        for place, trial in enumerate(report["trials"])
    ]
    said = [
        ("score", f"{report['metric']}, {number(100.0 * report['held_out'], 3)} % of the rows held out"),
        ("model", f"{report['model']}  ({report['bytes']:,} bytes)"),
        ("learned from", learned_from(report)),
        ("seconds", seconds(report["seconds"])),
    ]
    if report["stopped"]:
        said.append(("stopped", f"by the budget of {number(budget)} seconds, with choices left to try"))
    return table(["changes from the defaults", "score", "seconds", ""], rows) + "\n\n" + pairs(said)
