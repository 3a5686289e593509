"""Nodes of the tree: a contracted problem, its warm start, and what a dual point proves about it in exact integers.

Branching sets x_i = ± x_j, so a child has one variable less and is again a problem min zᵀCz over signs. Parents hand on
the factor V (the merged row is v_i ± v_j, normalized), the cuts and their multipliers.

Every dual point that ends in a proof is rounded to integers here, and its bound is computed by the functions of the
verifier itself. So an accepted leaf is one that the verifier accepts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hashlearn.bqp.error_bounds import float_at_most
from hashlearn.bqp.exact_form import ExactForm
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof.check import Dual, Groups, IntArray, Lattice, exact_matrix, leaf_bound, reduced
from hashlearn.bqp.proof.cuts import Cuts
from hashlearn.bqp.solution import OPTIMAL_GAP
from hashlearn.core.arrays import EPS, FloatArray

# With values of arbitrary real numbers a bound this close to the value proves it, relative to the caller's objective.
CLOSE = Fraction(OPTIMAL_GAP) / 2
FEWEST_DIGITS, MOST_DIGITS = 30, 50  # binary digits of the dual point


@dataclass(eq=False)
class Node:
    """One node. ``C`` has a zero diagonal; the value of z is zᵀCz + Σ ``diagonal`` + ``constant`` · 2^exponent.

    The constant is an integer, since it may be much larger than what is left of the problem.
    """

    groups: Groups
    C: FloatArray
    diagonal: FloatArray
    V: FloatArray
    cuts: Cuts
    bound: Fraction | None  # proven, of the parent until this node has its own; in units of the integer matrix
    estimate: float  # of the relaxation, without the constant
    parent: int | None = None
    sign: int | None = None
    index: int = field(default=0)
    whole_diagonal: IntArray = field(default_factory=lambda: np.zeros(0, dtype=object))

    @property
    def constant(self) -> int:
        """What the diagonal of the integer matrix adds to every value."""
        return int(self.whole_diagonal.sum())

    @property
    def m(self) -> int:
        """The number of variables left."""
        return len(self.C)

    def child(self, i: int, j: int, sign: int) -> Node:
        """The node with z_i = sign · z_j, for i < j: j is removed."""
        C, diagonal = contracted(self.C, self.diagonal, i, j, sign)
        V = np.delete(self.V, j, axis=0)
        row = self.V[i] + sign * self.V[j]
        norm = float(np.linalg.norm(row))
        V[i] = row / norm if norm > 1e-6 else self.V[i]
        first, second = self.variable(i), self.variable(j)
        turn = sign * int(self.groups.sign[first]) * int(self.groups.sign[second])
        return Node(
            self.groups.joined(first, second, turn), C, diagonal, V, self.cuts.merged(i, j, sign), self.bound,
            self.estimate, self.index, turn, whole_diagonal=self.whole_diagonal,
        )  # fmt: skip

    def variable(self, i: int) -> int:
        """The first of the original variables in group i."""
        return int(np.argmax(self.groups.group == i))

    def expanded(self, z: FloatArray) -> FloatArray:
        """Signs of all variables."""
        return z[self.groups.group] * self.groups.sign


def contracted(C: FloatArray, diagonal: FloatArray, i: int, j: int, sign: int) -> tuple[FloatArray, FloatArray]:
    """The matrix and the diagonal after z_j = sign · z_i, with j removed."""
    C, diagonal = C.copy(), diagonal.copy()
    diagonal[i] += diagonal[j] + 2.0 * sign * C[i, j]
    C[i] += sign * C[j]
    C[:, i] += sign * C[:, j]
    C[i, i] = 0.0
    keep = np.arange(len(C)) != j
    return np.ascontiguousarray(C[keep][:, keep]), diagonal[keep]


@dataclass(frozen=True, eq=False)
class Leaf:
    """A dual point in the variables of a node: M = C − Σ γ bbᵀ without diagonals, M − Diag(y) ⪰ 0."""

    y: FloatArray
    cuts: Cuts
    bound: float


def exact_dual(node: Node, leaf: Leaf, exponent: int, digits: int) -> Dual:
    """The dual point as integers in the original variables, over 2^(exponent + digits) in units of N."""
    gamma = np.rint(np.ldexp(leaf.cuts.gamma, digits))
    kept = gamma > 0.0
    members = leaf.cuts.members[kept]
    whole = [int(g) for g in gamma[kept]]
    first = np.array([node.variable(i) for i in range(node.m)])
    signs = node.groups.sign[first]
    y = [0] * len(node.groups.group)
    diagonal = np.bincount((np.abs(members) - 1)[members != 0], _repeated(whole, members), minlength=node.m)
    shift = exponent + digits
    for i, v in enumerate(first):
        own = int(node.whole_diagonal[i])
        y[v] = int(np.floor(np.ldexp(leaf.y[i], digits) - diagonal[i])) + (own << shift if shift > 0 else own >> -shift)
    position = np.abs(members) - 1
    variables = np.where(members == 0, 0, np.sign(members) * signs[position] * (first[position] + 1))
    cuts = [[v for v in row if v] for row in variables.tolist()]
    return Dual(exponent + digits, y, cuts, whole)


def _repeated(whole: list[int], members: np.ndarray) -> FloatArray:
    return np.repeat(np.array(whole, dtype=np.float64), np.count_nonzero(members, axis=1))


class ExactProblem:
    """A = N · 2^exponent, written out. ``form`` is A in integers, if A is known so."""

    def __init__(self, A: Operator, form: ExactForm | None = None) -> None:
        self.array = A.toarray()
        self.N, self.exponent = exact_matrix(self.array) if form is None else reduced(form.N, form.exponent)
        self.lattice = Lattice.of(self.N)
        self.is_exact = A.is_exact() and (form is None or form.rounding == 0.0)  # also in float64
        # Forming a low-rank A as a dense array may change any value by this much.
        self._rounding = 0.0 if A.is_exact() else float(A.entry_error().sum())
        self._form = form

    def integer_value(self, x: FloatArray) -> int:
        """xᵀNx."""
        signs = np.array([int(s) for s in x], dtype=object)
        return int(signs @ self.N @ signs)

    def claim(self, value: int) -> int:
        """The bound to prove for signs of this value: the value itself unless possible values are too dense."""
        tolerance = self._tolerance(value)
        if self.lattice.step == 0 or self.lattice.step > tolerance:
            return value
        return value - math.floor(tolerance)

    def above(self, value: int) -> int:
        """A node whose bound is above this holds nothing below `claim`."""
        return self.lattice.ceiling(self.claim(value)) - max(self.lattice.step, 1)

    def is_too_coarse(self, node: Node, value: int) -> bool:
        """Whether entries of the node are so large that the rounding of float64 hides the tolerance."""
        if self.is_exact:
            return False
        noise = 16.0 * EPS * node.m * float(np.abs(node.C).sum(axis=1).max())
        return Fraction(noise) > max(self._tolerance(value), Fraction(self.lattice.step)) * Fraction(2) ** self.exponent

    def settled(self, node: Node) -> Node:
        """The node with entries that no contraction rounded; its diagonal becomes an integer constant."""
        T = node.groups.contracted(self.N)
        before, node.whole_diagonal = node.constant, T.diagonal().copy()
        node.estimate += self.real(before - node.constant)
        np.fill_diagonal(T, 0)
        unused = max(int(abs(T).max()).bit_length() - 1000, 0)
        node.C = np.ldexp((T >> unused).astype(np.float64), self.exponent + unused)
        node.diagonal = np.zeros(node.m)
        return node

    def real(self, integer: int | Fraction) -> float:
        """A value in units of A."""
        return float(Fraction(integer) * Fraction(2) ** self.exponent)

    def proven(self, bound: Fraction) -> float | Fraction:
        """A bound in units of A: exact if A is known in integers, else a float64 for A as it was given."""
        exact = Fraction(self.lattice.ceiling(bound)) * Fraction(2) ** self.exponent
        return exact if self._form is not None else float_at_most(exact - Fraction(self._rounding))

    def certified(self, node: Node, leaf: Leaf) -> tuple[Dual, Fraction]:
        """The dual point in integers, and the bound that it proves."""
        dual = exact_dual(node, leaf, self.exponent, self._digits(node))
        return dual, leaf_bound(self.N, node.groups, dual)

    def _tolerance(self, value: int) -> Fraction:
        """What a bound may be below the value, in units of N."""
        zero = Fraction(0) if self._form is None else self._form.zero / Fraction(2) ** self.exponent
        return CLOSE * abs(value + zero)

    def _digits(self, node: Node) -> int:
        """Binary digits behind the point such that rounding costs little of the distance between two values."""
        largest = math.frexp(float(np.abs(node.C).sum(axis=1).max()))[1]
        distance = max(self.real(self.lattice.step), 2.0**-50 * 2.0**largest)
        wanted = 8 + math.frexp(node.m / distance)[1]
        return min(max(wanted, FEWEST_DIGITS - largest), MOST_DIGITS - largest)
