"""What happened during inference: objective per sweep; value, bound, gap and seconds per bit."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np


class BitRecord(NamedTuple):
    """One bit of one sweep."""

    sweep: int
    bit: int
    value: float  # of eq. (5) after the step
    bound: float  # proven, −inf where the solver gives none
    gap: float
    changed: int  # samples whose bit changed
    status: str
    seconds: float


@dataclass
class InferenceReport:
    """Collected by `infer_codes`; print it, or take ``pandas.DataFrame(report.bits)`` for a table of the bits."""

    solver: str  # as it was asked for
    method: str = "not recorded"  # what ran, in words
    parameters: dict[str, Any] = field(default_factory=dict)  # of the solver, those that are not its defaults
    start_objective: float = float("nan")
    objectives: list[float] = field(default_factory=list)  # after each sweep
    bits: list[BitRecord] = field(default_factory=list)
    stopped_early: bool = False
    final_objective: float = float("nan")  # of the codes returned: codewords may have been spread after the sweeps
    floor: float = float("nan")  # no codes have a lower objective; known for labels
    seconds: float = 0.0
    out_of_time: bool = False

    @property
    def excess(self) -> float:
        """How far the final objective lies above the floor, as a part of it."""
        return (self.final_objective - self.floor) / self.floor if self.floor > 0.0 else float("nan")

    @staticmethod
    def of(asked: Any, solver: Any, method: str) -> InferenceReport:
        """An empty report: ``asked`` is what the user gave, ``solver`` what it stands for."""
        name = asked if isinstance(asked, str) else asked.name
        return InferenceReport(name, method, changed_parameters(solver))

    def __str__(self) -> str:
        lines = [
            f"{self.solver} ({self.method}): {len(self.objectives)} sweep(s), {self.seconds:.2f} s"
            + (", no bit changed in the last" if self.stopped_early else "")
            + (", shortened by the time limit" if self.out_of_time else ""),
            f"{'sweep':>5}  {'objective':>10}  {'bits changed':>12}  {'mean gap':>9}  {'worst gap':>9}  {'seconds':>8}",
            f"{'start':>5}  {self.start_objective:>10.6f}",
        ]
        for sweep, objective in enumerate(self.objectives, start=1):
            rows = [b for b in self.bits if b.sweep == sweep]
            gaps = np.array([b.gap for b in rows])
            known = gaps[np.isfinite(gaps)]
            mean, worst = (f"{100 * known.mean():.3f} %", f"{100 * known.max():.3f} %") if known.size else ("–", "–")
            changed = sum(b.changed > 0 for b in rows)
            seconds = sum(b.seconds for b in rows)
            lines.append(f"{sweep:>5}  {objective:>10.6f}  {changed:>12}  {mean:>9}  {worst:>9}  {seconds:>8.2f}")
        above = "" if np.isnan(self.excess) else f", {100 * self.excess:.2f} % above what any codes can reach"
        lines.append(f"{'final':>5}  {self.final_objective:>10.6f}{above}")
        return "\n".join(lines)


def changed_parameters(solver: Any) -> dict[str, Any]:
    """The parameters that differ from the defaults."""
    if not is_dataclass(solver) or isinstance(solver, type):
        return {}
    values = {f.name: (getattr(solver, f.name), f.default) for f in fields(solver)}
    return {name: value for name, (value, default) in values.items() if not _equal(value, default)}


def _equal(value: Any, default: Any) -> bool:
    """Whether both are the same number or name; an array never equals a default."""
    return value is default or (np.ndim(value) == 0 and bool(value == default))
