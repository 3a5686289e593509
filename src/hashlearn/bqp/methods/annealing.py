"""Simulated annealing of single flips on a sparse A: O(n + flips · degree) a sweep.

The state is that of `hashlearn.bqp.methods.tabu`: gain_i = x_i Σ_{j≠i} a_ij x_j, and flipping x_i lowers xᵀAx by
4·gain_i. A sweep visits all variables in order. It flips i if −gain_i ≤ T·e with e drawn from the exponential
distribution (the Metropolis rule without an exponential: e comes from a table of 4,096 quantiles). The temperature T
falls geometrically. It is measured in the norms of the rows of A, which are the sizes of gains of random signs. Every
anneal ends with flips that lower the value until there are none.

Weights that are small integers times a common unit are held in float32, where their sums are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.methods.tabu import Walk, draw
from hashlearn.core.arrays import FloatArray

# Temperatures of a full anneal. HOT multiplies the root mean square of the row norms, COLD their geometric mean.
# A good choice among HOT 0.3, 0.4, 0.6 and COLD 0.03, 0.06, 0.1 on G14, G22, G51, G60 and three generated graphs.
HOT, COLD = 0.4, 0.06
QUANTILES = -np.log((np.arange(4096) + 0.5) / 4096.0)
# Nanoseconds in one piece, and in a visit and for each neighbor: what sweeps of the default budget are counted by.
PIECE = 20_000_000
VISIT, NEIGHBOR = 8.0, 0.5
LARGEST_FLOAT32 = 2.0**24  # integers up to here are exact in float32
FEWEST_SWEEPS = 4
MOST_PASSES = 1000

Between = Callable[[], Any]
Signs = NDArray[Any]  # ±1 in the precision of the weights


class Annealer:
    """Anneals on one matrix, from any signs. ``trace`` is added to every value."""

    def __init__(self, matrix: sp.csr_array, trace: float = 0.0) -> None:
        self.n = matrix.shape[0]
        self._trace = trace
        weights, self._unit = _in_units(matrix)
        self.matrix = sp.csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)
        # One type each, so that the kernels are compiled once.
        self._parts = (
            weights,
            self.matrix.indices.astype(np.int32, copy=False),
            self.matrix.indptr.astype(np.int64, copy=False),
        )
        self._quantiles = QUANTILES.astype(weights.dtype)
        counts = np.diff(matrix.indptr)
        squares = _row_sums(weights, matrix.indptr) if (np.abs(weights) != 1.0).any() else counts.astype(np.float64)
        squares = squares[counts > 0]
        self._hot = HOT * float(np.sqrt(squares.mean())) if len(squares) else 1.0
        self._cold = COLD * float(np.exp(0.5 * np.log(squares).mean())) if len(squares) else 1.0
        # Beyond the processor's caches every gain that changes is fetched from memory.
        self.steps_per_sweep = (VISIT * self.n + NEIGHBOR * len(weights)) * (1.0 + min(4.0, self.n / 200_000))
        self._most_visits = max(1000, int(PIECE * self.n / self.steps_per_sweep))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of weights and signs."""
        return self.matrix.dtype

    def random_signs(self, rng: np.random.Generator) -> Signs:
        """Independent signs."""
        return (2 * rng.integers(0, 2, size=self.n, dtype=np.int8) - 1).astype(self.dtype)

    def anneal(
        self,
        x: Signs,
        rng: np.random.Generator,
        n_sweeps: int,
        heat: float = 1.0,
        between: Between | None = None,
        seconds: float = np.inf,
    ) -> Walk:
        """From the signs x at ``heat`` times the hottest temperature down to the coldest, then to a local optimum.

        With ``seconds`` the temperature falls with the clock instead where that is sooner: it then reaches the
        coldest at their end. ``between`` is called after every piece of work.
        """
        x, gain = self._state(x)
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        hot = max(heat * self._hot, self._cold)
        n_sweeps = max(n_sweeps, FEWEST_SWEEPS)
        done, begun, made = 0.0, time.perf_counter(), 0
        while done < 1.0 - 1e-9:
            step = 1.0 / n_sweeps
            if seconds < np.inf and made > 0:
                used = time.perf_counter() - begun
                step = max(step, (1.0 - done) * (used / made) / max(seconds - used, 1e-9))
            count = max(1, min(self._most_visits // self.n, round((1.0 - done) / step), 1 + made))
            fractions = np.minimum(done + step * np.arange(count), 1.0)
            temperatures = (hot * (self._cold / hot) ** fractions).astype(self.dtype)
            for first in range(0, self.n, self._most_visits):
                last = min(first + self._most_visits, self.n)
                _sweeps(*self._parts, x, gain, temperatures, self._quantiles, random, first, last)
                if between is not None:
                    between()
            made += count
            done += step * count
        return self._ended(x, gain, made, between)

    def descend(self, x: Signs, between: Callable[[Walk], Any] | None = None, max_passes: int = MOST_PASSES) -> Walk:
        """Flips that lower the value until there are none. ``between`` gets what was found so far."""
        x, gain = self._state(x)
        return self._ended(x, gain, 0, None, between, max_passes)

    def _state(self, x: Signs) -> tuple[Signs, Signs]:
        x = np.array(x, dtype=self.dtype)
        return x, x * (self.matrix @ x)

    def _value(self, gain: Signs) -> float:
        return self._unit * float(gain.sum(dtype=np.float64)) + self._trace

    def _ended(
        self,
        x: Signs,
        gain: Signs,
        made: int,
        between: Between | None,
        propose: Callable[[Walk], Any] | None = None,
        max_passes: int = MOST_PASSES,
    ) -> Walk:
        for _ in range(max_passes):
            changed = 0
            for first in range(0, self.n, self._most_visits):
                changed += _descend(*self._parts, x, gain, first, min(first + self._most_visits, self.n))
                if between is not None:
                    between()
            made += 1
            if propose is not None:
                propose(Walk(x, self._value(gain), made))
            if not changed:
                break
        return Walk(x, self._value(gain), made)


def without_diagonal(matrix: sp.csr_array) -> sp.csr_array:
    """The matrix less its diagonal, which only shifts every value, and less stored zeros."""
    if not matrix.diagonal().any() and matrix.data.all():
        return matrix
    rest = sp.csr_array(matrix - sp.diags_array(matrix.diagonal(), format="csr"))
    rest.eliminate_zeros()
    return rest


def _in_units(matrix: sp.csr_array) -> tuple[NDArray[Any], float]:
    """Weights and their unit: float32 integers if all sums of weights are exact there, else the float64 weights."""
    sizes = np.abs(matrix.data)
    smallest, largest = float(sizes.min(initial=np.inf)), float(sizes.max(initial=0.0))
    widest = int(np.diff(matrix.indptr).max(initial=0))
    for unit in (smallest, 1.0):
        if 0.0 < unit < np.inf and widest * largest < LARGEST_FLOAT32 * unit:
            whole = np.rint(matrix.data / unit)
            if np.array_equal(whole * unit, matrix.data):
                return whole.astype(np.float32), unit
    return matrix.data, 1.0


def _row_sums(weights: NDArray[Any], indptr: NDArray[Any]) -> FloatArray:
    """The sums of squares of the rows that are not empty; the others hold anything."""
    squares = np.append(weights.astype(np.float64) ** 2, 0.0)
    return np.asarray(np.add.reduceat(squares, indptr[:-1]))


@njit(cache=True, nogil=True)
def _sweeps(  # type: ignore[no-untyped-def]
    data, indices, indptr, x, gain, temperatures, quantiles, random, first, last
):
    """One sweep over first…last − 1 for each temperature."""
    for temperature in temperatures:
        least = -quantiles[0] * temperature
        for i in range(first, last):
            g = gain[i]
            if g < least:
                continue
            if g < 0.0 and -g > temperature * quantiles[draw(random) >> np.uint64(52)]:
                continue
            _flip(data, indices, indptr, x, gain, i)


@njit(cache=True, nogil=True)
def _descend(data, indices, indptr, x, gain, first, last):  # type: ignore[no-untyped-def]
    """One pass of flips that help by more than rounding; returns how many."""
    changed = 0
    for i in range(first, last):
        if gain[i] > 0.0:
            total = size = x[i] - x[i]  # 0 in the precision of x
            for q in range(indptr[i], indptr[i + 1]):
                total += data[q] * x[indices[q]]
                size += abs(data[q])
            gain[i] = total * x[i]
            if gain[i] > 1e-12 * size:
                changed += 1
                _flip(data, indices, indptr, x, gain, i)
    return changed


@njit(cache=True, nogil=True, inline="always")
def _flip(data, indices, indptr, x, gain, i):  # type: ignore[no-untyped-def]
    twice = x[i] + x[i]
    for q in range(indptr[i], indptr[i + 1]):
        k = indices[q]
        gain[k] -= twice * data[q] * x[k]
    x[i] = -x[i]
    gain[i] = -gain[i]
