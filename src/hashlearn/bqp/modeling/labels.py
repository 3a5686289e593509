"""Labels of variables: any hashable objects, of mixed types, numbered in the order in which they come. No sorting."""

from __future__ import annotations

import math
import numbers
from array import array
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray, IntArray


class Terms:
    """Labels and the terms between them, collected one at a time."""

    def __init__(self, labels: Iterable[Hashable] = (), argument: str = "nodes") -> None:
        self.number: dict[Hashable, int] = {}
        self._i, self._j, self._w = array("q"), array("q"), array("d")
        for label in labels:
            self.add_label(label, f"a label in {argument}")

    def add_label(self, label: Any, what: str = "a label") -> int:
        """The number of the label, the next one if it is new."""
        try:
            return self.number.setdefault(label, len(self.number))
        except TypeError:
            raise TypeError(f"{what} must be hashable, got {label!r} ({type(label).__name__})") from None

    def add(self, u: Any, v: Any, weight: Any, what: str) -> None:
        """Add a term; ``what`` names it in errors, with its labels."""
        self._i.append(self.add_label(u))
        self._j.append(self.add_label(v))
        # Numbers of these types are taken over as they are; the others are looked at.
        self._w.append(weight if type(weight) is float and abs(weight) < np.inf else _checked(weight, what, u, v))

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """All labels, in order."""
        return tuple(self.number)

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """i, j and w of all terms."""
        return np.array(self._i, np.int64), np.array(self._j, np.int64), np.array(self._w, np.float64)


def _checked(weight: Any, what: str, u: Any, v: Any) -> float:
    return real_number(weight, f"{what} {u!r}" if v is u else f"{what} ({u!r}, {v!r})")


def real_number(value: Any, name: str) -> float:
    """A finite number as float64."""
    if not isinstance(value, numbers.Real | Decimal | np.bool):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite in float64, got {value!r}")
    return number


def parallel_note(i: IntArray, j: IntArray, n: int, label: Callable[[int], Any], name: str) -> tuple[str, ...]:
    """A note on edges that occur several times, in either order; none if there are none. ``label`` names a node."""
    proper = i != j
    keys = (np.minimum(i, j) * n + np.maximum(i, j))[proper]
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][keys[order][1:] == keys[order][:-1]]
    if not len(repeats):
        return ()
    u, v = (label(k) for k in divmod(int(keys[repeats.min()]), n))
    return (f"{name} has {len(repeats)} parallel edge(s), such as ({u!r}, {v!r}); their weights are summed",)
