"""`Problem`: a max-cut, QUBO or Ising problem in its owner's words, and the operator A of eq. (5) that stands for it.

Every objective is C + Σ h_i s_i + Σ_{i<j} J_ij s_i s_j in signs s: a cut with J = −w / 2, a QUBO by z = (1 + s) / 2.
With one more variable, the anchor, the linear part is exact as well: A = [J h; hᵀ 0], up to a factor, and
objective = C + slope · xᵀAx. Coefficients are taken as float64. C and the slope are fractions, so values and bounds are
translated without rounding.

Weights that are multiples of one power of two, such as integers, become integers in A, so A is exact. Other weights
are divided by a power of two, so that the largest is about 1. ``rounding`` bounds what their sums lose. Solvers that
compute in integers take the weights themselves (`Operator.exact_form`). Time and memory are O(number of terms).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hashlearn.bqp.exact_numbers import Entries, ExactForm, float_at_least
from hashlearn.bqp.operators import Dense, Operator, Sparse
from hashlearn.bqp.proof.check import exact_integers
from hashlearn.bqp.solution import is_optimal
from hashlearn.core.arrays import EPS, FloatArray, IntArray
from hashlearn.core.checks import signs
from hashlearn.core.thresholds import DENSE_SHARE

Sense: TypeAlias = Literal["max-cut", "qubo", "ising"]
SENSES: tuple[Sense, ...] = ("max-cut", "qubo", "ising")

# The factor that makes h and J integers where all weights are, and the parts of a pair's weight, and of a single
# variable's, that go into the constant C.
_SHARES: dict[Sense, tuple[int, Fraction, Fraction]] = {
    "max-cut": (2, Fraction(1, 2), Fraction(0)),
    "qubo": (4, Fraction(1, 4), Fraction(1, 2)),
    "ising": (1, Fraction(0), Fraction(0)),
}
# Weights below this fraction of the largest are left out of A: their squares could underflow in a solver, and all of
# them together are far less than the rounding that is counted anyway.
NEGLIGIBLE = 2.0**-120
# Sums of integers up to this size are exact in float64, also four times as large.
LARGEST_SUM = 2**50
# Weights that add up to more could overflow float64 in a multiple of their sum.
LARGEST_TOTAL = 2.0**1018


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem as its owner states it. `max_cut_problem`, `qubo_problem`, `ising_problem`, `read_problem` make one.

    Attributes
    ----------
    sense : "max-cut" (sides ±1), "qubo" (variables 0 and 1) or "ising" (spins ±1)
    n : the number of variables
    i, j, w : the terms. For i ≠ j: an edge's weight, or a factor of z_i z_j or s_i s_j; each term counts once, and
        terms of one pair add up. For i = j: a factor of z_i or s_i.
    offset : a constant in the objective
    maximize : whether the largest objective is sought, as always for a cut, or the smallest
    labels : the names of the variables; None for 0 to n − 1
    path : the file it was read from, if any
    notes : what was done to the edges of a graph: parallel ones summed, self-loops left out
    """

    sense: Sense
    n: int
    i: IntArray
    j: IntArray
    w: FloatArray
    offset: float = 0.0
    maximize: bool = False
    labels: Sequence[Hashable] | None = None
    path: Path | None = None
    notes: tuple[str, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self._require_finite()
        counts = self.w != 0.0
        if self.sense == "max-cut":
            counts &= self.i != self.j
            self.__dict__["notes"] = tuple(self._notes())
        self.__dict__.update(i=self.i[counts], j=self.j[counts], w=self.w[counts])

    def __repr__(self) -> str:
        kind = f"{'max' if self.maximize else 'min'} " if self.sense != "max-cut" else ""
        return f"Problem({kind}{self.sense}, n={self.n}, terms={len(self.w)})"

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the operator, which is made again."""
        return {name: value for name, value in self.__dict__.items() if name != "_form"}

    @property
    def name(self) -> str:
        """The file's name without its folder, or the kind of problem."""
        return self.sense if self.path is None else self.path.name

    @property
    def operator(self) -> Operator:
        """A of min xᵀAx, with zero diagonal: the variables, and last the anchor if there is one."""
        return self._form.operator

    @property
    def anchor(self) -> int | None:
        """The index of A's extra variable, relative to which the others count; None if there is no linear part."""
        return self.n if self.operator.n > self.n else None

    @property
    def rounding(self) -> float:
        """How far rounding may move an objective; 0 if A is exact."""
        return self._form.rounding

    def objective(self, value: float) -> float:
        """The owner's objective, a cut or an energy, where xᵀAx = ``value``."""
        if not math.isfinite(value):
            return math.copysign(math.inf, self._form.slope * value)
        return float(self.exact_objective(Fraction(value)))

    def exact_objective(self, value: Fraction) -> Fraction:
        """The owner's objective where the exact xᵀAx is ``value``, without rounding."""
        return self._form.constant + self._form.slope * value

    def objective_bound(self, bound: float) -> float:
        """A proven bound on the owner's optimum from a lower bound on xᵀAx, rounded to the safe side.

        No cut is larger, no minimized energy is smaller; ±inf where there is no bound.
        """
        return self.rounded_bound(self.exact_bound(bound)) if math.isfinite(bound) else self.objective(bound)

    def exact_bound(self, bound: float, exact: Fraction | None = None) -> Fraction:
        """A finite `objective_bound` as a fraction: the better one, if the ``exact`` xᵀAx has a bound too."""
        best, worse = (min, 1) if self.maximize else (max, -1)
        rounded = self.exact_objective(Fraction(bound)) + worse * Fraction(self.rounding)
        return rounded if exact is None else best(rounded, self.exact_objective(exact))

    def rounded_bound(self, exact: Fraction) -> float:
        """A bound in the owner's units as a float, rounded to the safe side."""
        return float_at_least(exact) if self.maximize else -float_at_least(-exact)

    def is_optimal(self, objective: Fraction, bound: Fraction) -> bool:
        """Whether a bound proves an objective optimal: by a gap of 1e-9, or exactly if A is exact."""
        sign = -1 if self.maximize else 1
        return is_optimal(sign * objective, sign * bound) if self.rounding else objective == bound

    def evaluate(self, assignment: ArrayLike) -> Fraction:
        """The owner's objective of an assignment in the order of the variables, from the terms, without rounding."""
        own = np.asarray(assignment)
        left, right = own[self.i], own[self.j]
        factors = left != right if self.sense == "max-cut" else np.where(self.i == self.j, left, left * right)
        return Fraction(self.offset) + sum_of((self.w * factors).tolist())

    def assignment(self, x: ArrayLike) -> NDArray[np.int8]:
        """The owner's variables from the signs x of eq. (5): sides or spins ±1, or 0 and 1 for a QUBO."""
        own = signs(x, self.operator.n, "x")
        if self.anchor is not None:
            own = own[: self.n] * own[self.anchor]
        return (own > 0.0).astype(np.int8) if self.sense == "qubo" else own.astype(np.int8)

    @cached_property
    def index(self) -> Mapping[Hashable, int]:
        """The number of each label."""
        return {label: k for k, label in enumerate(range(self.n) if self.labels is None else self.labels)}

    def _require_finite(self) -> None:
        """Refuse weights that are not finite, or whose sum is not."""
        with np.errstate(over="ignore"):
            total = np.abs(self.w).sum() + abs(self.offset)
        if total < LARGEST_TOTAL:
            return
        bad = np.flatnonzero(~np.isfinite(self.w))
        if len(bad):
            pair = self._pair(self.i[bad[0]], self.j[bad[0]])
            raise ValueError(f"the weight of {pair} must be finite in float64, got {self.w[bad[0]]}")
        if not math.isfinite(self.offset):
            raise ValueError(f"offset must be finite, got {self.offset}")
        raise ValueError(f"weights of size {np.abs(self.w).max():.3g} add up to more than float64 holds; divide them")

    def _notes(self) -> Iterable[str]:
        """What happens to edges between the same nodes, and to edges from a node to itself."""
        proper = self.i != self.j
        i, j = self.i[proper], self.j[proper]
        pairs, counts = np.unique(np.minimum(i, j) * self.n + np.maximum(i, j), return_counts=True)
        if len(pairs) < len(i):
            example = self._pair(*divmod(pairs[counts > 1][0], self.n))
            yield f"{len(i) - len(pairs)} parallel edge(s), such as {example}; their weights are summed"
        if loops := int((self.w[~proper] != 0.0).sum()):
            yield f"{loops} self-loop(s) are in no cut and were left out"

    def _pair(self, i: int, j: int) -> str:
        """A variable, or two, as messages name them."""
        labels = range(self.n) if self.labels is None else self.labels
        return f"variable {labels[i]!r}" if i == j else f"({labels[i]!r}, {labels[j]!r})"

    @cached_property
    def _form(self) -> _Form:
        """A, from h and J with whole multiples of the weights; integers are divided by their common divisor."""
        n, sign, pair = self.n, -1 if self.maximize else 1, self.i != self.j
        exponent = common_exponent(self.w)
        is_exact = exponent is not None
        if exponent is None:
            exponent = int(np.frexp(np.abs(self.w).max())[1])
        scaled = sign * np.ldexp(self.w, -exponent)
        if not is_exact:
            scaled[np.abs(scaled) < NEGLIGIBLE * np.abs(scaled).max()] = 0.0
        i, j, entries = _half(self, scaled)
        half = sp.coo_array((entries, (i, j)), shape=(n + 1, n + 1)).tocsr()
        divisor = 1
        if is_exact:
            half.eliminate_zeros()
            divisor = int(np.gcd.reduce(half.data.astype(np.int64), initial=0)) or 1
            half.data = half.data / divisor  # scipy would multiply by 1 / divisor, which is rounded
        is_linear = bool((half.indices == n).any())  # also where rounded fields are 0, since the exact ones may not be
        half.eliminate_zeros()
        if n and not is_linear:
            half.resize(n, n)
        A = half + half.T
        operator = Dense.unchecked(A.toarray()) if A.nnz > DENSE_SHARE * A.shape[0] ** 2 else Sparse(A)
        factor, on_pairs, alone = _SHARES[self.sense]
        constant = on_pairs * sum_of(self.w[pair].tolist()) + alone * sum_of(self.w[~pair].tolist())
        constant += Fraction(self.offset)
        slope = sign * Fraction(2) ** exponent * divisor / (2 * factor)
        # `solve` takes the integers of a rounded A from the weights.
        make = ExactForm.of_floats(A).make if is_exact else partial(_integer_entries, self, exponent, sign)
        rounding = 0.0
        if not is_exact:
            # The constant and the entries of A are rounded. An entry of A sums at most ``terms`` weights.
            terms = int(np.bincount(np.append(self.i, self.j)).max())
            # Halves of the smallest floats are rounded too, by less than the last summand.
            rounding = 4.0 * EPS * (terms + 5) * float(np.abs(self.w).sum()) + len(self.w) * 5e-324
        operator.form = ExactForm(operator.n, make, constant / slope, float_at_least(Fraction(rounding) / abs(slope)))
        return _Form(operator, constant, slope, rounding)


class _Form(NamedTuple):
    """objective = constant + slope · xᵀAx, up to ``rounding``."""

    operator: Operator
    constant: Fraction
    slope: Fraction
    rounding: float


def _half(problem: Problem, w: NDArray[Any]) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """The entries of A above its diagonal for these weights, times the factor of `_SHARES`; equal places add up."""
    pair = problem.i != problem.j
    i, j, couplings = problem.i[pair], problem.j[pair], w[pair]
    variables, fields = [problem.i[~pair]], [w[~pair]]
    if problem.sense == "max-cut":
        couplings = -couplings
    elif problem.sense == "qubo":
        variables, fields = [*variables, i, j], [2 * fields[0], couplings, couplings]
    single = np.concatenate(variables)
    rows, columns = np.append(np.minimum(i, j), single), np.append(np.maximum(i, j), np.full(len(single), problem.n))
    return rows, columns, np.concatenate([couplings, *fields])


def _integer_entries(problem: Problem, exponent: int, sign: int) -> Entries:
    """The entries of A from the weights over 2^exponent: places, integers, and the exponent of their unit."""
    numbers, own = exact_integers(problem.w)
    i, j, entries = _half(problem, sign * numbers)
    return np.append(i, j), np.append(j, i), np.append(entries, entries), own - exponent


def common_exponent(w: FloatArray) -> int | None:
    """The largest e such that all w are integers times 2^e, if their absolute sum is then small enough; else None.

    >>> common_exponent(np.array([0.25, 3.0])), common_exponent(np.array([0.1]))
    (-2, None)
    """
    w = w[w != 0.0]
    if not len(w):
        return 0
    mantissas, exponents = np.frexp(w)
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    lowest = int((exponents - 53 + trailing).min())
    if int(exponents.max()) - lowest > 50 or np.abs(np.ldexp(w, -lowest)).sum() >= LARGEST_SUM:
        return None
    return lowest


def sum_of(parts: Iterable[float]) -> Fraction:
    """The sum of floats, without rounding.

    >>> sum_of([1e300, 0.5, -1e300])
    Fraction(1, 2)
    """
    rest, total = list(parts), Fraction(0)
    while part := math.fsum(rest):  # the sum, rounded once; what it leaves is summed next
        total += Fraction(part)
        rest.append(-part)
    return total
