"""Class labels of blocked data: an array, a Dask collection, or a column of the files or the dataframe itself."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.distributed.blocks import found_files
from hashlearn.streams import read_labels

MOST_CLASSES = 0.9  # of the rows; with more, nearly every row is a class by itself


def feature_columns(data: Any, label: str) -> list[str] | None:
    """The columns beside the labels."""
    if hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
    elif isinstance(data, str | os.PathLike | list | tuple):
        parquet = require("pyarrow.parquet", "parquet", "reading Parquet files")
        names = parquet.read_schema(found_files(data)[0]).names
    else:
        raise ValueError(f"labels={label!r} names a column, and data has none; give the labels themselves")
    if label not in names:
        raise ValueError(f"labels={label!r}: data has no such column")
    return [name for name in names if name != label]


def class_numbers(data: Any, labels: Any, n: int) -> NDArray[np.int32]:
    """For every row the number of its class, 0, 1, … in the sorted order of the labels."""
    values = _values(data, labels)
    if values.shape != (n,):
        raise ValueError(f"labels must be classes, one for each of the {n} rows of data, got shape {values.shape}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("labels contain NaN or infinity; every row needs a class")
    found, classes = np.unique(values.astype(str) if values.dtype.kind == "O" else values, return_inverse=True)
    if len(found) < 2:
        raise ValueError("labels hold only one class; leave them out to preserve distances")
    if len(found) > MOST_CLASSES * n:
        raise ValueError(
            f"labels has {len(found)} different labels for {n} rows; each class needs at least two rows. "
            "Leave labels out if they are ids or measurements"
        )
    return classes.astype(np.int32)


def _values(data: Any, labels: Any) -> NDArray[Any]:
    if isinstance(labels, str):
        if hasattr(data, "columns"):
            return np.asarray(data[labels].compute())
        return np.concatenate([read_labels(f"{file}::{labels}") for file in found_files(data)])
    return np.asarray(labels.compute() if hasattr(labels, "compute") else labels)
