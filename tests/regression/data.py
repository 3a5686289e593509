"""Inputs of the recorded fits: rows, targets and problems by name. All come from the digits or from seeded normals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from hashlearn import bqp, targets

HELD_OUT = 100


class Rows(NamedTuple):
    """Training rows, their labels, and held-out rows."""

    X: Any
    y: Any
    new: Any


@cache
def _all_digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(return_X_y=True)


def digits(n: int) -> Rows:
    X, y = _all_digits()
    return Rows(X[:n].copy(), y[:n].copy(), X[-HELD_OUT:].copy())


def normals(n: int, n_features: int, n_classes: int = 8, seed: int = 0) -> Rows:
    """Normals around ``n_classes`` centers."""
    rng = np.random.default_rng(seed)
    centers = 1.5 * rng.standard_normal((n_classes, n_features))
    y = rng.integers(n_classes, size=n + HELD_OUT)
    X = centers[y] + rng.standard_normal((n + HELD_OUT, n_features))
    return Rows(X[:n], y[:n], X[n:])


def _with_zero_rows(rows: Rows) -> Rows:
    rows.X[::9] = 0.0
    return rows


def _with_duplicates(rows: Rows, distinct: int) -> Rows:
    index = np.arange(len(rows.X)) % distinct
    return Rows(rows.X[index], rows.y[index], rows.new)


def _as_type(rows: Rows, dtype: Any) -> Rows:
    return Rows(rows.X.astype(dtype), rows.y, rows.new.astype(dtype))


def _as_tensors(rows: Rows, dtype: str) -> Rows:
    import torch

    def tensor(X: np.ndarray) -> Any:
        return torch.as_tensor(X, dtype=getattr(torch, dtype))

    return Rows(tensor(rows.X), rows.y, tensor(rows.new))


def _relabeled(rows: Rows, y: Any) -> Rows:
    return Rows(rows.X, y, rows.new)


def _several_labels(rows: Rows) -> Rows:
    """The digit, odd digits, digits above six: at most 30 distinct sets."""
    y = np.zeros((len(rows.y), 12), dtype=int)
    y[np.arange(len(y)), rows.y] = 1
    y[:, 10], y[:, 11] = rows.y % 2, rows.y > 6
    return _relabeled(rows, y)


def _many_label_sets(n: int) -> Rows:
    """Almost every row has its own set of labels, so there are more sets than the factored form takes."""
    rows = digits(n)
    return _relabeled(rows, (np.random.default_rng(3).random((n, 16)) < 0.15).astype(int))


def _some_unlabeled(rows: Rows) -> Rows:
    return _relabeled(rows, np.where(np.arange(len(rows.y)) % 3 == 0, rows.y, -1))


ROWS: dict[str, Callable[[], Rows]] = {
    "digits": lambda: digits(120),
    "450 digits": lambda: digits(450),
    "1200 digits": lambda: digits(1200),
    "digits in float32": lambda: _as_type(digits(120), np.float32),
    "digits as integers": lambda: _as_type(digits(120), np.int64),
    "sparse digits": lambda: Rows(sp.csr_array(digits(120).X), digits(120).y, sp.csr_array(digits(120).new)),
    "digits with zero rows": lambda: _with_zero_rows(digits(120)),
    "digits with duplicate rows": lambda: _with_duplicates(digits(120), 40),
    "digits with several labels": lambda: _several_labels(digits(120)),
    "digits with many label sets": lambda: _many_label_sets(700),
    "digits, some unlabeled": lambda: _some_unlabeled(digits(120)),
    "digits with words as labels": lambda: _relabeled(digits(120), np.array([f"digit {k}" for k in digits(120).y])),
    "digits, classes of equal size": lambda: _relabeled(digits(120), np.arange(120) % 10),
    "digits, two classes": lambda: _relabeled(digits(120), digits(120).y % 2),
    "digits, 80 classes": lambda: _relabeled(digits(120), np.arange(120) % 80),
    "20 digits": lambda: digits(20),
    "200 x 3": lambda: normals(200, 3),
    "80 x 2100": lambda: normals(80, 2100),
    "500 x 6": lambda: normals(500, 6),
    "2200 x 6": lambda: normals(2200, 6),
    "9000 x 6": lambda: normals(9000, 6),
    "20500 x 5": lambda: normals(20_500, 5),
    "70000 x 3": lambda: normals(70_000, 3),
    "20500 x 5 with duplicate rows": lambda: _with_duplicates(normals(20_500, 5), 10_000),
    "tensors, 120 digits, float32": lambda: _as_tensors(digits(120), "float32"),
    "tensors, 120 digits, float64": lambda: _as_tensors(digits(120), "float64"),
    "tensors, 1200 digits, float32": lambda: _as_tensors(digits(1200), "float32"),
    "tensors, 1200 digits, float64": lambda: _as_tensors(digits(1200), "float64"),
    "tensors, 1200 digits with zero rows": lambda: _as_tensors(_with_zero_rows(digits(1200)), "float32"),
    "tensors, 1200 digits with duplicate rows": lambda: _as_tensors(_with_duplicates(digits(1200), 1050), "float32"),
    "tensors, 2200 x 6, float64": lambda: _as_tensors(normals(2200, 6), "float64"),
    "tensors, 10500 x 6, float32": lambda: _as_tensors(normals(10_500, 6), "float32"),
    "tensors, 20500 x 5, float32": lambda: _as_tensors(normals(20_500, 5), "float32"),
}


def given_codes(X: Any, n_bits: int) -> Any:
    """Random codes to start from, of the same kind as X."""
    codes = np.where(np.random.default_rng(7).random((X.shape[0], n_bits)) < 0.5, -1.0, 1.0)
    return X.new_tensor(codes) if hasattr(X, "new_tensor") else codes


def _cosines(rows: Rows) -> np.ndarray:
    X = rows.X - rows.X.mean(axis=0)
    X = X / np.linalg.norm(X, axis=1)[:, None]
    return np.clip(X @ X.T, -1.0, 1.0)


def _far_and_near(rows: Rows) -> sp.csr_array:
    Y = _cosines(rows)
    return sp.csr_array(np.where(np.abs(Y) > 0.5, Y, 0.0))


def _pairs(rows: Rows) -> targets.Pairs:
    i, j = np.triu_indices(len(rows.y), 1)
    kept = (i + 3 * j) % 11 == 0
    i, j, same = i[kept], j[kept], rows.y[i[kept]] == rows.y[j[kept]]
    return targets.Pairs(similar=np.c_[i[same], j[same]], dissimilar=np.c_[i[~same], j[~same]])


# Targets that are no plain name. They take the rows of the fit.
TARGETS: dict[str, Callable[[Rows], Any]] = {
    "distance, not centered": lambda rows: targets.Distance(center=False),
    "thresholded distance, 10 %": lambda rows: targets.ThresholdedDistance(fraction=0.1),
    "neighbors, euclidean": lambda rows: targets.Neighbors(n_neighbors=5, n_components=20, metric="euclidean"),
    "labels and neighbors, weight 0.5": lambda rows: targets.LabelsAndNeighbors(labels_weight=0.5),
    "dense similarity": _cosines,
    "sparse similarity": _far_and_near,
    "sparse similarity with background": lambda rows: targets.Similarity(abs(_far_and_near(rows)), background=-0.5),
    "low-rank similarity": lambda rows: bqp.LowRank(
        np.linalg.eigh(_cosines(rows))[1][:, -6:] * 8.0, np.array([0.1, -0.2, 0.3, 0.2, -0.1, 0.4])
    ),
    "pairs": _pairs,
}


def _dense(n: int, seed: int = 0) -> np.ndarray:
    half = np.random.default_rng(seed).standard_normal((n, n))
    return half + half.T


def _sparse(n: int, degree: int = 4, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    i, j = rng.integers(n, size=(2, n * degree // 2))
    half = sp.csr_array((rng.integers(-3, 4, size=len(i)).astype(float), (i, j)), shape=(n, n))
    return sp.csr_array(half + half.T)


def _low_rank(n: int, rank: int = 8, distinct: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    P = rng.standard_normal((n, rank))
    return (P if distinct is None else P[np.arange(n) % distinct]), np.r_[
        np.ones(rank // 2), -np.ones(rank - rank // 2)
    ]


def _low_rank_tensor(n: int, dtype: str, rank: int = 8, distinct: int | None = None) -> Any:
    import torch

    P, weights = _low_rank(n, rank, distinct)
    return bqp.LowRank(torch.as_tensor(P, dtype=getattr(torch, dtype)), weights)


def _both(n: int) -> bqp.Operator:
    return bqp.Sparse(_sparse(n)) + bqp.LowRank(*_low_rank(n, 4))


PROBLEMS: dict[str, Callable[[], Any]] = {
    "dense 16": lambda: _dense(16),
    "dense 60": lambda: _dense(60),
    "dense 300": lambda: _dense(300),
    "dense 1100": lambda: _dense(1100),
    "sparse 16": lambda: _sparse(16),
    "sparse 60": lambda: _sparse(60),
    "sparse 300": lambda: _sparse(300),
    "sparse 2500": lambda: _sparse(2500),
    "sparse 4200": lambda: _sparse(4200),
    "low rank 16": lambda: bqp.LowRank(*_low_rank(16, 4)),
    "low rank 60": lambda: bqp.LowRank(*_low_rank(60)),
    "low rank 300": lambda: bqp.LowRank(*_low_rank(300)),
    "low rank 300, 15 distinct rows": lambda: bqp.LowRank(*_low_rank(300, distinct=15)),
    "low rank 300, 100 distinct rows": lambda: bqp.LowRank(*_low_rank(300, distinct=100)),
    "low rank 300, rank 250": lambda: bqp.LowRank(*_low_rank(300, 250)),
    "low rank 2500": lambda: bqp.LowRank(*_low_rank(2500)),
    "low rank 12000": lambda: bqp.LowRank(*_low_rank(12_000, 6)),
    "sparse plus low rank 16": lambda: _both(16),
    "sparse plus low rank 200": lambda: _both(200),
    "sparse plus low rank 2500": lambda: _both(2500),
    "tensor low rank 16, float64": lambda: _low_rank_tensor(16, "float64", 4),
    "tensor low rank 300, float64": lambda: _low_rank_tensor(300, "float64"),
    "tensor low rank 1500, float32": lambda: _low_rank_tensor(1500, "float32"),
    "tensor low rank 1500, float64": lambda: _low_rank_tensor(1500, "float64"),
    "tensor low rank 1500, 200 distinct rows": lambda: _low_rank_tensor(1500, "float64", distinct=200),
    "tensor low rank 3000, 1200 distinct rows": lambda: _low_rank_tensor(3000, "float64", distinct=1200),
    "tensor low rank 12000, float32": lambda: _low_rank_tensor(12_000, "float32", 6),
}
