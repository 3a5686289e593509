"""Margins panel by panel: each row's result is the same, bit for bit, in every batch.

BLAS selects its kernels by the shape of a product. A row alone and the same row among a thousand may differ in the
last digit and, near zero, in the bit. Dense rows are therefore evaluated in panels of one fixed shape; zero rows are
added to the last one. BLAS uses one thread, and Python threads share the panels. If even the place in the panel
matters (`place_matters`), float64 is used inside. Sparse products are computed row by row anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.threads import map_threads, one_blas_thread

# A multiple of 64 and of 3: OpenBLAS divides float64 rows into tiles of 24 and uses another kernel for the rest.
# Large enough for matrix products at nearly full speed, small enough for a single query.
PANEL_ROWS = 192
# Starting a task takes as long as the product of a narrow panel, so a task has several panels, unless there are too
# few to keep all cores busy.
PANELS_PER_TASK, TASKS = 8, 64

Rows: TypeAlias = Any  # NDArray of float32 or float64, or CSR of them
PanelFunction: TypeAlias = Callable[[Rows], NDArray[Any]]


def evaluate_in_panels(
    function: PanelFunction,
    X: Rows,
    n_columns: int,
    *,
    finish: PanelFunction = lambda margins: margins,
    look_at: Callable[[Rows], None] | None = None,
    densify: bool = True,
    threads: bool = True,
    fill_up: bool = True,
    panel_rows: int = PANEL_ROWS,
) -> NDArray[Any]:
    """``finish(function(panel))`` of every panel of rows, stacked; ``function`` gives n_columns margins in X's dtype.

    ``finish`` is applied while the margins are in the cache; it must treat rows one by one.
    ``look_at`` is called with every panel first and may raise. The rows are read from memory once for both.
    ``densify`` makes sparse panels dense, so that ``function`` gets only (panel_rows, n_features) arrays.
    ``fill_up`` adds zero rows to the last panel; a ``function`` that treats rows one by one does not need it.
    """
    n = X.shape[0]
    none = finish(np.empty((0, n_columns), dtype=X.dtype))
    finished = np.empty((n, *none.shape[1:]), dtype=none.dtype)
    rows_per_task = panel_rows * max(1, min(PANELS_PER_TASK, n // (TASKS * panel_rows)))

    def fill(start: int) -> None:
        stop = min(start + rows_per_task, n)
        margins = np.empty((stop - start, n_columns), dtype=X.dtype)
        for first in range(start, stop, panel_rows):
            last = min(first + panel_rows, stop)
            panel = _panel(X, first, last, panel_rows if fill_up else last - first, densify)
            if look_at is not None:
                look_at(panel[: last - first])
            margins[first - start : last - start] = function(panel)[: last - first]
        finished[start:stop] = finish(margins)

    starts = range(0, n, rows_per_task)
    with one_blas_thread():
        for _ in map_threads(fill, starts) if threads and len(starts) > 1 else map(fill, starts):
            pass
    return finished


def place_matters(B: NDArray[Any]) -> bool:
    """Whether the product of one row with B depends on the row's place in a panel.

    This is tried on this machine's BLAS, with eight random rows in many places of the panel. OpenBLAS's float32 product
    for processors without AVX-512 does depend on it.
    """
    rows = np.random.default_rng(0).standard_normal((8, B.shape[0])).astype(B.dtype)
    with one_blas_thread():
        for who in (np.arange(PANEL_ROWS) % 8, np.arange(PANEL_ROWS) // (PANEL_ROWS // 8)):
            products = rows[who] @ B
            first = np.unique(who, return_index=True)[1]
            if not np.array_equal(products, products[first][who], equal_nan=True):
                return True
    return False


def _panel(X: Rows, first: int, last: int, panel_rows: int, densify: bool) -> Rows:
    rows = X[first:last]
    if sp.issparse(rows):
        if not densify:
            return rows
        rows = rows.toarray()
    return filled_up(rows, panel_rows)


def filled_up(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """Rows with zero rows added below, ``count`` in all."""
    if len(rows) == count:
        return np.ascontiguousarray(rows)
    panel = np.zeros((count, rows.shape[1]), dtype=rows.dtype)
    panel[: len(rows)] = rows
    return panel
