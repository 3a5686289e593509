"""An encoder with one hidden layer, its ranking loss and gradient, and Adam: the same code for arrays and tensors.

Margins of rows x are u = xW + b + max(0, xV + e)U. Within a batch every row i is a query. Its scores against the codes
z = sgn(u) of all rows j are those of an asymmetric search, c_ij = u_i·z_j / (‖u_i‖ √n_bits s) with a learned scale s.
Their softmax should be that of the target similarities w_ij at temperature t:

    loss = −mean_i Σ_j softmax(w_i / t)_j · log softmax(c_i)_j,    j ≠ i

The gradient of a sign is that of tanh (straight-through; Bengio et al. 2013). Arrays are divided into blocks of fixed
size, which Python threads share, so results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from hashlearn.core.arrays import is_tensor
from hashlearn.core.threads import map_threads

BLOCKS = 4  # of rows, and of hidden units, in a step on a CPU
START_SCALE = 0.05  # of the scores
# Learning rates for rows of mean squared norm 1. Entries of V have size 1, and its rate is multiplied by √n_features.
RATES = {"W": 8e-3, "b": 8e-3, "log_scale": 1e-2, "V": 2e-3, "e": 2e-3, "U": 2e-3}
DECAY, SQUARE_DECAY, TINY = 0.9, 0.999, 1e-8  # Adam's
OTHER_CLASS = 0.5  # how much farther rows of another class should be, for each unit that rows of one's own are nearer
NEVER = -1e30


class Batch(NamedTuple):
    """Rows to rank against each other."""

    indices: Any  # of the rows; pairs of one row are excluded
    rows: Any  # (n, n_features), as they are
    noisy: Any  # the same with noise, what the encoder reads
    labels: Any  # (n,), −1 for none; None if there are no labels
    queries: Any = None  # bool (n,): rows that only search, and are excluded as j; None if there are none


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
