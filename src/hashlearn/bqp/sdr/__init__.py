"""Semidefinite relaxation (10) of a binary quadratic problem: solved in factored form, proven, rounded.

``solver`` runs it all · ``interior_point`` solves small problems · ``low_rank`` solves low-rank problems in rank × k
numbers · ``general`` all others, by the ``steps`` for their kind of A, on the host and on devices · ``certificate`` and
``chebyshev`` prove bounds · ``rounding`` rounds.
"""

from __future__ import annotations

from hashlearn.bqp.sdr.solver import SemidefiniteRelaxation

__all__ = ["SemidefiniteRelaxation"]
