"""What a target is: hyper-parameters that build the matrix Y of eq. (3) as an operator, never as an n × n array.

Codes of n_bits bits should have inner products ZZᵀ ≈ n_bits · Y. ``build`` returns Y with entries in [−1, 1] (1: same
code, −1: opposite codes, 0: unrelated), so that one target serves every code length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray, is_tensor
from hashlearn.core.memory import densified
from hashlearn.linalg.unit_rows import scale_to_unit, typical_norm


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows that a target does not tell apart, so that they may share a codeword.

    Attributes
    ----------
    member : the group of each row, 0 to K − 1
    similarity : Y between the groups, K × K. On the diagonal Y between two rows of a group: 1, or −1 for a row that is
        alone because it repels its like
    """

    member: NDArray[np.intp]
    similarity: FloatArray

    @cached_property
    def counts(self) -> FloatArray:
        """Rows of each group."""
        return np.bincount(self.member, minlength=len(self.similarity)).astype(np.float64)

    @property
    def shares(self) -> FloatArray:
        """Part of the rows in each group."""
        return self.counts / len(self.member)

    @property
    def are_classes(self) -> bool:
        """Whether every two groups are opposite, so that any of them may get any codeword."""
        return bool(np.array_equal(self.similarity, opposite_classes(len(self.similarity))))

    def majority(self, codes: NDArray[np.int8]) -> NDArray[np.int8]:
        """A codeword for each group: in each bit the sign of most of its rows."""
        sums = [np.bincount(self.member, weights=bit, minlength=len(self.similarity)) for bit in codes.T]
        return np.where(np.stack(sums, axis=1) < 0.0, -1, 1).astype(np.int8)

    def objective(self, words: FloatArray) -> float:
        """Eq. (3) over all rows, divided by n², of a codeword for each group: as `hashlearn.inference.objective`."""
        error = words @ words.T / words.shape[1] - self.similarity
        return float(self.shares @ (error * error) @ self.shares)


def opposite_classes(n_classes: int) -> FloatArray:
    """Y between classes: 1 on the diagonal, −1 elsewhere."""
    return 2.0 * np.eye(n_classes) - 1.0


class Target(ABC):
    """What codes should preserve. A subclass is a frozen dataclass with a ``name`` and a method ``build``."""

    name: ClassVar[str]
    needs_labels: ClassVar[bool] = False
    takes_tensors: ClassVar[bool] = False  # whether ``build`` accepts a PyTorch tensor X and works on its device

    @abstractmethod
    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        """Y for these samples: entries in [−1, 1]; the diagonal has no meaning."""

    def for_bits(self, n_bits: int) -> Target:
        """This target with every "auto" decided for codes of this length."""
        return self

    def groups(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> Groups | None:
        """The rows that are alike to this target, which says so without looking for them in Y; None if it does not."""
        return None


def centered_unit_rows(X: Any, center: bool) -> Any:
    """Rows of unit length, with the mean subtracted first if ``center``; zero rows stay zero. A tensor for a tensor.

    >>> centered_unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]), center=False)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    is_array = not is_tensor(X)
    what = "a target of distances or neighbors"
    rows: Any = np.array(densified(X, what), dtype=np.float64) if is_array else X.clone()
    largest = float(max(rows.max(), -rows.min())) if min(rows.shape) else 0.0
    if largest > 0.0:  # the squares of entries such as 1e±200 would underflow or overflow
        rows /= largest
    typical = typical_norm(rows)
    if center:
        rows -= rows.mean(axis=0) if is_array else rows.double().mean(dim=0).to(rows.dtype)
    return scale_to_unit(rows, typical)
