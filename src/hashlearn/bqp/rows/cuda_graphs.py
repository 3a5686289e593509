"""CUDA graphs: functions of many small steps on tensors are recorded once and replayed.

On a GPU the launch of a small step takes longer than the step. A replay launches all steps of a graph at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import torch

from hashlearn.core.arrays import FloatArray, Tensor


class Recorded(Protocol):
    """An object with a recorded function, whose buffers keep their places in memory."""

    def __init__(self, P: Tensor, weights: FloatArray, X: Tensor) -> None: ...

    def serves(self, P: Tensor, weights: FloatArray, X: Tensor) -> bool:
        """Whether it can start again with these."""

    def begin(self, P: Tensor, X: Tensor) -> None:
        """Start again with other numbers of the same shapes."""


Kind = TypeVar("Kind", bound=Recorded)


class CudaGraphs:
    """The graphs that were recorded for one matrix P and its samples, with their buffers; at most one of each class.

    The problems of all bits of a code share one P whose columns change, so what is recorded for one bit is replayed for
    the next. A `TorchRows` owns its graphs, which are freed with it. Only one thread may use them at a time.
    """

    def __init__(self) -> None:
        self._recorded: dict[type, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return CudaGraphs, ()  # copies and pickles begin without graphs

    def begun(self, kind: type[Kind], P: Tensor, weights: FloatArray, X: Tensor) -> Kind:
        """The stored object of this class, started again; or a new one that replaces it, if it does not serve."""
        found: Kind | None = self._recorded.get(kind)
        if found is not None and found.serves(P, weights, X):
            found.begin(P, X)
            return found
        self._recorded[kind] = made = kind(P, weights, X)
        return made


class Replayed:
    """Runs an in-place function. From its third call on it replays a CUDA graph of it.

    The function takes no arguments and must not read a tensor's value on the host. Its first call runs it, the second
    records it. What cannot be recorded, and what is not on a GPU, runs every time. The function is passed in every call
    and not stored: an object can thus replay its own method without a reference cycle.
    """

    def __init__(self, like: Tensor) -> None:
        self._device = like.device
        self._calls = 0
        self._graph: Any = None

    def __call__(self, function: Callable[[], Any]) -> None:
        self._calls += 1
        if self._calls == 2 and self._device.type == "cuda":
            self._graph = _recorded(function, self._device)
        if self._graph is None:
            function()
        else:
            self._graph.replay()


def _recorded(function: Callable[[], Any], device: Any) -> Any:
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
