"""The Dask client that work goes to: the caller's, one at an address, or a cluster of this machine's own processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hashlearn.bqp.threads import n_threads
from hashlearn.system.packages import require


@contextmanager
def connected(
    client: Any = None, address: str | None = None, n_workers: int | None = None, memory_limit: Any = "auto"
) -> Iterator[Any]:
    """A client; what was opened here is closed at the end.

    Parameters
    ----------
    client : used as it is, and left open
    address : of a scheduler, ``tcp://host:8786``
    n_workers, memory_limit : of a `LocalCluster` where neither is given: a process for each core by default, and
        memory for each of them, such as ``"3GB"``
    """
    if client is not None and address is not None:
        raise ValueError("give client or address, not both")
    if client is not None:
        yield client
        return
    distributed = require("distributed", "dask", "hashlearn.distributed")
    if address is not None:
        with distributed.Client(address) as opened:
            yield opened
        return
    workers = n_threads() if n_workers is None else n_workers
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as opened,
    ):
        yield opened
