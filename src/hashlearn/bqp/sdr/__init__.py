"""Semidefinite relaxation (10) of a binary quadratic problem: solved in factored form, proven, rounded.

``solver`` runs it all · ``interior_point`` solves small problems · ``low_rank`` solves low-rank problems in rank × k
numbers · ``general`` all others, by the sweeps of ``mixing`` where A is sparse, else by ``quasi_newton`` ·
``certificate`` and ``chebyshev`` prove bounds · ``rounding`` rounds.
"""

from __future__ import annotations

from hashlearn.bqp.sdr.solver import SemidefiniteRelaxation

__all__ = ["SemidefiniteRelaxation"]
