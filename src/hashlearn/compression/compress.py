"""`compress`: try codes on queries that were kept out, and promise what other queries confirm.

Queries are split once. A fifth of them choose: family, size, kind of search, what is tested in which order, and the
bets. The others test. So everything that was looked at before the test is independent of the testing queries, and the
promise holds for any number of queries and of choices.

The test goes along one sequence and ends at the first step that fails. Larger codes come first, each at the largest
depth allowed, then the chosen code, then smaller and smaller depths of it. A step is tested at the full confidence: no
false step is accepted unless the first false one is (fixed-sequence testing).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

import hashlearn
from hashlearn.compression.contenders import (
    FAMILIES,
    MODES,
    SIZES,
    SLOW,
    Contender,
    OwnContender,
    Rows,
    contenders,
    found,
    sizes_of,
)
from hashlearn.compression.frontier import examples_of, frontier_of, growth_of
from hashlearn.compression.peers import product_quantizers
from hashlearn.compression.records import Certificate
from hashlearn.compression.result import Compression
from hashlearn.compression.splitting import Split, split_rows
from hashlearn.compression.testing import (
    Claim,
    bet_on,
    expected_depth,
    is_likely,
    is_shown,
    shown_depth,
    shown_recall,
)
from hashlearn.core.checks import generator, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.progress import Progress, ProgressCallback, tell
from hashlearn.metrics.neighbors import METRICS
from hashlearn.persistence import fingerprint

CANDIDATES = 20  # for each neighbor that is wanted, without max_depth
SLOW_WEIGHTS = dict(zip(SLOW, (10.0, 40.0), strict=True))  # seconds of a fit, in those of a quick one


def compress(
    X: Any,
    y: Any = None,
    *,
    recall: float = 0.95,
    k: int = 10,
    confidence: float = 0.99,
    queries: Any = None,
    max_bytes: int | None = None,
    max_depth: int | None = None,
    keep_floats: bool = True,
    metric: str = "cosine",
    mode: str = "auto",
    families: Iterable[str] | None = None,
    thorough: bool = False,
    peers: bool = False,
    n_queries: int | None = None,
    max_rows: int = 100_000,
    random_state: int | None = 0,
    progress: ProgressCallback | None = None,
) -> Compression:
    """The smallest binary code that keeps a promise: searches find at least ``recall`` of the k nearest neighbors.

    Recall is the mean over queries like those tested. A code alone rarely keeps much of it. With ``keep_floats`` a
    search takes more candidates by code and ranks them again by their floats, so the promise includes a depth.

    Parameters
    ----------
    X : rows to search (n, n_features): an array, or a file that `hashlearn.streams.open_rows` opened
    y : labels; with them two-step codes are tried too
    recall : share of the k nearest neighbors by floats that must be found, below 1
    k : neighbors of a query
    confidence : of the promise. At most one promise in a hundred fails at 0.99
    queries : rows like those that will be searched for. None: rows of X, at most 2,500 and one in eight, are kept out
        of the database
    max_bytes : of a code; None: 128
    max_depth : candidates of a query that may be rescored; None: 20 k
    keep_floats : False: floats are thrown away, and the first k by code are the answer
    metric : of the floats, "cosine" or "euclidean"
    mode : "hamming" (as in every engine with binary vectors), "asymmetric" (margins of the query against codes: fewer
        candidates, in hashlearn only) or "auto" (both; the one with fewer candidates)
    families : names in `hashlearn.compression.FAMILIES`; None: all but "ranking_mlp", and "two_step" with labels only
    thorough : try "ranking_mlp" too, which takes minutes
    peers : measure FAISS's product quantizer at the same sizes too, for the frontier
    n_queries : how many queries to use; None: all that are given
    max_rows : with more rows a random sample of this many is the database, and the promise is for this many rows
    random_state : seed
    progress : called with a `hashlearn.core.progress.Progress`

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> plan = compress(X, recall=0.9, families=["pca_sign"])
    >>> plan.bytes_per_row, plan.depth <= 200, plan.recall_lower_bound
    (4, True, 0.9)
    """
    _require_share(recall, "recall")
    _require_share(confidence, "confidence")
    require_choice(metric, "metric", METRICS)
    require_choice(mode, "mode", ("auto", *MODES))
    most = SIZES[-1] if max_bytes is None else whole_number(max_bytes, "max_bytes", least=1)
    names = _family_names(families, y is not None, thorough)
    tell(progress, "finding the true neighbors", 0, None)
    split = split_rows(
        X,
        y,
        queries,
        recall=recall,
        confidence=confidence,
        k=k,
        metric=metric,
        n_queries=n_queries,
        max_rows=max_rows,
        rng=generator(random_state),
        seed=random_state,
    )
    rows = split.rows
    depth = rows.k
    if keep_floats:
        wanted = CANDIDATES * rows.k if max_depth is None else whole_number(max_depth, "max_depth", least=rows.k)
        depth = min(wanted, len(rows.database))
    claim = Claim(float(recall), float(confidence), rows.k, depth)
    own = _explored(rows, claim, names, MODES if mode == "auto" else (mode,), most, progress)
    tried: list[Contender] = [*own]
    if peers:
        tried += product_quantizers({contender.bytes_per_row for contender in own}, rows, progress)
    tell(progress, "testing the promise", 0, None)
    winner, certificate = _tested(own, claim, split, keep_floats, queries is not None)
    table, examples = frontier_of(tried, claim, rows, winner), examples_of(certificate, winner, split)
    columns = getattr(X, "names", getattr(X, "columns", None))  # of a file, of a data frame
    if columns is not None:
        winner.hasher.feature_names_in_ = np.array(columns, dtype=object)
    return Compression(winner.hasher, replace(certificate, model=fingerprint(winner.hasher)), table, examples)


def _require_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < 1.0:
        why = "; no finite number of queries can show that nothing is ever missed" if value == 1 else ""
        raise ValueError(f"{name} must be a number above 0 and below 1, got {value!r}{why}")


def _family_names(families: Iterable[str] | None, has_labels: bool, thorough: bool) -> list[str]:
    if families is None:
        left_out = {*(() if thorough else ("ranking_mlp",)), *(() if has_labels else ("two_step",))}
        return [name for name in FAMILIES if name not in left_out]
    names = [families] if isinstance(families, str) else list(families)
    for name in names:
        require_choice(name, "families", FAMILIES)
    if not names:
        raise ValueError(f"families must name at least one of {', '.join(FAMILIES)}")
    if "two_step" in names and not has_labels:
        raise ValueError("families has 'two_step', which learns from labels; give y")
    return [name for name in FAMILIES if name in names]  # quick ones first


def _explored(
    rows: Rows,
    claim: Claim,
    names: list[str],
    modes: tuple[str, ...],
    max_bytes: int,
    progress: ProgressCallback | None,
) -> list[OwnContender]:
    """Fit codes until the choosing queries know the smallest size that keeps the claim, family by family.

    Quick families go up in size until one keeps it. Slow ones start at the smallest size that does, and go down
    while they keep it. If no quick one does, slow ones start at as many bits as there are features.
    """
    tried: list[OwnContender] = []
    work = _Work(progress, names)

    def keeps(family: str, n_bits: int) -> bool:
        made = contenders(family, n_bits, rows, modes, work.begin(family, n_bits))
        tried.extend(made)
        return any(is_likely(claim, contender) for contender in made)

    for family in names:
        sizes, likely = sizes_of(family, rows, max_bytes), [c.bytes_per_row for c in tried if is_likely(claim, c)]
        if family not in SLOW:
            any(keeps(family, n_bits) for n_bits in sizes)
            continue
        sizes = [n_bits for n_bits in sizes if not likely or n_bits <= 8 * min(likely)]
        if not sizes:
            continue
        first = len(sizes) - 1 if likely else int(np.argmin(np.abs(np.array(sizes) - rows.database.shape[1])))
        if keeps(family, sizes[first]):
            all(keeps(family, n_bits) for n_bits in reversed(sizes[:first]))
        elif not likely:
            any(keeps(family, n_bits) for n_bits in sizes[first + 1 :])
    if not tried:
        raise ValueError(
            f"max_bytes={max_bytes} leaves nothing to try for {rows.database.shape[1]} features; the smallest codes "
            f"have {SIZES[0]} bytes, and families such as 'pca_sign' have at most one bit for each feature"
        )
    return tried


class _Work:
    """Progress over all fits, whose number is not known before: a slow family is taken for three fits."""

    def __init__(self, progress: ProgressCallback | None, names: list[str]) -> None:
        self._progress, self._done = progress, 0.0
        self._total = sum(3.0 * SLOW_WEIGHTS.get(name, 0.0) or len(SIZES) for name in names)

    def begin(self, family: str, n_bits: int) -> ProgressCallback | None:
        """Tell of a new fit; returns the callback for it."""
        before, weight, stage = self._done, SLOW_WEIGHTS.get(family, 1.0), f"{family}, {-(-n_bits // 8)} bytes"
        self._done += weight

        def watch(progress: Progress) -> None:
            tell(self._progress, stage, before + weight * (progress.fraction or 0.0), max(self._total, self._done))

        watch(Progress(stage, 0, 1))
        return None if self._progress is None else watch


def _tested(
    own: list[OwnContender], claim: Claim, split: Split, keep_floats: bool, own_queries: bool
) -> tuple[OwnContender, Certificate]:
    """Test along a sequence that the choosing queries fixed. Returns the last contender that was accepted."""
    n = len(split.rows.database)
    bets = {id(contender): bet_on(claim, contender, claim.max_depth) for contender in own}
    accepted, depth, promised, steps = own[0], claim.max_depth, 0.0, []
    for contender in _sequence(own, claim):
        steps.append(f"{contender}, depth {claim.max_depth}")
        if not is_shown(claim, contender, claim.max_depth, bets[id(contender)]):
            break
        accepted, promised = contender, claim.recall
    else:
        depth = shown_depth(claim, accepted, claim.max_depth, bets[id(accepted)]) or claim.max_depth
        steps.append(f"{accepted}, depth {depth}")
    if not promised:  # not even the first: promise what it does show
        accepted = _sequence(own, claim)[0]
        promised = shown_recall(claim, accepted, depth, bets[id(accepted)])
    values = found(accepted.testing, depth)
    certificate = Certificate(
        recall=claim.recall,
        promised=promised,
        k=claim.k,
        confidence=claim.confidence,
        metric=split.rows.metric,
        mode=accepted.mode,
        depth=depth,
        max_depth=claim.max_depth,
        keep_floats=keep_floats,
        n_bits=int(accepted.hasher.n_bits),
        family=accepted.family,
        n_database=n,
        n_rows=split.n_rows,
        n_choosing=len(split.rows.choosing),
        n_testing=len(split.rows.testing),
        own_queries=own_queries,
        found=tuple(np.bincount(np.rint(values * claim.k).astype(int), minlength=claim.k + 1).tolist()),
        bet=bets[id(accepted)],
        tested=tuple(steps),
        model=None,
        data=split.data_digest,
        queries=split.queries_digest,
        seed=split.rows.seed,
        growth=growth_of(accepted, split.rows, claim.recall) if promised == claim.recall and depth > claim.k else None,
        versions={"hashlearn": hashlearn.__version__, "numpy": np.__version__},
    )
    return accepted, certificate


def _sequence(own: list[OwnContender], claim: Claim) -> list[OwnContender]:
    """What is tested, in order: the contender with the best recall, then smaller and smaller codes that may keep it."""
    safest = max(own, key=lambda contender: float(found(contender.choosing, claim.max_depth).mean()))
    best: dict[int, OwnContender] = {}  # by size: the one with the fewest candidates
    for contender in sorted(own, key=lambda contender: expected_depth(claim, contender, claim.max_depth)):
        if is_likely(claim, contender):
            best.setdefault(contender.bytes_per_row, contender)
    smaller = [best[size] for size in sorted(best, reverse=True) if size <= safest.bytes_per_row]
    return [safest, *(contender for contender in smaller if contender is not safest)]
