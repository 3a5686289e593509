"""Nodes of the tree: a contracted problem, its warm start, and what the proof says about it.

Branching sets x_i = ± x_j, so a child has one variable less and is again a problem min zᵀCz over signs. Parents hand on
the factor V (the merged row is v_i ± v_j, normalized), the cuts and their multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hashlearn.bqp.branch_and_bound.cuts import Cuts
from hashlearn.bqp.proof_check import Dual, Groups, IntArray
from hashlearn.core.arrays import FloatArray


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
