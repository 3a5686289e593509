"""Learning a ranking: steps with a falling rate, checks on rows that were kept out, and the best parameters kept."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hashlearn.core.arrays import is_tensor
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hashers.ranking.anchors import Anchors, Kept
from hashlearn.hashers.ranking.network import Network
from hashlearn.hashers.ranking.report import Check, RankingReport

STAGE = "ranking"
WARM_UP = 0.05  # share of the steps in which the rate rises
CHECKS = 8
PATIENCE = 3  # checks without a gain before training ends, in its second half


def learn(
    network: Network,
    anchors: Anchors,
    report: RankingReport,
    *,
    batch_size: int,
    noise: float,
    rng: np.random.Generator,
    time_limit: float | None,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    """The parameters with the best recall of rows that were kept out; those of the start if nothing was gained.

    With a time limit the rate falls to zero by its end, however many steps that allows. Ctrl-C is not caught.
    """
    kept = anchors.kept
    assert kept is not None
    began = time.monotonic()
    n_steps = report.n_steps
    every = max(1, n_steps // CHECKS)
    best = _copied(network.values)
    batches = anchors.batches(batch_size, noise, network.label_weight > 0.0, rng)
    with one_blas_thread():
        report.checks.append(_check(network, kept, 0, report.k))
        top = report.checks[0].recall
        for step in range(1, n_steps + 1):
            spent = (time.monotonic() - began) / time_limit if time_limit else 0.0
            fraction = max((step - 1) / n_steps, spent)
            network.step(next(batches), _rate(fraction))
            tell(progress, STAGE, step, n_steps)
            out_of_time = spent >= 1.0
            if step % every and step < n_steps and not out_of_time:
                continue
            check = _check(network, kept, step, report.k)
            report.checks.append(check)
            if check.recall > top:
                top, best, report.kept_step = check.recall, _copied(network.values), step
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


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() if is_tensor(value) else value.copy() for name, value in values.items()}


def _check(network: Network, kept: Kept, step: int, k: int) -> Check:
    """Recall of the rows that were kept out. Rows with equal scores count as if they came in random order."""
    xp = network.xp
    margins = network.margins(kept.rows)
    if not bool(xp.all(xp.isfinite(margins))):  # training has diverged
        return Check(step, 0.0, 0.0)

    def signs_of(margins: Any) -> Any:
        return 2.0 * xp.astype(margins >= 0, margins.dtype) - 1.0

    if is_tensor(kept.rows):
        signs = signs_of(network.margins(kept.searched))
    else:
        rows = kept.searched
        signs = np.concatenate(map_row_blocks(lambda a, b: signs_of(network.margins(rows[a:b])), *rows.shape))
    return Check(step, *(_recall(xp, queries @ signs.T, kept.wanted, k) for queries in (signs_of(margins), margins)))


def _recall(xp: Any, scores: Any, wanted: Any, k: int) -> float:
    """Mean share of the wanted rows among the first k."""
    own = xp.take_along_axis(scores, wanted, axis=1)
    found = 0.0
    for column in range(own.shape[1]):
        mine = own[:, column, None]
        better, equal = (xp.sum(xp.astype(M, xp.float32), axis=1) for M in (scores > mine, scores == mine))
        found += float(xp.mean(xp.clip((k - better) / equal, 0.0, 1.0)))
    return found / own.shape[1]
