"""A small data set that passes for the digits, and hashers that are quick, slow or broken on purpose."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn.experiments.bench.methods import METHODS, SUPERVISED, UNSUPERVISED, Method
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.run import run
from hashlearn.experiments.datasets import DataSet, Provenance
from hashlearn.hashers import HASHERS, BaseHasher

N_CLASSES, A_CLASS = 7, 110


def dataset(sizes: tuple[int, ...] = (A_CLASS,) * N_CLASSES, name: str = "digits", n_queries: int = 0) -> DataSet:
    """Gaussian classes; ``n_queries`` of each, the last ones, are the canonical test part."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = (rng.normal(size=(len(sizes), 6))[y] + 0.3 * rng.normal(size=(len(y), 6))).astype(np.float32)
    images = rng.integers(0, 256, size=(len(y), 2, 3), dtype=np.uint8)
    is_query = None
    if n_queries:
        is_query = np.concatenate([np.arange(size) >= size - n_queries for size in sizes])
    names = tuple(f"<class {k}>" for k in range(len(sizes)))
    return DataSet(name, "pixels", X, y, names, is_query, images, Provenance("made up", "none", (), {}))


class Quick(BaseHasher):
    """Signs of random projections."""

    def __init__(self, n_bits: int = 8, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Quick:
        X = self._validated(X, reset=True)
        self.planes_ = np.random.default_rng(self.random_state).normal(size=(X.shape[1], self.n_bits))
        return self

    def decision_function(self, X: Any) -> Any:
        return self._validated(X, reset=False) @ self.planes_


class Slow(Quick):
    """Where a folder is named for it: leaves its process's number there, and does not end with four bits or more."""

    def fit(self, X: Any, y: Any = None) -> Slow:
        folder = os.environ.get("FAKES_PIDS")
        if folder:
            (Path(folder) / str(os.getpid())).touch()
            time.sleep(0.1 if self.n_bits < 4 else 600.0)
        super().fit(X, y)
        return self


class Broken(Quick):
    """Cannot learn an odd number of bits."""

    def fit(self, X: Any, y: Any = None) -> Broken:
        if self.n_bits % 2:
            raise RuntimeError("odd bits are beyond me")
        super().fit(X, y)
        return self


class Dying(Quick):
    """Is killed while it learns four bits."""

    def fit(self, X: Any, y: Any = None) -> Dying:
        if self.n_bits == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        super().fit(X, y)
        return self


class Interrupted(Quick):
    """Ctrl-C comes while it learns, and it makes do with what it has, as a bit solver does."""

    def fit(self, X: Any, y: Any = None) -> Interrupted:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        super().fit(X, y)
        return self


def register() -> None:
    """Make the hashers above methods of the bench."""
    for kind in (Quick, Slow, Broken, Dying, Interrupted):
        HASHERS[kind.__name__] = kind
        METHODS[kind.__name__] = Method(kind.__name__, kind.__name__, (SUPERVISED, UNSUPERVISED), lambda request: {})


def load(name: str, features: str | None = None, progress: Any = None) -> DataSet:
    """Stands in for `datasets.load`, in worker processes too, where the methods must first be made known."""
    register()
    return dataset(name=name)


def unregister() -> None:
    """Undo `register`: tests of every hasher must not meet these."""
    for name in ("Quick", "Slow", "Broken", "Dying", "Interrupted"):
        HASHERS.pop(name, None)
        METHODS.pop(name, None)


register()
PLAN_TO_KILL = plan("inference", ["digits"], ["Slow"], range(2, 8), n_draws=1)

if __name__ == "__main__":  # python -m tests.experiments.bench.fakes FOLDER JOBS: a run to be killed
    run(PLAN_TO_KILL, sys.argv[1], jobs=int(sys.argv[2]), load=load)
else:
    unregister()
