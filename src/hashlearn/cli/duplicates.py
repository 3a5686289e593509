"""``hashlearn duplicates FEATURES -o PAIRS``: pairs of nearly equal rows, with a promise about how many are missed."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar

if TYPE_CHECKING:
    from hashlearn.compression import NearDuplicates

ENDINGS = (".csv", ".npy", ".parquet")


@click.command("duplicates", short_help="Pairs of nearly equal rows, with a promise about how many are missed.")
@options.features_argument
@options.output_option("Where the pairs go: .csv or .parquet (columns first, second, similarity), or .npy (rows only).")
@click.option("--similarity", type=float, default=0.95, help="Least cosine of a pair.")
@click.option("--missed", type=float, default=0.05, help="Share of near-duplicates that may be missed.")
@click.option("--confidence", type=float, default=0.99, help="At 0.99 at most 1 in 100 promises fails.")
@click.option("--bits", "n_bits", type=int, default=128, help="Code length.")
@click.option("--max-pairs", type=int, default=10_000_000, help="More pairs are refused.")
@options.seed_option
@options.answers
def duplicates_command(features: str, output: Path, seed: int, bar: ProgressBar, **settings: Any) -> options.Answer:
    """Write all pairs of rows of FEATURES with a cosine of at least --similarity.

    Rows are numbered from 0. Floats verify every pair. The answer says what is promised about missed ones.
    """
    from hashlearn import near_duplicates
    from hashlearn.core.atomic_files import write_atomically
    from hashlearn.files import open_rows

    if output.suffix.lower() not in ENDINGS:
        raise InputError(f"--output {output}: pairs are written as {', '.join(ENDINGS)}; name such a file")
    options.require_place(output, features)
    bar.begin("reading rows")
    with refusals():
        rows = open_rows(features).read()
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    with refusals():
        duplicates = near_duplicates(rows, **settings, random_state=seed, progress=bar)
    with refusals("--output"):
        write_atomically(output, [_file(duplicates, output.suffix.lower())])
    report = {part.name: getattr(duplicates, part.name) for part in dataclasses.fields(duplicates)}
    report |= {"pairs": len(duplicates.pairs), "n_kept": len(duplicates.keep()), "output": str(output), "seed": seed}
    del report["similarities"]
    return report, f"{duplicates}\nThe pairs are in {output}."


def _file(duplicates: NearDuplicates, ending: str) -> bytes:
    """The bytes of the output file."""
    import numpy as np

    from hashlearn.core.packages import require

    file, (first, second) = io.BytesIO(), duplicates.pairs.T
    if ending == ".npy":
        np.save(file, duplicates.pairs)
    elif ending == ".csv":
        lines = zip(first.tolist(), second.tolist(), duplicates.similarities.tolist(), strict=True)
        file.write(b"first,second,similarity\n")
        file.writelines(f"{i},{j},{cosine!r}\n".encode() for i, j, cosine in lines)
    else:
        columns = {"first": first, "second": second, "similarity": duplicates.similarities}
        table = require("pyarrow", "parquet", "writing Parquet files").table(columns)
        require("pyarrow.parquet", "parquet", "writing Parquet files").write_table(table, file)
    return file.getvalue()
