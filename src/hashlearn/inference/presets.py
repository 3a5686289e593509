"""Which solver finds the bits: names that mean one thing each, and "auto", the one name that chooses.

A name of `bqp.METHODS` is that method with its defaults, on all rows. The presets here have names of their own: inside
inference a bit is one of many and starts from what it was, so less work does as well. What ran is in the report.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.methods import configured
from hashlearn.core import thresholds
from hashlearn.core.names import is_automatic, require_choice
from hashlearn.inference.descent import InferenceReport
from hashlearn.inference.passes import MAX_PASSES, SAMPLED_ROWS


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

    def on_sample(self) -> bqp.Solver | None:
        """The solver of a bit on a sample of rows."""
        return None if self.solver is None else named_solver(self.solver)  # type: ignore[return-value]


# A bit ends 1 to 10 % above its bound, so relaxations solved to 1e-4, or to 3e-2 if products are expensive and an exact
# certificate costs n³, round to bits as good as one solved to 1e-6 (tests/inference/test_presets.py). Relaxations of
# samples with few draws and short descents end where tight ones do, on a device with gaps 1 % wider (docs/gpu.md).
PRESETS: dict[str, bqp.Solver | Passes] = {
    "quick_sdr": bqp.SemidefiniteRelaxation(tol=1e-4),
    "coarse_sdr": bqp.SemidefiniteRelaxation(tol=3e-2, rank=4, proof_limit=2000),
    "sampled_sdr": bqp.SemidefiniteRelaxation(
        tol=1e-1, rank=16, n_draws=16, polish=1, max_iter=1, max_flip_passes=3, sampled=True
    ),
    "sweeps": bqp.LocalSearch(n_starts=1, max_iter=30),
    "passes": Passes(),
    "sampled_al": Passes("al"),
}
# What "auto" is for rows in blocks. A sample's optimum is not that of all rows: 1e-3 and 20 draws do as well there.
IN_BLOCKS = Passes(bqp.SemidefiniteRelaxation(tol=1e-3, n_draws=20, polish=2))


def solver_pair(solver: Any, target: bqp.Operator, n_bits: int, monotone: bool, has_groups: bool) -> tuple[Any, Any]:
    """The solver of the last sweep, and the cheaper one of the sweeps before it, given a name or an object.

    ``has_groups`` says that many rows are alike to the target.
    """
    name = _automatic(target, n_bits, monotone, has_groups) if is_automatic(solver) else solver
    last = named_solver(name)
    # Bits of early sweeps are solved again, so their bounds would soon be out of date. There we skip expensive proofs.
    early = replace(last, certify=False) if isinstance(name, str) and name == "sampled_sdr" else last  # type: ignore[type-var]
    return last, early


def named_solver(solver: Any) -> bqp.Solver | Passes:
    """The solver that a name stands for; an object is used unchanged."""
    if isinstance(solver, Passes):
        return solver
    if isinstance(solver, str):
        require_choice(solver, "solver", [*bqp.METHODS, *PRESETS])
        if solver in PRESETS:
            return PRESETS[solver]
    return configured(solver, argument="solver")


def as_passes(solver: Any) -> Passes:
    """How bits are found if rows are in blocks: by passes, any solver working on a sample."""
    if is_automatic(solver):
        return IN_BLOCKS
    named = named_solver(solver)
    return named if isinstance(named, Passes) else Passes(named)


def new_report(solver: Any, method: str) -> InferenceReport:
    """An empty report: ``solver`` is what the user gave, ``method`` says what runs."""
    return InferenceReport(solver if isinstance(solver, str) else solver.name, method)


def described(solver: bqp.Solver | Passes, max_passes: int = MAX_PASSES, rows: str = "all rows") -> str:
    """What runs, in words: the method, the parameters that are not its defaults, and the rows it works on.

    >>> described(bqp.SemidefiniteRelaxation(tol=1e-4))
    'sdr, tol 0.0001, all rows'
    >>> described(Passes("al"))
    'al, on up to 10,000 sampled rows, extended to all rows, up to 12 passes of flips a bit'
    """
    if isinstance(solver, Passes):
        flips, on_sample = f"up to {max_passes} passes of flips a bit", solver.on_sample()
        if on_sample is None:
            return f"single flips, all rows, {flips}"
        return described(on_sample, rows=f"on up to {SAMPLED_ROWS:,} sampled rows, extended to all rows, {flips}")
    parts = [solver.name]
    parameters: tuple[Field[Any], ...] = fields(solver) if is_dataclass(solver) else ()
    for parameter in parameters:
        value, name = getattr(solver, parameter.name), parameter.name.replace("_", " ")
        if np.ndim(value):
            parts.append(f"{name} given")
        elif value != parameter.default and name != "sampled":
            parts.append(f"{name} {value}")
    return ", ".join([*parts, rows])


def _automatic(target: bqp.Operator, n_bits: int, monotone: bool, has_groups: bool) -> str:
    """What "auto" stands for.

    A relaxation is for rows on a device, for groups, which single flips do not move, for few signs, and for bits that
    do not begin from what they were (``monotone=False``). Elsewhere single flips from the bits as they stand end as
    low, and much sooner.
    """
    if not target.rows.on_host:
        return "quick_sdr" if target.n <= thresholds.DEVICE_SAMPLE_ROWS else "sampled_sdr"
    if not monotone or has_groups or target.n * n_bits <= thresholds.RELAXED_SIGNS:
        return "quick_sdr" if target.is_low_rank else "coarse_sdr"
    return "passes" if target.is_low_rank else "sweeps"
