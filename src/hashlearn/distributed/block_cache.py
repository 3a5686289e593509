"""What a worker does with a block and what it caches between passes: its rows of the target's factor, and its codes.

Tasks are functions of one block. They hold BLAS to one thread and start no threads of their own. The factor is in
memory, or in an npy file of the worker's own folder if memory is short. All of it can be made again from the block's
rows and the codes that the client has: a worker that lost it says `MISSING`, and is sent them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import on_this_thread, one_blas_thread
from hashlearn.distributed.blocks import checked_rows
from hashlearn.distributed.moments import panels
from hashlearn.inference.passes import Outcome
from hashlearn.linalg.unit_rows import scale_to_unit

MISSING = "missing"


@dataclass(frozen=True, eq=False)
class FactorSpec:
    """How a block's factor is made from its rows, and where it is kept."""

    job: str
    mean: FloatArray
    typical_norm: float  # of the rows before the mean is subtracted
    directions: FloatArray  # (n_features, rank)
    memory: float  # bytes of factors that one process may keep in memory; the others go to files

    def factor(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Unit rows in the first principal directions, float32."""
        parts = [
            (scale_to_unit(panel - self.mean, self.typical_norm) @ self.directions).astype(np.float32)
            for panel in panels(rows)
        ]
        return np.concatenate(parts)


class BlockState:
    """State of one block. ``version`` counts the passes whose outcome its codes have taken up."""

    def __init__(self, factor: NDArray[np.float32], folder: Path | None, number: int) -> None:
        self.version = -1
        self.codes: NDArray[np.uint8] | None = None  # packed, (rows, ⌈n_bits/8⌉)
        self.pending: tuple[int, list[NDArray[np.bool_]]] | None = None
        self._factor: NDArray[np.float32] | Path = factor
        if folder is not None:
            self._factor = folder / f"{number}.npy"
            unfinished = folder / f".{number}.{os.getpid()}.npy"
            np.save(unfinished, factor)
            os.replace(unfinished, self._factor)

    def factor(self) -> NDArray[np.float32]:
        """Rows of the factor, (rows, rank)."""
        return np.load(self._factor) if isinstance(self._factor, Path) else self._factor

    def signs(self, n_bits: int) -> NDArray[np.int8]:
        """The codes as ±1, (rows, n_bits)."""
        assert self.codes is not None
        return np.unpackbits(self.codes, axis=1, count=n_bits).view(np.int8) * np.int8(2) - np.int8(1)

    def reached(self, version: int, outcome: Outcome) -> bool:
        """Take up the outcome of the last pass; whether the codes are now those of ``version``."""
        if self.version == version - 1 and self.pending is not None:
            bit, columns = self.pending
            if outcome is not Outcome.KEEP:
                assert self.codes is not None
                set_bit(self.codes, bit, columns[outcome.value])
            self.version, self.pending = version, None
        return self.version == version


class BlockCache:
    """The blocks that one process keeps, for one fit."""

    def __init__(self, spec: FactorSpec, parent: str | None = None) -> None:
        self.spec = spec
        self.blocks: dict[int, BlockState] = {}
        self._parent = parent
        self._folder: Path | None = None
        self._in_memory: dict[int, int] = {}
        self._lock = threading.Lock()

    def put(self, number: int, rows: NDArray[Any]) -> BlockState:
        """Make the factor of a block and keep it."""
        factor = self.spec.factor(rows)
        with self._lock:
            self._in_memory.pop(number, None)
            fits = sum(self._in_memory.values()) + factor.nbytes <= self.spec.memory
            if fits:
                self._in_memory[number] = factor.nbytes
            elif self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix=f"hashlearn-{self.spec.job}-", dir=self._parent))
        state = self.blocks[number] = BlockState(factor, None if fits else self._folder, number)
        return state

    def close(self) -> None:
        """Forget everything."""
        self.blocks.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


_caches: dict[str, BlockCache] = {}
_lock = threading.Lock()


def cache_of(spec: FactorSpec, parent: str | None = None) -> BlockCache:
    """This process's cache for the spec's fit."""
    with _lock:
        if spec.job not in _caches:
            _caches[spec.job] = BlockCache(spec, parent)
        return _caches[spec.job]


def forget(job: str) -> None:
    """Drop this process's cache for a fit."""
    with _lock:
        found = _caches.pop(job, None)
    if found is not None:
        found.close()


def set_bit(codes: NDArray[np.uint8], bit: int, values: NDArray[np.bool_]) -> None:
    """Write one bit of every packed code, in place.

    >>> codes = np.zeros((2, 1), np.uint8)
    >>> set_bit(codes, 1, np.array([True, False]))
    >>> codes.ravel()
    array([64,  0], dtype=uint8)
    """
    mask = np.uint8(128 >> bit % 8)
    column = codes[:, bit // 8]
    column &= ~mask
    column |= np.where(values, mask, np.uint8(0))


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this task.

    threadpoolctl lets one thread at a time limit BLAS and ignores the others in silence, so a worker process is held to
    one thread once and for all. In the caller's own process the caller holds BLAS (`executors.InProcess`, `fit`).
    """
    with on_this_thread(), ExitStack() as stack:
        if _worker() is not None:
            if parent_process() is None:
                stack.enter_context(one_blas_thread())
            else:
                _hold_blas()
        yield
    if "pyarrow" in sys.modules:  # whose allocator keeps what it freed, several times the size of a block
        sys.modules["pyarrow"].default_memory_pool().release_unused()


@cache
def _hold_blas() -> ExitStack:
    stack = ExitStack()
    stack.enter_context(one_blas_thread())
    return stack


def loaded(source: Any, name: str, n_features: int) -> NDArray[Any]:
    """Rows of a block, checked; ``source`` is the block, or its rows where the scheduler has computed them."""
    return checked_rows(source.load() if hasattr(source, "load") else source, name, n_features)


def on_rows(
    function: Callable[..., Any], source: Any, name: str, n_features: int, each: Sequence[Any], common: Sequence[Any]
) -> Any:
    """``function(rows, *each, *common)``."""
    with one_core():
        return function(loaded(source, name, n_features), *each, *common)


def combined(combine: Callable[[Any, Any], Any], *parts: Any) -> Any:
    """Parts merged from the left."""
    with one_core():
        return reduce(combine, parts)


def on_state(
    function: Callable[..., Any],
    spec: FactorSpec,
    number: int,
    version: int,
    outcome: Outcome,
    arguments: Sequence[Any],
) -> Any:
    """``function(state, *arguments)``, or `MISSING` where this worker has no such block at that version."""
    with one_core():
        state = cache_of(spec, _folder()).blocks.get(number)
        if state is None or not state.reached(version, outcome):
            return MISSING
        return function(state, *arguments)


def on_restored(
    function: Callable[..., Any],
    source: Any,
    name: str,
    n_features: int,
    spec: FactorSpec,
    number: int,
    codes: NDArray[Any] | None,
    version: int,
    arguments: Sequence[Any],
) -> Any:
    """The same after the block was made from its rows and from the codes that the client has, if it has any."""
    with one_core():
        state = cache_of(spec, _folder()).put(number, loaded(source, name, n_features))
        state.codes, state.version = None if codes is None else codes.copy(), version
        return function(state, *arguments)


def _folder() -> str | None:
    """The folder for files of this Dask worker; None outside of Dask."""
    worker = _worker()
    return None if worker is None else str(worker.local_directory)


def _worker() -> Any:
    """The Dask worker that runs this task, None outside of Dask."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].get_worker()
    except ValueError:
        return None


def same(value: Any) -> Any:
    """Itself: a value that is sent once and then named by its future."""
    return value
