"""One measurement in a process of its own, with a limit on its time and on its memory.

The worker builds the instance, warms up, says "begin" and is timed from there; it answers with one JSON
object. What it measured (seconds, peak memory of the solve alone) is its own word; that it finished within
the limits is ours.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.bqp.memory import available_memory, children, current_rss, peak_rss

REPOSITORY = Path(__file__).resolve().parents[2]
POLL_SECONDS = 0.1
# Building, compiling, warming up and writing files are not timed; past this something is wrong.
PREPARATION_LIMIT = 900.0
MEMORY_FRACTION = 0.85

OK = "ok"


@dataclass(frozen=True)
class Task:
    """What a worker is to do.

    Attributes
    ----------
    family, arguments : the instance, see `instances.FAMILIES`
    solver : a name from `OURS` or `PEERS`
    limit : seconds of the timed part after which the worker is ended
    time_limit : given to our solver; None lets it end by its own rule (local_search would use up any limit)
    tol : relative gap of the relaxation
    warm_up_rows : the untimed first run is on an instance of at most this size
    product : also time one product P.T @ (P @ V)
    """

    family: str
    arguments: dict[str, Any]
    solver: str
    limit: float
    time_limit: float | None = None
    tol: float = 1e-6
    seed: int = 0
    warm_up_rows: int = 5000
    product: bool = False


@dataclass
class Outcome:
    """How a task ended: status "ok", or in a few words why there is no result."""

    task: Task
    status: str
    peak_bytes: int = 0
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status == OK

    @property
    def seconds(self) -> float:
        """The timed part."""
        return float(self.result["seconds"])

    def to_json(self) -> dict[str, Any]:
        """Everything, for the raw results."""
        return asdict(self)


def measure(task: Task, memory_limit: int | None = None) -> Outcome:
    """Run one task in a new process and wait for it; a failure is an outcome, never an exception."""
    read_end, write_end = os.pipe()
    command = [sys.executable, "-m", "benchmarks.bqp.worker", json.dumps(asdict(task)), str(write_end)]
    process = subprocess.Popen(
        command,
        cwd=REPOSITORY,
        pass_fds=[write_end],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(write_end)
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            return _wait(task, process, pipe, memory_limit or int(MEMORY_FRACTION * available_memory()))
    finally:
        _end(process)


def _wait(task: Task, process: subprocess.Popen[bytes], pipe: Any, memory_limit: int) -> Outcome:
    """Read the worker's messages until it ends, watching clock and memory."""
    assert process.stderr is not None
    deadline = time.monotonic() + PREPARATION_LIMIT
    begun, peak = False, 0
    pending, errors = b"", b""
    result: dict[str, Any] | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(POLL_SECONDS):
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is pipe:
                    *lines, pending = (pending + chunk).split(b"\n")
                    for message in map(json.loads, lines):
                        if message["event"] == "begin":
                            begun, deadline = True, time.monotonic() + task.limit
                        else:
                            result, deadline = message, time.monotonic() + PREPARATION_LIMIT
                else:
                    errors = (errors + chunk)[-4000:]
            family = [process.pid, *children(process.pid)]
            peak = max(peak, *map(peak_rss, family))
            if sum(map(current_rss, family)) > memory_limit:
                return Outcome(task, f"memory over {memory_limit / 2**30:.0f} GiB", peak)
            if time.monotonic() > deadline:
                limit = f"time limit {task.limit:g} s" if begun else "preparation took too long"
                return Outcome(task, limit, peak)
    process.wait()
    if result is None:
        return Outcome(task, _epitaph(process.returncode, errors), peak)
    if result["event"] == "gave up":
        return Outcome(task, result["reason"], peak)
    return Outcome(task, OK, result.pop("peak_bytes") or peak, result)


def _epitaph(code: int, errors: bytes) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}" + (" (out of memory?)" if code == -signal.SIGKILL else "")
    lines = errors.decode(errors="replace").strip().splitlines()
    return f"failed: {lines[-1] if lines else f'exit status {code}'}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the worker and what it started: its own process group, and nothing else."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stderr is not None:
        process.stderr.close()
