"""``hashlearn datasets``: what is known, what is present, and how to get the rest."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from hashlearn.cli.exits import refusals
from hashlearn.cli.options import json_option, show
from hashlearn.cli.text_tables import ABSENT, pairs, table

if TYPE_CHECKING:
    from hashlearn.experiments.datasets import Known

HEADER = ("data set", "samples", "present", "features (default first)")


@click.command("datasets", short_help="What data sets are known, what is present, how to get the rest.")
@json_option
def datasets_command(as_json: bool) -> None:
    """List the data sets: what is known, what is present, how to get the rest.

    Files are looked for in the folder that $HASHLEARN_DATA names, else in the user's cache folder. Every .npz there
    with X and y is a data set by its stem.
    """
    from hashlearn.experiments import datasets

    with refusals():
        found, folder = datasets.known(), datasets.data_folder()
    text = f"Data folder: {folder}{'' if folder.is_dir() else ' (not there yet)'}\n\n"
    text += table(HEADER, [_row(known) for known in found])
    absent = [(known.name, f"{known.how}. Missing: {', '.join(known.missing)}") for known in found if not known.present]
    if absent:
        text += f"\n\nHow to get the rest\n{pairs(absent)}"
    plain = [dataclasses.asdict(known) | {"folder": str(known.folder), "present": known.present} for known in found]
    show(as_json, {"folder": str(folder), "datasets": plain}, text)


def _row(known: Known) -> tuple[str, ...]:
    samples = f"{known.samples:,}" if known.samples is not None else ABSENT
    return (known.name, samples, "yes" if known.present else "no", ", ".join(known.features))
