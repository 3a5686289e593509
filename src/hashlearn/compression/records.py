"""Rows of the frontier, the certificate of a promise, and examples: plain values that can be stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hashlearn.compression.promise import TABLE_SHARE, accepts, shared

FLOAT_BYTES = 4  # of each number that a code replaces


@dataclass(frozen=True)
class FrontierRow:
    """One kind of code with one kind of search. All bounds of a table hold together at the confidence of the promise.

    ``depth`` is the smallest number of candidates that keeps the promise by these bounds. It may exceed the largest
    depth that was allowed.
    """

    bytes_per_row: int
    family: str
    mode: str  # "hamming" or "asymmetric"
    depth: int | None  # None: no number of candidates is shown to be enough
    recall: float  # measured, if the largest depth allowed is rescored
    bound: float
    codes_recall: float  # measured, of the first k by code, without floats
    codes_bound: float
    ms_per_query: float
    fit_seconds: float
    chosen: bool = False


@dataclass(frozen=True)
class Certificate:
    """A promise and what is needed to check it again.

    `accepted` recomputes the test from ``found``: how many test queries found 0, 1, …, k of their true neighbors.
    """

    recall: float  # the claim that was asked for
    promised: float  # the claim that was shown: ``recall``, or less if that could not be shown
    k: int
    confidence: float
    metric: str
    mode: str
    depth: int
    max_depth: int
    keep_floats: bool
    n_bits: int
    family: str
    n_database: int  # rows that were searched in the test
    n_rows: int  # rows that were given; more than tested if a sample was taken
    n_choosing: int
    n_testing: int
    own_queries: bool  # False: rows of X, kept out of the database
    found: tuple[int, ...]
    bet: float
    tested: tuple[str, ...]  # the finalists and the chosen code, in words
    model: str | None  # digest of the hasher
    data: str  # digest of the database
    queries: str  # digest of the queries
    seed: int | None
    growth: float | None  # depth grows as n_database ** growth: an estimate
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether the recall that was asked for is promised."""
        return self.promised >= self.recall

    @property
    def condition(self) -> str:
        """What the promise takes, in words: the vectors and how many of them are read; "" for codes alone."""
        if not self.keep_floats:
            return ""
        return f"if the original vectors are kept and the best {self.depth:,} candidates are rescored with them"

    @property
    def measured(self) -> float:
        """Mean recall of the test queries."""
        return sum(j * count for j, count in enumerate(self.found)) / (self.k * sum(self.found))

    def accepted(self) -> bool:
        """Run the test again on the stored numbers. The codes in ``tested`` share the error."""
        counts = np.array(self.found, np.int64)
        numbers = np.flatnonzero(counts)
        confidence = shared(self.confidence, max(1, len(self.tested)), 1.0 - TABLE_SHARE)
        return accepts(numbers / self.k, self.promised, self.bet, confidence, counts[numbers])

    def depth_for(self, n_rows: int) -> int:
        """The depth for a database of n_rows. With more rows than tested it is an estimate and no promise."""
        if n_rows <= self.n_database or self.growth is None:
            return min(self.depth, n_rows)
        times: float = (n_rows / self.n_database) ** self.growth
        return min(n_rows, round(self.depth * times))


@dataclass(frozen=True)
class Example:
    """A test query and its k neighbors, by floats and by the codes. Neighbors are rows of X."""

    query: int  # row of the queries, or of X if there are none
    true: tuple[int, ...]
    found: tuple[int, ...]
