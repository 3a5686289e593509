"""The stored cells as a page needs them: grouped by table and data set, then by method and code length.

A cell is one dictionary of the JSON that `hashlearn bench` stores: one method, one code length, one draw. Fractions are
turned into per cent here, and nowhere else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

Cell = Mapping[str, Any]
Reader = Callable[[Cell], "float | None"]

_TWO_STEP = ("SDR", "AL", "SDR plain", "AL plain", "SDR distance", "AL distance")
_RIVALS = ("NOPT", "GraphCut", "NOPT spread", "GraphCut spread", "TSH", "FastHash", "KSH", "BRE", "ITQ-CCA")
_UNSUPERVISED = ("ITQ", "BA", "SPH", "KMH", "NMF", "ALM")
_CONTEXT = ("SDH", "COSDISH", "One-hot", "Class-score LSH", "LSH", "Spectral", "Sign")
METHODS = ("hashlearn", "hashlearn tuned", *_TWO_STEP, *_RIVALS, *_UNSUPERVISED, *_CONTEXT)
_DATASETS = ("mnist", "cifar10", "sun397")


class Table(NamedTuple):
    """What one of the experiments is called, what it measures, and what counts as agreeing with the paper."""

    name: str
    title: str
    about: str
    metric: str  # key of the cells' "metrics"
    metric_title: str
    tolerance: float  # in points of per cent


_READINGS = (
    "SDR and AL aim at thresholded distances, “SDR distance” and “AL distance” at squared ones; the paper does not say "
    "which it used, so both stand beside the same numbers."
)
_RETRIEVAL = ("precision@2", "precision within 2 bits")
TABLES = (
    Table(
        "inference",
        "Binary inference",
        "Labels give the target; only the solver of the binary problems differs. The hash function is the same.",
        *_RETRIEVAL,
        1.0,
    ),
    Table("supervised", "Supervised hashing", "Whole methods that learn from labels.", *_RETRIEVAL, 1.0),
    Table("unsupervised", "Unsupervised hashing", "Whole methods that see no label. " + _READINGS, *_RETRIEVAL, 2.0),
    Table(
        "knn",
        "k-NN classification",
        "Queries are classified by their 4 nearest codes; hash functions are linear, learned without labels. "
        + _READINGS,
        "knn_accuracy",
        "accuracy of 4 nearest neighbours",
        1.5,
    ),
    Table(
        "unseen",
        "Classes never learned from",
        "Queries come from classes that nothing was learned from; the database holds all classes.",
        "map",
        "mean average precision",
        1.0,
    ),
    Table(
        "neighbours",
        "Neighbours of the original vectors",
        "What should be found are each query's 10 nearest vectors by Euclidean distance; no labels are involved.",
        "neighbours@10",
        "true neighbours among the nearest 10 codes",
        1.0,
    ),
)


class Spread(NamedTuple):
    """Mean over draws, sample standard deviation (None for a single draw) and number of draws."""

    mean: float
    sd: float | None
    draws: int


@dataclass(frozen=True, eq=False)
class Block:
    """One table on one data set: everything that is printed under one heading."""

    table: Table
    dataset: str
    features: str
    cells: tuple[Cell, ...]

    @property
    def key(self) -> str:
        """A name for anchors."""
        return re.sub(r"[^\w.-]+", "_", f"{self.table.name}-{self.dataset}-{self.features}")

    @cached_property
    def methods(self) -> list[str]:
        """The methods measured, in the paper's order, others after them."""
        return in_order({cell["cell"]["method"] for cell in self.cells}, METHODS)

    @cached_property
    def lengths(self) -> list[int]:
        """The code lengths measured, ascending."""
        return sorted({cell["cell"]["n_bits"] for cell in self.cells})

    @property
    def draws(self) -> int:
        """The largest number of draws of any method at any length."""
        return max(len(self.at(method, n_bits)) for method in self.methods for n_bits in self.lengths)

    @property
    def last_draw(self) -> int:
        """The number of the last draw, counted from 0."""
        return max(cell["cell"]["draw"] for cell in self.cells)

    def at(self, method: str, n_bits: int) -> list[Cell]:
        """The draws of one method at one length."""
        return self._groups.get((method, n_bits), [])

    def spread(self, method: str, n_bits: int, reader: Reader) -> Spread | None:
        """Mean and deviation over draws of what ``reader`` finds; None where it finds nothing."""
        found = [value for value in map(reader, self.at(method, n_bits)) if value is not None]
        return spread(found) if found else None

    def score(self, method: str, n_bits: int) -> Spread | None:
        """The table's own metric, in per cent."""
        return self.spread(method, n_bits, metric(self.table.metric))

    @cached_property
    def _groups(self) -> dict[tuple[str, int], list[Cell]]:
        groups: dict[tuple[str, int], list[Cell]] = {}
        for cell in sorted(self.cells, key=lambda cell: cell["cell"]["draw"]):
            groups.setdefault((cell["cell"]["method"], cell["cell"]["n_bits"]), []).append(cell)
        return groups


def blocks(cells: Iterable[Cell]) -> list[Block]:
    """The cells grouped by table, data set and features, in the paper's order."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        key = cell["cell"]
        groups.setdefault((key["table"], key["dataset"], key.get("features") or "given"), []).append(cell)
    tables = {table.name: table for table in TABLES}
    names = in_order({table for table, _, _ in groups}, tuple(tables))
    datasets = in_order({dataset for _, dataset, _ in groups}, _DATASETS)
    return [
        Block(tables.get(table) or _unknown_table(table), dataset, features, tuple(groups[table, dataset, features]))
        for table, dataset, features in sorted(groups, key=lambda g: (names.index(g[0]), datasets.index(g[1]), g[2]))
    ]


def metric(name: str) -> Reader:
    """Reads one of a cell's metrics, in per cent.

    >>> metric("map")({"metrics": {"map": 0.5}}), metric("map")({"metrics": {"map": None}})
    (50.0, None)
    """

    def read(cell: Cell) -> float | None:
        value = finite((cell.get("metrics") or {}).get(name))
        return None if value is None else 100.0 * value

    return read


def duration(stage: str) -> Reader:
    """Reads the seconds of one stage of a cell."""
    return lambda cell: finite((cell.get("seconds") or {}).get(stage))


def finite(value: object) -> float | None:
    """The value as a number, None where it is none.

    >>> finite(1), finite(None), finite(float("inf"))
    (1.0, None, None)
    """
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation.

    >>> spread([1.0, 3.0])
    Spread(mean=2.0, sd=1.4142135623730951, draws=2)
    """
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Spread(mean, None, 1)
    return Spread(mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)), len(values))


def in_order(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Known names in their order, then the others alphabetically.

    >>> in_order({"b", "z", "a"}, ("z", "y"))
    ['z', 'a', 'b']
    """
    rank = {name: place for place, name in enumerate(first)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def _unknown_table(name: str) -> Table:
    return Table(name, name, "", *_RETRIEVAL, 1.0)
