"""Rows of a float32 or float64 tensor on any device. Small matrices come back to the host, arrays of n rows stay.

Products run in the tensor's own dtype (sweeps over samples, draws and flips in TF32). Sums over rows are added in
float64 over blocks. Everything behind a proof or a reported value is computed in float64. `image` reads P twice.
Methods without a docstring have that of `Rows`.

Coordinate sweeps and flips take many rows at once:

Sweeps: blocks of rows step together, and the value still never rises. For the rows b of a block, A_bb ⪯ σI with
σ = λ_max of the part of positive weight. So the value less σ‖V_b‖² is concave in V_b, and v_i ← −(g_i − σ v_i)/‖·‖
minimizes its linearization.

Flips: each batch of rows in turn computes (Ax) from T = PᵀX and flips all signs whose flip alone would lower the value.
Together they may raise it, so a column takes the flips only if its value fell. If it rose, the next batches flip only
signs with gains near the largest, down to a single flip, which always lowers the value. The device decides all of that,
and the host reads one result in a pass. A pass reads P twice. The descent ends when a pass gains less than the dtype
resolves.

On a GPU the launch of a small step takes longer than the step. So the steps of a pass are recorded once as a CUDA
graph, and a replay launches all of them at once. PyTorch's ``make_graphed_callables`` does not serve: it runs a
function several times before it records it, and these functions change what they work on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch

from hashlearn.bqp.rows import Rows
from hashlearn.core.arrays import EPS, FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import (
    ALIGNED,
    BLOCK,
    CHUNK,
    GRAM_CHUNK,
    SHORT_BLOCK,
    allow_tf32,
    block_products,
    buffer,
    chunks,
    float64_gram,
    forbid_tf32,
    padded_factor,
    sums_of_squares,
    thin_product,
    transposed_product,
    with_padding,
)

# Sweeps:
BLOCKS = 2
SMALLEST_BLOCK = 64
POWER = 16
MARGIN = 1.01  # for rounding
# Flips:
BATCHES = 4
SMALLEST_BATCH = 128
PATIENCE = 2  # passes in a row that gain next to nothing


class TorchRows(Rows):
    """The passes over a tensor, which is not copied. A sample gets the ``graphs`` of the rows it is taken from."""

    xp, on_host = torch, False

    def __init__(self, P: Tensor, graphs: CudaGraphs | None = None) -> None:
        super().__init__(P)
        self._is_sample = graphs is not None
        self.graphs = graphs or CudaGraphs()
        # On a device the cost of a pass over a sample is its launch, and larger samples save passes over all rows.
        on_cpu = P.device.type == "cpu"
        self.start_rows = 4_000 if on_cpu else 16_384
        self.jacobian_rows = 20_000 if on_cpu else 40_000
        self.swept_rows = 20_000 if on_cpu else 262_144
        # With more than 65,536 rows, short sums are rounded in the dtype of P.
        self._sums_short = self.n > CHUNK
        self.sum_rounding = self.n * EPS + (SHORT_BLOCK * torch.finfo(P.dtype).eps if self._sums_short else 0.0)
        # Each entry is a sum of n products of float64 numbers, added within blocks and then over blocks.
        self.gram_rounding = (2 * BLOCK + self.n / BLOCK + 16) * EPS

    def blocks(self, function: Callable[[slice, Any], Any]) -> Iterator[Any]:
        return (function(rows, self.P[rows]) for rows in chunks(self.n, GRAM_CHUNK))

    def thin_product(self, P: Tensor, B: Tensor) -> Tensor:
        return thin_product(P, B)

    def transposed_product(self, P: Tensor, V: Tensor) -> Tensor:
        return transposed_product(P, V)

    def dots(self, U: Tensor, V: Tensor) -> Tensor:
        return (U * V).sum(dim=1)

    def norms(self, V: Tensor) -> Tensor:
        return torch.linalg.vector_norm(V, dim=1)

    def divided_gram(self, divisor: Tensor | None) -> Tensor:
        return float64_gram(self.P, divisor)

    def mixing(self, weights: FloatArray, V: Tensor) -> Any:
        """Steps of whole blocks of rows; on a CPU of one row after the other, as for NumPy."""
        if self.P.device.type == "cpu":
            return Rows(self.to_host()).mixing(weights, self.to_numpy(V))
        graphs = self.graphs if self._is_sample else CudaGraphs()  # the next mixing overwrites P
        return graphs.begun(BlockMixing, self.P, weights, V)

    def draw(self, B: FloatArray, normals: FloatArray) -> Tensor:
        with allow_tf32(self.P):
            return super().draw(B, normals)

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        with allow_tf32(self.P):
            return super().draw_products(B, normals)

    def flip_descent(self, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int) -> Tensor:
        """Single flips in every column of X (signs) until none helps, or ``passes`` are made: no column gets worse.

        Of P diag(weights) Pᵀ, batches of rows together, each kept only where the value fell.
        """
        with allow_tf32(self.P):
            return flip_descent(self.P, weights, X, between, passes, self.graphs)

    def transposed(self, X: Tensor) -> FloatArray:
        """Accurate to float64. With more than 65,536 rows, sums of 128 rows are in the dtype of P, never in TF32."""
        dtype = self.P.dtype if self._sums_short else torch.float64
        wide = X.reshape(self.n, -1).to(dtype)
        with forbid_tf32():
            parts = (block_products(self.P[r].to(dtype), wide[r], SHORT_BLOCK) for r in chunks(self.n))
            return to_float64(sum(parts)).reshape(self.rank, *X.shape[1:])

    def product(self, B: FloatArray) -> Tensor:
        return self.P @ self.from_numpy(B)

    def sample(self, count: int, rng: np.random.Generator) -> TorchRows:
        """One at random from each of ``count`` stretches of equal length; it stays on the device."""
        if 2 * count >= self.n:
            return self
        device = self.P.device
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**63)))
        places = torch.rand(count, generator=generator, device=device, dtype=torch.float64)
        places += torch.arange(count, device=device)
        index = places.mul_(self.n / count).long().clamp_max_(self.n - 1)
        P = with_padding(self.P).index_select(0, index)
        aligned = P.shape[1] % ALIGNED == 0
        return TorchRows(P[:, : self.rank] if aligned else buffer(count, self.rank, self.P).copy_(P), self.graphs)


class Replayed(ABC):
    """A pass over P and X in buffers at fixed places in memory. From its third call on a CUDA graph is replayed.

    The pass must not read a tensor's value on the host. What cannot be recorded, and what is not on a GPU, runs step by
    step every time.
    """

    takes_other_rows = False  # whether `begin` may get a P at another place in memory

    def __init__(self, P: Tensor, weights: FloatArray, X: Tensor) -> None:
        self._P, self._weights, self.X = P, weights, torch.empty_like(X)
        self._calls, self._graph = 0, None

    def serves(self, P: Tensor, weights: FloatArray, X: Tensor) -> bool:
        """Whether it can `begin` again with these."""
        same = P.shape == self._P.shape and P.stride() == self._P.stride() and X.shape == self.X.shape
        same = same and (self.takes_other_rows or P.data_ptr() == self._P.data_ptr())
        return same and np.array_equal(weights, self._weights)

    @abstractmethod
    def begin(self, P: Tensor, X: Tensor) -> None:
        """Start, or start again with other numbers of the same shapes."""

    @abstractmethod
    def _steps(self) -> None:
        """The steps of one pass."""

    def one_pass(self) -> None:
        """The first call runs the steps, the second records them."""
        self._calls += 1
        if self._calls == 2 and self._P.device.type == "cuda":
            self._graph = _recorded(self._steps, self._P.device)
        if self._graph is None:
            self._steps()
        else:
            self._graph.replay()


Kind = TypeVar("Kind", bound=Replayed)


class CudaGraphs:
    """The passes that were recorded for one matrix P and its samples, with their buffers; at most one of each class.

    The problems of all bits of a code share one P whose columns change, so what is recorded for one bit is replayed for
    the next. A `TorchRows` owns its graphs, which are freed with it. Only one thread may use them at a time.
    """

    def __init__(self) -> None:
        self.recorded: dict[type, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return CudaGraphs, ()  # copies and pickles begin without graphs

    def begun(self, kind: type[Kind], P: Tensor, weights: FloatArray, X: Tensor) -> Kind:
        """The stored object of this class, started again; or a new one that replaces it, if it does not serve."""
        stored: Kind | None = self.recorded.get(kind)
        if stored is not None and stored.serves(P, weights, X):
            stored.begin(P, X)
            return stored
        self.recorded[kind] = new = kind(P, weights, X)
        return new


def _recorded(function: Callable[[], Any], device: Any) -> Any:
    """A CUDA graph of an in-place function without arguments; None if it cannot be recorded."""
    graph, here = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device)
    aside = _recording_stream(device)
    aside.wait_stream(here)
    try:
        with torch.cuda.stream(aside):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                function()
            finally:
                graph.capture_end()
    except RuntimeError:
        return None
    finally:
        here.wait_stream(aside)
    return graph


@cache
def _recording_stream(device: Any) -> Any:
    """The same stream for all graphs of a device, because matrix products allocate a workspace for every stream."""
    return torch.cuda.Stream(device)


class BlockMixing(Replayed):
    """`Mixing` of whole blocks of rows, with X for V. ``begin`` with other rows overwrites the P it was made with."""

    takes_other_rows = True

    def __init__(self, P: Tensor, weights: FloatArray, X: Tensor) -> None:
        super().__init__(P, weights, X)
        self._rows = with_padding(P)
        self._scale = padded_factor(tensor_like(weights, P)[:, None], self._rows.shape[1])[:, :1]
        self._blocks = list(chunks(len(P), max(SMALLEST_BLOCK, -(-len(P) // BLOCKS))))
        self._shifts = P.new_empty(len(self._blocks))
        self._T = P.new_empty((self._rows.shape[1], X.shape[1]))
        self._factor = torch.empty_like(self._T.T).T  # stored column by column
        self._before, self._moved = torch.empty_like(X), X.new_zeros(())
        self.begin(P, X)

    def begin(self, P: Tensor, X: Tensor) -> None:
        if P is not self._P:
            self._rows.copy_(with_padding(P))
        self.X.copy_(X)
        positive = np.flatnonzero(self._weights > 0.0)
        Z = self._P.index_select(1, torch.as_tensor(positive, device=P.device))
        Z = Z * tensor_like(np.sqrt(self._weights[positive]), P)
        self._shifts.copy_(MARGIN * _largest_squares(Z, self._blocks))
        # Every sweep updates T. The rounding that a few dozen sweeps add does not matter.
        with allow_tf32(self._P):
            self._T.copy_(block_products(self._rows, self.X))

    def sweep(self) -> float:
        """One step of every block; returns the mean squared movement of a row. A row with zero gradient becomes 0."""
        with allow_tf32(self._P):
            self.one_pass()
        return float(self._moved) ** 2 / len(self.X)

    def _steps(self) -> None:
        P, V, T, before = self._rows, self.X, self._T, self._before.copy_(self.X)
        tiny = torch.finfo(V.dtype).tiny
        for rows, shift in zip(self._blocks, self._shifts.split(1), strict=True):
            torch.mul(self._scale, T, out=self._factor)
            G = (P[rows] @ self._factor).addcmul_(V[rows], shift, value=-1.0)
            norms = torch.linalg.vector_norm(G, dim=1, keepdim=True).clamp_min_(tiny).neg_()
            torch.div(G, norms, out=V[rows])
            T.addmm_(P[rows].T, V[rows] - before[rows])
        self._moved.copy_(torch.linalg.vector_norm(before.sub_(V)))

    def image(self) -> FloatArray:
        """PᵀV."""
        with allow_tf32(self._P):
            return to_float64(transposed_product(self._P, self.X))


def _largest_squares(Z: Tensor, blocks: list[slice]) -> Tensor:
    """(Σλ¹⁶)^(1/16) ≥ λ_max of Z_b Z_bᵀ for every block, from a power of its Gram matrix."""
    grams = torch.stack([Z[rows].T @ Z[rows] for rows in blocks]).double()
    traces = grams.diagonal(dim1=1, dim2=2).sum(dim=1).clamp_min(torch.finfo(Z.dtype).tiny)
    powers = torch.linalg.matrix_power(grams / traces[:, None, None], POWER)
    return traces * powers.diagonal(dim1=1, dim2=2).sum(dim=1) ** (1.0 / POWER)


def flip_descent(
    P: Tensor, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int, graphs: CudaGraphs
) -> Tensor:
    """`TorchRows.flip_descent`; X is not changed."""
    descent = graphs.begun(FlipDescent, P, weights, X)
    eps, idle = torch.finfo(P.dtype).eps, 0
    for _ in range(passes):
        before = descent.value.clone()
        descent.one_pass()
        between()
        change = (before - descent.value) / descent.value.abs().clamp_min(np.finfo(np.float64).tiny)
        idle = idle + 1 if float(change.max()) <= 16.0 * eps else 0
        if int(descent.flips) == 0 or idle == PATIENCE:
            break
    return descent.X.clone()


class FlipDescent(Replayed):
    """Signs, products and values of a fixed number of columns."""

    def __init__(self, P: Tensor, weights: FloatArray, X: Tensor) -> None:
        super().__init__(P, weights, X)
        n, rank = P.shape
        self._w64 = tensor_like(weights, P, torch.float64)
        self.value = self._w64.new_empty(X.shape[1])
        self.flips = torch.zeros((), dtype=torch.int64, device=P.device)
        self._T = self._w64.new_empty((rank, X.shape[1]))
        self._threshold = self._w64.new_empty(X.shape[1])  # of the largest gain in the batch that a flip must have
        self._diagonal = P.new_empty((n, 1))
        self._noise = P.new_empty(())
        batch = max(SMALLEST_BATCH, -(-n // BATCHES))
        self._batch = batch if batch < BLOCK else -(-batch // BLOCK) * BLOCK
        self.begin(P, X)

    def begin(self, P: Tensor, X: Tensor) -> None:
        self.X.copy_(X)
        diagonal, squares = sums_of_squares(P, self._weights)
        self._diagonal.copy_(diagonal)
        self._noise.copy_(4.0 * torch.finfo(P.dtype).eps * squares.max().sqrt())
        self._T.copy_(transposed_product(P, self.X))
        self.value.copy_(self._w64 @ self._T.square())
        self._threshold.zero_()

    def _steps(self) -> None:
        P, w64, T, value, threshold = self._P, self._w64, self._T, self.value, self._threshold
        self.flips.zero_()
        for rows in chunks(len(P), self._batch):
            X = self.X[rows]
            B = (w64[:, None] * T).to(P.dtype)
            gain = torch.sub(X * thin_product(P[rows], B), self._diagonal[rows])
            least = torch.maximum(threshold.to(P.dtype) * gain.amax(dim=0), self._noise * B.norm(dim=0))
            step = torch.where(gain > least, -2.0 * X, 0.0)
            trial = T + transposed_product(P[rows], step)
            trial_value = w64 @ trial.square()
            falls = trial_value < value
            X.addcmul_(step, falls.to(P.dtype))
            T.copy_(torch.where(falls, trial, T))
            value.copy_(torch.where(falls, trial_value, value))
            moved = (step != 0.0).any(dim=0)
            rises = moved & ~falls
            threshold.copy_(torch.where(rises, 0.5 + 0.5 * threshold, (threshold - 0.1).clamp_min(0.0)))
            self.flips += moved.sum()
