"""The results folder: one JSON file for each cell, written whole or not at all, and checked when it is read.

A file that is no such result, or that has another version of the format, is refused by name and never overwritten.
Only the tables' own folders are searched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hashlearn.core.atomic_files import remove_unfinished as remove_unfinished_files
from hashlearn.core.atomic_files import write_atomically
from hashlearn.experiments.bench.cell import SCHEMA
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.peers import PEERS
from hashlearn.experiments.bench.tables import TABLES, Cell, Plan, rank

CELL_FILE = re.compile(r"([1-9]\d*)-(0|[1-9]\d*)\.json")
PARTS = ("cell", "protocol", "configuration", "versions", "machine", "seconds", "metrics", "curve", "digest")


class ResultError(ValueError):
    """A file in the results folder that cannot be used; the message names it and says what to do."""


@dataclass(frozen=True, eq=False)
class Results:
    """The content of a results folder.

    Attributes
    ----------
    folder : the folder
    records : the stored record of each cell, in the tables' order
    missing : cells without a record. When a whole folder is read, these are for each table and data set in it: every
        method and code length of the table, with as many draws as the largest number found
    failed : for each missing cell that was tried, its last error in one line
    """

    folder: Path
    records: Mapping[Cell, Mapping[str, Any]]
    missing: tuple[Cell, ...]
    failed: Mapping[Cell, str]

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """The records without their keys, in the same order."""
        return tuple(self.records.values())

    def reason(self, cell: Cell) -> str:
        """Why a cell is missing, in words."""
        return f"failed: {self.failed[cell]}" if cell in self.failed else "not run yet"


def read(folder: str | Path, cells: Iterable[Cell] | None = None) -> Results:
    """All results of a folder, or only those of ``cells``; a `ResultError` names a file that cannot be used."""
    folder = Path(folder)
    if cells is None:
        if not folder.is_dir():
            raise ResultError(f"{folder}: there is no such folder; `hashlearn bench` makes one")
        present = sorted(_present(folder), key=_order)
        if not present:
            raise ResultError(f"{folder}: no results of `hashlearn bench` in this folder")
        wanted = _complete(present)
    else:
        wanted = list(cells)
        present = [cell for cell in wanted if (folder / cell.path).exists()]
    records = {cell: read_cell(folder, cell) for cell in present}
    missing = tuple(cell for cell in wanted if cell not in records)
    failed = {cell: text for cell in missing if (text := _last_error(folder, cell))}
    return Results(folder, records, missing, failed)


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


def copy_from_twin(folder: Path, cell: Cell) -> bool:
    """Copy the record of the very same run from another table; False if none has it."""
    table = TABLES[cell.table]
    for other in TABLES.values():
        twin = replace(cell, table=other.name)
        if other is not table and table.runs_like(other, cell.dataset) and (folder / twin.path).exists():
            record = read_cell(folder, twin)
            record["cell"]["table"] = cell.table
            write_cell(folder, cell, as_text({**record, "copied_from": twin.path.as_posix()}))
            return True
    return False


def write_error(folder: Path, cell: Cell, trace: str) -> None:
    """Store the traceback of a failed cell, beside the place of its result."""
    _write(_error_path(folder, cell), trace)


def remove_unfinished(folder: Path) -> None:
    """Remove half-written files of runs that were killed."""
    for table in TABLES:
        remove_unfinished_files(folder / table, "*/*/.*")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [text.encode()])


def _present(folder: Path) -> Iterable[Cell]:
    """The cells whose files the folder holds."""
    for table in TABLES:
        for path in (folder / table).rglob("*.json"):
            place = path.relative_to(folder).parts
            match = CELL_FILE.fullmatch(path.name)
            if len(place) != 4 or match is None:
                raise ResultError(f"{path}: is not a result of `hashlearn bench`; move it out of the results folder")
            yield Cell(table, place[1], place[2], int(match[1]), int(match[2]))


def _complete(present: list[Cell]) -> list[Cell]:
    """Every cell of the tables and data sets of ``present``."""
    wanted = set(present)
    for table, dataset in {(cell.table, cell.dataset) for cell in present}:
        n_draws = max(cell.draw for cell in present if (cell.table, cell.dataset) == (table, dataset)) + 1
        rows = TABLES[table]
        methods = (*rows.methods, *(name for name in rows.peers if PEERS[name].installed))
        wanted.update(Plan(rows, {dataset: dataset}, methods, rows.bits, n_draws).cells)
    return sorted(wanted, key=_order)


def _order(cell: Cell) -> tuple[Any, ...]:
    """The tables' order, then that of methods, then lengths and draws."""
    dataset = rank(cell.dataset, TABLES[cell.table].datasets)
    method = rank(cell.method, (*METHODS, *PEERS))
    return (rank(cell.table, TABLES), dataset, method, cell.n_bits, cell.draw)


def _error_path(folder: Path, cell: Cell) -> Path:
    return (folder / cell.path).with_suffix(".error.txt")


def _last_error(folder: Path, cell: Cell) -> str:
    try:
        lines = _error_path(folder, cell).read_text("utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
