"""The table of all contenders, queries whose neighbors changed, and how depth grows with the database."""

from __future__ import annotations

import math
import time

import numpy as np

from hashlearn.compression.contenders import Contender, asked, found
from hashlearn.compression.result import Example, FrontierRow
from hashlearn.compression.splitting import Split
from hashlearn.compression.testing import Claim, Evidence, measured_depth
from hashlearn.compression.vector_index import VectorIndex
from hashlearn.metrics import float_neighbors
from hashlearn.search import HammingIndex, worst_ranks

TIMED_QUERIES, EXAMPLES = 200, 6
SUBSAMPLES = (0.5, 1.0)  # of the database
SLOWEST_GROWTH = 0.5  # measured exponents were 0.2 to 0.46, and larger than samples of the database show


def frontier_of(
    tried: list[Contender], claim: Claim, evidence: Evidence, split: Split, winner: Contender
) -> tuple[FrontierRow, ...]:
    """A row for each contender, smallest codes first. All bounds and the promise hold together."""
    table = []
    for contender in sorted(tried, key=lambda contender: (contender.bytes_per_row, contender.family, contender.mode)):
        bounds = evidence.bounds(contender)
        row = FrontierRow(
            bytes_per_row=contender.bytes_per_row,
            family=contender.family,
            mode=contender.mode,
            depth=bounds.depth,
            recall=float(found(contender.testing, claim.max_depth).mean()),
            bound=bounds.recall,
            codes_recall=float(found(contender.testing, claim.k).mean()),
            codes_bound=bounds.codes_recall,
            ms_per_query=_milliseconds(contender, split, bounds.depth or claim.max_depth),
            fit_seconds=contender.fit_seconds,
            chosen=contender is winner,
        )
        table.append(row)
    return tuple(table)


def _milliseconds(contender: Contender, split: Split, depth: int) -> float:
    """Time of a query, encoding and rescoring included, in a batch on all cores."""
    index = _index(contender, split, depth)
    queries = split.testing[:TIMED_QUERIES]
    index.search(queries[:1], split.k)  # compiles kernels, prepares the scan
    began = time.perf_counter()
    index.search(queries, split.k)
    return 1000.0 * (time.perf_counter() - began) / len(queries)


def _index(contender: Contender, split: Split, depth: int, keep_floats: bool = True) -> VectorIndex:
    codes = HammingIndex(contender.hasher.n_bits)
    codes.add(contender.codes, vectors=split.database if keep_floats else None)
    return VectorIndex(contender.hasher, codes, contender.mode, lambda n_rows: depth, split.metric, keep_floats)


def examples_of(winner: Contender, depth: int, keep_floats: bool, split: Split) -> tuple[Example, ...]:
    """The testing queries that lost most neighbors, worst first. Queries that lost none are not examples."""
    values = found(winner.testing, depth)
    worst = np.argsort(values, kind="stable")[:EXAMPLES]
    worst = worst[values[worst] < 1.0]
    if not len(worst):
        return ()
    answers = _index(winner, split, depth, keep_floats).search(split.testing[worst], split.k).indices
    return tuple(
        Example(
            int(split.testing_rows[place]),
            tuple(split.database_rows[split.true_testing[place]].tolist()),
            tuple(split.database_rows[answer].tolist()),
        )
        for place, answer in zip(worst, answers, strict=True)
    )


def growth_of(contender: Contender, split: Split, recall: float) -> float:
    """The exponent in depth ∝ n ** growth, from half of the database and all of it; an estimate on the safe side."""
    hasher, codes, n = contender.hasher, contender.codes, len(split.database)
    queries = np.concatenate([split.choosing, split.testing])
    order = np.random.default_rng(split.seed).permutation(n)
    sizes = [max(split.k, round(share * n)) for share in SUBSAMPLES]
    depths = []
    for size in sizes:
        part = np.sort(order[:size])
        true = float_neighbors(queries, split.database[part], split.k, metric=split.metric)
        ranks = worst_ranks(true, codes[part], hasher.n_bits, **asked(hasher, queries, contender.mode))
        depths.append(measured_depth(ranks, recall))
    return max(SLOWEST_GROWTH, math.log(depths[1] / depths[0]) / math.log(sizes[1] / sizes[0]))
