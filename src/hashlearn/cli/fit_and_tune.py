"""The shared frame of ``fit`` and ``tune``: read the samples, learn, write the model, report."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashlearn.cli.exits import one_line, refusals
from hashlearn.cli.options import require_place
from hashlearn.cli.progress import ProgressBar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hashlearn.streams import RowSource


class Samples(NamedTuple):
    """What to learn from, and what is shown and heard meanwhile."""

    source: RowSource  # not yet in memory
    y: NDArray[Any] | None
    bar: ProgressBar
    heard: list[warnings.WarningMessage]

    def save(self, hasher: Any, output: Path, notes: str = "") -> dict[str, Any]:
        """Write the model, with the names of its columns if the file has them. Returns the first part of the report."""
        import numpy as np

        if self.source.names is not None:
            hasher.feature_names_in_ = np.array(self.source.names, dtype=object)
        self.bar.begin("writing")
        with refusals(f"--output {output}"):
            hasher.save(output, notes=notes)
        return {
            "model": str(output),
            "n_bits": hasher.n_bits,
            "n_samples": self.source.n_rows,
            "n_features": self.source.n_features,
            "labels": self.y is not None,
            "bytes": output.stat().st_size,
        }


@contextmanager
def samples(features: str, labels: str | None, output: Path, bar: ProgressBar) -> Iterator[Samples]:
    """Open the files, and record warnings while the block runs."""
    from hashlearn.streams import open_rows, read_labels

    require_place(output, features, labels)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        bar.begin("reading")
        with refusals():
            source = open_rows(features)
        with refusals("--labels"):
            y = None if labels is None else read_labels(labels)
            if y is not None and len(y) != source.n_rows:
                raise ValueError(f"{labels}: has {len(y)} label(s), {source.name} has {source.n_rows} row(s)")
        yield Samples(source, y, bar, heard)


def notices(heard: Iterable[warnings.WarningMessage]) -> list[str]:
    """Each warning once, as one line."""
    return list(dict.fromkeys(one_line(warning.message) for warning in heard))


def described(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The model and its samples, in words.

    >>> described({"model": "m", "bytes": 4096, "n_samples": 5000, "n_features": 784, "labels": False})
    [('model', 'm  (4,096 bytes)'), ('learned from', '5,000 rows of 784 features, without labels')]
    """
    rows = f"{report['n_samples']:,} rows of {report['n_features']:,} features"
    model = f"{report['model']}  ({report['bytes']:,} bytes)"
    return [("model", model), ("learned from", f"{rows}, {'with' if report['labels'] else 'without'} labels")]
