"""Rows in clusters, and the same rows as Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def clustered(n: int = 3000, d: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = rng.standard_normal((12, d))
    y = rng.integers(12, size=n)
    return (2.0 + centers[y] + 0.7 * rng.standard_normal((n, d))).astype(np.float32), y


def as_list_column(X: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


def write_files(folder: Path, X: np.ndarray, y: np.ndarray | None = None, count: int = 3) -> Path:
    """``count`` files of equal length with a column of lists, and one of labels where there are some."""
    folder.mkdir(exist_ok=True)
    for number, index in enumerate(np.array_split(np.arange(len(X)), count)):
        columns = {"x": as_list_column(X[index])}
        if y is not None:
            columns["label"] = pa.array(y[index])
        pq.write_table(pa.table(columns), folder / f"part-{number}.parquet", row_group_size=400)
    return folder
