"""The end of a page: what is missing, the commands that repeat all runs, and where everything comes from."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hashlearn.experiments.bench.blocks import Block, Record
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.dataset_names import dataset_name, features_name
from hashlearn.pages.formatting import ABSENT, counted, listed
from hashlearn.pages.markup import Markup, element
from hashlearn.pages.tables import plain_table


def missing_part(results: Results) -> list[Markup]:
    """The missing cells with the reason, grouped by method and reason. Stored failures have the tracebacks."""
    if not results.missing:
        return [element("p", "Nothing: every cell that was asked for is measured.")]
    groups = defaultdict(list)
    for cell in results.missing:
        groups[cell.table, cell.dataset, cell.method, results.reason(cell)].append(cell.n_bits)
    rows = []
    for (table, dataset, method, reason), found in groups.items():
        lengths = element("small", f" at {listed([str(n_bits) for n_bits in sorted(set(found))])} bits")
        contents = (f"{table}, {dataset_name(dataset)}", [counted(len(found), "cell"), lengths], reason)
        cells = [element("td", content) for content in contents]
        rows.append(element("tr", element("th", method, scope="row"), cells))
    caption = element("strong", f"{counted(len(results.missing), 'cell')} not there")
    return [plain_table("missing", caption, ["method", "table", "cells", "why"], rows, "Missing cells")]


def commands(blocks: Sequence[Block], folder: str) -> list[str]:
    """The commands that measure every cell again and make this page from them."""
    lines = []
    for block in blocks:
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


def provenance_part(records: Sequence[Record], blocks: Sequence[Block]) -> list[Markup]:
    """Data, protocols, versions and machine; then, folded, configurations and every record."""
    sources = defaultdict(list)
    for block in blocks:
        first = block.records[0]
        key = f"{block.dataset} {block.features} {first.get('protocol')} {first.get('provenance')}"
        sources[key].append(block)
    heads = ("table", "method", "hasher", "parameters")
    return [
        element("h3", "Versions and machine"),
        *_settings(records),
        element("h3", "Data, protocols, parameters"),
        *(_data(group) for group in sources.values()),
        _folded("Configurations", "configurations", heads, _configurations(blocks)),
        *_warnings(records),
    ]


def _data(group: Sequence[Block]) -> Markup:
    """What was drawn from which files, for the tables that share it."""
    block = group[0]
    protocol: Mapping[str, Any] = block.records[0].get("protocol") or {}
    source: Mapping[str, Any] = block.records[0].get("provenance") or {}
    title = f"{dataset_name(block.dataset)}, features: {features_name(block.features)}"
    tables = {"used in": ", ".join(block.table.title for block in group)}
    facts = _pairs({**tables, **protocol, **{key: value for key, value in source.items() if key != "files"}})
    files = [_file(file) for file in source.get("files") or ()]
    listing = [element("dt", "files"), element("dd", element("ul", files))] if files else None
    return element("details", element("summary", title), element("dl", facts, listing, class_="facts"))


def _file(file: Any) -> Markup:
    if not isinstance(file, Mapping):
        return element("li", str(file))
    return element("li", file.get("path", ABSENT), " ", element("code", f"sha256 {file.get('sha256', ABSENT)}"))


def _pairs(facts: Mapping[str, Any]) -> list[Markup]:
    """Names and values, nested ones in one line."""
    parts = []
    for name, value in facts.items():
        if value is None or value == {} or value == []:
            continue
        shown = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else _plain(value)
        parts += [element("dt", str(name).replace("_", " ")), element("dd", shown)]
    return parts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(held)}" for key, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return str(value)


def _settings(records: Sequence[Record]) -> list[Markup]:
    """Each distinct set of versions and machine, with the number of cells measured with it."""
    groups = defaultdict(list)
    for record in records:
        groups[f"{record.get('versions')}{record.get('machine')}"].append(record)
    return [
        element(
            "dl",
            element("dt", "made"),
            element("dd", counted(len(group), "cell")),
            _pairs(group[0].get("versions") or {}),
            _pairs(group[0].get("machine") or {}),
            class_="facts",
            data_part="machine",
        )
        for group in groups.values()
    ]


def _configurations(blocks: Sequence[Block]) -> list[Markup]:
    rows = []
    for block in blocks:
        where = element("td", f"{block.table.name}, {dataset_name(block.dataset)}")
        for method in block.methods:
            record = next(record for record in block.records if record["cell"]["method"] == method)
            configuration = record.get("configuration") or {}
            parameters = (configuration.get("parameters") or {}).items()
            code = element("code", ", ".join(f"{name}={value}" for name, value in parameters))
            texts = [element("td", str(configuration.get("hasher", ABSENT))), element("td", code, class_="long")]
            rows.append(element("tr", where, element("th", method, scope="row"), texts))
    return rows


def _warnings(records: Sequence[Record]) -> list[Markup]:
    """The warnings of all cells, with their number; empty if there were none."""
    heard = Counter(str(text) for record in records for text in record.get("warnings") or ())
    rows = [
        element("tr", element("td", counted(count, "cell")), element("td", text, class_="long"))
        for text, count in heard.most_common()
    ]
    return [_folded("Warnings", "warnings", ["in", "what"], rows)] if rows else []


def _folded(title: str, kind: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    return element("details", element("summary", title), plain_table(kind, None, heads, rows, title))
