"""An encoder with one hidden layer, and how it learns a ranking: the same code for arrays and tensors.

Margins of rows x are u = xW + b + max(0, xV + e)U. Within a batch every row i is a query. Its scores against the codes
z = sgn(u) of all rows j are those of an asymmetric search, c_ij = u_i·z_j / (‖u_i‖ √n_bits s) with a learned scale s.
Their softmax should be that of the target similarities w_ij at temperature t:

    loss = −mean_i Σ_j softmax(w_i / t)_j · log softmax(c_i)_j,    j ≠ i

The gradient of a sign is that of tanh (straight-through; Bengio et al. 2013). Arrays are divided into blocks of fixed
size, which Python threads share, so results do not depend on the number of threads.

`learn` takes steps of Adam with a falling rate, checks the recall of held-out rows, and returns the best parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from hashlearn.core.arrays import is_tensor
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread
from hashlearn.hashers.ranking.sampling import OTHER_CLASS, Batch, HeldOut, Sample

BLOCKS = 4  # of rows, and of hidden units, in a step on a CPU
START_SCALE = 0.05  # of the scores
# Learning rates for rows of mean squared norm 1. Entries of V have size 1, and its rate is multiplied by √n_features.
RATES = {"W": 8e-3, "b": 8e-3, "log_scale": 1e-2, "V": 2e-3, "e": 2e-3, "U": 2e-3}
DECAY, SQUARE_DECAY, TINY = 0.9, 0.999, 1e-8  # Adam's
NEVER = -1e30

STAGE = "ranking"
WARM_UP = 0.05  # share of the steps in which the rate rises
CHECKS = 8
PATIENCE = 3  # checks without a gain before training ends, in its second half


class Network:
    """Parameters in ``values``, a dict of arrays or tensors; ``V, e, U`` are missing for a linear encoder."""

    def __init__(self, values: dict[str, Any], temperature: float, label_weight: float) -> None:
        self.values = values
        self.temperature, self.label_weight = temperature, label_weight
        self.xp = array_namespace(values["W"])
        self.blocks = 1 if is_tensor(values["W"]) else BLOCKS
        self._moments = {name: (value * 0, value * 0) for name, value in values.items()}
        self._rates = {**RATES, "V": RATES["V"] * float(values["W"].shape[0]) ** 0.5}
        self._steps = 0

    def margins(self, rows: Any) -> Any:
        """u of the rows."""
        return self._forward(rows)[1]

    def _forward(self, rows: Any) -> tuple[Any, Any]:
        """Hidden units, None for a linear encoder, and margins."""
        p = self.values
        u = rows @ p["W"]
        u += p["b"]
        if "V" not in p:
            return None, u
        hidden = rows @ p["V"]
        hidden += p["e"]
        hidden *= hidden > 0
        u += hidden @ p["U"]
        return hidden, u

    def step(self, batch: Batch, rate: float) -> None:
        """One step of Adam on the loss of the batch, with learning rates times ``rate``."""
        xp, p = self.xp, self.values
        blocks = self._slices(len(batch.rows))
        forward = self._each(lambda rows: self._forward(batch.noisy[rows]), blocks)
        u = xp.concat([margins for _, margins in forward])
        signs = 2.0 * xp.astype(u >= 0, u.dtype) - 1.0
        norms = xp.sqrt(xp.sum(u * u, axis=1, keepdims=True)) + 1e-12
        unit = u / norms
        factor = xp.exp(-p["log_scale"]) / float(u.shape[1]) ** 0.5
        halves = 0.5 * xp.sum(batch.rows * batch.rows, axis=1)
        ranked = self._each(lambda rows: self._ranking_gradient(batch, rows, unit, signs, factor, halves), blocks)
        d_unit, d_signs = xp.concat([part[0] for part in ranked]), sum(part[1] for part in ranked)
        soft = xp.tanh(u)
        du = (d_unit - unit * xp.sum(unit * d_unit, axis=1, keepdims=True)) / norms + d_signs * (1.0 - soft * soft)

        self._steps += 1
        columns = batch.noisy.T
        everything = slice(None)
        updates: list[Callable[[], None]] = []
        if "V" in p:
            hidden = xp.concat([units for units, _ in forward])
            units = self._slices(hidden.shape[1])
            d_hidden = self._each(lambda part: (du @ p["U"][part].T) * (hidden[:, part] > 0), units)

            def update_layer(part: slice, d_part: Any) -> None:
                self._adam("V", (everything, part), columns @ d_part, rate)
                self._adam("e", part, xp.sum(d_part, axis=0), rate)
                self._adam("U", part, hidden[:, part].T @ du, rate)

            updates = [partial(update_layer, part, d_part) for part, d_part in zip(units, d_hidden, strict=True)]

        def update_linear() -> None:
            self._adam("W", everything, columns @ du, rate)
            self._adam("b", everything, xp.sum(du, axis=0), rate)
            self._adam("log_scale", ..., -sum(part[2] for part in ranked), rate)

        self._each(lambda update: update(), [*updates, update_linear])

    def _ranking_gradient(
        self, batch: Batch, rows: slice, unit: Any, signs: Any, factor: Any, halves: Any
    ) -> tuple[Any, Any, Any]:
        """Gradients of the loss of these queries in their unit margins, in all signs, and in −log s."""
        xp = self.xp
        sharpness = 1.0 / self.temperature
        similarities = (sharpness * batch.rows[rows]) @ batch.rows.T
        similarities -= sharpness * halves  # minus half the squared distance, but for a number for each query
        if batch.labels is not None:
            mine, other = batch.labels[rows, None], batch.labels[None, :]
            known, equal = (mine >= 0) & (other >= 0), mine == other
            weight = sharpness * self.label_weight
            similarities += weight * xp.astype(known, similarities.dtype) * xp.where(equal, 1.0, -OTHER_CLASS)
        scores = (factor * unit[rows]) @ signs.T
        excluded = batch.indices[rows, None] == batch.indices[None, :]
        if batch.queries is not None:
            excluded |= batch.queries
        gradient = _softmax(xp, scores, excluded)
        gradient -= _softmax(xp, similarities, excluded)
        factor = factor / float(len(batch.rows))  # the loss is a mean
        d_unit = factor * (gradient @ signs)
        return d_unit, gradient.T @ (factor * unit[rows]), xp.sum(unit[rows] * d_unit)

    def _adam(self, name: str, part: Any, gradient: Any, rate: float) -> None:
        """Adam (Kingma and Ba 2015) on a part of one parameter."""
        first, second = (moment[part] for moment in self._moments[name])
        first *= DECAY
        first += (1.0 - DECAY) * gradient
        second *= SQUARE_DECAY
        gradient = gradient * gradient
        gradient *= 1.0 - SQUARE_DECAY
        second += gradient
        correction = (1.0 - SQUARE_DECAY**self._steps) ** 0.5 / (1.0 - DECAY**self._steps)
        gradient = self.xp.sqrt(second)
        gradient += TINY
        gradient = first / gradient
        gradient *= rate * self._rates[name] * correction
        value = self.values[name][part]
        value -= gradient

    def _slices(self, n: int) -> list[slice]:
        size = -(-n // self.blocks)
        return [slice(first, min(first + size, n)) for first in range(0, n, size)]

    def _each(self, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
        return [function(item) for item in items] if self.blocks == 1 else list(map_threads(function, items))


def _softmax(xp: Any, logits: Any, excluded: Any) -> Any:
    """Softmax of every row without the ``excluded`` entries."""
    logits = xp.where(excluded, NEVER, logits)
    logits -= xp.max(logits, axis=1, keepdims=True)
    shares = xp.exp(logits)
    shares /= xp.sum(shares, axis=1, keepdims=True)
    return shares


def start_values(directions: np.ndarray, spread: float, hidden: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Parameters whose margins are rows times ``directions``, of size 1 on average; ``hidden`` units add nothing yet.

    ``spread`` is the root mean square of the rows times ``directions``.
    """
    d, n_bits = directions.shape
    values = {"W": directions / max(spread, 1e-12), "b": np.zeros(n_bits), "log_scale": np.log([START_SCALE])}
    if hidden:
        V, e = rng.uniform(-1.0, 1.0, (d, hidden)), rng.uniform(-1.0, 1.0, hidden) / d**0.5
        values |= {"V": V, "e": e, "U": np.zeros((hidden, n_bits))}
    return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in values.items()}


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
