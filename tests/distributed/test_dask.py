"""On workers the numbers are those of one process, also when a worker is killed."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")
dask_array = pytest.importorskip("dask.array")

from hashlearn import RankingHasher, distributed, load  # noqa: E402
from hashlearn.distributed.executors import FileArray  # noqa: E402
from hashlearn.files import codes_and_ids  # noqa: E402
from hashlearn.hash_functions import KernelRidge  # noqa: E402
from tests.distributed.data import clustered, write_files  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
OPTIONS = {"n_bits": 8, "n_sweeps": 2, "chunk_rows": 500, "n_components": 12, "random_state": 0}


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as opened:
        yield opened


@pytest.fixture(scope="module")
def rows():
    return clustered()


@pytest.mark.parametrize("solver", ["passes", "sweeps", "auto"])
def test_workers_give_the_codes_of_one_process(client, rows, tmp_path, solver):
    X, _ = rows
    alone = distributed.fit(X, solver=solver, n_workers=0, **OPTIONS)
    files = write_files(tmp_path / "rows", X)
    there = distributed.fit(files, solver=solver, client=client, **OPTIONS)
    np.testing.assert_array_equal(there.training_codes, alone.training_codes)
    np.testing.assert_array_equal(there.encode(X), alone.encode(X))


def test_workers_encode_with_a_network_as_one_process_does(client, rows, tmp_path):
    X, _ = rows
    hasher = RankingHasher(12, n_steps=2, hidden=8, random_state=0).fit(X)
    files = write_files(tmp_path / "rows", X)
    alone = distributed.encode(hasher, files, tmp_path / "alone", n_workers=0)
    there = distributed.encode(hasher, files, tmp_path / "there", client=client, batch_rows=300)
    for made in (alone, there):
        codes = np.concatenate([codes_and_ids(file, 12)[0] for file in made.files])
        np.testing.assert_array_equal(codes, hasher.encode(X))


@pytest.mark.parametrize("memory_share", [0.6, 0.0])
def test_a_killed_worker_changes_nothing(client, rows, tmp_path, monkeypatch, memory_share):
    monkeypatch.setattr("hashlearn.distributed.executors.MEMORY_SHARE", memory_share)
    X, _ = rows
    alone = distributed.fit(X, solver="sweeps", n_workers=0, **OPTIONS)
    files, killed = write_files(tmp_path / "rows", X), []

    def kill_once(progress):
        if progress.stage == "inference" and progress.done == 5 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    there = distributed.fit(files, solver="sweeps", client=client, progress=kill_once, **OPTIONS)
    assert killed
    np.testing.assert_array_equal(there.training_codes, alone.training_codes)


def test_dask_arrays_keep_their_chunks(client, rows):
    X, _ = rows
    lengths = (700, 1300, 1000)
    options = {**OPTIONS, "solver": "sweeps"}
    alone = distributed.fit(X, n_workers=0, **{**options, "chunk_rows": lengths})
    there = distributed.fit(
        dask_array.from_array(X, chunks=(lengths, 12)), client=client, **{**options, "chunk_rows": None}
    )
    np.testing.assert_array_equal(there.training_codes, alone.training_codes)


def test_the_factor_may_lie_in_files(client, rows, monkeypatch):
    X, _ = rows
    monkeypatch.setattr("hashlearn.distributed.executors.MEMORY_SHARE", 0.0)
    options, counts = {**OPTIONS, "solver": "sweeps"}, []
    there = distributed.fit(X, client=client, progress=lambda _: counts.append(_factor_files(client)), **options)
    assert max(counts) == 6
    deadline = time.monotonic() + 20.0  # workers forget results a moment later
    while _factor_files(client) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _factor_files(client) == 0
    np.testing.assert_array_equal(there.training_codes, distributed.fit(X, n_workers=0, **options).training_codes)


def test_a_file_of_an_array_is_removed_with_its_object_and_moves_to_other_processes(tmp_path):
    rows = np.arange(6.0).reshape(3, 2)
    held = FileArray(rows, str(tmp_path))
    moved = pickle.loads(pickle.dumps(held))
    del held
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(moved.load(), rows)


def test_labels_from_a_column(client, rows, tmp_path):
    X, y = rows
    files = write_files(tmp_path / "rows", X, y)
    options = {**OPTIONS, "solver": "auto", "hash_function": KernelRidge(n_landmarks=1000)}
    there = distributed.fit(files, "label", client=client, **options)
    alone = distributed.fit(X, y, n_workers=0, **options)
    np.testing.assert_array_equal(there.training_codes, alone.training_codes)
    there.save(tmp_path / "model.hashlearn")
    again = load(tmp_path / "model.hashlearn")
    np.testing.assert_array_equal(again.encode(X), alone.encode(X))


def _factor_files(client):
    def here(dask_worker):
        return len(list(Path(dask_worker.local_directory).glob("hashlearn-*.npy")))

    return sum(client.run(here).values())
