"""What `compress` returns: the hasher, the promise with the numbers to recheck it, and the table of what was tried.

A model file holds the certificate and the frontier as JSON. It may be forged, so everything in it is checked.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from os import PathLike, fspath
from typing import Any, TypeVar

import numpy as np

from hashlearn.compression.contenders import FAMILIES, MODES
from hashlearn.compression.promise import LARGEST_CONFIDENCE, TABLE_SHARE, accepts, shared
from hashlearn.compression.vector_index import VectorIndex
from hashlearn.core.names import require_choice
from hashlearn.hashers import BaseHasher
from hashlearn.hashers.base import MAX_BITS
from hashlearn.metrics.recall import METRICS
from hashlearn.pages.formatting import at_least, percent
from hashlearn.persistence import PersistenceError, fingerprint, load_with_description, save
from hashlearn.search import HammingIndex

FLOAT_BYTES = 4  # of each number that a code replaces
LARGEST_COUNT, LARGEST_REAL = 2**63 - 1, 1e300
KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "bool": (bool,),
    "None": (type(None),),
}


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

    def index(self, X: Any, ids: Any = None) -> VectorIndex:
        """Encode the rows of a database; the result searches as promised, and rows can be added and removed.

        The promise is about the rows that were tested. ``ids`` are integers or text; None numbers the rows from 0.
        """
        index = self._index_of(HammingIndex(self.n_bits, model=fingerprint(self.hasher)))
        index.add(X, ids)
        return index

    def load_index(self, path: str | PathLike[str]) -> VectorIndex:
        """Read a file of `VectorIndex.save`. A ValueError: it has codes of another model, or lacks the vectors."""
        codes = HammingIndex.load(path, model=fingerprint(self.hasher))
        if codes.n_bits != self.n_bits or (len(codes) and codes.has_vectors != self.certificate.keep_floats):
            vectors = "" if codes.has_vectors else "out"
            raise ValueError(f"{fspath(path)!r} is no index of this plan: {codes.n_bits} bits, with{vectors} vectors")
        return self._index_of(codes)

    def _index_of(self, codes: HammingIndex) -> VectorIndex:
        c = self.certificate
        return VectorIndex(self.hasher, codes, c.mode, c.depth_for, c.metric, c.keep_floats)

    def page(self, path: str | PathLike[str], **shown: Any) -> None:
        """Write "Will binary codes hurt my search?", one HTML page.

        ``shown`` are arguments of `hashlearn.compression.page.page_data`.
        """
        from hashlearn.compression.page import write_page

        write_page(self, path, **shown)

    def save(self, path: str | PathLike[str]) -> None:
        """Write hasher, certificate and frontier to one file. `hashlearn.load` reads the hasher, `load` all of it."""
        frontier = [asdict(row) for row in self.frontier]
        save(self.hasher, path, promise={"certificate": asdict(self.certificate), "frontier": frontier})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Compression:
        """Read a file of `save`. A promise that contradicts its own numbers, or is another model's, is a ValueError."""
        return cls.from_model(path, *load_with_description(path))

    @classmethod
    def from_model(cls, path: str | PathLike[str], hasher: BaseHasher, about: dict[str, Any]) -> Compression:
        """The plan of a model file that `hashlearn.persistence.load_with_description` read."""
        if about["promise"] is None:
            raise PersistenceError(f"{fspath(path)!r} is a model without a promise; `hashlearn compress` makes one")
        try:
            certificate, frontier = _read_promise(about["promise"])
        except ValueError as error:
            raise PersistenceError(f"{fspath(path)!r} does not hold a valid promise: {error}") from None
        if certificate.n_bits != hasher.n_bits or certificate.model != about["digest"]:
            raise PersistenceError(f"{fspath(path)!r} holds the promise of another model")
        return cls(hasher, certificate, frontier)

    def __str__(self) -> str:
        c = self.certificate
        condition = f", {c.condition}" if c.condition else ""
        codes = f"{self.bytes_per_row} bytes a row ({c.family}, {c.mode} search)"
        neighbors = f"the {c.k:,} nearest neighbors" if c.k > 1 else "nearest neighbors"
        kept = f"at least {at_least(c.promised, 6)} of {neighbors}"
        lines = [f"{codes} keep {kept} at {percent(c.confidence)} confidence{condition}."]
        if not c.kept:
            how = f"with depth {c.max_depth:,}" if c.keep_floats else "by the codes alone"
            lines.insert(0, f"A recall of {percent(c.recall)} cannot be promised {how}. The best:")
        lines.append(f"Measured: {percent(c.measured, 3)} on {c.n_testing:,} queries, {c.n_database:,} database rows.")
        return "\n".join(lines)


def _read_promise(promise: Any) -> tuple[Certificate, tuple[FrontierRow, ...]]:
    """The certificate and the frontier. A ValueError: they are not as `Compression.save` writes them."""
    if not isinstance(promise, dict) or set(promise) != {"certificate", "frontier"}:
        raise ValueError("a promise must have a certificate and a frontier")
    if not isinstance(promise["frontier"], list):
        raise ValueError("frontier must be a list")
    certificate = _record(Certificate, promise["certificate"])
    frontier = tuple(_record(FrontierRow, row) for row in promise["frontier"])
    _require_possible(certificate)
    for row in frontier:
        _require_names(row.mode, row.family)
        if max(row.recall, row.bound, row.codes_recall, row.codes_bound) > 1.0:
            raise ValueError("recalls and bounds of the frontier must be from 0 to 1")
        if not 1 <= row.bytes_per_row <= MAX_BITS or row.depth == 0:
            raise ValueError(f"bytes and depths of the frontier must be at least 1, and bytes at most {MAX_BITS}")
    return certificate, frontier


def _require_possible(c: Certificate) -> None:
    """Refuse a certificate that `compress` cannot have made."""
    if not (0.0 < c.recall < 1.0 and 0.0 < c.confidence <= LARGEST_CONFIDENCE):
        raise ValueError("recall and confidence must be from 0 to 1")
    if c.promised > c.recall:
        raise ValueError("promised must be at most recall")
    _require_names(c.mode, c.family)
    require_choice(c.metric, "metric", METRICS)
    if not (1 <= c.k <= c.depth <= c.max_depth <= c.n_database <= c.n_rows):
        raise ValueError("k, depth, max_depth, n_database and n_rows must ascend from 1")
    if not c.keep_floats and c.max_depth > c.k:
        raise ValueError("max_depth must be k if floats are not kept")
    if c.n_choosing < 1:
        raise ValueError("n_choosing must be at least 1")
    if len(c.found) != c.k + 1 or min(c.found) < 0 or sum(c.found) != c.n_testing or c.n_testing < 1:
        raise ValueError("found must hold k + 1 counts that add up to n_testing")
    if not (c.bet >= 0.0 and c.bet * c.promised < 1.0) or not (c.growth is None or 0.0 <= c.growth < 10.0):
        raise ValueError("bet or growth is out of range")
    shown = f"depth {c.depth}" if c.kept else "not shown"  # in the words of `hashlearn.compression.testing`
    if f"{c.family}, {-(-c.n_bits // 8)} bytes, {c.mode}: {shown}" not in c.tested:
        raise ValueError("tested must name the code of the promise with its depth")
    if not c.accepted():
        raise ValueError("the promise does not follow from its own numbers")


def _require_names(mode: str, family: str) -> None:
    require_choice(mode, "mode", MODES)
    require_choice(family, "family", FAMILIES)


Record = TypeVar("Record", Certificate, FrontierRow)


def _record(kind: type[Record], stored: Any) -> Record:
    known = {field.name: str(field.type) for field in fields(kind)}
    if not isinstance(stored, dict) or set(stored) != set(known):
        raise ValueError(f"a {kind.__name__} must have exactly the fields {', '.join(known)}")
    return kind(**{name: _value(stored[name], known[name], name) for name in known})


def _value(value: Any, kind: str, name: str) -> Any:
    """A stored value of a field with this annotation."""
    if kind.startswith("tuple["):
        item = kind.removeprefix("tuple[").partition(",")[0]
        if isinstance(value, list):
            return tuple(_value(part, item, name) for part in value)
    elif kind == "dict[str, str]":
        if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
            return value
    else:
        allowed = tuple(python for part in kind.split(" | ") for python in KINDS[part])
        if isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed):
            limit = LARGEST_COUNT if isinstance(value, int) else LARGEST_REAL
            if isinstance(value, int | float) and name != "seed" and not 0 <= value <= limit:  # a seed has no limit
                raise ValueError(f"{name} must be from 0 to {limit:.3g}")
            return value
    raise ValueError(f"{name} must be {kind}, got {type(value).__name__}")
