"""What `compress` returns: the hasher, the promise with the numbers to recheck it, and the table of what was tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

from hashlearn.compression.records import Certificate, Example, FrontierRow
from hashlearn.compression.searcher import Searcher
from hashlearn.compression.stored import from_json, to_json
from hashlearn.hashers import BaseHasher
from hashlearn.pages.formatting import rounded_down
from hashlearn.persistence import PersistenceError, load_with_description, save


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
        save(self.hasher, path, promise=to_json(self.certificate, self.frontier))

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
            certificate, frontier = from_json(about["promise"])
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
        kept = f"at least {100 * rounded_down(c.promised, 6):.10g} % of {neighbors}"
        lines = [f"{codes} keep {kept} at {100 * c.confidence:.10g} % confidence{condition}."]
        if not c.kept:
            how = f"with depth {c.max_depth:,}" if c.keep_floats else "by the codes alone"
            lines.insert(0, f"A recall of {100 * c.recall:.10g} % cannot be promised {how}. The best:")
        lines.append(f"Measured: {100 * c.measured:.1f} % on {c.n_testing:,} queries, {c.n_database:,} database rows.")
        return "\n".join(lines)
