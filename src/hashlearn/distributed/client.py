"""The Dask client that work goes to: the caller's, one at an address, or a cluster of this machine's own processes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hashlearn.core.checks import whole_number
from hashlearn.core.packages import require
from hashlearn.core.threads import n_threads

LEAST_MEMORY = 6e8  # bytes that a worker needs for itself
TOO_LITTLE = "{}; a worker needs at least 600 MB for itself, and its blocks of rows on top: give it more memory"


@contextmanager
def connected(
    client: Any = None, address: str | None = None, n_workers: int | None = None, memory_limit: Any = "auto"
) -> Iterator[Any]:
    """A client, or None for work in this process; what was opened here is closed at the end.

    Parameters
    ----------
    client : used as it is, and left open
    address : of a scheduler, ``tcp://host:8786``
    n_workers, memory_limit : of a `LocalCluster` where neither is given: a process for each core by default, and
        memory for each of them, such as ``"3GB"``. ``n_workers=0`` alone means this process
    """
    if client is not None and address is not None:
        raise ValueError("give client or address, not both")
    if n_workers == 0 and client is None and address is None:
        yield None
        return
    if client is not None:
        _require_memory(client)
        yield client
        return
    distributed = require("distributed", "dask", "hashlearn.distributed")
    if address is not None:
        with distributed.Client(address) as opened:
            _require_memory(opened)
            yield opened
        return
    workers = n_threads() if n_workers is None else n_workers
    whole_number(workers, "n_workers", least=1)
    limit = _parsed(memory_limit)
    if limit and limit < LEAST_MEMORY:
        raise ValueError(TOO_LITTLE.format(f"memory_limit={memory_limit!r} is {limit / 1e6:,.0f} MB"))
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as opened,
    ):
        yield opened


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler knows of every worker, by its address."""
    return client.scheduler_info(n_workers=-1)["workers"]


def _require_memory(client: Any) -> None:
    """Refuse workers that Dask would stop and start again for ever."""
    for address, worker in workers_of(client).items():
        limit = worker["memory_limit"]
        if limit and limit < LEAST_MEMORY:
            raise ValueError(TOO_LITTLE.format(f"the worker {address} has a memory limit of {limit / 1e6:,.0f} MB"))


def _parsed(memory_limit: Any) -> int | None:
    """In bytes, None or 0 for no limit, as a `LocalCluster` takes it."""
    parse = require("distributed.worker_memory", "dask", "hashlearn.distributed").parse_memory_limit
    try:
        return parse(memory_limit, 1, logger=logging.getLogger(__name__))
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"memory_limit must be bytes, such as 2e9 or '2GB', got {memory_limit!r}: {error}") from None
