"""Proofs of optimality: what the verifier checks, and what branch and bound puts into a proof."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

CHECK = ("tests/bqp/proof/test_check.py",)
TREE = ("tests/bqp/proof/test_branch_and_bound.py",)

MUTANTS = [
    Mutant(
        "cuts with an even number of entries, which are not valid, are accepted",
        "bqp/proof/check.py",
        "_require(len(cut) % 2 == 1,",
        "_require(len(cut) >= 1,",
        CHECK,
    ),
    Mutant(
        "negative multipliers are accepted",
        "bqp/proof/check.py",
        "_require(multiplier >= 0,",
        "_require(multiplier >= -(2**60),",
        CHECK,
    ),
    Mutant(
        "a cut may name one variable twice",
        "bqp/proof/check.py",
        "_require(len(members) == len(cut),",
        "_require(len(members) > 0,",
        CHECK,
    ),
    Mutant(
        "a tree with a missing child is accepted",
        "bqp/proof/check.py",
        "_require(not open_nodes,",
        "_require(len(open_nodes) >= 0,",
        CHECK,
    ),
    Mutant(
        "the eigenvalue counts once, not once for each variable",
        "bqp/proof/check.py",
        "(total + len(T) * _eigenvalue_bound(T))",
        "(total + _eigenvalue_bound(T))",
        CHECK,
    ),
    Mutant(
        "the residual of the factor is measured by its largest entry, not by its largest row sum",
        "bqp/proof/check.py",
        "int(abs(E).sum(axis=1).max())",
        "int(abs(E).max())",
        CHECK,
    ),
    Mutant(
        "values are taken to differ by twice what they can",
        "bqp/proof/check.py",
        "4 * math.gcd(",
        "8 * math.gcd(",
        CHECK,
    ),
    Mutant(
        "both children of a node are read as the one with equal signs",
        "bqp/proof/check.py",
        "groups.joined(i, j, -1)",
        "groups.joined(i, j, 1)",
        CHECK,
    ),
    Mutant(
        "the digest of the problem is not compared",
        "bqp/proof/check.py",
        'content.get("problem") == digest(N, exponent)',
        'content.get("problem") != ""',
        CHECK,
    ),
    Mutant(
        "a node whose bound only equals the next lower value is pruned",
        "bqp/proof/solver.py",
        "if bound > above:",
        "if bound > above - problem.lattice.step:",
        TREE,
    ),
    Mutant(
        "cuts of a contracted node name the wrong variables",
        "bqp/proof/tree.py",
        "node.groups.sign[variables[position]] * (variables[position] + 1)",
        "node.groups.sign[variables[position]] * (position + 1)",
        (f"{TREE[0]}::test_the_exact_bound_of_a_node_is_that_of_its_dual_point",),
    ),
    Mutant(
        "the constant of a contracted node misses the joined pair",
        "bqp/proof/tree.py",
        "offset=self.offset + 2.0 * turn * float(self.C[i, j])",
        "offset=self.offset",
        (f"{TREE[0]}::test_children_have_the_values_of_their_parent",),
    ),
]
