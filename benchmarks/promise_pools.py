"""Pools of queries with the ranks of their true neighbors, and what `compress` promises for queries drawn from them.

Every code is searched once, for up to 4,500 queries. A draw takes rows of these ranks, and `compress`'s own functions
choose and test on them, so hundreds of draws take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hashlearn.compression.contenders import MODES, Contender, contenders
from hashlearn.compression.splitting import CHOOSING_SHARE, Ranks, Split
from hashlearn.experiments import datasets
from hashlearn.hashers import SignCodes
from hashlearn.metrics import float_neighbors

K = 10
POOL, DATABASE = 4500, 20_000  # at most: queries, rows
TASKS = {  # name: data set, features, metric
    "CLINC150": ("clinc150_minilm", None, "cosine"),
    "Caltech-101": ("caltech101_efficientnet_lite0", None, "cosine"),
    "MNIST": ("mnist", None, "euclidean"),
    "CIFAR-10 GIST": ("cifar10", "gist", "euclidean"),
}
CODES = (*((family, size) for family in ("pca_sign", "itq") for size in (4, 8, 16)), ("ranking_linear", 8))
EMPTY = np.empty((0, K), np.int64)
NO_CODES = np.empty((0, 0), np.uint8)


@dataclass(frozen=True, eq=False)
class Pool:
    """Contenders with the ranks of all queries of the pool as their testing ranks."""

    name: str
    codes: list[Contender]
    n_database: int
    n_queries: int

    def drawn(self, choosing: Ranks, testing: Ranks) -> list[Contender]:
        """The contenders with these queries of the pool."""
        return [replace(c, choosing=c.testing[choosing], testing=c.testing[testing]) for c in self.codes]

    def split(self, asked: Ranks) -> list[Contender]:
        """The contenders with these queries, of which a fifth choose."""
        return self.drawn(*np.split(asked, [len(asked) // CHOOSING_SHARE]))


def rows_of(name: str) -> Split:
    """Database and pool, drawn at random where there are more rows than needed."""
    source, features, metric = TASKS[name]
    data, rng = datasets.load(source, features), np.random.default_rng(0)
    asked, others = np.split(rng.permutation(len(data.X)), [POOL])
    if data.is_query is not None:
        asked, others = (rng.permutation(np.flatnonzero(part)) for part in (data.is_query, ~data.is_query))
    queries, database = data.X[asked[:POOL]], data.X[np.sort(others[:DATABASE])]
    true = float_neighbors(queries, database, K, metric=metric)
    numbers = np.arange(len(database)), np.arange(len(queries))
    return Split(database, None, queries[:1], queries, true[:1], true, metric, 0, *numbers, len(database))


def pool_of(name: str, folder: Path | None) -> Pool:
    """The ranks of every code, from the folder if they are there."""
    path = None if folder is None else folder / f"{TASKS[name][0]}.npz"
    if path is None or not path.exists():
        rows = rows_of(name)
        made = [c for family, size in CODES for c in contenders(family, 8 * size, rows, MODES, None)]
        ranks = {f"{c.family},{c.bytes_per_row},{c.mode}": c.testing for c in made}
        n = len(rows.database)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, n_database=n, **ranks)
    else:
        with np.load(path) as stored:
            ranks = {key: stored[key] for key in stored.files}
            n = int(ranks.pop("n_database"))
    codes = []
    for key, testing in ranks.items():
        family, size, mode = key.split(",")
        codes.append(Contender(family, mode, int(size), 0.0, EMPTY, testing, SignCodes(8 * int(size)), NO_CODES))
    return Pool(name, codes, n, len(codes[0].testing))


Draw = Callable[[Pool, int, np.random.Generator], tuple[Ranks, Ranks]]


def with_replacement(pool: Pool, n: int, rng: np.random.Generator) -> tuple[Ranks, Ranks]:
    """The queries that are drawn, and those that judge: the whole pool."""
    return rng.integers(pool.n_queries, size=n), np.arange(pool.n_queries)


def without_replacement(pool: Pool, n: int, rng: np.random.Generator) -> tuple[Ranks, Ranks]:
    """The queries that are drawn, and those that judge: the others."""
    order = rng.permutation(pool.n_queries)
    return order[:n], order[n:]
