"""Codes that preserve labels: one codeword for each class, found at the client from the sizes of the classes alone."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import pack_signs
from hashlearn.core.labels import checked_labels, require_classes
from hashlearn.core.packages import require
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.row_blocks import list_files
from hashlearn.files import read_labels
from hashlearn.hashers.codewords import spread_codewords
from hashlearn.inference import InferenceReport, infer_group_codes
from hashlearn.targets import Labels
from hashlearn.targets.labels import MOST_GROUPS


def class_codes(
    executor: Executor, classes: NDArray[np.int32], n_bits: int, *, rng: np.random.Generator, **inference: Any
) -> tuple[list[NDArray[np.uint8]], InferenceReport]:
    """Packed codes of every block, and what happened; ``inference`` are options of `infer_group_codes`."""
    groups = Labels().groups(None, classes, rng)
    if groups is None:
        raise ValueError(f"labels hold {classes.max() + 1:,} classes; with blocks of rows at most {MOST_GROUPS:,}")
    words, report = infer_group_codes(groups, n_bits, rng=rng, **inference)
    spread = spread_codewords(words.astype(np.float64), groups, rng)
    report.final_objective = groups.objective(spread)
    packed = pack_signs(spread)
    return [packed[classes[a:b]] for a, b in executor.table.edges()], report


def feature_columns(data: Any, label: str) -> list[str]:
    """The columns beside the labels."""
    if hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
    elif isinstance(data, str | os.PathLike | list | tuple):
        parquet = require("pyarrow.parquet", "parquet", "reading Parquet files")
        names = parquet.read_schema(list_files(data)[0]).names
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
        return np.concatenate([read_labels(f"{file}::{labels}") for file in list_files(data)])
    return labels.compute() if hasattr(labels, "compute") else labels
