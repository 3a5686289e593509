"""What a ranking is learned from: rows, anchors with their nearest rows, and rows that are kept out of training.

Above `RANKED_ROWS` rows a random sample stands for all, and above `RANKED_ANCHORS` rows some of them are anchors. Time
and memory grow no further from there on. Rows stay on their device; indices are drawn on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import is_tensor, tensor_like, to_numpy
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.core.thresholds import RANKED_ANCHORS, RANKED_ROWS
from hashlearn.hashers.ranking.network import OTHER_CLASS, Batch
from hashlearn.linalg.nearest import nearest_rows

FEWEST_HELD_OUT, MOST_HELD_OUT = 8, 400
CHECKED_ROWS = 10_000  # rows among which those kept out are searched for
GROUP = 8  # rows of a batch for each anchor: itself and some of its nearest
MATES = 3  # of these, rows of its class
STEPS_AT_ONCE = 64  # whose indices are drawn together
TENSOR_ROWS = 65_536
NO_LABEL = -1
EQUAL_ROWS = 1e-7  # spread that is rounding, as a share of the norm


class Form(NamedTuple):
    """How rows are brought to mean zero and mean squared norm 1: (x / size − center) / spread."""

    unit_rows: bool  # whether the size is the norm of the row, and a zero row stays zero; else it is ``scale``
    scale: float  # the typical norm of the rows
    center: NDArray[np.float64]
    spread: float  # 0 if all rows are equal

    def __call__(self, X: Any) -> Any:
        """Rows of X in this form: float32, on the same device."""
        if not is_tensor(X):
            found = np.empty(X.shape, np.float32)

            def fill(a: int, b: int) -> None:
                found[a:b] = (self._sized(X[a:b].astype(np.float64)) - self.center) / (self.spread or 1.0)

            map_row_blocks(fill, *X.shape)
            return found
        center = tensor_like(self.center, X, X.double().dtype)
        rows = (X[a : a + TENSOR_ROWS] for a in range(0, max(len(X), 1), TENSOR_ROWS))
        return joined([((self._sized(part.double()) - center) / (self.spread or 1.0)).float() for part in rows])

    def _sized(self, rows: Any) -> Any:
        if not self.unit_rows:
            return rows / self.scale
        norms = ((rows * rows).sum(axis=1) ** 0.5)[:, None]
        return rows / (norms + (norms == 0.0))


def form_of(X: Any, metric: str) -> Form:
    """The form of rows that are compared by ``metric``, "cosine" or "euclidean"."""
    n, d = X.shape
    norm = float(sum(_in_blocks(lambda rows: (rows * rows).sum(), X)) / n) ** 0.5
    form = Form(metric == "cosine", norm or 1.0, np.zeros(d), 1.0)
    center = sum(_in_blocks(lambda rows: form._sized(rows).sum(axis=0), X)) / n
    spread = float(sum(_in_blocks(lambda rows: ((form._sized(rows) - center) ** 2).sum(), X)) / n) ** 0.5
    return form._replace(center=np.asarray(to_numpy(center)), spread=spread if spread > EQUAL_ROWS else 0.0)


def _in_blocks(function: Callable[[Any], Any], X: Any) -> list[Any]:
    """``function`` of blocks of rows in float64, in order."""
    if is_tensor(X):
        return [function(X[a : a + TENSOR_ROWS].double()) for a in range(0, len(X), TENSOR_ROWS)]
    return map_row_blocks(lambda a, b: function(X[a:b].astype(np.float64)), *X.shape)


class Kept(NamedTuple):
    """Rows that were kept out, and what they should find."""

    rows: Any
    searched: Any  # rows of the database
    wanted: Any  # int64 (n, k): indices of the nearest, among those searched


@dataclass
class Anchors:
    """Rows, the anchors among them, and the nearest rows of each anchor."""

    form: Form
    rows: Any  # rows of the database, then queries
    n_database: int
    n_given: int  # rows of the database, those kept out included
    places: NDArray[np.int64]  # index of each anchor among the rows; anchors that are queries come last
    near: NDArray[np.int64]  # (n_anchors, n_neighbors): rows of the database
    n_queries: int  # anchors that are queries
    labels: NDArray[np.int64] | None  # of the rows; −1 for none
    kept: Kept | None  # None if there are too few rows to keep any out

    def batches(self, size: int, noise: float, mates: bool, rng: np.random.Generator) -> Iterator[Batch]:
        """Batches without end: random anchors, half of them queries if there are any, each with some nearest rows.

        In every other batch queries can be found too, because the database may later hold rows like them.
        """
        d = self.rows.shape[1]
        count = max(1, size // GROUP)
        n_own = len(self.places) - self.n_queries
        from_queries = count // 2 if self.n_queries and n_own else count * bool(self.n_queries)
        labels = None if self.labels is None else on_device_of(self.rows, self.labels)
        classes = _Classes(self.labels[: self.n_database]) if mates and self.labels is not None else None
        n_near = min(GROUP - 1, self.near.shape[1])
        numbers = count * (n_near + 1) * d
        bank = on_device_of(self.rows, rng.standard_normal(2 * numbers, dtype=np.float32) * np.float32(noise / d**0.5))
        while True:
            drawn = np.empty((STEPS_AT_ONCE, count * (n_near + 1)), np.int64)
            for step in drawn:
                anchors = np.r_[
                    rng.integers(max(n_own, 1), size=count - from_queries),
                    n_own + rng.integers(max(self.n_queries, 1), size=from_queries),
                ]
                near = self.near[anchors][:, rng.choice(self.near.shape[1], n_near, replace=False)]
                if classes is not None and self.labels is not None:
                    classes.put_mates(near, self.labels[self.places[anchors]], rng)
                step[:count], step[count:] = self.places[anchors], near.ravel()
            starts = rng.integers(numbers + 1, size=STEPS_AT_ONCE)
            for number, (indices, start) in enumerate(zip(on_device_of(self.rows, drawn), starts, strict=True)):
                rows = self.rows[indices]
                noisy = rows + bank[start : start + numbers].reshape(rows.shape) if noise else rows
                queries = indices >= self.n_database if self.n_queries and number % 2 else None
                yield Batch(indices, rows, noisy, None if labels is None else labels[indices], queries)


class _Classes:
    """Rows sorted by class, to draw rows of one class."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        self.order = np.argsort(labels, kind="stable")
        self.sizes = np.bincount(labels + 1)
        self.firsts = np.cumsum(self.sizes) - self.sizes

    def put_mates(self, near: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator) -> None:
        """Replace the first nearest rows of each anchor that has a label by random rows of its class."""
        known = np.flatnonzero(labels != NO_LABEL)
        known = known[self.sizes[labels[known] + 1] > 0]
        sizes, firsts = self.sizes[labels[known] + 1], self.firsts[labels[known] + 1]
        drawn = (rng.random((len(known), min(MATES, near.shape[1]))) * sizes[:, None]).astype(np.int64)
        near[known, : drawn.shape[1]] = self.order[firsts[:, None] + drawn]


def anchors_of(
    X: Any,
    queries: Any,
    labels: NDArray[np.int64] | None,
    *,
    metric: str,
    n_neighbors: int,
    k: int,
    label_weight: float,
    rng: np.random.Generator,
) -> Anchors:
    """Choose rows, anchors and what is kept out, and find the nearest rows of every anchor."""
    chosen = _sample(X.shape[0], RANKED_ROWS, rng)
    n_held = _held_out(len(chosen))
    order = rng.permutation(len(chosen)) if n_held else np.arange(len(chosen))
    held, used = chosen[np.sort(order[:n_held])], chosen[np.sort(order[n_held:])]
    given = X[used]
    form = form_of(given, metric)
    rows, kept_rows = form(given), [form(X[held])]
    del given
    row_labels, kept_labels = (None, None) if labels is None else (labels[used], labels[held])
    places = _sample(len(used), RANKED_ANCHORS, rng)
    n_neighbors = min(n_neighbors, len(used) - 1)
    near = nearest_rows(rows[places], rows, n_neighbors, own=places)
    asked = 0
    if queries is not None:
        n_asked = _held_out(len(queries))
        order = rng.permutation(len(queries))[: n_asked + RANKED_ANCHORS]
        kept_rows.append(form(queries[order[:n_asked]]))
        others = form(queries[order[n_asked:]])
        asked = len(others)
        near = np.concatenate([near, nearest_rows(others, rows, n_neighbors)])
        places = np.r_[places, len(used) + np.arange(asked)]
        if row_labels is not None and kept_labels is not None:
            row_labels = np.r_[row_labels, np.full(asked, NO_LABEL)]
            kept_labels = np.r_[kept_labels, np.full(n_asked, NO_LABEL)]
        rows = joined([rows, others])
    kept, searched = joined(kept_rows), rows[: min(len(used), CHECKED_ROWS)]
    return Anchors(
        form, rows, len(used), len(chosen), places, near, asked, row_labels,
        _kept(kept, kept_labels, searched, row_labels, k, label_weight) if len(kept) else None,
    )  # fmt: skip


def on_device_of(rows: Any, array: NDArray[Any]) -> Any:
    """The array, or a tensor on the device of ``rows`` if these are one."""
    if not is_tensor(rows):
        return array
    import torch

    return torch.as_tensor(array).to(rows.device)


def _sample(n: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All indices below n, or a random sample of ``most``, sorted."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _held_out(n: int) -> int:
    """How many of n rows are kept out: one in twenty, at least 8 and at most 400; none of fewer than 80."""
    return 0 if n < 10 * FEWEST_HELD_OUT else int(np.clip(n // 20, FEWEST_HELD_OUT, MOST_HELD_OUT))


def joined(parts: list[Any]) -> Any:
    """The rows of all parts, one below the other."""
    if not is_tensor(parts[0]):
        return np.concatenate(parts)
    import torch

    return torch.cat(parts)


def _kept(rows: Any, labels: Any, searched: Any, searched_labels: Any, k: int, label_weight: float) -> Kept:
    """The k rows of the largest wanted similarity for each row that is kept out."""
    with one_blas_thread():
        similar = to_numpy(rows @ searched.T - 0.5 * (searched * searched).sum(axis=1))
    if labels is not None:
        other = searched_labels[: len(searched)]
        known = (labels[:, None] >= 0) & (other >= 0)
        similar += label_weight * np.where(labels[:, None] == other, 1.0, -OTHER_CLASS) * known
    k = min(k, len(searched))
    return Kept(rows, searched, on_device_of(rows, np.argpartition(-similar, k - 1, axis=1)[:, :k]))
