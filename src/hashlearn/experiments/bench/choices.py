"""What a run may ask for beside data sets, methods, code lengths and draws: a protocol, its sizes, and metrics.

Metrics by name: "map" is mean average precision over the whole database; "map@K" over the first K, divided by the
number of relevant items among them, as papers that print mAP@K do; "p@N" is the precision of the first N;
"precision-radius" is the precision within 2 bits. Ties are averaged over in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import metrics
from hashlearn.experiments.bench.protocols import ALL, SHORT_OF, AllRows, AnyProtocol, Protocol, protocol_named

RADIUS = 2
RADIUS_NAME = "precision-radius"
AT = re.compile(r"(map|p)@([1-9]\d{0,8})")  # metrics of the first items of a ranking
METRIC_TITLES = {
    f"precision@{RADIUS}": "precision within 2 bits",
    "map": "mean average precision",
    "knn_accuracy": "accuracy of 4 nearest neighbors",
    "neighbors@10": "true neighbors among the nearest 10 codes",
    "neighbors@100": "true neighbors among the nearest 100 codes",
}


@dataclass(frozen=True)
class Choice:
    """The options of a run that change what is measured.

    Parameters
    ----------
    protocol : a name of `protocols.SHORT_NAMES` or of `protocols.PROTOCOLS`; None: the table's for the data set
    train_per_class : training samples of each class, or "all"; None: the protocol's
    queries : at most this many queries in all, drawn at random; None: all of the protocol's
    metrics : what is shown, first the most important; empty: the table's own
    """

    protocol: str | None = None
    train_per_class: int | str | None = None
    queries: int | None = None
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.protocol is not None:
            object.__setattr__(self, "protocol", protocol_named(self.protocol).name)
        if self.train_per_class is not None and self.train_per_class != ALL:
            _require_positive(self.train_per_class, "train_per_class", "a positive integer or 'all'")
        if self.queries is not None:
            _require_positive(self.queries, "queries", "a positive integer")
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(map(stored_name, self.metrics))))

    @property
    def sizes(self) -> dict[str, Any] | None:
        """The options that change the split, as a result stores them; None if there are none."""
        options = {"protocol": self.protocol, "train_per_class": self.train_per_class, "queries": self.queries}
        return {name: value for name, value in options.items() if value is not None} or None

    @property
    def extra_metrics(self) -> tuple[str, ...]:
        """The metrics that are not measured unless they are asked for."""
        return tuple(name for name in self.metrics if AT.fullmatch(name))

    def options(self) -> dict[str, Any]:
        """As the command line takes them: option → value or list of values."""
        options = {
            "protocol": None if self.protocol is None else SHORT_OF[self.protocol],
            "train-per-class": self.train_per_class,
            "queries": self.queries,
            "metric": list(self.metrics),
        }
        return {name: value for name, value in options.items() if value}

    def applied_to(self, protocol: AnyProtocol) -> AnyProtocol:
        """The protocol with the sizes asked for."""
        if isinstance(protocol, AllRows):
            if self.train_per_class not in (None, ALL):
                raise ValueError("protocol 'all rows' learns from every row; train_per_class must be 'all' or absent")
            return replace(protocol, most_queries=self.queries)
        if isinstance(protocol, Protocol) and protocol.database == "training" and self.train_per_class == ALL:
            raise ValueError(f"protocol {protocol.name!r} searches its training samples; train_per_class is a number")
        return replace(protocol, train=self.train_per_class, most_queries=self.queries)


def stored_name(metric: str) -> str:
    """The key of a metric in results.

    >>> stored_name("map@100"), stored_name("precision-radius")
    ('map@100', 'precision@2')
    """
    name = metric.strip().lower()
    if name == RADIUS_NAME:
        return f"precision@{RADIUS}"
    if name in ("map", f"precision@{RADIUS}") or AT.fullmatch(name):
        return name
    raise ValueError(f"metric must be map, map@K, p@N (K and N positive) or {RADIUS_NAME}, got {metric!r}")


def metric_title(metric: str) -> str:
    """A stored metric in words.

    >>> metric_title("p@100")
    'precision of the first 100'
    """
    match = AT.fullmatch(metric)
    if match is None:
        return METRIC_TITLES[metric]
    return f"{'mean average precision' if match[1] == 'map' else 'precision'} of the first {int(match[2]):,}"


def measured(
    names: Sequence[str], codes: tuple[NDArray[np.uint8], NDArray[np.uint8]], labels: tuple[Any, Any]
) -> dict[str, float]:
    """The values of metrics such as "map@100". ``codes`` and ``labels`` are those of queries, then of the database."""
    values = {}
    for name in names:
        match = AT.fullmatch(name)
        assert match is not None
        count = int(match[2])
        if count > len(codes[1]):
            raise ValueError(f"metric {name!r} needs {count:,} rows in the database, got {len(codes[1]):,}")
        if match[1] == "map":
            values[name] = metrics.mean_average_precision(*codes, *labels, average="top_k", top_k=count)
        else:
            values[name] = metrics.precision_at_k(*codes, *labels, k=count)
    return values


def _require_positive(value: Any, name: str, rule: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be {rule}, got {value!r}")
