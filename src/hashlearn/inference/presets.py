"""Which solver finds the bits: names that mean one thing each, and "auto", the one name that chooses.

A name of `bqp.METHODS` is that method with its defaults, on all rows. The presets here have names of their own: inside
inference a bit is one of many and starts from what it was, so less work does as well. What ran is in the report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.methods import configured
from hashlearn.core import thresholds
from hashlearn.core.names import did_you_mean
from hashlearn.inference.passes import SAMPLED_ROWS
from hashlearn.inference.report import changed_parameters


@dataclass(frozen=True)
class Passes:
    """Passes of single flips over all rows, from the bit as it stands (see `hashlearn.inference.passes`).

    Parameters
    ----------
    solver : a name or object that solves each bit on a sample of 10,000 rows; the solution is extended to all rows and
        flipped in the same passes. None: flips alone
    """

    solver: str | bqp.Solver | None = None
    name: ClassVar[str] = "passes"

    def on_sample(self, n: int) -> bqp.Solver | None:
        """The solver of a bit on a sample of n rows."""
        return None if self.solver is None else named_solver(self.solver, n)  # type: ignore[return-value]


# A bit ends 1 to 10 % above its bound, so relaxations solved to 1e-4, or to 3e-2 if products are expensive and an exact
# certificate costs n³, round to bits as good as one solved to 1e-6 (tests/inference/test_presets.py). Relaxations of
# samples with few draws and short descents end where tight ones do, on a device with gaps 1 % wider (docs/gpu.md).
# A sample's optimum is not that of all rows: 1e-3 and 20 draws do as well there.
PRESETS: dict[str, Callable[[int], bqp.Solver | Passes]] = {
    "quick_sdr": lambda n: bqp.SemidefiniteRelaxation(tol=1e-4),
    "coarse_sdr": lambda n: bqp.SemidefiniteRelaxation(tol=3e-2, rank=4, proof_limit=2000),
    "sampled_sdr": lambda n: bqp.SemidefiniteRelaxation(
        tol=1e-1, rank=16, n_draws=16, polish=1, max_iter=1, max_flip_passes=3, sampled=True
    ),
    "loose_sdr": lambda n: bqp.SemidefiniteRelaxation(tol=1e-3, n_draws=20, polish=2),
    "tabu": lambda n: bqp.LocalSearch(n_starts=1, max_iter=10 * n),
    "sweeps": lambda n: bqp.LocalSearch(n_starts=1, max_iter=30),
    "passes": lambda n: Passes(),
    "sampled_al": lambda n: Passes("al"),
}


class SolverPair(NamedTuple):
    """The solver of the last sweep, and the cheaper one of the sweeps before it."""

    last: bqp.Solver | Passes
    early: bqp.Solver | Passes


def solver_pair(
    solver: Any, target: bqp.Operator, n_bits: int, monotone: bool = True, has_groups: bool = False
) -> SolverPair:
    """What solves the bits of codes for ``target``, given a name or an object; ``has_groups``: many rows are alike."""
    if isinstance(solver, str) and solver == "auto":
        solver = _automatic(target, n_bits, monotone, has_groups)
    last = named_solver(solver, target.n)
    if solver == "tabu" and target.n > thresholds.LARGEST_DENSIFIED and not target.is_dense:
        most = thresholds.LARGEST_DENSIFIED
        raise ValueError(f"solver 'tabu' makes A dense: at most {most:,} rows, got {target.n:,}; 'sweeps' takes any")
    # Bits of early sweeps are solved again, so their bounds would soon be out of date. There we skip expensive proofs.
    early = replace(last, certify=False) if solver == "sampled_sdr" else last  # type: ignore[type-var]
    return SolverPair(last, early)


def named_solver(solver: Any, n: int) -> bqp.Solver | Passes:
    """The solver that a name stands for with problems of n rows; an object is used unchanged."""
    if isinstance(solver, str) and solver in PRESETS:
        return PRESETS[solver](n)
    return solver if isinstance(solver, Passes) else configured_solver(solver)


def as_passes(solver: Any) -> Passes:
    """How bits are found if rows are in blocks: by passes, any solver working on a sample; "auto" is "loose_sdr"."""
    if isinstance(solver, str) and solver in ("passes", "sampled_al"):
        return PRESETS[solver](0)  # type: ignore[return-value]
    if isinstance(solver, Passes):
        return solver
    return Passes("loose_sdr" if isinstance(solver, str) and solver == "auto" else solver)


def configured_solver(solver: Any) -> bqp.Solver:
    """A solver of `bqp` from its name or object, with an error that also knows the presets."""
    if isinstance(solver, str) and solver not in bqp.METHODS:
        known = [*bqp.METHODS, *PRESETS]
        raise ValueError(
            f"solver must be one of {', '.join(known)}, or a solver object, got {solver!r}{did_you_mean(solver, known)}"
        )
    return configured(solver, argument="solver")


def described(solver: bqp.Solver | Passes, max_passes: int | None = None, rows: str = "all rows") -> str:
    """What runs, in words: the method, the parameters that are not its defaults, and the rows it works on.

    >>> described(bqp.SemidefiniteRelaxation(tol=1e-4))
    'sdr, tol 0.0001, all rows'
    >>> described(Passes("al"), 12)
    'al, on up to 10,000 sampled rows, extended to all rows, up to 12 passes of flips a bit'
    """
    if not isinstance(solver, Passes):
        parameters = changed_parameters(solver).items()
        changed = [
            f"{name.replace('_', ' ')} {'given' if np.ndim(value) else value}"
            for name, value in parameters
            if name != "sampled"
        ]
        return ", ".join([solver.name, *changed, rows])
    flips = f"up to {max_passes} passes of flips a bit"
    if solver.solver is None:
        return f"single flips, all rows, {flips}"
    inner = solver.on_sample(SAMPLED_ROWS)
    assert inner is not None
    return described(inner, rows=f"on up to {SAMPLED_ROWS:,} sampled rows, extended to all rows, {flips}")


def _automatic(target: bqp.Operator, n_bits: int, monotone: bool, has_groups: bool) -> str:
    """What "auto" stands for.

    A relaxation is for rows on a device, for groups, which single flips do not move, for few signs, and for bits that
    do not begin from what they were (``monotone=False``). Elsewhere single flips from the bits as they stand end as
    low, and much sooner.
    """
    low_rank = target.is_low_rank
    if not target.rows.on_host:
        return "quick_sdr" if target.n <= thresholds.DEVICE_SAMPLE_ROWS else "sampled_sdr"
    if not monotone or has_groups or target.n * n_bits <= thresholds.RELAXED_SIGNS:
        return "quick_sdr" if low_rank else "coarse_sdr"
    return "passes" if low_rank else "sweeps"
