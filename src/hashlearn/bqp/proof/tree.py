"""The tree of a proof: its nodes, what their dual points prove in exact integers, and the proof as data.

Branching sets x_i = ± x_j, so a child has one variable less and is again a problem min zᵀCz over signs. Parents hand on
the factor V (the merged row is v_i ± v_j, normalized), the cuts and their multipliers.

Every dual point that ends in a proof is rounded to integers here, and its bound is computed by the functions of the
verifier itself (`hashlearn.bqp.proof.check`). So an accepted leaf is one that the verifier accepts.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn.bqp.exact_numbers import ExactForm, float_at_most
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof.check import (
    FORMAT,
    VERSION,
    Dual,
    Groups,
    IntArray,
    Lattice,
    digest,
    exact_matrix,
    leaf_bound,
    reduced,
)
from hashlearn.bqp.proof.cuts import Cuts
from hashlearn.bqp.solution import OPTIMAL_GAP
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.atomic_files import write_atomically

# With values of arbitrary real numbers a bound this close to the value proves it, relative to the caller's objective.
CLOSE = Fraction(OPTIMAL_GAP) / 2
FEWEST_DIGITS, MOST_DIGITS = 30, 50  # binary digits of the dual point


@dataclass(frozen=True, eq=False)
class Proof:
    """A proof that no signs are better than ``bound``. `save` writes it; ``hashlearn bqp-verify`` checks the file."""

    content: dict[str, Any]

    @property
    def n_nodes(self) -> int:
        """Inner nodes and leaves."""
        return len(self.content["nodes"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON, gzipped if the name ends in ``.gz``, all or nothing."""
        data = json.dumps(self.content, separators=(",", ":")).encode()
        if os.fspath(path).endswith(".gz"):
            data = gzip.compress(data, mtime=0)
        write_atomically(Path(path), [data])

    def __repr__(self) -> str:
        return f"Proof(n={self.content['n']}, nodes={self.n_nodes})"


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A dual point in the variables of a node: M = C − Σ γ bbᵀ without diagonals, M − Diag(y) ⪰ 0."""

    y: FloatArray
    cuts: Cuts
    bound: float


@dataclass(eq=False)
class Node:
    """One node. The value of z is zᵀCz + ``offset`` + ``constant`` · 2^exponent, where C has a zero diagonal.

    The constant is an integer, since it may be much larger than what is left of the problem.
    """

    groups: Groups
    C: FloatArray
    V: FloatArray
    cuts: Cuts
    offset: float = 0.0
    diagonal: IntArray = field(default_factory=lambda: np.zeros(0, dtype=object))  # of the integer matrix
    bound: Fraction | None = None  # proven, of the parent until this node has its own; in units of the integer matrix
    estimate: float = -math.inf  # of the relaxation, without the constant
    subtree: list[Any] = field(default_factory=list)  # its entry in the proof, then the subtrees of its children

    @property
    def is_root(self) -> bool:
        """Whether no variables are joined."""
        return self.m == len(self.groups.group)

    @property
    def constant(self) -> int:
        """What the diagonal of the integer matrix adds to every value."""
        return int(self.diagonal.sum())

    @property
    def m(self) -> int:
        """The number of variables left."""
        return len(self.C)

    @property
    def variables(self) -> IntArray:
        """The first of the original variables in each group."""
        return np.unique(self.groups.group, return_index=True)[1]

    def child(self, i: int, j: int, sign: int) -> Node:
        """The node in which the first variables of groups i < j have product ``sign``; group j is removed."""
        first, second = (int(self.variables[k]) for k in (i, j))
        turn = sign * int(self.groups.sign[first]) * int(self.groups.sign[second])  # z_i = turn · z_j
        rest = np.arange(self.m) != j
        C, V = self.C.copy(), self.V[rest]
        C[i] += turn * C[j]
        C[:, i] += turn * C[:, j]
        C[i, i] = 0.0
        row = self.V[i] + turn * self.V[j]
        norm = float(np.linalg.norm(row))
        V[i] = row / norm if norm > 1e-6 else self.V[i]
        return replace(
            self,
            groups=self.groups.joined(first, second, sign),
            C=np.ascontiguousarray(C[rest][:, rest]),
            V=V,
            cuts=self.cuts.merged(i, j, turn),
            offset=self.offset + 2.0 * turn * float(self.C[i, j]),
            subtree=[],
        )

    def expanded(self, z: FloatArray) -> FloatArray:
        """Signs of all variables."""
        return z[self.groups.group] * self.groups.sign


class ExactProblem:
    """A = N · 2^exponent, written out. ``form`` is A in integers, if A is known so."""

    def __init__(self, A: Operator, form: ExactForm | None = None) -> None:
        self.N, self.exponent = exact_matrix(A.toarray()) if form is None else reduced(form.N, form.exponent)
        self.lattice = Lattice.of(self.N)
        self.is_exact = A.is_exact() and (form is None or form.rounding == 0.0)  # also in float64
        # Forming a low-rank A as a dense array may change any value by this much.
        self._rounding = 0.0 if A.is_exact() else A.entry_error()
        self._form = form

    def root(self, V: FloatArray) -> Node:
        """The node of the whole problem; V holds n unit rows."""
        return self.with_exact_entries(Node(Groups.all_apart(len(V)), np.zeros((0, 0)), V, Cuts.none()))

    def with_exact_entries(self, node: Node) -> Node:
        """The node with entries that no contraction rounded; its diagonal becomes an integer constant."""
        T = node.groups.contracted(self.N)
        before, node.diagonal = node.constant, T.diagonal().copy()
        node.estimate += self.real(before - node.constant)
        np.fill_diagonal(T, 0)
        unused = max(int(abs(T).max()).bit_length() - 1000, 0)
        node.C, node.offset = np.ldexp((T >> unused).astype(np.float64), self.exponent + unused), 0.0
        return node

    def integer_value(self, x: FloatArray) -> int:
        """xᵀNx."""
        signs = np.array([int(s) for s in x], dtype=object)
        return int(signs @ self.N @ signs)

    def above(self, value: int) -> int:
        """A node with a bound above this holds nothing better than signs of this value, up to `_tolerance`."""
        return self.lattice.ceiling(value - math.floor(self._tolerance(value))) - max(self.lattice.step, 1)

    def is_too_coarse(self, node: Node, value: int) -> bool:
        """Whether entries of the node are so large that the rounding of float64 hides the tolerance."""
        if self.is_exact:
            return False
        noise = 16.0 * EPS * node.m * float(np.abs(node.C).sum(axis=1).max())
        return Fraction(noise) > max(self._tolerance(value), Fraction(self.lattice.step)) * Fraction(2) ** self.exponent

    def real(self, integer: int | Fraction) -> float:
        """A value in units of A."""
        return float(Fraction(integer) * Fraction(2) ** self.exponent)

    def in_units_of_A(self, bound: Fraction) -> float | Fraction:
        """A bound in units of A: exact if A is known in integers, else a float64 for A as it was given."""
        exact = Fraction(self.lattice.ceiling(bound)) * Fraction(2) ** self.exponent
        return exact if self._form is not None else float_at_most(exact - Fraction(self._rounding))

    def certify(self, node: Node, point: DualPoint) -> tuple[Dual, Fraction]:
        """The dual point as integers in the original variables, and the bound that it proves, in units of N."""
        digits = self._digits(node)
        shift = self.exponent + digits
        gamma = np.rint(np.ldexp(point.cuts.gamma, digits))
        members, multipliers = point.cuts.members[gamma > 0.0], [int(g) for g in gamma[gamma > 0.0]]
        position, variables = np.abs(members) - 1, node.variables
        weights = np.repeat(gamma[gamma > 0.0], np.count_nonzero(members, axis=1))
        on_diagonal = np.bincount(position[members != 0], weights, minlength=node.m)
        y = [0] * len(node.groups.group)
        for i, v in enumerate(variables):
            own = int(node.diagonal[i])
            y[v] = int(np.floor(np.ldexp(point.y[i], digits) - on_diagonal[i]))
            y[v] += own << shift if shift > 0 else own >> -shift
        named = np.sign(members) * node.groups.sign[variables[position]] * (variables[position] + 1)
        dual = Dual(shift, y, [[v for v in row if v] for row in named.tolist()], multipliers)
        return dual, leaf_bound(self.N, node.groups, dual)

    def proof(self, unit: int, x: FloatArray, value: int, bound: int, tree: list[Any]) -> Proof:
        """The whole content, for the problem 2^unit · A. Values are in units of its integers."""
        nodes, subtrees = [], [tree]
        while subtrees:
            entry, *children = subtrees.pop()
            nodes.append(entry)
            subtrees += reversed(children)
        exponent = self.exponent + unit
        head = {"format": FORMAT, "version": VERSION, "problem": digest(self.N, exponent), "n": len(self.N)}
        numbers = {"exponent": exponent, "value": value, "bound": bound, "x": [int(s) for s in x]}
        return Proof(head | numbers | {"nodes": nodes})

    def _tolerance(self, value: int) -> Fraction:
        """What a bound may be below the value, in units of N."""
        zero = Fraction(0) if self._form is None else self._form.zero / Fraction(2) ** self.exponent
        return CLOSE * abs(value + zero)

    def _digits(self, node: Node) -> int:
        """Binary digits behind the point such that rounding costs little of the distance between two values."""
        largest = math.frexp(float(np.abs(node.C).sum(axis=1).max()))[1]
        distance = max(self.real(self.lattice.step), 2.0**-50 * 2.0**largest)
        sufficient = 8 + math.frexp(node.m / distance)[1]
        return min(max(sufficient, FEWEST_DIGITS - largest), MOST_DIGITS - largest)


def leaf_entry(dual: Dual) -> dict[str, Any]:
    """A leaf of the proof; a cut is its multiplier and its signed variables, counted from 1."""
    cuts = [[gamma, *cut] for gamma, cut in zip(dual.gamma, dual.cuts, strict=True)]
    return {"dual": {"shift": dual.shift, "y": dual.y, "cuts": cuts}}
