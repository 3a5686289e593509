"""What happened while a ranking was learned: recall of rows that were kept out of training, by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Check(NamedTuple):
    """Share of the wanted nearest rows that the held-out rows find among their first k."""

    step: int
    hamming: float
    asymmetric: float

    @property
    def recall(self) -> float:
        """The mean of both."""
        return 0.5 * (self.hamming + self.asymmetric)


@dataclass
class RankingReport:
    """Collected by `RankingHasher.fit`. Print it."""

    encoder: str
    n_rows: int  # rows of X that were used; some of them were kept out
    n_anchors: int  # rows and queries whose neighbors were searched
    n_held_out: int  # rows and queries
    n_steps: int  # planned
    temperature: float
    k: int = 10  # of the recall
    checks: list[Check] = field(default_factory=list)  # the first is the start
    kept_step: int = 0  # whose parameters were kept; 0: the start
    ending: str = "all steps done"
    neighbor_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def before(self) -> Check | None:
        """Recall of the start."""
        return self.checks[0] if self.checks else None

    @property
    def after(self) -> Check | None:
        """Recall of the parameters that were kept."""
        return next((check for check in self.checks if check.step == self.kept_step), None)

    def __str__(self) -> str:
        lines = [
            f"{self.encoder} encoder: {self.n_rows:,} rows, {self.n_anchors:,} anchors, {self.seconds:.1f} s, of these "
            f"{self.neighbor_seconds:.1f} s for neighbors; {self.ending}; kept step {self.kept_step}"
        ]
        if self.checks:
            lines += [
                f"recall@{self.k} of {self.n_held_out} held-out rows",
                f"{'step':>6}  {'Hamming':>8}  {'asymmetric':>10}",
                *(f"{c.step:>6}  {100 * c.hamming:>6.1f} %  {100 * c.asymmetric:>8.1f} %" for c in self.checks),
            ]
        return "\n".join(lines)
