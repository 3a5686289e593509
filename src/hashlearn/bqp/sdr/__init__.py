"""Semidefinite relaxation (10) of a binary quadratic problem: solved in factored form, proven, rounded.

``solver`` runs it all · ``compressed`` solves low-rank problems in rank × k numbers · ``factored`` all others, by the
sweeps of ``mixing`` and the steps of ``newton`` · ``certificate``, ``chebyshev`` and ``growth`` prove bounds ·
``relaxation`` holds the result and draws signs from it · ``device``: sparse tensors.
"""

from __future__ import annotations

from hashlearn.bqp.sdr.relaxation import Relaxation
from hashlearn.bqp.sdr.solver import SemidefiniteRelaxation

__all__ = ["Relaxation", "SemidefiniteRelaxation"]
