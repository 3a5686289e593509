"""What ``fit`` and ``tune`` share: samples out of files, names of columns into the model, notes out of warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hashlearn.cli.exits import one_line, refusals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hashlearn.streams import RowSource


def open_samples(features: str, labels: str | None) -> tuple[RowSource, NDArray[Any] | None]:
    """Rows to learn from, not yet in memory, and as many labels, if a file of them is named."""
    from hashlearn.streams import open_rows, read_labels

    with refusals():
        source = open_rows(features)
    with refusals("--labels"):
        y = None if labels is None else read_labels(labels)
        if y is not None and len(y) != source.n_rows:
            raise ValueError(f"{labels}: has {len(y)} label(s), {source.name} has {source.n_rows} row(s)")
    return source, y


def keep_names(hasher: Any, source: RowSource) -> None:
    """Let the model find its columns by name later, where the file has names."""
    if source.names is not None:
        import numpy as np

        hasher.feature_names_in_ = np.array(source.names, dtype=object)


def notices(heard: Iterable[warnings.WarningMessage]) -> list[str]:
    """What was warned of, each once, in one line."""
    return list(dict.fromkeys(one_line(warning.message) for warning in heard))


def learned_from(report: dict[str, Any]) -> str:
    """The samples of a report, in words.

    >>> learned_from({"n_samples": 5000, "n_features": 784, "labels": False})
    '5,000 rows of 784 features, without labels'
    """
    rows = f"{report['n_samples']:,} rows of {report['n_features']:,} features"
    return f"{rows}, {'with' if report['labels'] else 'without'} labels"
