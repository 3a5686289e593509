"""The numbers of a page: values beside the paper's, seconds, bit statistics, and the main finding in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hashlearn.experiments.bench.blocks import Block, Entry, Record, Verdict, duration, finite, metric
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.dataset_names import dataset_name, features_name
from hashlearn.pages.formatting import counted, fixed
from hashlearn.pages.series_styles import Look, look

Rows = Mapping[str, list[Entry]]  # entries by method, one for each code length


class Part(NamedTuple):
    """A block, and its entries beside the paper's."""

    block: Block
    rows: Rows

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return dataset_name(self.block.dataset)

    @property
    def features(self) -> str:
        """Name of the features."""
        return features_name(self.block.features)

    @property
    def longest(self) -> int:
        """The longest code."""
        return self.block.lengths[-1]

    @property
    def counts(self) -> Counter[Verdict]:
        """How many entries are better, within and worse."""
        return tally(self.rows)

    @property
    def has_paper(self) -> bool:
        """Whether the paper has values to compare with."""
        return any(entry.paper is not None for row in self.rows.values() for entry in row)

    @property
    def drawn(self) -> str:
        """The features, and the numbers of training samples, database items and queries."""
        protocol = self.block.records[0].get("protocol") or {}
        nouns = {
            "n_train": ("training sample", "training samples"),
            "n_database": ("database item", "database items"),
            "n_queries": ("query", "queries"),
        }
        counts = [counted(protocol[key], *noun) for key, noun in nouns.items() if protocol.get(key)]
        own = ["the data set’s own split, training samples are searched too"] if protocol.get("split") == "own" else []
        return " · ".join([f"Features: {self.features}", *own, *counts])

    @property
    def other_rows(self) -> dict[str, Rows]:
        """The metrics beside the most important one, and mean average precision, as far as they are stored."""
        block = self.block
        names = [name for name in dict.fromkeys((*block.metrics[1:], "map")) if name != block.metric]
        found = {
            name: {m: [block.entry(m, n, metric(name)) for n in block.lengths] for m in block.methods} for name in names
        }
        return {name: rows for name, rows in found.items() if any(e.values for row in rows.values() for e in row)}

    @property
    def with_statistics(self) -> list[str]:
        """Methods with bit statistics of the longest code."""
        records = {method: self.block.at(method, self.longest) for method in self.block.methods}
        return [method for method, found in records.items() if any(map(_statistics, found))]

    def look(self, method: str) -> Look:
        """The style of a method everywhere in its block; methods that were not run come last."""
        methods = self.block.methods
        return look(methods.index(method) if method in methods else len(methods))

    def seconds(self, method: str, n_bits: int, stage: str) -> float | None:
        """Mean over draws."""
        return self.block.entry(method, n_bits, duration(stage)).mean

    def share_of_slowest(self, method: str) -> float:
        """Seconds to fit the longest code, as a share of the slowest method's."""
        slowest = max(self.seconds(other, self.longest, "fit") or 0.0 for other in self.block.methods)
        return (self.seconds(method, self.longest, "fit") or 0.0) / slowest if slowest else 0.0

    def statistic(self, method: str, name: str) -> float | None:
        """A bit statistic of the longest code, mean over draws."""
        return self.block.entry(method, self.longest, lambda record: finite(_statistics(record).get(name))).mean

    def balance(self, method: str) -> list[float]:
        """The shares of ones in the bits of the first draw's longest code."""
        shares = _statistics(self.block.at(method, self.longest)[0]).get("balance")
        return [share for share in map(finite, shares if isinstance(shares, list) else ()) if share is not None]


def tally(rows: Rows) -> Counter[Verdict]:
    """How many entries are better, within and worse."""
    return Counter(entry.verdict for row in rows.values() for entry in row if entry.verdict is not None)


def best_values(rows: Iterable[Sequence[Entry]]) -> list[str | None]:
    """The highest value at each length as it is printed, so that equal values are equal."""
    means = ([entry.mean for entry in entries if entry.mean is not None] for entries in zip(*rows, strict=True))
    return [fixed(max(found)) if found else None for found in means]


def headline(parts: Sequence[Part]) -> str:
    """How many measured values reach the paper's."""
    counts: Counter[Verdict] = sum((part.counts for part in parts), Counter())
    compared = counts.total()
    if not compared:
        return f"{counted(sum(len(part.block.records) for part in parts), 'cell')} measured."
    reached = counts[Verdict.BETTER] + counts[Verdict.WITHIN]
    share = "All" if reached == compared else f"{reached} of"
    above = f"{counts[Verdict.BETTER]} of them clearly better" if counts[Verdict.BETTER] else "none clearly better"
    below = f"; {counts[Verdict.WORSE]} {'is' if counts[Verdict.WORSE] == 1 else 'are'} worse" if share != "All" else ""
    return f"{share} {compared} measured values are within tolerance of the paper’s or better, {above}{below}."


def heading(name: str) -> str:
    """A metric in words, as a heading."""
    title = metric_title(name)
    return title[0].upper() + title[1:]


def _statistics(record: Record) -> dict[str, object]:
    return record.get("bit_statistics") or {}
