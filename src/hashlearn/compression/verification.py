"""`verify`: does a promise hold for new queries, and for the database as it is now?"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from hashlearn.compression.contenders import asked, found
from hashlearn.compression.promise import SPREAD, accepts, lower_bound, refutes, spread_of_bets
from hashlearn.compression.result import Compression
from hashlearn.compression.splitting import checked_rows, digest, feature_names, usable_queries, warn_of_repeats
from hashlearn.core.checks import require_k
from hashlearn.core.rows import as_rows, require_same_columns
from hashlearn.hashers import BaseHasher
from hashlearn.metrics import float_neighbors
from hashlearn.pages.formatting import at_least, percent
from hashlearn.search import worst_ranks


@dataclass(frozen=True)
class Verification:
    """The outcome. Print it.

    ``kept`` is True if the queries show the promise again, False if they show that it is broken, and None if they are
    too few, or too close to it, to show either.
    """

    kept: bool | None
    promised: float
    measured: float  # mean recall of these queries
    bound: float  # the recall that they show
    confidence: float
    k: int
    depth: int
    n_queries: int
    n_database: int
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        words = {True: "kept", False: "broken", None: "not decided"}[self.kept]
        claim = f"recall@{self.k} of at least {at_least(self.promised, 6)}"
        what = f"{percent(self.measured, 3)} measured on {self.n_queries:,} queries, {self.n_database:,} database rows"
        lines = [f"The promise of {claim} is {words}: {what}, depth {self.depth:,}."]
        if self.kept is None:
            lines.append(f"These queries show {at_least(self.bound)} at {percent(self.confidence)} confidence.")
        return "\n".join(lines + [f"{remark[0].upper()}{remark[1:]}." for remark in self.remarks])


def verify(plan: Compression, database: Any, queries: Any) -> Verification:
    """Test the promise of a plan again, on queries that may be of another kind, and on a database that may have grown.

    >>> from sklearn.datasets import load_digits
    >>> from hashlearn import compress
    >>> X, _ = load_digits(return_X_y=True)
    >>> plan = compress(X[:1400], recall=0.9, families=["pca_sign"])
    >>> verify(plan, X[:1400], X[1400:]).kept is False
    False
    """
    certificate, hasher = plan.certificate, plan.hasher
    rows, new = _rows_for(hasher, database, "database"), _rows_for(hasher, queries, "queries")
    hasher = copy(hasher)
    hasher.__dict__.pop("feature_names_in_", None)  # they were compared, and checked rows are arrays without names
    k = require_k(certificate.k, len(rows))
    new = new[usable_queries(new, rows, certificate.metric, "queries")]
    if not len(new):
        raise ValueError("queries must hold rows that are not in the database")
    warn_of_repeats(new)
    depth = certificate.depth_for(len(rows))
    true = float_neighbors(new, rows, k, metric=certificate.metric)
    ranks = worst_ranks(true, hasher.encode(rows), hasher.n_bits, **asked(hasher, new, certificate.mode))
    values = found(ranks, depth)
    claim, confidence = certificate.promised, certificate.confidence
    kept = accepts(values, claim, spread_of_bets(claim), confidence) if claim else True
    broken = bool(claim) and refutes(values, claim, confidence)
    return Verification(
        kept=True if kept else False if broken else None,
        promised=claim,
        measured=float(values.mean()),
        bound=lower_bound(values, SPREAD, confidence),
        confidence=confidence,
        k=k,
        depth=depth,
        n_queries=len(new),
        n_database=len(rows),
        remarks=tuple(_remarks(plan, rows, new, depth)),
    )


def _rows_for(hasher: BaseHasher, X: Any, name: str) -> NDArray[Any]:
    """Checked rows with the columns that the hasher learned from."""
    X = as_rows(X, name)
    require_same_columns(feature_names(X), getattr(hasher, "feature_names_in_", None), name, "the model")
    rows = checked_rows(X, name)
    if rows.shape[1] != hasher.n_features_in_:
        raise ValueError(f"{name} must have {hasher.n_features_in_} columns, as the model does, got {rows.shape[1]}")
    return rows


def _remarks(plan: Compression, rows: Any, queries: Any, depth: int) -> list[str]:
    certificate = plan.certificate
    remarks = []
    if digest(queries) == certificate.queries:
        remarks.append("these are the queries that the promise was tested on, so they show nothing new")
    if len(rows) != certificate.n_database:
        remarks.append(f"the promise was tested on {certificate.n_database:,} database rows")
    if depth != certificate.depth:
        remarks.append(f"the promised depth is {certificate.depth:,}; {depth:,} is its estimate for this database")
    return remarks
