"""Codes that compete to keep a promise: each family at several sizes, with each kind of search.

A contender is judged by the ranks of true neighbors: how many candidates a search must return until it has found them.
Recall at every depth follows from them, so each kind of code is searched once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.compression.splitting import Ranks, Split
from hashlearn.core.arrays import FloatArray
from hashlearn.core.progress import ProgressCallback
from hashlearn.hashers import ITQ, BaseHasher, RankingHasher, SignCodes, TwoStepHasher
from hashlearn.search import worst_ranks

MODES = ("hamming", "asymmetric")
SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # bytes
QUICK, SLOW = ("pca_sign", "itq", "sign", "two_step"), ("ranking_linear", "ranking_mlp")
FAMILIES = (*QUICK, *SLOW)


@dataclass(frozen=True, eq=False)
class Contender:
    """A code with a kind of search, and the ranks of the true neighbors of both sets of queries."""

    family: str
    mode: str
    bytes_per_row: int
    fit_seconds: float
    choosing: Ranks = field(repr=False)
    testing: Ranks = field(repr=False)
    hasher: BaseHasher = field(repr=False)
    codes: NDArray[np.uint8] = field(repr=False)  # of the database

    def __str__(self) -> str:
        return f"{self.family}, {self.bytes_per_row} bytes, {self.mode}"


def found(ranks: Ranks, depth: int) -> FloatArray:
    """The share of its neighbors that each query finds among the first ``depth``.

    >>> found(np.array([[1, 3], [2, 9]]), depth=3)
    array([1. , 0.5])
    """
    shares: FloatArray = (ranks <= depth).mean(axis=1)
    return shares


def sizes_of(family: str, split: Split, max_bytes: int) -> list[int]:
    """The numbers of bits to try, ascending."""
    n, n_features = split.database.shape
    if family == "sign":
        return [n_features] if n_features <= min(8 * max_bytes, n) else []
    most = n if family in ("ranking_linear", "ranking_mlp", "two_step") else min(n, n_features)
    return [8 * size for size in SIZES if size <= max_bytes and 8 * size <= most]


def contenders(
    family: str, n_bits: int, split: Split, modes: tuple[str, ...], progress: ProgressCallback | None
) -> list[Contender]:
    """Fit one code and search it in each mode."""
    hasher = _HASHERS[family](n_bits, split, progress)
    began = time.perf_counter()
    hasher.fit(split.database, split.labels if family == "two_step" else None)
    seconds = time.perf_counter() - began
    if "progress" in hasher.get_params():
        hasher.set_params(progress=None)
    codes = hasher.encode(split.database)
    pairs = ((split.choosing, split.true_choosing), (split.testing, split.true_testing))
    made = []
    for mode in modes:
        choosing, testing = (
            worst_ranks(true, codes, n_bits, **asked(hasher, queries, mode)) for queries, true in pairs
        )
        made.append(Contender(family, mode, codes.shape[1], seconds, choosing, testing, hasher, codes))
    return made


def asked(hasher: BaseHasher, queries: Any, mode: str) -> dict[str, Any]:
    """What a search of this mode compares with the codes."""
    return (
        {"margins": hasher.decision_function(queries)} if mode == "asymmetric" else {"queries": hasher.encode(queries)}
    )


def _ranking(encoder: str) -> Callable[[int, Split, ProgressCallback | None], BaseHasher]:
    def build(n_bits: int, split: Split, progress: ProgressCallback | None) -> BaseHasher:
        return RankingHasher(n_bits, encoder=encoder, metric=split.metric, random_state=split.seed, progress=progress)

    return build


_HASHERS: dict[str, Callable[[int, Split, ProgressCallback | None], BaseHasher]] = {
    "pca_sign": lambda n_bits, split, _: SignCodes(n_bits, features="pca", random_state=split.seed),
    "itq": lambda n_bits, split, _: ITQ(n_bits, random_state=split.seed),
    "sign": lambda n_bits, split, _: SignCodes(n_bits),
    "two_step": lambda n_bits, split, progress: TwoStepHasher(n_bits, random_state=split.seed, progress=progress),
    "ranking_linear": _ranking("linear"),
    "ranking_mlp": _ranking("mlp"),
}
