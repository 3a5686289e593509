"""Axes of a plot: a range, round ticks, and the place of a value in the range."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``, linear or in decades."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def fraction(self, value: float) -> float:
        """0 at ``low``, 1 at ``high``; values that a logarithm cannot show are placed at ``low``.

        >>> Axis(0.0, 4.0, ()).fraction(1.0), Axis(0.01, 100.0, (), log=True).fraction(1.0)
        (0.25, 0.5)
        """
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        clipped = max(value, self.low)
        return math.log(clipped / self.low) / math.log(self.high / self.low)


def linear_axis(values: Iterable[float], count: int = 5, low: float | None = None, high: float | None = None) -> Axis:
    """A linear axis around the values with about ``count`` round ticks, never beyond ``low`` and ``high`` if given.

    >>> linear_axis([0.0, 9.3]).ticks
    (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)
    """
    held = list(values)
    bottom, top = min(held), max(held)
    if top - bottom <= 1e-12 * max(abs(top), abs(bottom)):
        margin = 0.05 * abs(top) or 1.0
        bottom, top = bottom - margin, top + margin
    raw = (top - bottom) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = min((power * factor for factor in _ROUND_STEPS), key=lambda s: abs(math.log(s / raw)))
    first, last = math.floor(bottom / step + 1e-9), math.ceil(top / step - 1e-9)
    if low is not None:
        first = max(first, math.floor(low / step + 1e-9))
    if high is not None:
        last = min(last, math.ceil(high / step - 1e-9))
    ticks = tuple(round(tick * step, 12) for tick in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def log_axis(values: Iterable[float], floor: float) -> Axis:
    """Decades around the values; values below ``floor`` are drawn at it.

    >>> log_axis([0.02, 3.0], floor=1e-4).ticks
    (0.01, 0.1, 1.0, 10.0)
    """
    held = [max(value, floor) for value in values]
    first = math.floor(math.log10(min(held)) + 1e-9)
    last = max(math.ceil(math.log10(max(held)) - 1e-9), first + 1)
    ticks = tuple(10.0**power for power in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks[:: max(1, math.ceil(len(ticks) / 6))], log=True)


def marked_axis(ticks: Sequence[float]) -> Axis:
    """An axis with a tick at each of these places and nowhere else.

    >>> marked_axis([8, 16, 32]).fraction(16), marked_axis([8]).fraction(8)
    (0.3333333333333333, 0.5)
    """
    if len(ticks) == 1:
        return Axis(ticks[0] - 1.0, ticks[0] + 1.0, tuple(ticks))
    return Axis(ticks[0], ticks[-1], tuple(ticks))


def spaced(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move the places as little as possible so that they are ``gap`` apart, in order, inside [low, high] if they fit.

    >>> spaced([10.0, 11.0, 40.0], gap=12.0, low=0.0, high=50.0)
    [4.5, 16.5, 40.0]
    """
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    # Less their steps, places in order must not decrease: the nearest such sequence is an isotonic regression.
    nearest = isotonic_regression(np.asarray(places, dtype=float)[order] - steps).x
    moved = np.empty(len(places))
    moved[order] = np.clip(nearest, low, max(low, high - steps[-1])) + steps
    return [float(place) for place in moved]
