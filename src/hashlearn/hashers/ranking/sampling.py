"""What a ranking is learned from: rows, anchors with their nearest rows, and rows that are held out of training.

Above `RANKED_ROWS` rows a random sample stands for all, and above `RANKED_ANCHORS` rows some of them are anchors. Time
and memory grow no further from there on. Rows stay on their device; indices are drawn on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from hashlearn.core.arrays import IntArray, is_tensor, to_numpy
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.core.thresholds import RANKED_ANCHORS, RANKED_ROWS
from hashlearn.linalg.nearest import nearest_rows

FEWEST_HELD_OUT, MOST_HELD_OUT = 8, 400
SEARCHED_ROWS = 10_000  # rows among which the held-out rows search
GROUP = 8  # rows of a batch for each anchor: itself and some of its nearest
MATES = 3  # of these, rows of its class
STEPS_AT_ONCE = 64  # whose indices are drawn together
TENSOR_ROWS = 65_536
NO_LABEL = -1
OTHER_CLASS = 0.5  # how much farther rows of another class should be, for each unit that rows of one's own are nearer
EQUAL_ROWS = 1e-7  # spread that is rounding, as a share of the norm


class Form(NamedTuple):
    """How rows are brought to mean zero and mean squared norm 1: (x / size − center) / spread."""

    unit_rows: bool  # whether the size is the norm of the row, and a zero row stays zero; else it is ``scale``
    scale: float  # the typical norm of the rows
    center: NDArray[np.float64]
    spread: float  # 0 if all rows are equal

    def __call__(self, X: Any) -> Any:
        """Rows of X in this form: float32, on the same device."""
        xp = array_namespace(X)
        formed = xp.empty(X.shape, dtype=xp.float32, device=device(X))
        center = on_device_of(X, self.center)

        def fill(first: int, rows: Any) -> None:
            formed[first : first + len(rows)] = (self.sized(rows) - center) / (self.spread or 1.0)

        _each_block(fill, X)
        return formed

    def sized(self, rows: Any) -> Any:
        """Rows divided by their size."""
        if not self.unit_rows:
            return rows / self.scale
        norms = ((rows * rows).sum(axis=1) ** 0.5)[:, None]
        return rows / (norms + (norms == 0.0))


def form_of(X: Any, metric: str) -> Form:
    """The form of rows that are compared by ``metric``, "cosine" or "euclidean"."""
    n, d = X.shape
    norm = float(sum(_each_block(lambda _, rows: (rows * rows).sum(), X)) / n) ** 0.5
    form = Form(metric == "cosine", norm or 1.0, np.zeros(d), 1.0)
    center = sum(_each_block(lambda _, rows: form.sized(rows).sum(axis=0), X)) / n
    spread = float(sum(_each_block(lambda _, rows: ((form.sized(rows) - center) ** 2).sum(), X)) / n) ** 0.5
    return form._replace(center=np.asarray(to_numpy(center)), spread=spread if spread > EQUAL_ROWS else 0.0)


def _each_block(function: Callable[[int, Any], Any], X: Any) -> list[Any]:
    """``function(first, rows)`` of blocks of rows in float64, in order; ``first`` is the index of the first row."""
    if is_tensor(X):
        return [function(first, X[first : first + TENSOR_ROWS].double()) for first in range(0, len(X), TENSOR_ROWS)]
    return map_row_blocks(lambda first, last: function(first, X[first:last].astype(np.float64)), *X.shape)


class Batch(NamedTuple):
    """Rows to rank against each other."""

    indices: Any  # of the rows; pairs of one row are excluded
    rows: Any  # (n, n_features), as they are
    noisy: Any  # the same with noise, what the encoder reads
    labels: Any  # (n,), −1 for none; None if there are no labels
    queries: Any = None  # bool (n,): rows that only search, and are excluded as j; None if there are none


class HeldOut(NamedTuple):
    """Validation rows and their true nearest rows."""

    rows: Any
    searched: Any  # rows of the database
    nearest: Any  # int64 (n, k): indices of the nearest among those searched


@dataclass
class Sample:
    """Rows, the anchors among them, and the nearest rows of each anchor."""

    form: Form
    rows: Any  # rows of the database, then queries
    n_database: int
    n_rows: int  # rows of the database, held-out ones included
    anchors: IntArray  # index of each anchor among the rows; anchors that are queries come last
    nearest: IntArray  # (n_anchors, n_neighbors): rows of the database
    n_queries: int  # anchors that are queries
    labels: IntArray | None  # of the rows; −1 for none
    held_out: HeldOut | None  # None if there are too few rows

    def batches(self, size: int, noise: float, rng: np.random.Generator) -> Iterator[Batch]:
        """Batches without end: random anchors, half of them queries if there are any, each with some nearest rows.

        In every other batch queries can be found too, because the database may later hold rows like them.
        """
        d = self.rows.shape[1]
        count = max(1, size // GROUP)
        n_own = len(self.anchors) - self.n_queries
        from_queries = count // 2 if self.n_queries and n_own else count * bool(self.n_queries)
        labels = None if self.labels is None else on_device_of(self.rows, self.labels)
        classes = None if self.labels is None else _Classes(self.labels[: self.n_database])
        n_near = min(GROUP - 1, self.nearest.shape[1])
        numbers = count * (n_near + 1) * d
        bank = on_device_of(self.rows, rng.standard_normal(2 * numbers, dtype=np.float32) * np.float32(noise / d**0.5))
        while True:
            steps = np.empty((STEPS_AT_ONCE, count * (n_near + 1)), np.int64)
            for step in steps:
                own = rng.integers(max(n_own, 1), size=count - from_queries)
                places = np.r_[own, n_own + rng.integers(max(self.n_queries, 1), size=from_queries)]
                near = self.nearest[places][:, rng.choice(self.nearest.shape[1], n_near, replace=False)]
                if classes is not None and self.labels is not None:
                    classes.put_mates(near, self.labels[self.anchors[places]], rng)
                step[:count], step[count:] = self.anchors[places], near.ravel()
            starts = rng.integers(numbers + 1, size=STEPS_AT_ONCE)
            for number, (indices, start) in enumerate(zip(on_device_of(self.rows, steps), starts, strict=True)):
                rows = self.rows[indices]
                noisy = rows + bank[start : start + numbers].reshape(rows.shape) if noise else rows
                queries = indices >= self.n_database if self.n_queries and number % 2 else None
                yield Batch(indices, rows, noisy, None if labels is None else labels[indices], queries)


class _Classes:
    """Rows of the database sorted by class, to draw rows of one class."""

    def __init__(self, labels: IntArray) -> None:
        self.order = np.argsort(labels, kind="stable")
        self.sizes = np.bincount(labels - NO_LABEL)
        self.firsts = np.cumsum(self.sizes) - self.sizes

    def put_mates(self, near: IntArray, labels: IntArray, rng: np.random.Generator) -> None:
        """Replace the first nearest rows of each anchor that has a label by random rows of its class."""
        known = np.flatnonzero(labels != NO_LABEL)
        sizes, firsts = self.sizes[labels[known] - NO_LABEL], self.firsts[labels[known] - NO_LABEL]
        mates = (rng.random((len(known), min(MATES, near.shape[1]))) * sizes[:, None]).astype(np.int64)
        near[known, : mates.shape[1]] = self.order[firsts[:, None] + mates]


def draw_sample(
    X: Any,
    queries: Any,
    labels: IntArray | None,
    rng: np.random.Generator,
    metric: str,
    n_neighbors: int,
    k: int,
    label_weight: float,
) -> Sample:
    """Draw rows, anchors and held-out rows, and find the nearest rows of every anchor."""
    candidates = _subset(X.shape[0], RANKED_ROWS, rng)
    n_held = _n_held_out(len(candidates))
    order = rng.permutation(len(candidates)) if n_held else np.arange(len(candidates))
    validation, training = candidates[np.sort(order[:n_held])], candidates[np.sort(order[n_held:])]
    database, n_database = X[training], len(training)
    form = form_of(database, metric)
    rows, held_rows = form(database), form(X[validation])
    del database
    row_labels, held_labels = (None, None) if labels is None else (labels[training], labels[validation])
    anchors = _subset(n_database, RANKED_ANCHORS, rng)
    n_neighbors = min(n_neighbors, n_database - 1)
    nearest = nearest_rows(rows[anchors], rows, n_neighbors, own=anchors)
    n_queries = 0
    if queries is not None:
        n_asked = _n_held_out(len(queries))
        order = rng.permutation(len(queries))[: n_asked + RANKED_ANCHORS]
        held_rows = concatenate([held_rows, form(queries[order[:n_asked]])])
        others = form(queries[order[n_asked:]])
        n_queries = len(others)
        nearest = np.concatenate([nearest, nearest_rows(others, rows, n_neighbors)])
        anchors = np.r_[anchors, n_database + np.arange(n_queries)]
        if row_labels is not None and held_labels is not None:
            row_labels = np.r_[row_labels, np.full(n_queries, NO_LABEL)]
            held_labels = np.r_[held_labels, np.full(n_asked, NO_LABEL)]
        rows = concatenate([rows, others])
    held_out = None
    if len(held_rows):
        searched = rows[: min(n_database, SEARCHED_ROWS)]
        held_out = _held_out(held_rows, held_labels, searched, row_labels, k, label_weight)
    return Sample(form, rows, n_database, len(candidates), anchors, nearest, n_queries, row_labels, held_out)


def on_device_of(rows: Any, array: NDArray[Any]) -> Any:
    """The array, or a tensor on the device of ``rows`` if these are one."""
    return array_namespace(rows).asarray(array, device=device(rows))


def concatenate(parts: list[Any]) -> Any:
    """The rows of all parts, one below the other."""
    return array_namespace(parts[0]).concat(parts)


def _subset(n: int, most: int, rng: np.random.Generator) -> IntArray:
    """All indices below n, or a random sample of ``most``, sorted."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _n_held_out(n: int) -> int:
    """How many of n rows are held out: one in twenty, at least 8 and at most 400; none of fewer than 80."""
    return 0 if n < 10 * FEWEST_HELD_OUT else int(np.clip(n // 20, FEWEST_HELD_OUT, MOST_HELD_OUT))


def _held_out(rows: Any, labels: Any, searched: Any, searched_labels: Any, k: int, label_weight: float) -> HeldOut:
    """The k rows of the largest similarity, labels included, for each held-out row."""
    with one_blas_thread():
        similar = to_numpy(rows @ searched.T - 0.5 * (searched * searched).sum(axis=1))
    if labels is not None:
        other = searched_labels[: len(searched)]
        known = (labels[:, None] >= 0) & (other >= 0)
        similar += label_weight * np.where(labels[:, None] == other, 1.0, -OTHER_CLASS) * known
    k = min(k, len(searched))
    return HeldOut(rows, searched, on_device_of(rows, np.argpartition(-similar, k - 1, axis=1)[:, :k]))
