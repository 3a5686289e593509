"""``hashlearn demo``: learn, search, score and promise: codes for the digits, as a table and as a page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli import options
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import percent, seconds, text_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hashlearn.compression import Compression
    from hashlearn.experiments.bench.digits import DigitsResult

TITLE = "Learned binary codes of handwritten digits"
HEADER = ("learned from", "method", "float neighbors", "precision within 2 bits", "mAP", "fit, s", "encode, s")
NEXT_STEPS = (  # the command, and what it does
    ("hashlearn compress X.npy -o model.hashlearn --page page.html", "find the smallest code that keeps your search"),
    ("hashlearn fit X.npy -o model.hashlearn", "learn codes from your own rows"),
    ("hashlearn fit X.npy --labels y.npy -o model.hashlearn", "the same with labels, so that classes stay together"),
    ("hashlearn search model.hashlearn --database X.npy --queries Q.npy", "search your rows"),
)
HOW_TO_READ_CODES = """\
How to read it: "float neighbors" is the share of the 10 nearest images by float that the 10 nearest codes find. The
other two scores count images of the same digit. Labels keep classes; RankingHasher, without labels, keeps neighbors."""


@click.command("demo", short_help="Learn, search and score codes on built-in data; writes a page to look at.")
@options.seed_option
@click.option("--bits", "n_bits", type=click.IntRange(1, 256), default=16, help="Code length.")
@options.output_option("Where the page goes.", "hashlearn-demo.html")
@options.answers
def demo_command(seed: int, n_bits: int, output: Path, bar: ProgressBar) -> options.Answer:
    """Learn binary codes for handwritten digits, with and without labels, beside plain sign codes. Under a minute."""
    from hashlearn.experiments.bench import digits

    options.require_place(output)
    result = digits.run(n_bits, seed, progress=bar)
    images, plan = _compressed(seed, bar)
    options.write_output(output, _page(result, images, plan))
    rows = [asdict(row) for row in result.rows]
    text = [
        f"hashlearn {__version__}: {result.n_images:,} handwritten digits in {n_bits} bits (seed {seed})\n",
        text_table(HEADER, [_row(row) for row in result.rows]),
        f"\n{HOW_TO_READ_CODES}",
        f"\n{_worked_search(result)}\n",
        f"Will binary codes hurt my search? hashlearn compress answers, here for the same digits:\n{plan}\n",
        f"To look at: {output}\n",
        "With rows of your own, in X.npy:",
        *(f"  {command}   # {words}" for command, words in NEXT_STEPS),
    ]
    report = {"n_bits": n_bits, "seed": seed, "output": str(output), "rows": rows}
    return report | {"certificate": asdict(plan.certificate)}, "\n".join(text)


def _compressed(seed: int, bar: ProgressBar) -> tuple[NDArray[np.uint8], Compression]:
    """The images, and the smallest code of them that keeps a promise."""
    from sklearn.datasets import load_digits

    from hashlearn import compress

    X, _ = load_digits(return_X_y=True)
    return (15.0 * X).astype("uint8").reshape(-1, 8, 8), compress(X, random_state=seed, progress=bar)


def _page(result: DigitsResult, images: NDArray[np.uint8], plan: Compression) -> str:
    from hashlearn.compression.page import page_data
    from hashlearn.pages.gallery import Group, Item, Picture, Query
    from hashlearn.pages.rendering import render
    from hashlearn.pages.series_styles import look

    looks = {row.method: look(place) for place, row in enumerate(result.rows)}
    label = str(result.query_label)
    groups = [
        Group.of_method(
            method,
            [Item.labeled(images[row], str(digit), distance, label) for row, digit, distance in found],
            looks[method],
        )
        for method, found in result.neighbors.items()
    ]
    search = Query(label, "query", Picture.of(images[result.query_row], f"Query: {label}"), groups)
    data = page_data(plan, images=list(images)) | {"title": TITLE, "looks_of_methods": looks, "next_steps": NEXT_STEPS}
    return render("demo.html", result=result, search=search, **data)


def _row(row: Any) -> tuple[str, ...]:
    scores = (percent(row.neighbors, 3), percent(row.precision, 3), percent(row.mean_average_precision, 3))
    return (row.setting, row.method, *scores, seconds(row.fit_seconds), seconds(row.encode_seconds))


def _worked_search(result: DigitsResult) -> str:
    """The digits nearest to the first query, by each method."""
    width = max(map(len, result.neighbors))
    lines = [f"A search: the images nearest to a {result.query_label}, with their distances in bits"]
    for name, neighbors in result.neighbors.items():
        lines.append(f"{name:<{width}}  {'  '.join(f'{label} ({distance})' for _, label, distance in neighbors)}")
    return "\n".join(lines)
