"""Proven optimality for small problems: branch and bound on semidefinite relaxations with cuts, and its proofs."""

from __future__ import annotations

from hashlearn.bqp.branch_and_bound.proof import Proof
from hashlearn.bqp.branch_and_bound.solver import BranchAndBound

__all__ = ["BranchAndBound", "Proof"]
