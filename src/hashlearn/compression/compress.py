"""`compress`: try codes on queries that were kept out, and promise what other queries confirm.

Queries are split once. A fifth of them choose: family, size, kind of search, which codes are finalists, and the bets.
The others test. So everything that was looked at before the test is independent of the testing queries, and the promise
holds for any number of queries and of choices.

Few codes are finalists: those that may keep the promise, up to the first that surely does. They share most of the
error. The rest is divided among all codes that could be tried, for the table. If the testing queries refuse all
finalists, larger codes are tried until one is shown. The smallest code that is shown to keep the promise is promised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import hashlearn
from hashlearn.compression.contenders import (
    FAMILIES,
    MODES,
    SIZES,
    SLOW,
    Contender,
    contenders,
    found,
    sizes_of,
)
from hashlearn.compression.frontier import examples_of, frontier_of, growth_of
from hashlearn.compression.promise import require_confidence
from hashlearn.compression.result import Certificate, Compression
from hashlearn.compression.splitting import Split, digest, split_rows
from hashlearn.compression.testing import Claim, Evidence, Outcome, can_show_others, is_likely, is_sure
from hashlearn.core.checks import require_share, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressCallback, tell, watched
from hashlearn.metrics.recall import METRICS
from hashlearn.persistence import fingerprint

MAX_BYTES = 128  # of a code, without max_bytes
CANDIDATES = 20  # for each neighbor that is wanted, without max_depth
PATIENCE = 2  # larger sizes in a row that gain no recall end a family
QUICKEST, SIZES_SHOWN = "pca_sign", 4  # shown up to four times the size that is enough


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
    n_queries: int | None = None,
    max_rows: int = 100_000,
    random_state: int | None = 0,
    progress: ProgressCallback | None = None,
    verbose: bool = False,
) -> Compression:
    """The smallest binary code that keeps a promise: searches find at least ``recall`` of the k nearest neighbors.

    Recall is the mean over queries like those tested. A code alone rarely keeps much of it. With ``keep_floats`` a
    search takes more candidates by code and ranks them again by their floats, so the promise includes a depth.

    Parameters
    ----------
    X : rows to search (n, n_features): an array, a column of vectors of pandas, Polars or Arrow, or a file that
        `hashlearn.files.open_rows` opened
    y : labels; with them two-step codes are tried too
    recall : share of the k nearest neighbors by floats that must be found, below 1
    k : neighbors of a query
    confidence : of the promise. At most one promise in a hundred fails at 0.99
    queries : rows like those that will be searched for. None: rows of X, at most 2,500 and one in eight, are kept out
        of the database
    max_bytes : of a code, up to 512; None: 128
    max_depth : candidates of a query that may be rescored; None: 20 k
    keep_floats : False: floats are thrown away, and the first k by code are the answer
    metric : of the floats, "cosine" or "euclidean"
    mode : "hamming" (as in every engine with binary vectors), "asymmetric" (margins of the query against codes: fewer
        candidates, in hashlearn only) or "auto" (both; the one with fewer candidates)
    families : names in `hashlearn.compression.FAMILIES`; None: all but "ranking_mlp", and "two_step" with labels only
    thorough : try "ranking_mlp" too, which takes minutes
    n_queries : how many queries to use; None: all that are given
    max_rows : with more rows a random sample of this many is the database, and the promise is for this many rows
    random_state : seed, an integer; the certificate states it
    progress : called with a `hashlearn.core.progress.Progress`
    verbose : draw a progress bar with the time left

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> plan = compress(X, recall=0.9, families=["pca_sign"])
    >>> plan.bytes_per_row, plan.depth <= 200, plan.recall_lower_bound
    (4, True, 0.9)
    """
    if recall == 1:
        raise ValueError("recall must be below 1: no finite number of queries can show that nothing is ever missed")
    require_share(recall, "recall")
    require_confidence(confidence)
    require_choice(metric, "metric", METRICS)
    require_choice(mode, "mode", ("auto", *MODES))
    seed = None if random_state is None else whole_number(random_state, "random_state", least=0)
    most = MAX_BYTES if max_bytes is None else whole_number(max_bytes, "max_bytes", least=1)
    names = _family_names(families, y is not None, thorough)
    with watched(progress, verbose) as progress:
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
            seed=seed,
        )
        depth = split.k
        if keep_floats:
            wanted = CANDIDATES * split.k if max_depth is None else whole_number(max_depth, "max_depth", least=split.k)
            depth = min(wanted, len(split.database))
        claim = Claim(float(recall), float(confidence), split.k, depth)
        modes = MODES if mode == "auto" else (mode,)
        n_codes = _most_codes(split, names, modes, most)
        may_go_on = can_show_others(claim, n_codes, len(split.testing))
        own = _explored(split, claim, names, modes, most, progress)
        if not may_go_on and not any(is_sure(claim, contender) for contender in own):
            _explore_on(own, None, split, claim, names, modes, most, progress)
        tell(progress, "testing the promise", 0, None)
        evidence = Evidence(own, claim, len(split.database), n_codes)
        if may_go_on and not any(map(evidence.keeps, evidence.finalists)):
            _explore_on(own, evidence, split, claim, names, modes, most, progress)
        outcome = evidence.outcome(own)
        winner = outcome.accepted
    table = frontier_of(own, claim, evidence, split, winner)
    examples = examples_of(winner, outcome.depth, keep_floats, split)
    growth = growth_of(winner, split, claim.recall) if outcome.is_kept(claim) and outcome.depth > split.k else None
    if split.names is not None:
        winner.hasher.feature_names_in_ = split.names
    certificate = _certified(outcome, claim, split, keep_floats, queries is not None, growth)
    return Compression(winner.hasher, certificate, table, examples)


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
    split: Split,
    claim: Claim,
    names: list[str],
    modes: tuple[str, ...],
    max_bytes: int,
    progress: ProgressCallback | None,
) -> list[Contender]:
    """Fit codes until the choosing queries know the smallest size that keeps the claim, family by family.

    Quick families go up in size until one keeps it. The quickest goes on, so that the frontier shows what more bytes
    give. Slow ones start at the smallest size that keeps it, and go down while they keep it. If no quick one does, slow
    ones start at as many bits as there are features.
    """
    tried: list[Contender] = []

    def keeps(family: str, n_bits: int) -> bool:
        made = contenders(family, n_bits, split, modes, _stage(progress, family, n_bits))
        tried.extend(made)
        return any(is_likely(claim, contender) for contender in made)

    for family in names:
        sizes, likely = sizes_of(family, split, max_bytes), [c.bytes_per_row for c in tried if is_likely(claim, c)]
        if family not in SLOW:
            enough = next((n_bits for n_bits in sizes if keeps(family, n_bits)), None)
            if family == QUICKEST and enough is not None:
                for n_bits in sizes:
                    if enough < n_bits <= SIZES_SHOWN * enough:
                        keeps(family, n_bits)
            continue
        sizes = [n_bits for n_bits in sizes if not likely or n_bits <= 8 * min(likely)]
        if not sizes:
            continue
        first = len(sizes) - 1 if likely else int(np.argmin(np.abs(np.array(sizes) - split.database.shape[1])))
        if keeps(family, sizes[first]):
            all(keeps(family, n_bits) for n_bits in reversed(sizes[:first]))
        elif not likely:
            any(keeps(family, n_bits) for n_bits in sizes[first + 1 :])
    return tried


def _most_codes(split: Split, names: list[str], modes: tuple[str, ...], max_bytes: int) -> int:
    """How many codes could be tried and shown. Each has its part of the error, so queries must not decide this."""
    sizes = [n_bits for family in names for n_bits in sizes_of(family, split, max_bytes)]
    if not sizes:
        raise ValueError(
            f"max_bytes={max_bytes} leaves nothing to try for {split.database.shape[1]} features; the smallest codes "
            f"have {SIZES[0]} bytes, no code has more bits than the {len(split.database)} database row(s), and "
            "families such as 'pca_sign' have at most one bit for each feature"
        )
    return len(sizes) * len(modes)


def _explore_on(
    own: list[Contender],
    evidence: Evidence | None,
    split: Split,
    claim: Claim,
    names: list[str],
    modes: tuple[str, ...],
    max_bytes: int,
    progress: ProgressCallback | None,
) -> None:
    """Add larger codes of each family while they gain recall, up to the first that is enough.

    A code is enough if ``evidence`` shows that it keeps the claim. Before the test, without ``evidence``, it is enough
    if the choosing queries are sure of it. No family goes beyond the smallest size that is enough for another one.
    """

    def is_enough(code: Contender) -> bool:
        return is_sure(claim, code) if evidence is None else evidence.keeps(code)

    def recall_of(codes: list[Contender]) -> float:
        ranks = (np.concatenate([code.choosing, code.testing] if evidence else [code.choosing]) for code in codes)
        return max((float(found(of_code, claim.max_depth).mean()) for of_code in ranks), default=0.0)

    reason = "since smaller codes failed the test" if evidence else "since no more codes can be tried after the test"
    enough = min((contender.bytes_per_row for contender in own if is_enough(contender)), default=max_bytes)
    for family in names:
        of_family = [contender for contender in own if contender.family == family]
        largest = max((contender.hasher.n_bits for contender in of_family), default=0)
        best, without_gain = recall_of(of_family), 0
        for n_bits in sizes_of(family, split, enough):
            if n_bits > largest and without_gain < PATIENCE:
                made = contenders(family, n_bits, split, modes, _stage(progress, family, n_bits, f", {reason}"))
                own += made
                if any(map(is_enough, made)):
                    enough = made[0].bytes_per_row
                    break
                without_gain = 0 if recall_of(made) > best else without_gain + 1
                best = max(best, recall_of(made))


def _stage(progress: ProgressCallback | None, family: str, n_bits: int, reason: str = "") -> ProgressCallback:
    """Tell of a new fit; returns the callback for it."""
    stage = f"{family}, {-(-n_bits // 8)} bytes{reason}"
    tell(progress, stage, 0, None)
    return lambda fit: tell(progress, stage, fit.done, fit.total)


def _certified(
    outcome: Outcome, claim: Claim, split: Split, keep_floats: bool, own_queries: bool, growth: float | None
) -> Certificate:
    winner = outcome.accepted
    values = found(winner.testing, outcome.depth)
    return Certificate(
        recall=claim.recall,
        promised=outcome.promised,
        k=claim.k,
        confidence=claim.confidence,
        metric=split.metric,
        mode=winner.mode,
        depth=outcome.depth,
        max_depth=claim.max_depth,
        keep_floats=keep_floats,
        n_bits=int(winner.hasher.n_bits),
        family=winner.family,
        n_database=len(split.database),
        n_rows=split.n_rows,
        n_choosing=len(split.choosing),
        n_testing=len(split.testing),
        own_queries=own_queries,
        found=tuple(np.bincount(np.rint(values * claim.k).astype(int), minlength=claim.k + 1).tolist()),
        bet=outcome.bet,
        tested=outcome.tested,
        model=fingerprint(winner.hasher),
        data=digest(split.database),
        queries=digest(np.concatenate([split.choosing, split.testing])),
        seed=split.seed,
        growth=growth,
        versions={"hashlearn": hashlearn.__version__, "numpy": np.__version__},
    )
