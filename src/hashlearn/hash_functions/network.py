"""A small neural network as hash functions: a linear map of the row plus one hidden layer, for all bits at once.

    margins(x) = r·W + c + max(0, r·V + e)·U        r = x / ‖x‖, or x / scale without unit rows

W and V are multiplied in one product, and their products are divided by ‖x‖ instead of the row. A row therefore costs
2 n_features (n_bits + n_hidden) + 2 n_hidden n_bits operations, and without hidden units as much as a linear function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import tensor_like
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, Stored, full_panel
from hashlearn.linalg.unit_rows import ZERO_ROW

MOST_HIDDEN = 2**16  # a panel of rows has temporaries of this width
LARGEST_SCALE = 1e30  # of rows with entries up to 1e18


@dataclass(eq=False)
class NetworkMargins(FittedHashFunctions):
    """The network of the module docstring. Its arrays are float32, as they were trained; rows keep their dtype.

    Parameters
    ----------
    weights, intercepts : W (n_features, n_distinct) and c (n_distinct,), a column for each distinct bit
    hidden_weights, hidden_intercepts : V (n_features, n_hidden) and e (n_hidden,); n_hidden may be 0
    output_weights : U (n_hidden, n_distinct)
    unit_rows : divide each row by its norm, else by ``scale``
    scale : typical norm of the training rows. With unit rows it decides what counts as zero, by the rule of
        `hashlearn.linalg.unit_rows`: r = 0 if ‖x‖ is at most 1e-12 times ``scale``
    bits, description : as in `FittedHashFunctions`
    """

    kind = "network"

    weights: Annotated[NDArray[Any], Stored("n_features", "n_distinct", kind="float32")]
    intercepts: Annotated[NDArray[Any], Stored("n_distinct", kind="float32")]
    hidden_weights: Annotated[NDArray[Any], Stored("n_features", "n_hidden", kind="float32")]
    hidden_intercepts: Annotated[NDArray[Any], Stored("n_hidden", kind="float32")]
    output_weights: Annotated[NDArray[Any], Stored("n_hidden", "n_distinct", kind="float32")]
    unit_rows: Annotated[bool, Stored(kind="flag")]
    scale: Annotated[float, Stored(kind="number", most=LARGEST_SCALE)]
    bits: DistinctBits
    description: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_hidden > MOST_HIDDEN:
            raise ValueError(f"hidden_weights must have at most {MOST_HIDDEN} columns, got {self.n_hidden}")

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return len(self.hidden_intercepts)

    def _first_layer(self) -> NDArray[np.float64]:
        """W and V side by side, divided by ``scale`` where rows are."""
        both = np.hstack([self.weights, self.hidden_weights], dtype=np.float64)
        return both if self.unit_rows else both / self.scale

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        first, output = self._first_layer().astype(dtype), self.output_weights.astype(dtype)
        intercepts, hidden_intercepts = self.intercepts.astype(dtype), self.hidden_intercepts.astype(dtype)
        n_distinct, smallest = self.bits.n_distinct, ZERO_ROW * self.scale
        least = float(np.finfo(dtype).tiny / np.finfo(dtype).eps) ** 0.5  # squares of smaller norms lose digits

        def margins(panel: Rows) -> NDArray[Any]:
            rows = full_panel(panel)
            if self.unit_rows:
                rows, norms = rows_and_norms(rows, smallest, least)
                products = rows @ first
                products /= norms
            else:
                products = rows @ first
            values = products[:, :n_distinct] + intercepts
            if self.n_hidden:
                hidden = products[:, n_distinct:] + hidden_intercepts
                if not hidden.min() > -np.inf:
                    hidden[hidden == -np.inf] = np.nan  # else max(0, ·) hides an overflow
                values += np.maximum(hidden, 0.0, out=hidden) @ output
            return values

        return margins, [first, output] if self.n_hidden else [first]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        import torch

        first, output = tensor_like(self._first_layer(), X), tensor_like(self.output_weights, X)
        intercepts, hidden_intercepts = tensor_like(self.intercepts, X), tensor_like(self.hidden_intercepts, X)
        n_distinct, smallest = self.bits.n_distinct, ZERO_ROW * self.scale
        tiny = torch.finfo(X.dtype).tiny

        def margins(rows: Any) -> Any:
            if self.unit_rows:
                largest = rows.abs().amax(dim=1, keepdim=True).clamp_min(tiny)
                rows = rows / largest  # so that no square overflows or loses digits
                norms = rows.norm(dim=1, keepdim=True)
                rows = rows * ((norms * largest > smallest) / norms.clamp_min(tiny))
            products = rows @ first
            hidden = (products[:, n_distinct:] + hidden_intercepts).clamp_min(0.0)
            return products[:, :n_distinct] + intercepts + hidden @ output

        return margins, self.n_features + first.shape[1]


def rows_and_norms(panel: NDArray[Any], smallest: float, least: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows, and a column of their norms; a norm of at most ``smallest`` is replaced by infinity.

    Rows with a norm that overflows or is below ``least`` are divided by their largest entry first. NumPy's own loop
    adds the squares: unlike some BLAS, it gives a row the same sum at every place in memory.

    >>> rows_and_norms(np.array([[3.0, 4.0], [0.0, 0.0], [3e-200, 4e-200]]), 0.0, 1e-140)[1].ravel()
    array([5.  ,  inf, 1.25])
    """
    norms = np.sqrt(np.einsum("ij,ij->i", panel, panel))
    if norms.min() > max(least, smallest) and norms.max() < np.inf:
        return panel, norms[:, None]
    odd = np.flatnonzero(~((norms > max(least, smallest)) & (norms < np.inf)))
    rows = panel[odd]
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    norms[odd] = np.inf
    if largest.any():  # else all of them are zero, as those that fill up a panel
        odd, rows, largest = odd[largest != 0.0], rows[largest != 0.0], largest[largest != 0.0]
        rows /= largest[:, None]
        panel = panel.copy()
        panel[odd], norms[odd] = rows, np.sqrt(np.einsum("ij,ij->i", rows, rows))
        norms[odd[norms[odd] * largest <= smallest]] = np.inf
    return panel, norms[:, None]
