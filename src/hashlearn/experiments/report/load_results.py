"""What a page is made from: stored cells, and what is missing beside them with the reason why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hashlearn.experiments.report.model import Cell


class Missing(NamedTuple):
    """A cell that belongs to the tables and is not there."""

    table: str
    dataset: str
    method: str
    n_bits: int
    draw: int
    reason: str


@dataclass(frozen=True, eq=False)
class Stored:
    """The cells of a results folder. Of the folder only its name is shown, never where it lies."""

    cells: tuple[Cell, ...]
    missing: tuple[Missing, ...] = ()
    folder: str = "results"


def stored(results: Any) -> Stored:
    """From what `hashlearn.experiments.bench.results.read` gives, or from the cells' dictionaries alone.

    >>> stored([{"cell": {"table": "knn"}}]).folder
    'results'
    """
    if isinstance(results, Stored):
        return results
    if not hasattr(results, "missing"):
        return Stored(_checked(results))
    absent = set(results.missing_methods)
    missing = tuple(
        Missing(c.table, c.dataset, c.method, c.n_bits, c.draw, _reason(c.method in absent, results.failed.get(c)))
        for c in results.missing
    )
    return Stored(_checked(results.cells), missing, Path(results.folder).name or "results")


def _reason(absent: bool, error: str | None) -> str:
    if absent:
        return "this version does not have the method"
    return f"failed: {error}" if error else "not run yet"


def _checked(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    held = tuple(cells)
    if not held:
        raise ValueError("results must hold at least one cell; `hashlearn bench` makes them")
    return held
