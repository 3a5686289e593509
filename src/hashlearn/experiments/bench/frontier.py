"""A cell of the table "frontier": one method at one size, its searches scored by the true neighbors that they find.

Everything but the queries is learned from and stored. With the cosine metric all rows are brought to unit length first,
for every method. Recall is that of each query's 10 nearest float vectors: among the first 10 found, and among the first
100, which is the recall@10 after these 100 are rescored by floats.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import metrics
from hashlearn.experiments.bench.cell import SCHEMA, Stage, configuration_of, machine, nearest_vectors, versions
from hashlearn.experiments.bench.coders import Coder, HasherBits, Rankings, Rows
from hashlearn.experiments.bench.methods import UNSUPERVISED, Request
from hashlearn.experiments.bench.own_methods import method_named
from hashlearn.experiments.bench.peers import PEERS
from hashlearn.experiments.bench.splits import AllRows
from hashlearn.experiments.bench.tables import TABLES, Cell
from hashlearn.experiments.datasets import DataSet
from hashlearn.linalg.unit_rows import scale_to_unit, typical_norm

K, DEPTH = 10, 100


def run_frontier_cell(cell: Cell, data: DataSet, protocol: AllRows, stage: Stage = lambda what: None) -> dict[str, Any]:
    """The record of one cell. ``stage`` is called with a description of each step before it begins."""
    split = protocol.draw(data, cell.draw)
    if len(split.database) < DEPTH:
        raise ValueError(f"{data.name}: the frontier needs {DEPTH} rows beside the queries, got {len(split.database)}")
    stage("finding the true neighbors")
    true = nearest_vectors(data, split, K, protocol.metric)
    database, queries = (_rows(data, part, protocol.metric) for part in (split.database, split.queries))
    coder, configuration, package = _coder(cell, data, protocol.metric, stage)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        stage("learning")
        started = time.perf_counter()
        coder.fit(database)
        fitted = time.perf_counter()
        stage("encoding")
        coder.store(database)
        encoded = time.perf_counter()
        stage("searching")
        found = coder.search(queries, DEPTH)
        searched = time.perf_counter()
    return {
        "schema": SCHEMA,
        "cell": {**dataclasses.asdict(cell), "features": data.features},
        "protocol": split.description,
        "configuration": configuration,
        "versions": {**versions(), **package},
        "machine": machine(),
        "seconds": {"fit": fitted - started, "encode": encoded - fitted, "evaluate": searched - encoded},
        "bytes_per_row": coder.bytes_per_row,
        "encoded_per_second": len(database) / max(encoded - fitted, 1e-9),
        "metrics": _recalls(found, true),
        "curve": _curve(found["asymmetric"], true),
        "digest": coder.digest(),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in heard}),
        "provenance": dataclasses.asdict(data.provenance),
    }


def _coder(cell: Cell, data: DataSet, metric: str, stage: Stage) -> tuple[Coder, dict[str, Any], dict[str, str]]:
    """The method of a cell, its configuration, and the version of the package that it needs."""
    if cell.method in PEERS:
        peer = PEERS[cell.method]
        coder = peer.build(cell.n_bits, data.X.shape[1], metric)
        return coder, {"hasher": peer.install, "parameters": {"description": coder.description}}, peer.version
    function = TABLES[cell.table].hash_function
    method = method_named(cell.method)
    hasher = method.build(Request(cell.n_bits, cell.draw, UNSUPERVISED, cell.dataset, function, data.y))
    choices = hasher.get_params(deep=False)
    if "metric" in choices:
        hasher.set_params(metric=metric)
    configuration = {**configuration_of(hasher), **method.configuration}
    if "progress" in choices:
        hasher.set_params(progress=lambda p: stage(f"{p.stage} {p.done}/{p.total}"))
    return HasherBits(hasher), configuration, {}


def _rows(data: DataSet, part: NDArray[np.intp], metric: str) -> Rows:
    rows = np.ascontiguousarray(data.X[part], dtype=np.float32)
    return scale_to_unit(rows, typical_norm(rows)) if metric == "cosine" else rows


def _recalls(found: Rankings, true: NDArray[np.int64]) -> dict[str, float | None]:
    """Recall among the first 10 of each search, and among the first 100 of the asymmetric one."""
    at_10 = {name: metrics.recall_of_neighbors(rows, true, k=K) for name, rows in found.items()}
    return {
        "hamming@10": at_10.get("hamming"),
        "asymmetric@10": at_10["asymmetric"],
        "rescored@10": metrics.recall_of_neighbors(found["asymmetric"], true, k=K, depth=DEPTH),
    }


def _curve(found: NDArray[np.int64], true: NDArray[np.int64]) -> dict[str, list[float]]:
    """Recall and precision among the first 1, 2, …, 100 found."""
    hits = (found[:, :, None] == true[:, None, :]).any(axis=2).mean(axis=0).cumsum()
    return {"recall": (hits / K).tolist(), "precision": (hits / np.arange(1, len(hits) + 1)).tolist()}
