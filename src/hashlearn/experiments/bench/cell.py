"""One cell: learn on the training samples, encode database and queries, measure, and return one record.

The record is plain JSON: the cell, parameters, versions, machine, durations and results. Running the same cell again
gives the same digest of the codes. The gallery of a record shows a few queries with their nearest images, as raw bytes.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import math
import platform
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata as packages
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import __version__, metrics
from hashlearn.bits import hamming_distances
from hashlearn.core.memory import physical_memory, text_lines
from hashlearn.core.threads import n_threads
from hashlearn.experiments.bench.choices import RADIUS, Choice, measured
from hashlearn.experiments.bench.methods import SUPERVISED, CellContext, method_named
from hashlearn.experiments.bench.plans import recorded_parameters
from hashlearn.experiments.bench.protocols import Split
from hashlearn.experiments.bench.tables import TABLES, Cell, Table
from hashlearn.experiments.datasets import DataSet
from hashlearn.hashers import BaseHasher

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")  # whose versions are recorded
GIB = 2**30
BIT_FIELDS = ("sweep", "bit", "value", "bound", "gap", "changed", "status", "seconds")  # of the inference report
Stage = Callable[[str], Any]
RETRIEVED = (10, 100)
# The result of the last call for each data set that is still in memory.
_last: weakref.WeakKeyDictionary[DataSet, tuple[Any, NDArray[np.int64]]] = weakref.WeakKeyDictionary()
SHOWN_QUERIES = 6
NEAREST = 8


def run_cell(
    cell: Cell,
    data: DataSet,
    *,
    choice: Choice | None = None,
    stage: Stage = lambda what: None,
) -> dict[str, Any]:
    """The record of one cell. ``stage`` is called with a description of each step before it begins."""
    table, choice = TABLES[cell.table], choice or Choice()
    split = draw(table, data, cell.draw, choice)
    labels = data.y[split.train]
    method = method_named(cell.method)
    setting = method.setting_in(table.setting, data.has_labels)
    if setting is None:
        raise ValueError(f"method {method.name} has no place in table {table.name!r} on {data.name}")
    hasher = method.build(CellContext(cell.n_bits, cell.draw, setting, cell.dataset, table.hash_function, labels))
    configuration = {"hasher": type(hasher).__name__, "parameters": recorded_parameters(hasher), **method.configuration}
    if "progress" in hasher.get_params(deep=False):
        hasher.set_params(progress=lambda p: stage(f"{p.stage} {p.done}/{p.total}"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stage("learning")
        started = time.perf_counter()
        hasher.fit(data.X[split.train], *([labels] if setting == SUPERVISED else []))
        fitted = time.perf_counter()
        stage("encoding")
        database, queries = _encode(hasher, data.X, split)
        encoded = time.perf_counter()
        stage("measuring")
        scores = _evaluate(table, data, split, database, queries, choice.extra_metrics)
        evaluated = time.perf_counter()
    report = getattr(hasher, "inference_report_", None)
    return {
        "cell": {**dataclasses.asdict(cell), "features": data.features},
        "protocol": split.description,
        "configuration": {**configuration, "setting": setting},
        "versions": versions(),
        "machine": machine(),
        "seconds": {
            "fit": fitted - started,
            "inference": None if report is None else report.seconds,
            "encode": encoded - fitted,
            "evaluate": evaluated - encoded,
        },
        **scores,
        "inference": None if report is None else _inference(report),
        "bit_statistics": _bit_statistics(database, cell.n_bits),
        "digest": hashlib.sha256(np.ascontiguousarray(database).tobytes()).hexdigest(),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in caught}),
        "provenance": dataclasses.asdict(data.provenance),
        "gallery": gallery(data, split, database, queries) if cell.draw == 0 else None,
    }


def draw(table: Table, data: DataSet, seed: int, choice: Choice) -> Split:
    """The split of a draw. Its description holds the options that changed it, if there are any."""
    protocol = table.protocol_for(data, choice)
    split = protocol.draw(data, seed)
    if protocol != table.protocol_for(data, Choice()):
        split.description["asked"] = choice.sizes
    return split


def _encode(hasher: BaseHasher, X: NDArray[Any], split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Encode database and queries together; X is not copied if every row is needed."""
    needed = np.union1d(split.database, split.queries)
    codes = hasher.encode(X if len(needed) == len(X) else X[needed])
    return codes[np.searchsorted(needed, split.database)], codes[np.searchsorted(needed, split.queries)]


def _evaluate(
    table: Table,
    data: DataSet,
    split: Split,
    database: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    extra: Sequence[str],
) -> dict[str, Any]:
    values: dict[str, float | None] = {}
    curve: dict[str, list[float]] = {"recall": [], "precision": []}
    if data.has_labels:
        labels = (data.y[split.queries], data.y[split.database])
        scores = metrics.evaluate(queries, database, *labels, radius=RADIUS, neighbors=table.neighbors)
        values = {
            f"precision@{RADIUS}": scores.precision_within_radius,
            "map": scores.mean_average_precision,
            "knn_accuracy": scores.knn_accuracy,
            **measured(extra, (queries, database), labels),
        }
        curve = {"recall": scores.curve.recall.tolist(), "precision": scores.curve.precision.tolist()}
    if table.euclidean:
        values |= neighbor_recalls(queries, database, nearest_vectors(data, split, table.euclidean))
    return {"metrics": values, "curve": curve}


def _inference(report: Any) -> dict[str, Any]:
    """The report of `hashlearn.inference`; null if a solver proves no bound."""
    return {
        "solver": report.solver,
        "start_objective": _plain(report.start_objective),
        "objectives": [_plain(objective) for objective in report.objectives],
        "final_objective": _plain(report.final_objective),
        "bits": [{name: _plain(getattr(bit, name)) for name in BIT_FIELDS} for bit in report.bits],
    }


def _bit_statistics(database: NDArray[np.uint8], n_bits: int) -> dict[str, Any]:
    """Statistics of the database's codes. "collisions" is the fraction of all pairs that share a code."""
    statistics = metrics.bit_statistics(database, n_bits)
    return {
        "balance": statistics.balance.tolist(),
        "entropy": statistics.code_entropy,
        "mean_correlation": statistics.mean_correlation,
        "max_correlation": statistics.max_correlation,
        "collisions": statistics.collision_rate,
        "n_distinct": statistics.n_distinct,
        "n_constant": statistics.n_constant,
    }


def _plain(value: Any) -> int | float | str | None:
    """As strict JSON has it: no NumPy types, and null for a number that is not finite."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return str(value)


@cache
def versions() -> dict[str, str]:
    """Versions of hashlearn, Python and the packages that results may depend on."""
    return {
        "hashlearn": __version__,
        "python": platform.python_version(),
        **{package: packages.version(package) for package in PACKAGES},
    }


@cache
def machine() -> dict[str, str | int | float | None]:
    """System, processor, usable cores, memory. Nothing that identifies the machine or its user."""
    total = physical_memory()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": n_threads(),
        "memory_gib": None if total is None else round(total / GIB, 1),
    }


def _processor() -> str:
    for line in text_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def nearest_vectors(data: DataSet, split: Split, n_neighbors: int) -> NDArray[np.int64]:
    """Places in ``split.database``, shape (n_queries, n_neighbors), exact. The next cell of a draw reuses them."""
    key = (split.database.tobytes(), split.queries.tobytes(), n_neighbors)
    before = _last.get(data)
    if before is not None and before[0] == key:
        return before[1]
    neighbors = metrics.float_neighbors(data.X[split.queries], data.X[split.database], n_neighbors, metric="euclidean")
    _last[data] = (key, neighbors)
    return neighbors


def neighbor_recalls(
    queries: NDArray[np.uint8], database: NDArray[np.uint8], truth: NDArray[np.int64]
) -> dict[str, float | None]:
    """Recall of the true neighbors among the nearest 10 and 100 codes; None if there are fewer codes."""
    return {
        f"neighbors@{k}": metrics.neighbor_recall(queries, database, truth, k=k) if k <= len(database) else None
        for k in RETRIEVED
    }


def gallery(
    data: DataSet, split: Split, database_codes: NDArray[np.uint8], query_codes: NDArray[np.uint8]
) -> dict[str, Any] | None:
    """The first query of each of six classes and its eight nearest (ties by index); None for data without images.

    The choice of queries depends on the split alone, so they are the same for every method.
    """
    if data.images is None:
        return None
    shown = shown_queries(data.y[split.queries])
    distances = hamming_distances(query_codes[shown], database_codes)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEAREST]
    return {
        "image_shape": list(data.images.shape[1:]),
        "queries": [
            {
                **_picture(data, split.queries[query]),
                "neighbors": [
                    {**_picture(data, split.database[item]), "distance": int(distances[row, item])}
                    for item in nearest[row]
                ],
            }
            for row, query in enumerate(shown)
        ],
    }


def shown_queries(labels: NDArray[np.int64]) -> NDArray[np.intp]:
    """The first query of each of six classes that are spread evenly over all.

    >>> shown_queries(np.array([1, 0, 0, 1, 2]))
    array([1, 0, 4])
    """
    classes, first = np.unique(labels, return_index=True)
    places = np.linspace(0, len(classes) - 1, min(SHOWN_QUERIES, len(classes))).round().astype(np.intp)
    return first[places]


def _picture(data: DataSet, row: int) -> dict[str, str]:
    assert data.images is not None
    raw = np.ascontiguousarray(data.images[row], dtype=np.uint8).tobytes()
    return {"image": base64.b64encode(raw).decode("ascii"), "label": str(data.class_names[data.y[row]])}
