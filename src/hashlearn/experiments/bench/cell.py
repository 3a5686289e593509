"""One cell: learn on the training samples, encode database and queries, measure, and put all of it in one record.

The record is plain JSON: what was run, with which parameters, versions and machine, how long it took, what came out.
Running the same cell again gives the same digest of the codes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import metrics
from hashlearn.experiments.bench.gallery import gallery
from hashlearn.experiments.bench.ground_truth import nearest_vectors, neighbours_found
from hashlearn.experiments.bench.machine import machine, versions
from hashlearn.experiments.bench.methods import METHODS, SUPERVISED, Request
from hashlearn.experiments.bench.tables import TABLES, Cell, Table
from hashlearn.hashers import BaseHasher

if TYPE_CHECKING:
    from hashlearn.experiments.bench.protocols import Split
    from hashlearn.experiments.datasets import DataSet

SCHEMA = 1
RADIUS = 2
NOT_RECORDED = ("progress",)  # parameters that do not bear on the result

Stage = Callable[[str], Any]


def run_cell(cell: Cell, data: DataSet, *, with_gallery: bool = False, stage: Stage | None = None) -> dict[str, Any]:
    """The record of one cell. ``stage`` is told what is being done, between the steps of it."""
    say = stage or (lambda what: None)
    table = TABLES[cell.table]
    split = table.protocol(cell.dataset).draw(data, cell.draw)
    labels = data.y[split.train]
    method = METHODS[cell.method]
    setting = method.setting_in(table.setting)
    if setting is None:
        raise ValueError(f"method {method.name} has no place in table {table.name!r}")
    hasher = method.build(Request(cell.n_bits, cell.draw, setting, cell.dataset, table.hash_function, labels))
    configuration = _configuration(hasher)
    if "progress" in hasher.get_params(deep=False):
        hasher.set_params(progress=lambda p: say(f"{p.stage} {p.done}/{p.total}"))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        say("learning")
        started = time.perf_counter()
        hasher.fit(data.X[split.train], labels if setting == SUPERVISED else None)
        fitted = time.perf_counter()
        say("encoding")
        database, queries = _encode(hasher, data.X, split)
        encoded = time.perf_counter()
        say("measuring")
        found = _evaluate(table, data, split, database, queries)
        evaluated = time.perf_counter()
    report = getattr(hasher, "inference_report_", None)
    return {
        "schema": SCHEMA,
        "cell": {**dataclasses.asdict(cell), "features": data.features},
        "protocol": split.description,
        "configuration": configuration,
        "versions": versions(),
        "machine": machine(),
        "seconds": {
            "fit": fitted - started,
            "inference": None if report is None else report.seconds,
            "encode": encoded - fitted,
            "evaluate": evaluated - encoded,
        },
        **found,
        "inference": None if report is None else _inference(report),
        "bit_statistics": _bit_statistics(database, cell.n_bits),
        "digest": hashlib.sha256(np.ascontiguousarray(database).tobytes()).hexdigest(),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in heard}),
        "provenance": dataclasses.asdict(data.provenance),
        "gallery": gallery(data, split, database, queries) if with_gallery else None,
    }


def _configuration(hasher: BaseHasher) -> dict[str, Any]:
    parameters = {k: repr(v) for k, v in hasher.get_params(deep=False).items() if k not in NOT_RECORDED}
    return {"hasher": type(hasher).__name__, "parameters": parameters}


def _encode(hasher: BaseHasher, X: NDArray[Any], split: Split) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Database and queries in one go; X as it is where every row is needed."""
    needed = np.union1d(split.database, split.queries)
    codes = hasher.encode(X if len(needed) == len(X) else X[needed])
    return codes[np.searchsorted(needed, split.database)], codes[np.searchsorted(needed, split.queries)]


def _evaluate(
    table: Table, data: DataSet, split: Split, database: NDArray[np.uint8], queries: NDArray[np.uint8]
) -> dict[str, Any]:
    found = metrics.evaluate(
        queries, database, data.y[split.queries], data.y[split.database], radius=RADIUS, neighbours=table.neighbours
    )
    wanted = 0 if table.euclidean is None else table.euclidean
    truth = nearest_vectors(data, split, wanted) if wanted else None
    return {
        "metrics": {
            f"precision@{RADIUS}": found.precision_within_radius,
            "map": found.mean_average_precision,
            "knn_accuracy": found.knn_accuracy,
            **({} if truth is None else neighbours_found(queries, database, truth)),
        },
        "curve": {"recall": found.curve.recall.tolist(), "precision": found.curve.precision.tolist()},
    }


def _inference(report: Any) -> dict[str, Any]:
    """The report of `hashlearn.inference`; null where a solver proves nothing."""
    return {
        "solver": report.solver,
        "start_objective": _finite(report.start_objective),
        "objectives": [_finite(objective) for objective in report.objectives],
        "final_objective": _finite(report.final_objective),
        "bits": [
            {
                "sweep": int(bit.sweep),
                "bit": int(bit.bit),
                "value": _finite(bit.value),
                "bound": _finite(bit.bound),
                "gap": _finite(bit.gap),
                "changed": int(bit.changed),
                "status": str(bit.status),
                "seconds": float(bit.seconds),
            }
            for bit in report.bits
        ],
    }


def _bit_statistics(database: NDArray[np.uint8], n_bits: int) -> dict[str, Any]:
    """Of the database's codes; "collisions" is the fraction of all pairs that share a code."""
    found = metrics.bit_statistics(database, n_bits)
    return {
        "balance": found.balance.tolist(),
        "entropy": found.code_entropy,
        "mean_correlation": found.mean_correlation,
        "max_correlation": found.max_correlation,
        "collisions": found.collision_rate,
        "n_distinct": found.n_distinct,
        "n_constant": found.n_constant,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
