"""The end of a page: what is missing, the commands that make it all again, and where everything comes from."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hashlearn.experiments.report.formatting import ABSENT, counted, dataset_name, features_name, fixed, listed, seconds
from hashlearn.experiments.report.load_results import Missing, Stored
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.model import TABLES, Block, Cell, duration, metric
from hashlearn.experiments.report.tables import plain_table

_SHOWN_DIGEST = 16
_FACT_NAMES = {
    "name": "protocol",
    "train_per_class": "training samples a class",
    "n_train": "training samples",
    "n_database": "database items",
    "n_queries": "queries in all",
    "n_classes": "classes",
    "n_classes_left_out": "classes left out",
    "class_size_above": "classes with more than",
    "memory_gib": "memory, GiB",
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "numba": "Numba",
}


def missing_part(missing: Sequence[Missing]) -> Markup:
    """Cells that belong to the tables and are not there, gathered by method and reason."""
    if not missing:
        return element("p", "Nothing: every cell of the tables shown here is measured.")
    groups: dict[tuple[str, str, str, str], list[Missing]] = {}
    for cell in missing:
        groups.setdefault((cell.table, cell.dataset, cell.method, cell.reason), []).append(cell)
    rows = [
        element(
            "tr",
            element("th", method, scope="row"),
            element("td", f"{table}, {dataset_name(dataset)}"),
            element("td", counted(len(cells), "cell"), element("small", f" at {_lengths(cells)} bits")),
            element("td", reason),
        )
        for (table, dataset, method, reason), cells in groups.items()
    ]
    caption = element("strong", f"{counted(len(missing), 'cell')} not there")
    return plain_table("missing", caption, ["method", "table", "cells", "why"], rows, "Missing cells")


def _lengths(cells: Sequence[Missing]) -> str:
    return listed([str(n_bits) for n_bits in sorted({cell.n_bits for cell in cells})])


def commands(blocks: Sequence[Block], folder: str) -> list[str]:
    """What to type to measure every cell again, and to make this page from them."""
    lines = []
    for block in blocks:
        source = block.cells[0]["cell"].get("source", block.dataset)  # the path, where one was given
        words = ["hashlearn", "bench", block.table.name, "--dataset", source]
        words += ["--methods", ",".join(block.methods), "--bits", ",".join(map(str, block.lengths))]
        words += ["--draws", str(block.last_draw + 1), "--out", folder]
        lines.append(shlex.join(words))
    return [*lines, shlex.join(["hashlearn", "report", folder, "-o", "report.html"])]


def provenance_part(held: Stored, blocks: Sequence[Block]) -> list[Markup]:
    """Data, protocols, versions and machine; then configurations and every cell, folded away."""
    sources: dict[str, list[Block]] = {}
    for block in blocks:
        first = block.cells[0]
        same = f"{block.dataset} {block.features} {first.get('protocol')} {first.get('provenance')}"
        sources.setdefault(same, []).append(block)
    return [
        element("h3", "Versions and machine"),
        *_settings(held.cells),
        element("h3", "Data, protocols, parameters"),
        *(_data(group) for group in sources.values()),
        _folded(
            "Configurations", "configurations", ["table", "method", "hasher", "parameters"], _configurations(blocks)
        ),
        *_warnings(held.cells),
        _folded(f"Every cell ({len(held.cells):,})", "cells", _CELL_HEADS, [_cell_row(cell) for cell in held.cells]),
    ]


def _data(group: Sequence[Block]) -> Markup:
    """What was drawn from which files, for the tables that share it."""
    block = group[0]
    protocol: Mapping[str, Any] = block.cells[0].get("protocol") or {}
    source: Mapping[str, Any] = block.cells[0].get("provenance") or {}
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
        parts += [element("dt", _FACT_NAMES.get(name, str(name).replace("_", " "))), element("dd", shown)]
    return parts


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(held)}" for key, held in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return str(value)


def _settings(cells: Sequence[Cell]) -> list[Markup]:
    """Each distinct set of versions and machine, with how many cells it made."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(f"{cell.get('versions')}{cell.get('machine')}", []).append(cell)
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
        for method in block.methods:
            cell = next(cell for cell in block.cells if cell["cell"]["method"] == method)
            configuration = cell.get("configuration") or {}
            parameters = configuration.get("parameters") or {}
            text = ", ".join(f"{name}={value}" for name, value in parameters.items())
            where = f"{block.table.name}, {dataset_name(block.dataset)}"
            hasher = str(configuration.get("hasher", ABSENT))
            texts = [element("td", hasher), element("td", element("code", text), class_="long")]
            rows.append(element("tr", element("td", where), element("th", method, scope="row"), texts))
    return rows


def _warnings(cells: Sequence[Cell]) -> list[Markup]:
    """What was warned about while cells ran, with how often; nothing where nothing was."""
    heard = Counter(str(text) for cell in cells for text in cell.get("warnings") or ())
    rows = [
        element("tr", element("td", counted(count, "cell")), element("td", text, class_="long"))
        for text, count in heard.most_common()
    ]
    return [_folded("Warnings", "warnings", ["in", "what"], rows)] if rows else []


_CELL_HEADS = ("table", "data set", "method", "bits", "draw", "score, %", "mAP, %", "fit, s", "codes’ sha256")


def _cell_row(cell: Cell) -> Markup:
    key, digest = cell["cell"], str(cell.get("digest") or ABSENT)
    own = {table.name: table.metric for table in TABLES}
    score = metric(own.get(key["table"], "precision@2"))(cell)
    texts = [key["table"], dataset_name(key["dataset"]), key["method"], key["n_bits"], key["draw"]]
    texts += [fixed(score), fixed(metric("map")(cell)), seconds(duration("fit")(cell))]
    code = element("code", digest[:_SHOWN_DIGEST], title=digest)
    return element("tr", (element("td", text) for text in texts), element("td", code))


def _folded(title: str, kind: str, heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    return element("details", element("summary", title), plain_table(kind, None, heads, rows, title))
