"""Passes over the rows of a tall matrix P: all that a solver of low-rank problems needs of n rows, for any kind of P.

``interface`` says what a kind of rows offers · ``numpy_rows`` NumPy arrays, compiled · ``torch`` PyTorch tensors.
Algorithms keep their small matrices (rank × k, rank × rank) in float64 NumPy whatever the kind; there is one of each.
"""

from __future__ import annotations

from hashlearn.bqp.rows.dispatch import checked_matrix, rows_of
from hashlearn.bqp.rows.inertia import Inertia, Proof, ProofGram
from hashlearn.bqp.rows.interface import Linearised, Mixing, Rows, Tall

__all__ = [
    "Inertia",
    "Linearised",
    "Mixing",
    "Proof",
    "ProofGram",
    "Rows",
    "Tall",
    "checked_matrix",
    "rows_of",
]
