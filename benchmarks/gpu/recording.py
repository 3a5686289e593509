"""Counts, and where asked for times, the passes over tensors that a run makes, from outside."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from hashlearn.bqp import solution as run_module
from hashlearn.bqp.rows.torch import rows as torch_rows
from hashlearn.bqp.rows.torch import steps as torch_steps

# Reads of P that a call makes, or has to make where it makes more (the Gram matrix of a proof). Thin arrays beside P
# are not counted, nor are the few rows that decide whether there are any to merge.
READS = {
    "image": 2,
    "draw_products": 2,
    "draw": 1,
    "proof_gram": 1,
    "transposed": 1,
    "diagonal": 1,
    "mixing": 2,
    "merged": 0,
}
FLIP_READS, FLIP_READS_A_PASS = 2, 2
MEMORY_BOUND = ("image", "flip_descent", "draw")


class Recorder:
    """Calls, bytes and (with ``timed``, which waits for the device each time) seconds of each pass and stage."""

    def __init__(self, timed: bool) -> None:
        self.timed = timed
        self.calls: dict[str, int] = defaultdict(int)
        self.bytes: dict[str, float] = defaultdict(float)
        self.bytes_once: dict[str, float] = defaultdict(float)  # as if every pass read P a single time
        self.seconds: dict[str, float] = defaultdict(float)
        self.stages: dict[str, float] = defaultdict(float)
        self.ticks: dict[str, int] = defaultdict(int)
        self._stage = ("", 0.0)

    def add(self, name: str, P: Any, reads: int, function: Callable[[], Any]) -> Any:
        if self.timed:
            wait(P.device)
        began = time.perf_counter()
        result = function()
        if self.timed:
            wait(P.device)
            self.seconds[name] += time.perf_counter() - began
        self.calls[name] += 1
        self.bytes[name] += reads * P.shape[0] * P.shape[1] * P.element_size()
        self.bytes_once[name] += P.shape[0] * P.shape[1] * P.element_size()
        return result

    def tick(self, stage: str, device: Any) -> None:
        if self.timed:
            wait(device)
            now = time.perf_counter()
            if self._stage[0]:
                self.stages[self._stage[0]] += now - self._stage[1]
            self._stage = (stage, now)
        self.ticks[stage] += 1

    def summary(self) -> dict[str, Any]:
        rows = {}
        for name, count in self.calls.items():
            rows[name] = {"calls": count, "gigabytes": self.bytes[name] / 1e9, "seconds": self.seconds[name]}
        return {"passes": rows, "stage_seconds": dict(self.stages), "stage_ticks": dict(self.ticks)}


def wait(device: Any) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def recording(device: Any, timed: bool, large: int = 50_000) -> Iterator[Recorder]:
    """Inside the block every pass is recorded, those over up to ``large`` rows as passes over a sample."""
    recorder = Recorder(timed)
    rows, mixing, linearized = torch_rows.TorchRows, torch_steps.BlockMixing, torch_rows._Linearized
    kept = {name: getattr(rows, name) for name in (*READS, "flip_descent", "sample")}
    kept_sweep, kept_change, kept_tick = mixing.sweep, linearized.change, run_module.Run.tick
    kept_image = mixing.image

    def wrapped(name: str) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any) -> Any:
            kind = name if self.n > large else f"{name} (sample)"
            return recorder.add(kind, self.P, READS[name], lambda: kept[name](self, *arguments))

        return method

    def flips(self: Any, weights: Any, X: Any, between: Callable[[], Any], passes: int) -> Any:
        made = [0]

        def counted() -> None:
            made[0] += 1
            between()

        result = recorder.add(
            "flip_descent", self.P, FLIP_READS, lambda: kept["flip_descent"](self, weights, X, counted, passes)
        )
        size = made[0] * self.n * self.rank * self.P.element_size()
        recorder.bytes["flip_descent"] += FLIP_READS_A_PASS * size
        recorder.bytes_once["flip_descent"] += size
        recorder.calls["flip passes"] += made[0]
        return result

    def tick(self: Any, stage: str, fraction: float | None = None) -> None:
        recorder.tick(stage, device)
        kept_tick(self, stage, fraction)

    def sample(self: Any, count: int, rng: Any) -> Any:
        if 2 * count >= self.n:
            return kept["sample"](self, count, rng)
        return recorder.add("sample", self.P[:count], 2, lambda: kept["sample"](self, count, rng))  # read and written

    for name in READS:
        setattr(rows, name, wrapped(name))
    rows.sample = sample  # type: ignore[method-assign]
    rows.flip_descent = flips  # type: ignore[method-assign]
    mixing.sweep = lambda self: recorder.add("mixing sweep", self._P, 2, lambda: kept_sweep(self))  # type: ignore[method-assign]
    mixing.image = lambda self: recorder.add("mixing image", self._P, 1, lambda: kept_image(self))  # type: ignore[method-assign]
    linearized.change = lambda self, dB: recorder.add(  # type: ignore[method-assign]
        "linearized change", self._P, 2, lambda: kept_change(self, dB)
    )
    run_module.Run.tick = tick  # type: ignore[method-assign]
    try:
        yield recorder
    finally:
        for name, method in kept.items():
            setattr(rows, name, method)
        mixing.image = kept_image  # type: ignore[method-assign]
        mixing.sweep, linearized.change, run_module.Run.tick = kept_sweep, kept_change, kept_tick  # type: ignore[method-assign]
