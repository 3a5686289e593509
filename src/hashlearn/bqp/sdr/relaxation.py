"""A solution of the relaxation (10): unit rows V with lifted matrix X = VVᵀ, its value, and a proven bound."""

from __future__ import annotations

from dataclasses import dataclass

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.bqp.solution import relative_gap
from hashlearn.core.arrays import FloatArray
from hashlearn.core.thresholds import DENSE_CERTIFICATE_LIMIT


@dataclass(frozen=True)
class Tolerance:
    """When a relaxation is solved: value − bound ≤ relative · max(|bound|, 1e-3 · scale)."""

    relative: float
    scale: float  # a typical size of Σ_i |(Ax)_i|: keeps the test meaningful when the optimum is 0
    max_rounds: int
    proof_limit: int = DENSE_CERTIFICATE_LIMIT  # an A that is not low rank is factored for its proof up to this n

    def met(self, value: float, bound: float) -> bool:
        """Whether the gap is closed."""
        return value - bound <= self.relative * max(abs(bound), 1e-3 * self.scale)

    def enough(self, value: float) -> float:
        """A bound that closes the gap, with a tenth of it as a margin."""
        return value - 0.9 * min(self.relative, 0.1) * max(abs(value), 1e-3 * self.scale)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Unit rows, stored as V itself or, for a low-rank A, as the rank × k factor B with v_i ∝ −p_iᵀB."""

    operator: Operator
    value: float  # trace(A VVᵀ)
    bound: float  # ≤ the optimum of (10) ≤ the optimum of (5)
    rank: int
    certificate: str
    unit_rows: FloatArray | None = None
    low_rank_factor: FloatArray | None = None

    @property
    def gap(self) -> float:
        """(value − bound) / |bound|: how far from solved the relaxation can be at most."""
        return relative_gap(self.value, self.bound)

    def rows(self, first: int = 0, last: int | None = None) -> FloatArray:
        """Rows first…last of V, where P is a NumPy array."""
        if self.unit_rows is not None:
            return self.unit_rows[first:last]
        assert isinstance(self.operator, LowRank)
        rows = self.operator.rows
        assert isinstance(rows, NumpyRows)
        assert self.low_rank_factor is not None
        return rows.unit_rows(self.low_rank_factor, first, last)
