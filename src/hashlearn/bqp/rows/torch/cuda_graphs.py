"""Functions of many small steps on tensors, recorded once and replayed: on a GPU to launch a step takes longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hashlearn.core.arrays import Tensor

# Of each device the stream on which functions are recorded: one for good, since products leave a workspace with each.
_asides: dict[Any, Any] = {}


class Replayed:
    """Calls of one function without arguments that works in place on tensors, none of which it looks at from the host.

    The first call runs it, the second records it as a CUDA graph, and from then on it is replayed. What cannot be
    recorded, and what is not on a GPU, is run every time. The function is handed over in every call and not kept, so
    that an object can own the calls of its own method and still be freed at once.
    """

    def __init__(self, like: Tensor) -> None:
        self._device = like.device
        self._calls = 0
        self._graph: Any = None

    def __call__(self, function: Callable[[], Any]) -> None:
        """The next one."""
        self._calls += 1
        if self._calls == 2 and self._device.type == "cuda":
            self._graph = _recorded(function, self._device)
        if self._graph is None:
            function()
        else:
            self._graph.replay()


def _recorded(function: Callable[[], Any], device: Any) -> Any:
    graph, here = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device)
    if device not in _asides:
        _asides[device] = torch.cuda.Stream(device)
    aside = _asides[device]
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
