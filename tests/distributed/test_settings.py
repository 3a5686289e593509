"""What cannot work is refused at once, in words that name it."""

from __future__ import annotations

import contextlib
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hashlearn import distributed
from hashlearn.distributed.executors import connected, workers_of

X = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)


@pytest.fixture
def no_cluster(monkeypatch):
    """A Dask that must not be started."""
    dask = pytest.importorskip("distributed")
    monkeypatch.setattr(dask, "LocalCluster", lambda **_: pytest.fail("a cluster was started"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_workers": -1}, "n_workers must be an integer of at least 1, got -1"),
        ({"n_workers": 1.5}, "n_workers must be an integer of at least 1, got 1.5"),
        ({"n_workers": "2"}, "n_workers must be an integer of at least 1, got '2'"),
        ({"n_workers": 1, "memory_limit": "400MB"}, r"memory_limit='400MB' is 400 MB; a worker needs at least 600 MB"),
        ({"n_workers": 1, "memory_limit": 5e8}, "is 500 MB"),
        ({"n_workers": 1, "memory_limit": -1}, "a worker needs at least 600 MB"),
        ({"n_workers": 1, "memory_limit": "x"}, "memory_limit must be bytes, such as"),
        ({"n_workers": 1, "memory_limit": float("nan")}, "memory_limit must be bytes, such as"),
        ({"n_workers": 1, "memory_limit": []}, "memory_limit must be bytes, such as"),
        ({"client": object(), "address": "tcp://127.0.0.1:1"}, "client or address, not both"),
    ],
)
def test_impossible_settings(no_cluster, settings, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(X, n_bits=2, **settings)


class SmallWorkers:
    """A client whose workers Dask would end again and again."""

    def scheduler_info(self, n_workers):
        limits = (4_000_000_000, 0, 400_000_000)
        return {"workers": {f"tcp://{number}": {"memory_limit": limit} for number, limit in enumerate(limits)}}


def test_workers_with_too_little_memory():
    words = r"the worker tcp://2 has a memory limit of 400 MB; a worker needs at least 600 MB"
    with pytest.raises(ValueError, match=words):
        distributed.fit(X, n_bits=2, client=SmallWorkers())


@pytest.mark.parametrize(
    ("data", "labels", "words"),
    [
        (np.zeros((5, 0)), None, r"data has shape \(5, 0\); at least two rows and one column"),
        (np.zeros((0, 5)), None, r"data has shape \(0, 5\); at least two rows and one column"),
        (X, np.arange(60), "60 different labels for 60 rows: a class needs two rows"),
    ],
)
def test_data_that_nothing_can_be_learned_from(data, labels, words):
    with pytest.raises(ValueError, match=words):
        distributed.fit(data, labels, n_bits=2, n_workers=0)


def test_columns_are_named_once(tmp_path):
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="columns must name each column once, got 'a' 2 times"):
        distributed.fit(tmp_path / "rows.parquet", n_bits=2, columns=["a", "a"], n_workers=0)


def test_the_port_of_another_cluster_is_left_alone():
    """Dask would warn that its usual port is in use, and warnings are errors here."""
    pytest.importorskip("distributed")
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # a cluster has it already
            other.bind(("", 8787))
            other.listen()
        with connected(n_workers=1) as client:
            assert len(workers_of(client)) == 1
