"""Passes over the rows of a tall matrix P: all that a solver of low-rank problems needs of n rows, for any kind of P.

``base`` says what a kind of rows offers · ``numpy_rows`` NumPy arrays, compiled · ``torch_rows`` PyTorch tensors.
Algorithms keep their small matrices (rank × k, rank × rank) in float64 NumPy whatever the kind; there is one of each.
"""

from __future__ import annotations

from hashlearn.bqp.passes.base import Linearised, Mixing, Rows, Tall
from hashlearn.bqp.passes.kinds import checked_matrix, is_tensor, rows_of
from hashlearn.bqp.passes.proofs import Inertia, Proof, ProofGram

__all__ = [
    "Inertia",
    "Linearised",
    "Mixing",
    "Proof",
    "ProofGram",
    "Rows",
    "Tall",
    "checked_matrix",
    "is_tensor",
    "rows_of",
]
