"""The process that does one `Task`: ``python -m benchmarks.bqp.worker TASK_AS_JSON FILE_DESCRIPTOR``.

Our solvers are first run on another instance of the same kind, so that Numba's kernels are compiled or
loaded; that is not timed. Peak memory is counted from after that, and includes building the instance. Peers
are given the instance and say themselves when their timed part begins (`Peer.excluded` says what lies
before).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bqp.certificate import certified_bound, certified_gap
from benchmarks.bqp.instances import build
from benchmarks.bqp.memory import current_rss, peak_rss, reset_peak
from benchmarks.bqp.ours import OURS, make, record
from benchmarks.bqp.peers import PEERS, GaveUp, NotInstalled
from benchmarks.bqp.task import Task
from hashlearn import bqp

PRODUCT_COLUMNS = 8
# One product is timed at least so often and for at least so long.
PRODUCT_REPEATS = 9
PRODUCT_SECONDS = 0.5


def main() -> None:
    """Do the task and write messages, one JSON object a line."""
    task = Task(**json.loads(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "w", buffering=1) as pipe:

        def say(event: str, **content: Any) -> None:
            pipe.write(json.dumps({"event": event, **content}, default=float) + "\n")

        try:
            run = _ours if task.solver in OURS else _peer
            say("result", **run(task, lambda: say("begin")))
        except (GaveUp, NotInstalled) as reason:
            say("gave up", reason=str(reason))
        except MemoryError:
            say("gave up", reason="out of memory")
        except NotImplementedError:
            say("gave up", reason="not written yet")


def _ours(task: Task, begin: Callable[[], None]) -> dict[str, Any]:
    _warm_up(task)
    reset_peak()
    baseline = current_rss()
    A = build(task.family, **task.arguments)
    built = peak_rss()
    solver = make(task.solver, task.tol, task.family, task.arguments)
    begin()
    started = time.perf_counter()
    solution = bqp.solve(A, solver, random_state=task.seed, time_limit=task.time_limit)
    seconds = time.perf_counter() - started
    memory = {"peak_bytes": peak_rss(), "baseline_bytes": baseline, "built_peak_bytes": built}
    result = {"seconds": seconds, **record(solution), **memory}
    return {**result, **_product(A)} if task.product else result


def _warm_up(task: Task) -> None:
    arguments = dict(task.arguments)
    if "n" in arguments:
        arguments["n"] = min(arguments["n"], task.warm_up_rows)
    A = build(task.family, **arguments)
    bqp.solve(A, make(task.solver, task.tol, task.family, arguments), random_state=task.seed + 1)


def _product(A: bqp.Structured) -> dict[str, Any]:
    """The time of one P.T @ (P @ V), V of eight columns, with BLAS threads as they come."""
    V = np.random.default_rng(0).standard_normal((A.rank, PRODUCT_COLUMNS))
    times: list[float] = []
    end = time.perf_counter() + PRODUCT_SECONDS
    while len(times) < PRODUCT_REPEATS or time.perf_counter() < end:
        started = time.perf_counter()
        _ = A.P.T @ (A.P @ V)
        times.append(time.perf_counter() - started)
    return {
        "product_seconds": min(times),
        "product_median_seconds": float(np.median(times)),
        "factor_bytes": A.P.nbytes,
        "factor_rank": A.rank,
    }


def _peer(task: Task, begin: Callable[[], None]) -> dict[str, Any]:
    peer = PEERS[task.solver]
    peer.version()
    A = build(task.family, **task.arguments)
    reset_peak()
    answer = peer.solve(A, task.tol, task.limit, begin)
    peak = answer.peak_bytes or peak_rss()
    bound = certified_bound(A, answer.dual)
    return {
        "seconds": answer.solution.seconds,
        "bound": bound,
        "relaxation_value": answer.value,
        "relaxation_gap": certified_gap(answer.value, bound),
        "note": answer.note,
        "peak_bytes": peak,
    }


if __name__ == "__main__":
    main()
