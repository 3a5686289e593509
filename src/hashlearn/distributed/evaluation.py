"""Retrieval quality over a database in blocks: merged are the numbers of items, and of relevant ones, at each distance.

Every worker counts its block against all queries; the counts, n_queries × (n_bits + 1) integers, add up, and every
metric that needs no order among equal distances follows from the sums exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_radius
from hashlearn.distributed.block_cache import combined, one_core
from hashlearn.distributed.blocks import found_files, has_no_rows
from hashlearn.distributed.client import connected
from hashlearn.distributed.moments import plus, tree
from hashlearn.metrics.average_precision import finisher
from hashlearn.metrics.counting import CountArray, Counts, count_pairs
from hashlearn.metrics.inputs import make_task
from hashlearn.metrics.retrieval import PrecisionRecallCurve, curve_of_totals, totals, within
from hashlearn.streams import read_labels
from hashlearn.streams.opening import read_codes, split_address

Source = tuple[Any, Any]  # codes and labels of a block: arrays, or the addresses of files


class BlockEvaluation(NamedTuple):
    """Fractions in [0, 1], and the pooled curve by radius."""

    mean_average_precision: float
    precision_within_radius: float
    curve: PrecisionRecallCurve
    n_database: int


def evaluate(
    query_codes: Any,
    query_labels: Any,
    database: Sequence[Source] | Any,
    *,
    database_labels: Any = None,
    n_bits: int | None = None,
    model: str | None = None,
    radius: int = 2,
    client: Any = None,
    address: str | None = None,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
) -> BlockEvaluation:
    """Mean average precision and precision within ``radius`` of queries against a database in blocks.

    Parameters
    ----------
    query_codes, query_labels : packed codes and classes, arrays
    database : pairs (codes, labels) of each block: arrays, or addresses of files as `hashlearn.streams` reads them; or
        the files that `encode` wrote (a folder, pattern or list), with ``database_labels`` the files of their labels in
        the same order, as ``FILE::COLUMN`` where they have several columns
    n_bits : of the codes, where they are in files
    model : digest of the hasher; Parquet files with codes of another model are refused
    radius : as in `hashlearn.metrics`; ties are averaged over
    client, address, n_workers, memory_limit : as in `fit`; ``n_workers=0`` counts in this process

    >>> codes = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> blocks = [(codes[:1], [1]), (codes[1:], [0, 1])]
    >>> evaluate(codes[:1], [1], blocks, n_workers=0).precision_within_radius
    0.5
    """
    require_radius(radius)
    blocks = list(database) if database_labels is None else _pairs(database, database_labels)
    if not blocks:
        raise ValueError("database has no blocks")
    queries, labels = np.asarray(query_codes), np.asarray(query_labels)
    with connected(client, address, n_workers, memory_limit) as opened:
        if opened is None:
            parts = [_counts(queries, labels, n_bits, model, *block) for block in blocks]
            total = tree(partial(reduce, plus), parts)
        else:
            submit = partial(opened.submit, pure=False)
            parts = [submit(_counts, queries, labels, n_bits, model, *block) for block in blocks]
            total = tree(lambda few: submit(combined, plus, *few), parts).result()
    retrieved, relevant = total
    counts = Counts.without_order(retrieved, relevant, np.zeros(len(queries), np.int32))
    n = int(counts.retrieved[0].sum())
    precisions = finisher(n, "expected", "plain", None)(counts)
    return BlockEvaluation(
        float(precisions.mean()),
        float(within(counts, radius).mean()),
        curve_of_totals(totals(counts)),
        n,
    )


def _counts(
    queries: NDArray[np.uint8],
    query_labels: NDArray[Any],
    n_bits: int | None,
    model: str | None,
    codes: Any,
    labels: Any,
) -> tuple[CountArray, CountArray]:
    """Items and relevant items at each distance, for every query, in one block."""
    if isinstance(codes, str):
        if n_bits is None:
            raise ValueError("n_bits is needed to read codes from files")
        codes = read_codes(codes, n_bits, model)[0]
    labels = read_labels(labels) if isinstance(labels, str) else labels
    task = make_task(queries, codes, query_labels, labels)
    with one_core():
        parts = count_pairs(task, lambda counts: (counts.retrieved, counts.relevant))
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _pairs(database: Any, labels: Any) -> list[Source]:
    codes = [str(file) for file in found_files(database)]
    if isinstance(labels, list | tuple):
        addresses = [str(item) for item in labels if not has_no_rows(split_address(item)[0])]
    else:
        addresses = [str(file) for file in found_files(labels)]
    if len(addresses) != len(codes):
        raise ValueError(
            f"database_labels must name one file for each of {len(codes)} files of codes, got {len(addresses)}"
        )
    return list(zip(codes, addresses, strict=True))
