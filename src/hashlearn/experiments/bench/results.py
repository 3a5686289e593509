"""The results folder: a JSON file for each cell, named by the cell's key, and ``plan.json``, what was asked last.

Every file is written whole or not at all. Files with other names are ignored, whatever they hold: half-written ones,
those of older versions, those of other people. A file that is not what its name says is refused, never overwritten. A
cell that failed has its traceback in a file beside the place of its result, until it succeeds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hashlearn.core.atomic_files import regular_file, write_atomically
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.plans import SCORING, Plan
from hashlearn.experiments.bench.tables import TABLES, Cell, rank

PLAN_FILE = "plan.json"
PARTS = ("protocol", "configuration", "versions", "machine", "seconds", "metrics", "curve", "digest")
ADVICE = "move it away, or name another results folder"


class ResultError(ValueError):
    """A file in the results folder that cannot be used; the message names it and says what to do."""


@dataclass(frozen=True)
class Run:
    """Methods × code lengths × draws that one command asked for."""

    methods: tuple[str, ...]
    bits: tuple[int, ...]
    n_draws: int


@dataclass(frozen=True)
class Request:
    """What was asked of one table on one data set with the same options.

    Attributes
    ----------
    source : the data set's name or path, as the command had it
    sha256 : of the data set's file, if it is somebody's own; else empty
    options : other options of the command, by name; a list is an option given several times
    runs : all different
    keys : every cell and the key of its result
    """

    source: str
    sha256: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    keys: Mapping[Cell, str] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The stored names of the metrics asked for."""
        return tuple(self.options.get("metric", ()))


Requests = dict[tuple[str, str], Request]  # by table and data set


@dataclass(frozen=True)
class Failure:
    """How a cell failed: the error in one line, and the file that also holds the traceback."""

    error: str
    path: Path


@dataclass(frozen=True, eq=False)
class Results:
    """Stored results.

    Attributes
    ----------
    folder : the results folder
    records : the stored record of each cell, in the tables' order
    missing : cells that were asked for and have no record
    failures : for each missing cell that was tried, its last error
    requests : what was asked, by table and data set
    """

    folder: Path
    records: Mapping[Cell, Mapping[str, Any]]
    missing: tuple[Cell, ...]
    failures: Mapping[Cell, Failure] = field(default_factory=dict)
    requests: Mapping[tuple[str, str], Request] = field(default_factory=dict)

    @property
    def cells(self) -> tuple[Mapping[str, Any], ...]:
        """The records without their cells, in the same order."""
        return tuple(self.records.values())

    def reason(self, cell: Cell) -> str:
        """Why a cell is missing, in words."""
        return f"failed: {self.failures[cell].error}" if cell in self.failures else "not run yet"


def read(folder: str | Path, keys: Mapping[Cell, str] | None = None) -> Results:
    """The results with these keys; None: everything in the folder that was asked for last."""
    folder, requests = Path(folder), None
    if keys is None:
        if not folder.is_dir():
            raise ResultError(f"{folder}: there is no such folder; `hashlearn bench` makes one")
        requests = read_requests(folder)
        pairs = (pair for request in requests.values() for pair in request.keys.items())
        keys = dict(sorted(pairs, key=lambda pair: _order(pair[0])))
    records, failures = {}, {}
    for cell, key in keys.items():
        path = folder / cell.file(key)
        if path.exists():
            records[cell] = _record(path, cell, key)
        elif failure := _failure(_error_file(path)):
            failures[cell] = failure
    if not records and requests is not None:
        failed = f", only {len(failures)} failed cell(s)" if failures else ""
        raise ResultError(f"{folder}: no results of `hashlearn bench` in this folder{failed}")
    missing = tuple(cell for cell in keys if cell not in records)
    return Results(folder, records, missing, failures, requests or {})


def store(folder: Path, cell: Cell, key: str, record: Mapping[str, Any]) -> None:
    """Store a record and remove an earlier error of the cell."""
    path = folder / cell.file(key)
    _write(path, {**record, "key": key})
    _error_file(path).unlink(missing_ok=True)


def store_error(folder: Path, cell: Cell, key: str, error: str, trace: str) -> None:
    """Store the error of a failed cell and its traceback, beside the place of its result."""
    _write(_error_file(folder / cell.file(key)), {"cell": asdict(cell), "error": error, "traceback": trace})


def store_request(folder: Path, plan: Plan, dataset: str) -> bool:
    """Add what a plan asks of a data set to ``plan.json``. Returns whether it takes the place of another request.

    That is so if its options differ, or the rows of the data set. The results of the other request stay in the folder,
    and its command finds them again.
    """
    requests, source, place = read_requests(folder), plan.datasets[dataset], (plan.table.name, dataset)
    before = requests.get(place)
    runs: tuple[Run, ...] = (Run(plan.methods, plan.bits, plan.n_draws),)
    keys = {cell: key for cell, key in plan.keys.items() if cell.dataset == dataset}
    after = Request(source.name, source.sha256 or "", plan.choice.options(), runs, keys)
    is_other = before is not None and (before.sha256, before.options) != (after.sha256, after.options)
    if before is not None and not is_other:
        runs = tuple(dict.fromkeys((*before.runs, *runs)))
        after = replace(after, runs=runs, keys={**before.keys, **keys})
    if after != before:
        requests[place] = after
        stored = [_as_json(*place, request) for place, request in requests.items()]
        _write(folder / PLAN_FILE, {"scoring": SCORING, "requests": stored})
    return is_other


def read_requests(folder: Path) -> Requests:
    """What was asked; empty if there is no ``plan.json``."""
    path = folder / PLAN_FILE
    if not path.exists():
        return {}
    plan = _read(path)
    if plan.get("scoring") != SCORING:
        raise ResultError(f"{path}: is no plan of this version of `hashlearn bench`; {ADVICE}")
    try:
        return dict(map(_from_json, plan["requests"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ResultError(f"{path}: is damaged; {ADVICE}") from None


def _as_json(table: str, dataset: str, request: Request) -> dict[str, Any]:
    keys = [[cell.method, cell.n_bits, cell.draw, key] for cell, key in request.keys.items()]
    return {
        "table": table,
        "dataset": dataset,
        "source": request.source,
        "sha256": request.sha256,
        "options": request.options,
        "runs": [asdict(run) for run in request.runs],
        "keys": keys,
    }


def _from_json(held: Mapping[str, Any]) -> tuple[tuple[str, str], Request]:
    place = (TABLES[held["table"]].name, str(held["dataset"]))
    runs = tuple(
        Run(tuple(map(str, run["methods"])), tuple(map(int, run["bits"])), int(run["n_draws"])) for run in held["runs"]
    )
    keys = {Cell(*place, str(method), int(bits), int(draw)): str(key) for method, bits, draw, key in held["keys"]}
    return place, Request(str(held["source"]), str(held["sha256"]), dict(held["options"]), runs, keys)


def _record(path: Path, cell: Cell, key: str) -> dict[str, Any]:
    record = _read(path)
    parts = {name: record.get(name) for name in ("cell", *PARTS)}
    described = parts["cell"] if isinstance(parts["cell"], dict) else {}
    is_cell = all(described.get(name) == value for name, value in asdict(cell).items())
    if record.get("key") != key or not is_cell or not all(parts.values()):
        raise ResultError(f"{path}: is not the result that its name says; {ADVICE}")
    return record


def _failure(path: Path) -> Failure | None:
    """The last error of a cell; None if it has none that can be read."""
    try:
        return Failure(str(_read(path)["error"]), path)
    except (ResultError, KeyError):
        return None


def _read(path: Path) -> dict[str, Any]:
    """A JSON object; a `ResultError` for anything else."""
    try:
        with regular_file(path) as (file, _):
            held = json.load(file)
    except OSError as error:
        raise ResultError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ResultError(f"{path}: is damaged, no whole JSON file; {ADVICE}") from None
    if not isinstance(held, dict):
        raise ResultError(f"{path}: is no file of `hashlearn bench`; {ADVICE}")
    return held


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [json.dumps(content, allow_nan=False, indent=1).encode()])


def _error_file(path: Path) -> Path:
    return path.with_suffix(".error.json")


def _order(cell: Cell) -> tuple[Any, ...]:
    """The tables' order, then that of methods, then lengths and draws."""
    dataset = rank(cell.dataset, TABLES[cell.table].datasets)
    return (rank(cell.table, TABLES), dataset, rank(cell.method, METHODS), cell.n_bits, cell.draw)
