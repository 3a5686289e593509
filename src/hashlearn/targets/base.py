"""What a target is: hyper-parameters that can build the matrix Y of eq. (3) as an operator, never n × n.

Codes of n_bits bits should have inner products ZZᵀ ≈ n_bits · Y. ``build`` returns Y with entries in [−1, 1] (1: same
code, −1: opposite codes, 0: unrelated), so that one target serves every code length.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from hashlearn import bqp
from hashlearn.core.arrays import is_tensor
from hashlearn.core.threads import map_row_blocks


@runtime_checkable
class Target(Protocol):
    """A frozen dataclass with a name and a ``build``."""

    name: ClassVar[str]
    needs_labels: ClassVar[bool]

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """Y for these samples: entries in [−1, 1]; the diagonal has no meaning."""


def for_bits(target: Target, n_bits: int) -> Target:
    """The target with what it leaves to the code length settled; most leave nothing."""
    settle = getattr(target, "for_bits", None)
    return target if settle is None else settle(n_bits)


def centred_unit_rows(X: Any, centre: bool) -> Any:
    """Rows of unit length, after the mean is subtracted if asked for; a row of zeros stays zero. Of a tensor a tensor.

    >>> centred_unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]), centre=False)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if is_tensor(X):
        return _of_tensor(X, centre)
    rows = np.array(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    # Entries of 1e±200 would square to nothing or infinity.
    largest = max(rows.max(), -rows.min()) if rows.size else 0.0
    if largest > 0.0:
        rows /= largest
    if centre:
        rows -= rows.mean(axis=0)
    # In place and in blocks: beside the rows and what was handed in there is no third array of their size.
    norms = np.concatenate([np.empty(0), *map_row_blocks(lambda a, b: np.linalg.norm(rows[a:b], axis=1), *rows.shape)])
    far = norms > 1e-12 * norms.max(initial=0.0)
    np.divide(rows, norms[:, None], out=rows, where=far[:, None])
    rows[~far] = 0.0
    return rows


def _of_tensor(X: Any, centre: bool) -> Any:
    largest = float(X.abs().max())
    rows = X / largest if largest > 0.0 else X.clone()
    if centre:
        rows -= rows.double().mean(dim=0).to(rows.dtype)
    norms = rows.norm(dim=1, keepdim=True)
    far = norms > 1e-6 * norms.max()  # of a row that was all but the mean nothing is left but rounding
    norms = norms.clamp_min(1e-30)
    rows /= norms
    rows *= far
    return rows
