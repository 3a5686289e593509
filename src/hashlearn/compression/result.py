"""What `compress` returns: the hasher, the promise with the numbers to recheck it, and the table of what was tried."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from os import PathLike, fspath
from typing import Any

from hashlearn.compression.promise import accepts
from hashlearn.compression.searcher import Searcher
from hashlearn.hashers import BaseHasher
from hashlearn.persistence import PersistenceError, describe, load, save
from hashlearn.persistence.values import fingerprint

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
    ms_per_query: float | None
    fit_seconds: float
    chosen: bool = False
    is_peer: bool = False  # another library's codes, to compare with; never chosen


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
    tested: tuple[str, ...]  # what was tested before, in order
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
    def measured(self) -> float:
        """Mean recall of the test queries."""
        return sum(j * count for j, count in enumerate(self.found)) / (self.k * sum(self.found))

    def accepted(self) -> bool:
        """Run the test again on the stored numbers."""
        values = [j / self.k for j, count in enumerate(self.found) for _ in range(count)]
        return accepts(values, self.promised, self.bet, self.confidence)

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


@dataclass(frozen=True, eq=False)
class Compression:
    """The smallest code that keeps a promise about recall. `hashlearn.compress` makes it. Print it for the verdict.

    Attributes
    ----------
    hasher : fitted
    certificate : the promise, see `Certificate`
    frontier : everything that was measured, smallest codes first; see `FrontierRow`
    """

    hasher: BaseHasher = field(repr=False)
    certificate: Certificate
    frontier: tuple[FrontierRow, ...] = field(repr=False)
    examples: tuple[Example, ...] = field(default=(), repr=False)  # the test queries that lost most; not saved

    @property
    def n_bits(self) -> int:
        """Of a code."""
        return self.certificate.n_bits

    @property
    def bytes_per_row(self) -> int:
        """Of a packed code."""
        return -(-self.n_bits // 8)

    @property
    def depth(self) -> int:
        """Candidates of a query that are rescored by their floats; k if nothing is rescored."""
        return self.certificate.depth

    @property
    def mode(self) -> str:
        """How codes are searched: "hamming" or "asymmetric"."""
        return self.certificate.mode

    @property
    def recall_lower_bound(self) -> float:
        """The recall that is promised: what was asked for, or less if that could not be shown."""
        return self.certificate.promised

    def index(self, X: Any) -> Searcher:
        """Encode the rows of a database; the result searches as promised. X must hold the rows that were tested."""
        c = self.certificate
        return Searcher(
            self.hasher, X, mode=c.mode, depth=c.depth_for(len(X)), metric=c.metric, keep_floats=c.keep_floats
        )

    def page(self, path: str | PathLike[str], **shown: Any) -> None:
        """Write "Will binary codes hurt my search?", one HTML page; see `hashlearn.compression.page.write_page`."""
        from hashlearn.compression.page import write_page

        write_page(self, path, **shown)

    def save(self, path: str | PathLike[str]) -> None:
        """Write hasher, certificate and frontier to one file. `hashlearn.load` reads the hasher, `load` all of it."""
        promise = {"certificate": asdict(self.certificate), "frontier": [asdict(row) for row in self.frontier]}
        save(self.hasher, path, promise=promise)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Compression:
        """Read a file of `save`. A promise that does not fit the hasher, or its own numbers, is a ValueError."""
        hasher, promise = load(path), describe(path)["promise"]
        if promise is None:
            raise PersistenceError(f"{fspath(path)!r} is a model without a promise; `hashlearn compress` makes one")
        try:
            stored = {**promise["certificate"]}
            certificate = Certificate(**{**stored, "found": tuple(stored["found"]), "tested": tuple(stored["tested"])})
            frontier = tuple(FrontierRow(**row) for row in promise["frontier"])
            fits = certificate.n_bits == hasher.n_bits and certificate.model == fingerprint(hasher)
            holds = certificate.accepted()
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise PersistenceError(f"{fspath(path)!r} does not hold a valid promise: {error}") from None
        if not fits or not holds:
            what = "is of another model" if not fits else "does not follow from its own numbers"
            raise PersistenceError(f"{fspath(path)!r}: the promise {what}: the file was changed")
        return cls(hasher, certificate, frontier)

    def __str__(self) -> str:
        c = self.certificate
        rescored = f", if the best {c.depth:,} candidates are rescored by their floats" if c.keep_floats else ""
        codes = f"{self.bytes_per_row} bytes a row ({c.family}, {c.mode} search)"
        kept = f"at least {100 * c.promised:.4g} % of the {c.k} nearest neighbors"
        lines = [f"{codes} keep {kept} at {100 * c.confidence:g} % confidence{rescored}."]
        if not c.kept:
            lines.insert(
                0, f"A recall of {100 * c.recall:g} % cannot be promised with depth {c.max_depth:,}. The best:"
            )
        lines.append(f"Measured: {100 * c.measured:.1f} % on {c.n_testing:,} queries, {c.n_database:,} database rows.")
        return "\n".join(lines)
