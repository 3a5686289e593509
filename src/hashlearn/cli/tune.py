"""``hashlearn tune FEATURES -o MODEL``: choose a configuration on held-out rows, and write it fitted on all of them."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals
from hashlearn.cli.fit import Samples
from hashlearn.cli.text_tables import number
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import seconds as seconds_text
from hashlearn.pages.formatting import text_table

if TYPE_CHECKING:
    from hashlearn.core.progress import Progress

SHARE = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)


@click.command("tune", short_help="Try configurations on held-out rows; writes the best as a model.")
@options.features_argument
@options.rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels); without, the judge is the cosines")
@options.output_option("Where the model goes.")
@options.bits_option
@options.seconds_option("--seconds", "Time for trials. The final fit on all rows takes extra time.", 300.0)
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
) -> options.Answer:
    """Choose target and hash function for FEATURES, a file of rows, and write the best to a model file.

    The defaults are tried first, then one change of them at a time. The score of held-out rows is mean average
    precision with labels; without, minus the mean squared error of cosines that codes keep.
    """
    from hashlearn.hashers import tune

    samples = Samples.read(features, labels, output, bar)
    with warnings.catch_warnings(record=True) as heard:

        def tried(progress: Progress) -> None:
            heard.clear()  # warnings of a trial are not warnings of the model
            bar.begin(f"{progress.done} of {progress.total} tried")

        bar.begin("trying the defaults")
        with refusals():
            tuned = tune(
                samples.source.read(),
                samples.y,
                n_bits=n_bits,
                seconds=seconds,
                held_out=held_out,
                random_state=seed,
                progress=tried,
            )
    report, learned = samples.save(tuned.hasher, output, bar)
    report |= {
        "seed": seed,
        "held_out": held_out,
        "metric": "minus the squared error of cosines" if labels is None else "mean average precision",
        "trials": [asdict(trial) for trial in tuned.trials],
        "best": tuned.trials.index(tuned.best),
        "stopped": tuned.stopped,
        "notes": options.notices(heard),
    }
    rows = [
        [
            ", ".join(f"{name}={value}" for name, value in trial.changes.items()) or "none",
            f"{trial.score:.4f}",
            seconds_text(trial.seconds),
            "best" if trial is tuned.best else "",
        ]
        for trial in tuned.trials
    ]
    table = text_table(["changes from the defaults", "score", "seconds", ""], rows)
    score = f"{report['metric']}, {number(100.0 * held_out, 3)} % of the rows held out"
    stopped = [("stopped", f"after {number(seconds)} seconds, with trials left")] if tuned.stopped else []
    return report, table, [("score", score), *learned, *stopped]
