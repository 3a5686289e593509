"""The results folder: one JSON file for each cell, written whole or not at all, and checked when it is read.

A file that is no such result, or that has another version of the format, is refused by name and never overwritten.
Only the tables' own folders are searched. A cell that failed has its traceback in a file beside the place of its
result, until it succeeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hashlearn.core.atomic_files import write_atomically
from hashlearn.experiments.bench import asked
from hashlearn.experiments.bench.asked import Asked, ResultError, read_asked
from hashlearn.experiments.bench.cell import SCHEMA, versions
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.tables import TABLES, Cell, rank

__all__ = ["Failure", "ResultError", "Results", "read", "read_cell"]

CELL_FILE = re.compile(r"([1-9]\d*)-(0|[1-9]\d*)(\.error)?\.json")
PARTS = ("cell", "protocol", "configuration", "versions", "machine", "seconds", "metrics", "curve", "digest")


@dataclass(frozen=True)
class Failure:
    """How a cell failed: the error in one line, the traceback if there is one, and the file that holds both."""

    error: str
    traceback: str
    path: Path


@dataclass(frozen=True, eq=False)
class Results:
    """The content of a results folder.

    Attributes
    ----------
    folder : the folder
    records : the stored record of each cell, in the tables' order
    missing : cells that were asked for and have no record
    failures : for each missing cell that was tried, its last error
    asked : what was asked, by table and data set
    """

    folder: Path
    records: Mapping[Cell, Mapping[str, Any]]
    missing: tuple[Cell, ...]
    failures: Mapping[Cell, Failure] = field(default_factory=dict)
    asked: Mapping[tuple[str, str], Asked] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """The records without their keys, in the same order."""
        return tuple(self.records.values())

    def reason(self, cell: Cell) -> str:
        """Why a cell is missing, in words."""
        return f"failed: {self.failures[cell].error}" if cell in self.failures else "not run yet"


def read(folder: str | Path, cells: Iterable[Cell] | None = None) -> Results:
    """All results of a folder, or only those of ``cells``; a `ResultError` names a file that cannot be used."""
    folder = Path(folder)
    known: dict[tuple[str, str], Asked] = {}
    if cells is None:
        if not folder.is_dir():
            raise ResultError(f"{folder}: there is no such folder; `hashlearn bench` makes one")
        files = dict(_files(folder))
        present = sorted((cell for cell, has_result in files.items() if has_result), key=_order)
        if not present:
            failed = f", only {len(files)} failed cell(s)" if files else ""
            raise ResultError(f"{folder}: no results of `hashlearn bench` in this folder{failed}")
        known, wanted = _wanted(folder, files)
    else:
        wanted = list(cells)
        present = [cell for cell in wanted if (folder / cell.path).exists()]
    records = {cell: read_cell(folder, cell) for cell in present}
    missing = tuple(cell for cell in wanted if cell not in records)
    failures = {cell: failure for cell in missing if (failure := _failure(folder, cell))}
    return Results(folder, records, missing, failures, known)


def read_cell(folder: Path, cell: Cell) -> dict[str, Any]:
    """One stored record, checked."""
    path = folder / cell.path
    advice = "move it away, or name another results folder"
    if not path.is_file():
        raise ResultError(f"{path}: is not a regular file; {advice}")
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ResultError(f"{path}: is damaged, not whole JSON; delete it, and the cell will run again") from None
    if not isinstance(record, dict) or "schema" not in record:
        raise ResultError(f"{path}: is not a result of `hashlearn bench`; {advice}")
    if record["schema"] != SCHEMA:
        raise ResultError(
            f"{path}: was stored in format {record['schema']!r}, this version reads and writes {SCHEMA}; {advice}"
        )
    absent = [part for part in PARTS if not record.get(part)]
    if absent:
        raise ResultError(f"{path}: lacks {', '.join(absent)}; delete it, and the cell will run again")
    claimed = {name: record["cell"].get(name) for name in Cell.__dataclass_fields__}
    if claimed != {name: getattr(cell, name) for name in claimed}:
        raise ResultError(f"{path}: holds another cell's result ({claimed}); put it back in its place, or delete it")
    return record


def as_text(record: Mapping[str, Any]) -> str:
    """A record as it is stored."""
    return json.dumps(record, allow_nan=False, indent=1)


def write_cell(folder: Path, cell: Cell, text: str) -> None:
    """Store a record, whole or not at all, and remove an earlier error of the cell."""
    _write(folder / cell.path, text)
    _error_path(folder, cell).unlink(missing_ok=True)


def write_error(folder: Path, cell: Cell, error: str, trace: str) -> None:
    """Store the error of a failed cell and its traceback, beside the place of its result."""
    held = {"schema": SCHEMA, "cell": asdict(cell), "error": error, "traceback": trace, "versions": versions()}
    _write(_error_path(folder, cell), as_text(held))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [text.encode()])


def _files(folder: Path) -> Iterator[tuple[Cell, bool]]:
    """The cells of which the folder holds a file, and whether that is a result; else it is an error."""
    for table in TABLES:
        for path in sorted((folder / table).rglob("*.*"), key=lambda path: ".error." not in path.name):
            place = path.relative_to(folder).parts
            if path.is_dir() or (len(place) == 3 and path.name == asked.FILE):
                continue
            match = CELL_FILE.fullmatch(path.name)
            if len(place) == 4 and match is not None:
                yield Cell.of_file(table, place[1], place[2], int(match[1]), int(match[2])), match[3] is None
            elif path.suffix == ".json":
                raise ResultError(f"{path}: is not a result of `hashlearn bench`; move it out of the results folder")


def _wanted(folder: Path, files: Iterable[Cell]) -> tuple[dict[tuple[str, str], Asked], list[Cell]]:
    """What was asked, and every cell that a page counts: asked for, or stored."""
    wanted, known = set(files), {}
    for table, dataset in {(cell.table, cell.dataset) for cell in files}:
        found = read_asked(folder, table, dataset)
        if found is not None:
            known[table, dataset] = found
            wanted.update(found.cells(table, dataset))
    return known, sorted(wanted, key=_order)


def _order(cell: Cell) -> tuple[Any, ...]:
    """The tables' order, then that of methods, then lengths and draws."""
    dataset = rank(cell.dataset, TABLES[cell.table].datasets)
    method = rank(cell.method, METHODS)
    return (rank(cell.table, TABLES), dataset, method, cell.n_bits, cell.draw)


def _error_path(folder: Path, cell: Cell) -> Path:
    return (folder / cell.path).with_suffix(".error.json")


def _failure(folder: Path, cell: Cell) -> Failure | None:
    """The last error of a cell; None if it has none that can be read."""
    path = _error_path(folder, cell)
    try:
        held = json.loads(path.read_bytes())
        return Failure(str(held["error"]), str(held["traceback"]), path)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
