"""The end of a page: what is missing, the commands that repeat all runs, and where everything comes from."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hashlearn.experiments.bench.blocks import Record
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.experiments.report.tables import Part
from hashlearn.pages.formatting import counted

Facts = list[tuple[str, str]]  # names and values, nested ones in one line


class Missing(NamedTuple):
    """Cells of a method that are not there, for one reason."""

    table: str
    dataset: str
    method: str
    reason: str
    lengths: list[int]  # one for each cell


class Source(NamedTuple):
    """What was drawn from which files, for the parts that share it."""

    parts: list[Part]
    facts: Facts
    files: list[Any]


def missing_cells(results: Results) -> list[Missing]:
    """The missing cells, grouped by method and reason. Stored failures have the tracebacks."""
    groups = defaultdict(list)
    for cell in results.missing:
        groups[cell.table, dataset_name(cell.dataset), cell.method, results.reason(cell)].append(cell.n_bits)
    return [Missing(*key, lengths) for key, lengths in groups.items()]


def commands(parts: Sequence[Part], folder: str) -> list[str]:
    """The commands that measure every cell again and make this page from them."""
    lines = []
    for block, _ in parts:
        request = block.request
        if request is None:
            continue
        for run in request.runs:
            words = ["hashlearn", "bench", block.table.name, "--dataset", request.source]
            words += ["--methods", ",".join(run.methods), "--bits", ",".join(map(str, run.bits))]
            words += ["--draws", str(run.n_draws), "--out", folder]
            for name, value in request.options.items():
                for one in value if isinstance(value, list) else [value]:
                    words += [f"--{name}", str(one)]
            lines.append(shlex.join(words))
    return [*lines, shlex.join(["hashlearn", "report", folder, "-o", "report.html"])]


def machines(records: Sequence[Record]) -> list[Facts]:
    """Each distinct set of versions and machine, with the number of cells measured with it."""
    groups = defaultdict(list)
    for record in records:
        groups[f"{record.get('versions')}{record.get('machine')}"].append(record)
    return [
        [("made", counted(len(group), "cell")), *_facts(group[0].get("versions")), *_facts(group[0].get("machine"))]
        for group in groups.values()
    ]


def sources(parts: Sequence[Part]) -> list[Source]:
    """The data of all parts."""
    groups = defaultdict(list)
    for part in parts:
        first = part.block.records[0]
        key = f"{part.block.dataset} {part.block.features} {first.get('protocol')} {first.get('provenance')}"
        groups[key].append(part)
    return [_source(group) for group in groups.values()]


def _source(group: list[Part]) -> Source:
    record = group[0].block.records[0]
    provenance = dict(record.get("provenance") or {})
    files = provenance.pop("files", None) or []
    used = {"used in": ", ".join(part.block.table.title for part in group)}
    facts = _facts({**used, **(record.get("protocol") or {}), **provenance})
    return Source(group, facts, files)


class Configuration(NamedTuple):
    """The estimator behind a method in one part."""

    where: str
    method: str
    hasher: str | None
    parameters: str


def configurations(parts: Sequence[Part]) -> Iterator[Configuration]:
    """One for each part and method."""
    for part in parts:
        for method in part.block.methods:
            record = next(record for record in part.block.records if record["cell"]["method"] == method)
            held = record.get("configuration") or {}
            parameters = ", ".join(f"{name}={value}" for name, value in (held.get("parameters") or {}).items())
            yield Configuration(f"{part.block.table.name}, {part.dataset}", method, held.get("hasher"), parameters)


def heard_warnings(records: Sequence[Record]) -> list[tuple[str, int]]:
    """The warnings of all cells, with the number of cells that have them."""
    return Counter(str(text) for record in records for text in record.get("warnings") or ()).most_common()


def _facts(stored: Mapping[str, Any] | None) -> Facts:
    facts = []
    for name, value in (stored or {}).items():
        if value is not None and value != {} and value != []:
            shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _plain(value)
            facts.append((str(name).replace("_", " "), shown))
    return facts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(held)}" for key, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return str(value)
