"""Semidefinite relaxation (10) of a binary quadratic problem: solved in factored form, proven, rounded.

``solver`` runs it all · ``low_rank`` solves low-rank problems in rank × k numbers · ``general`` all others, by the
sweeps of ``mixing`` and the steps of ``newton`` · ``certificate`` and ``chebyshev`` prove bounds · ``rounding`` rounds.
"""

from __future__ import annotations

from hashlearn.bqp.sdr.solver import SemidefiniteRelaxation

__all__ = ["SemidefiniteRelaxation"]
