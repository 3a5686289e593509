"""What was asked of `hashlearn bench`, recorded beside the results of each table and data set.

One file, ``asked.json``, holds the source of the data, the options and every run: methods, code lengths and draws. By
it a report knows which cells are missing, which metrics to show and which commands to print.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hashlearn.core.atomic_files import write_atomically
from hashlearn.experiments.bench.choices import stored_name
from hashlearn.experiments.bench.plans import Plan
from hashlearn.experiments.bench.tables import TABLES, Cell

FILE = "asked.json"
SCHEMA = 1


class ResultError(ValueError):
    """A file in the results folder that cannot be used; the message names it and says what to do."""


@dataclass(frozen=True)
class Run:
    """Methods × code lengths × draws that one command asked for."""

    methods: tuple[str, ...]
    bits: tuple[int, ...]
    n_draws: int


@dataclass(frozen=True)
class Asked:
    """All that was asked of one table on one data set.

    Attributes
    ----------
    source : the data set's name or path, as it was given
    options : other options of the command, by name; a list is an option given several times
    runs : all different
    """

    source: str
    options: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()

    def with_run(self, source: str, options: Mapping[str, Any], run: Run) -> Asked:
        """This and one more run. Runs with other options than ``metric`` are forgotten: nothing of them is stored."""
        sizes, before = ({k: v for k, v in given.items() if k != "metric"} for given in (options, self.options))
        runs = self.runs if sizes == before else ()
        shown = options.get("metric") or self.options.get("metric")
        return Asked(source, {**options, **({"metric": shown} if shown else {})}, tuple(dict.fromkeys((*runs, run))))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The stored names of the metrics asked for."""
        return tuple(map(stored_name, self.options.get("metric") or ()))

    def cells(self, table: str, dataset: str) -> Iterator[Cell]:
        """Every cell asked for, once."""
        found: dict[Cell, None] = {}
        for run in self.runs:
            plan = Plan(TABLES[table], {dataset: self.source}, run.methods, run.bits, run.n_draws)
            found.update(dict.fromkeys(plan.cells))
        return iter(found)


def record(folder: Path, plan: Plan, dataset: str) -> None:
    """Add what a plan asks for; nothing is written if it was asked before."""
    table, before = plan.table.name, read_asked(folder, plan.table.name, dataset)
    source = plan.datasets[dataset]
    run = Run(plan.methods, plan.bits, plan.n_draws)
    after = (before or Asked(source)).with_run(source, plan.choice.options(), run)
    if after == before:
        return
    runs = [{"methods": list(r.methods), "bits": list(r.bits), "draws": r.n_draws} for r in after.runs]
    text = json.dumps({"schema": SCHEMA, "source": source, "options": after.options, "runs": runs}, indent=1)
    path = folder / table / dataset / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [text.encode()])


def read_asked(folder: Path, table: str, dataset: str) -> Asked | None:
    """What was asked; None if that is not recorded."""
    path = folder / table / dataset / FILE
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_bytes())
        if stored["schema"] != SCHEMA:
            raise ResultError(f"{path}: was stored in format {stored['schema']!r}, this version reads {SCHEMA}")
        runs = tuple(
            Run(tuple(map(str, run["methods"])), tuple(map(int, run["bits"])), int(run["draws"]))
            for run in stored["runs"]
        )
        return Asked(str(stored["source"]), dict(stored["options"]), runs)
    except ResultError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise ResultError(f"{path}: is damaged; delete it, and the next run writes it again") from None
