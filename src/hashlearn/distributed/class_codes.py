"""Codes that preserve labels: one codeword a class, found at the client from the classes' sizes and mean features.

Rows of one class are interchangeable in the target, and once the other bits agree within classes the best bit does too
(docs/solvers.md). From a start that is constant within classes Algorithm 1 therefore needs no rows at all: it runs on
a sample of labels with the classes' shares, in memory, whatever n is. One pass finds the class means.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bits import pack_signs
from hashlearn.core.arrays import FloatArray
from hashlearn.core.labels import checked_labels, require_classes
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback
from hashlearn.distributed.blocks import found_files
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, panels, pieces, plus
from hashlearn.inference import infer_codes
from hashlearn.inference.report import InferenceReport
from hashlearn.linalg.principal_axes import filled_up, top_directions
from hashlearn.streams import read_labels
from hashlearn.targets import Labels

SAMPLE_ROWS = 20_000


def class_codes(
    executor: Executor,
    moments: Moments,
    classes: NDArray[np.int32],
    n_bits: int,
    *,
    solver: str | bqp.Solver,
    n_sweeps: int,
    rng: np.random.Generator,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[list[NDArray[np.uint8]], InferenceReport]:
    """Packed codes of every block, and what happened."""
    counts = np.bincount(classes)
    blocks = [classes[a:b] for a, b in executor.table.edges()]
    sums = executor.reduce_rows(class_sums, plus, len(counts), each=[(block,) for block in blocks])
    means = sums / counts[:, None] - moments.mean
    directions = filled_up(top_directions(moments.scatter, n_bits, fixed_signs=False), n_bits, rng)
    words = np.where(means @ directions >= 0.0, 1.0, -1.0)
    sample = np.repeat(np.arange(len(counts)), shares(counts, SAMPLE_ROWS))
    codes, report = infer_codes(
        Labels().build(None, sample, rng),
        words[sample],
        solver=solver,
        n_sweeps=n_sweeps,
        rng=rng,
        time_limit=time_limit,
        progress=progress,
    )
    first = np.searchsorted(sample, np.arange(len(counts)))
    packed = pack_signs(codes[first])
    return [packed[block] for block in blocks], report


def class_sums(rows: NDArray[Any], classes: NDArray[np.int32], n_classes: int) -> FloatArray:
    """Σ x over the rows of each class of a block."""
    total = np.zeros((n_classes, rows.shape[1]))
    for panel, numbers in zip(panels(rows), pieces(classes), strict=True):
        np.add.at(total, numbers, panel)
    return total


def shares(counts: NDArray[Any], most: int) -> NDArray[np.intp]:
    """Rows of each class in a sample of about ``most``: their share, at least one; the counts where they are no more.

    >>> shares(np.array([600, 399, 1]), 10)
    array([6, 4, 1])
    """
    if counts.sum() <= most:
        return counts.astype(np.intp)
    return np.maximum(np.round(counts * (most / counts.sum())), 1).astype(np.intp)


def feature_columns(data: Any, label: str) -> list[str]:
    """The columns beside the labels."""
    if hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
    elif isinstance(data, str | os.PathLike | list | tuple):
        parquet = require("pyarrow.parquet", "parquet", "reading Parquet files")
        names = parquet.read_schema(found_files(data)[0]).names
    else:
        raise ValueError(f"y={label!r} names a column, and data has none; give the labels themselves")
    if label not in names:
        raise ValueError(f"y={label!r}: data has no such column")
    return [name for name in names if name != label]


def class_numbers(data: Any, labels: Any, n: int) -> NDArray[np.int32]:
    """For every row the number of its class, 0, 1, … in the sorted order of the labels."""
    values = checked_labels(_values(data, labels), n, "labels", "data")
    if values.ndim != 1:
        raise ValueError(f"labels must be classes, one for each of the {n} rows of data, got shape {values.shape}")
    require_classes(values, "labels")
    return np.unique(values, return_inverse=True)[1].astype(np.int32)


def _values(data: Any, labels: Any) -> Any:
    if isinstance(labels, str):
        if hasattr(data, "columns"):
            return np.asarray(data[labels].compute())
        return np.concatenate([read_labels(f"{file}::{labels}") for file in found_files(data)])
    return labels.compute() if hasattr(labels, "compute") else labels
