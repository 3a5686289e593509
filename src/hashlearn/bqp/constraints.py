"""Fixed variables.

All fixed variables are replaced by one, the *anchor*: x_i = s_i · x_anchor. This is exact, and x ↔ −x lets the anchor
be +1, so every solver takes fixed variables. `Contracted` holds the smaller problem and translates signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.exact_form import ExactForm
from hashlearn.bqp.operators import Operator
from hashlearn.core.arrays import EPS, FloatArray


@dataclass(frozen=True, eq=False)
class Contracted:
    """A problem without its fixed variables: its last variable, the anchor, stands for all of them."""

    operator: Operator
    free: NDArray[np.intp]  # the original variables that are left, in order
    fixed: NDArray[np.intp]
    signs: FloatArray  # of the fixed variables
    slack: float  # rounding in the sums behind ``operator`` can have moved a value by this much

    @property
    def anchor(self) -> int:
        """The variable that stands for the fixed ones."""
        return len(self.free)

    def exact(self, form: ExactForm) -> ExactForm:
        """The integers of ``operator`` from those of the original A."""
        columns, signs = np.full(form.n, self.anchor), np.ones(form.n)
        columns[self.free] = np.arange(len(self.free))
        signs[self.fixed] = self.signs
        return form.contracted(columns, signs, self.slack)

    def expand(self, x: FloatArray) -> FloatArray:
        """Signs of the original variables."""
        x = x * x[self.anchor]
        full = np.empty(len(self.free) + len(self.fixed))
        full[self.free], full[self.fixed] = x[:-1], self.signs
        return full

    def collapse(self, x: FloatArray) -> FloatArray:
        """The signs x of the original variables, which must agree with the fixed ones, or be their opposite."""
        agreement = x[self.fixed] * self.signs
        if agreement.min() != agreement.max():
            raise ValueError("x0 must have the signs of the fixed variables")
        return np.append(x[self.free] * agreement[0], 1.0)


def contracted(A: Operator, fixed: Mapping[Any, Any]) -> Contracted:
    """The problem in which variable i has the sign ``fixed[i]``."""
    index, signs = _checked_fixed(fixed, A.n)
    free = np.setdiff1d(np.arange(A.n), index)
    columns = np.full(A.n, len(free))
    columns[free] = np.arange(len(free))
    entries = np.ones(A.n)
    entries[index] = signs
    C = sp.csr_array((entries, (np.arange(A.n), columns)), shape=(A.n, len(free) + 1))
    # An entry is a sum of at most len(index)² products, added in two steps.
    slack = 0.0 if A.is_exact() else 8.0 * (len(index) + 8) * EPS * float(A.magnitudes().sum())
    return Contracted(A.congruent(C), free, index, signs, slack)


def _checked_fixed(fixed: Mapping[Any, Any], n: int) -> tuple[NDArray[np.intp], FloatArray]:
    """The indices, in order, and their signs."""
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must map variables to +1 or -1, such as {{0: 1, 5: -1}}, got {type(fixed).__name__}")
    for i, sign in fixed.items():
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < n:
            raise ValueError(f"fixed must map variables 0 to {n - 1} to +1 or -1, got the variable {i!r}")
        if isinstance(sign, bool) or sign not in (-1, 1):
            raise ValueError(f"fixed must map variables to +1 or -1, got {sign!r} for variable {i}")
    index = np.array(sorted(int(i) for i in fixed), dtype=np.intp)
    return index, np.array([float(fixed[int(i)]) for i in index])
