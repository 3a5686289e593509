"""The paper's numbers, as printed, in per cent; from a CSV file that is part of the package."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

# Our data sets' names in the paper's tables. The k-NN table's CIFAR-10 has other features.
_PAPER_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR10", "sun397": "SUN397"}
_KNN_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR10-HOG"}
# Our methods that interpret one of the paper's methods differently, in its tables without labels.
_READINGS = {"SDR distance": "SDR", "AL distance": "AL"}


def value(table: str, dataset: str, method: str, n_bits: int) -> float | None:
    """The value that the paper prints for an entry, in per cent; None if it has none.

    Both targets without labels get the same number, because the paper does not say which it used.

    >>> value("inference", "mnist", "SDR", 8)
    86.33
    >>> value("unsupervised", "mnist", "SDR distance", 8) == value("unsupervised", "mnist", "SDR", 8) == 43.08
    True
    >>> value("supervised", "digits", "SDR", 8) is None
    True
    """
    names = _KNN_NAMES if table == "knn" else _PAPER_NAMES
    if table in ("unsupervised", "knn"):
        method = _READINGS.get(method, method)
    return _numbers().get((table, names.get(dataset.lower(), ""), method, n_bits))


@cache
def _numbers() -> dict[tuple[str, str, str, int], float]:
    text = resources.files("hashlearn.experiments.bench").joinpath("paper_tables.csv").read_text("utf-8")
    return {
        (row["table"], row["dataset"], row["method"], int(row["n_bits"])): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }
