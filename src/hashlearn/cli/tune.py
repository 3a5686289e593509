"""``hashlearn tune FEATURES -o MODEL``: choose a configuration on held-out rows, and write it fitted on all of them."""

from __future__ import annotations

import time
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals
from hashlearn.cli.fit import described, notices, samples
from hashlearn.cli.text_tables import number, pairs, table
from hashlearn.cli.text_tables import seconds as seconds_text
from hashlearn.core.progress_bar import ProgressBar

if TYPE_CHECKING:
    from hashlearn.hashers.tuning import TuningProgress

SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
OPTIONS = {"n_bits": "--bits", "seconds": "--seconds", "held_out": "--held-out", "y": "--labels"}


@click.command("tune", short_help="Try configurations on held-out rows; writes the best as a model.")
@options.features_argument
@options.rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels); without, the judge is the nearest rows")
@options.output_option("Where the model goes.")
@options.bits_option
@options.seconds_option(
    "--seconds", "Then no further trial begins; learning the best from all rows comes on top.", 300.0
)
@click.option("--held-out", type=SHARE, default=0.2, help="Share of the rows to judge by, at most 2,000 of them.")
@options.seed_option
@options.answers
def tune_command(
    features: str,
    labels: str | None,
    output: Path,
    n_bits: int,
    seconds: float,
    held_out: float,
    seed: int,
    bar: ProgressBar,
) -> tuple[dict[str, Any], str]:
    """Choose target, hash function and more for FEATURES, a file of rows, and write the best to a model file.

    One choice is varied at a time, beginning with the defaults, and the best so far is kept. Held-out rows are queries
    against the codes of the others; with labels the score is mean average precision, without, the share of the 10
    nearest rows that codes find. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C, and no model then.
    """
    from hashlearn.hashers import tune

    trials: list[dict[str, Any]] = []
    with samples(features, labels, output, bar) as given:
        warned = list(given.heard)
        given.heard.clear()

        def tried(progress: TuningProgress) -> None:
            trial = progress.trial
            changes = {name: _plain(value) for name, value in trial.changes.items()}
            remarks = notices(given.heard)
            given.heard.clear()  # warnings of a trial are not warnings of the model
            trials.append({"changes": changes, "score": trial.score, "seconds": trial.seconds, "notes": remarks})
            bar.begin(f"{len(trials)} tried, best score {max(row['score'] for row in trials):.4f}")

        bar.begin("trying the defaults")
        began = time.perf_counter()
        chosen: dict[str, Any] = {"n_bits": n_bits, "seconds": seconds, "held_out": held_out, "random_state": seed}
        with refusals(options=OPTIONS):
            found = tune(given.source.read(), given.y, **chosen, progress=tried)
        spent = time.perf_counter() - began
        report = given.save(found.hasher, output)
    remarks = notices([*warned, *given.heard])
    report |= {
        "seed": seed,
        "held_out": held_out,
        "metric": found.metric,
        "trials": trials,
        "best": found.trials.index(found.best),
        "stopped": found.stopped,
        "seconds": spent,
        "notes": remarks,
    }
    return report, _text(report, seconds)


def _plain(value: Any) -> Any:
    """The value of a parameter for JSON and tables. Objects become text that leaves out their defaults.

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
            seconds_text(trial["seconds"]),
            "best" if place == report["best"] else "",
        ]
        for place, trial in enumerate(report["trials"])
    ]
    said = [
        ("score", f"{report['metric']}, {number(100.0 * report['held_out'], 3)} % of the rows held out"),
        *described(report),
        ("seconds", seconds_text(report["seconds"])),
    ]
    if report["stopped"]:
        said.append(("stopped", f"by the budget of {number(budget)} seconds, with choices left to try"))
    return table(["changes from the defaults", "score", "seconds", ""], rows) + "\n\n" + pairs(said)
