"""``hashlearn explore MODEL FEATURES -o PAGE``: one HTML page to look through rows by their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals
from hashlearn.core.progress import ProgressBar


@click.command("explore", short_help="An HTML page to look through rows by their codes, in the browser alone.")
@options.model_argument
@options.features_argument
@options.output_option("Where the page goes.", "explore.html")
@click.option("--texts", metavar="FILE", help="Text of each row, such as rows.parquet::title.")
@options.rows_option("--images", "Image of each row, uint8 (n, h, w) or (n, h, w, 3), npy or npz")
@options.rows_option("--labels", "Class of each row, for colors")
@click.option("--title", help="Name of the collection, on top of the page.")
@click.option("--max-bytes", type=int, default=5_000_000, help="Largest page; with fewer texts and images if need be.")
@click.option("--thumbnail", type=int, default=32, metavar="PIXELS", help="Longest side of an image in the page.")
@options.answers
def explore_command(
    model: Path,
    features: str,
    output: Path,
    texts: str | None,
    images: str | None,
    labels: str | None,
    bar: ProgressBar,
    **settings: Any,
) -> options.Answer:
    """Write a page with a map of the rows of FEATURES, in which a click shows the nearest rows by their codes.

    The page is one file, needs no server and makes no request.
    """
    from hashlearn.explorer import write_page
    from hashlearn.files import read_images

    options.require_place(output, model, features, texts, images, labels)
    hasher = options.loaded(model, bar)
    source = options.rows_for(hasher, features, "")
    items = {"texts": options.texts_for(texts, source.n_rows, "--texts")}
    with refusals("--images"):
        items["images"] = None if images is None else read_images(images)
    classes = options.labels_for(labels, source)
    ids = None if source.columns.id is None else options.ids_of(source, "", distinct=False)
    with refusals():
        page = write_page(hasher, source, output, labels=classes, ids=ids, progress=bar, **items, **settings)
    report = {"model": str(model), "page": str(output), **page._asdict()}
    del report["path"]
    lines = [("page", f"{output}  ({page.bytes:,} bytes)"), ("rows", f"{page.n_rows:,}, {page.n_bits} bits each")]
    for name, file, count in (("texts", texts, page.n_texts), ("images", images, page.n_images)):
        if file is not None:
            limit = "" if count == page.n_rows else "; a larger --max-bytes allows more"
            lines.append((name, f"of {count:,} rows{limit}"))
    return report, lines
