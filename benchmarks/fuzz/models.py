"""Targets of the two files that hashlearn writes for itself: models and indexes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits

from benchmarks.mutated_files import damaged, forged, forged_index
from hashlearn import load, persistence
from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.hash_functions import HASH_FUNCTIONS, Trees
from hashlearn.hashers import HASHERS, KSH, LSH, TwoStepHasher
from hashlearn.search import HammingIndex

FORGED = 0.8  # of the files; the rest is damaged
MOST_FEATURES = 4096
QUICK: dict[str, dict[str, Any]] = {
    "fasthash": {"n_trees": 3},
    "alm_hashing": {"max_iter": 2},
    "nmf_hashing": {"max_iter": 5},
    "bre": {"n_pairs": 9},
}


class ModelFiles:
    """A model of every hasher and every hash function, dense and sparse."""

    @staticmethod
    def prepare(folder: Path) -> None:
        X, y = load_digits(return_X_y=True)
        X, y = X[:60, 16:32], y[:60]
        for name, kind in HASHERS.items():
            kind(8, **QUICK.get(name, {})).set_params(random_state=0).fit(X, y).save(folder / name)
        functions = {name: name for name in HASH_FUNCTIONS} | {"trees": Trees(n_trees=3, max_depth=3)}
        for name, function in functions.items():
            hasher = TwoStepHasher(12, hash_function=function, random_state=0).fit(X, y)
            hasher.save(folder / f"two_step-{name}", codes=False)
        KSH(8, n_anchors=20, random_state=0).fit(sp.csr_array(X), y).save(folder / "ksh-sparse")
        promise = {"recall": 0.95, "found": [0, 3, 97], "model": None, "versions": {"numpy": "2"}}
        persistence.save(LSH(8, random_state=0).fit(X), folder / "lsh-promised", promise=promise)

    def __init__(self, folder: Path) -> None:
        self.files = [path.read_bytes() for path in sorted(folder.iterdir())]

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        original = self.files[rng.integers(len(self.files))]
        forge = rng.random() < FORGED
        data = forged(original, rng) if forge else damaged(original, rng)
        path = folder / "case.hashlearn"
        path.write_bytes(data)
        try:
            hasher = load(path)
        except persistence.PersistenceError:
            return "refused"
        if not forge and data != original:
            return "FAILED: a damaged file was loaded"
        with contextlib.suppress(persistence.PersistenceError):
            persistence.describe(path)  # it wants the provenance too, which nothing else needs
        return _encoded(hasher, rng)


def _encoded(hasher: Any, rng: np.random.Generator) -> str:
    """Margins of ordinary rows and of the largest that are accepted, in float64 and float32, dense and sparse."""
    d = hasher.n_features_in_
    if d > MOST_FEATURES:
        return f"works, wants more than {MOST_FEATURES} features"
    signs = np.where(rng.random((2, d)) < 0.5, -1.0, 1.0)
    rows = np.vstack([np.zeros(d), np.ones(d), rng.standard_normal((3, d)), LARGEST_FEATURE * signs, 5e-324 * signs])
    kinds = [rows, rows.astype(np.float32)]
    if hasher.__sklearn_tags__().input_tags.sparse:
        kinds += [sp.csr_array(rows), sp.csr_array(rows.astype(np.float32))]
    for X in kinds:
        margins, codes = hasher.decision_function(X), hasher.encode(X)
        if not np.isfinite(margins).all():
            return f"FAILED: margins are not finite ({X.dtype}, {type(X).__name__})"
        shape = (len(rows), hasher.n_bits)
        if margins.shape != shape or not np.array_equal(codes, np.packbits(margins >= 0.0, axis=1)):
            return f"FAILED: margins {margins.shape} and codes {codes.shape} do not fit each other"
    return "works"


class IndexFiles:
    """An index of every kind of ids."""

    @staticmethod
    def prepare(folder: Path) -> None:
        rng = np.random.default_rng(0)
        for n_bits in (12, 64):
            index = HammingIndex(n_bits)
            index.add(_random_codes(rng, 50, n_bits), np.arange(50) * 3)
            index.save(folder / str(n_bits))
        HammingIndex(9, model="a" * 64).save(folder / "empty")
        index = HammingIndex(12)
        index.add(_random_codes(rng, 50, 12), [f"é'{i}" for i in range(50)])
        index.save(folder / "text")

    def __init__(self, folder: Path) -> None:
        self.files = [path.read_bytes() for path in sorted(folder.iterdir())]

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        original = self.files[rng.integers(len(self.files))]
        forge = rng.random() < FORGED
        data = forged_index(original, rng) if forge else damaged(original, rng)
        path = folder / "case.index"
        path.write_bytes(data)
        try:
            index = HammingIndex.load(path)
        except ValueError:
            return "refused"
        if not forge and data != original:
            return "FAILED: a damaged file was loaded"
        return _searched(index, rng)


def _searched(index: HammingIndex, rng: np.random.Generator) -> str:
    queries = _random_codes(rng, 3, index.n_bits)
    if len(index) == 0:
        return "works, empty"
    for _ in range(2):
        k = min(5, len(index))
        found, near = index.search(queries, k), index.search_radius(queries, 2)
        ids = set(index.ids.tolist())
        if found.indices.shape != (3, k) or not {*found.indices.ravel().tolist()} <= {-1, None, *ids}:
            return "FAILED: ids that are not in the index"
        if not {*near.indices.tolist()} <= ids or (near.distances > 2).any():
            return "FAILED: items outside the radius"
        first = index.ids[:1]
        if not np.array_equal(index.search(queries, 1, where=first).indices, np.repeat(first[None], 3, axis=0)):
            return "FAILED: a filter by one id finds something else"
        index.remove(first)
        made = [f"new {i}" if index.id_type == "string" else i for i in range(len(index) + 3)]
        index.add(queries, [item for item in made if item not in ids][:3])
    return "works"


def _random_codes(rng: np.random.Generator, n: int, n_bits: int) -> np.ndarray:
    return np.packbits(rng.random((n, n_bits)) < 0.5, axis=1)
