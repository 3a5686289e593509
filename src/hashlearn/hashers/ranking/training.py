"""Learning a ranking: steps with a falling rate, checks on held-out rows, the best parameters, and a report of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hashlearn.core.arrays import is_tensor
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hashers.ranking.encoder import Network
from hashlearn.hashers.ranking.sampling import HeldOut, Sample

STAGE = "ranking"
WARM_UP = 0.05  # share of the steps in which the rate rises
CHECKS = 8
PATIENCE = 3  # checks without a gain before training ends, in its second half


class Check(NamedTuple):
    """Share of their true nearest rows that the held-out rows find among their first k."""

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
    n_rows: int  # rows of X that were used, held-out ones included
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
            lines += [f"recall@{self.k} of {self.n_held_out} held-out rows", "  step   Hamming  asymmetric"]
        lines += [f"{c.step:>6}  {100 * c.hamming:>6.1f} %  {100 * c.asymmetric:>8.1f} %" for c in self.checks]
        return "\n".join(lines)


def learn(
    network: Network,
    sample: Sample,
    report: RankingReport,
    rng: np.random.Generator,
    batch_size: int,
    noise: float,
    time_limit: float | None,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """The parameters with the best recall of held-out rows; those of the start if nothing was gained.

    With a time limit the rate falls to zero by its end, however many steps that allows. Ctrl-C is not caught.
    """
    held_out = sample.held_out
    assert held_out is not None
    began = time.monotonic()
    n_steps = report.n_steps
    every = max(1, n_steps // CHECKS)
    best = _copy_of(network.values)
    batches = sample.batches(batch_size, noise, rng)
    with one_blas_thread():
        report.checks.append(_check(network, held_out, 0, report.k))
        top = report.checks[0].recall
        for step in range(1, n_steps + 1):
            spent = (time.monotonic() - began) / time_limit if time_limit else 0.0
            fraction = max((step - 1) / n_steps, spent)
            network.step(next(batches), _rate(fraction))
            tell(progress, STAGE, step, n_steps)
            out_of_time = spent >= 1.0
            if step % every and step < n_steps and not out_of_time:
                continue
            check = _check(network, held_out, step, report.k)
            report.checks.append(check)
            if check.recall > top:
                top, best, report.kept_step = check.recall, _copy_of(network.values), step
            if out_of_time:
                report.ending = "ended by the time limit"
                break
            if fraction >= 0.5 and step - report.kept_step >= PATIENCE * every and step < n_steps:
                report.ending = f"no gain since step {report.kept_step}"
                break
    if report.kept_step == 0:
        report.ending += ", nothing gained over the start"
    return best


def _rate(fraction: float) -> float:
    """Rises at first, then falls to 0 along a cosine."""
    return float(min(1.0, (fraction + 1e-3) / WARM_UP) * 0.5 * (1.0 + np.cos(np.pi * min(fraction, 1.0))))


def _copy_of(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if is_tensor(value) else value.copy() for name, value in values.items()}


def _check(network: Network, held_out: HeldOut, step: int, k: int) -> Check:
    """Recall of the held-out rows. Rows with equal scores count as if they came in random order."""
    xp = network.xp
    margins = network.margins(held_out.rows)
    if not bool(xp.all(xp.isfinite(margins))):  # training has diverged
        return Check(step, 0.0, 0.0)

    def signs_of(margins: Any) -> Any:
        return 2.0 * xp.astype(margins >= 0, margins.dtype) - 1.0

    rows = held_out.searched
    if is_tensor(rows):
        signs = signs_of(network.margins(rows))
    else:
        signs = np.concatenate(map_row_blocks(lambda a, b: signs_of(network.margins(rows[a:b])), *rows.shape))
    scores = (queries @ signs.T for queries in (signs_of(margins), margins))
    return Check(step, *(_recall(xp, score, held_out.nearest, k) for score in scores))


def _recall(xp: Any, scores: Any, nearest: Any, k: int) -> float:
    """Mean share of the nearest rows among the first k by score."""
    own = xp.take_along_axis(scores, nearest, axis=1)
    total = 0.0
    for column in range(own.shape[1]):
        mine = own[:, column, None]
        better, equal = (xp.sum(xp.astype(M, xp.float32), axis=1) for M in (scores > mine, scores == mine))
        total += float(xp.mean(xp.clip((k - better) / equal, 0.0, 1.0)))
    return total / own.shape[1]
