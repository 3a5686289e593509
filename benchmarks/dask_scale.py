"""Fit and encode a Parquet data set larger than the memory of the workers: seconds, memory, and the same codes again.

    python -m benchmarks.dask_scale --gigabytes 10 --folder SCRATCH --memory-limit 3GB
    python -m benchmarks.dask_scale --gigabytes 1 --folder SCRATCH --compare --kill

Writes files of 128 float32 features (clusters with noise) into SCRATCH/rows where they are missing, prints one JSON
object. ``--compare`` fits the same rows in this process, in memory, on as many threads; ``--kill`` fits once more and
kills a worker (SIGKILL) half-way.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_FEATURES = 128
FILE_ROWS = 1 << 19  # 256 MB


def write_rows(folder: Path, gigabytes: float) -> tuple[list[Path], int]:
    """Files whose content depends on their number alone, so that a small set is the beginning of a large one."""
    folder.mkdir(parents=True, exist_ok=True)
    centers = np.random.default_rng(0).standard_normal((256, N_FEATURES), dtype=np.float32)
    total, files = int(gigabytes * 1e9) // (4 * N_FEATURES), []
    for number, first in enumerate(range(0, total, FILE_ROWS)):
        count = min(FILE_ROWS, total - first)
        path = folder / f"part-{number:05d}-{count}.parquet"
        files.append(path)
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        rows = rng.standard_normal((count, N_FEATURES), dtype=np.float32)
        rows += centers[rng.integers(len(centers), size=count)]
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), N_FEATURES)
        beside = path.with_suffix(".tmp")
        pq.write_table(pa.table({"x": column}), beside, row_group_size=1 << 16, compression=None, use_dictionary=False)
        os.replace(beside, path)
    return files, total


class WorkerMemory:
    """The largest resident size of any worker process, looked at twice a second."""

    def __init__(self, client) -> None:
        import psutil

        self.peak, self._client, self._psutil = 0, client, psutil
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        parent = self._psutil.Process()
        while not self._stop.wait(0.5):
            for child in parent.children(recursive=True):
                try:
                    self.peak = max(self.peak, child.memory_info().rss)
                except self._psutil.Error:
                    continue

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.peak


def digest(hasher) -> str:
    return hashlib.sha256(hasher.training_codes.tobytes()).hexdigest()[:16]


def stages(log: list[tuple[str, float]]):
    """A progress callback that notes when each stage's last step was reported."""

    def note(progress) -> None:
        log.append((f"{progress.stage} {progress.done}/{progress.total}", time.perf_counter()))

    return note


def seconds_of_stages(began: float, log: list[tuple[str, float]]) -> dict[str, float]:
    when = dict(log)
    first_bit = next((t for name, t in log if name.startswith("inference")), began)
    last_bit = max((t for name, t in log if name.startswith("inference")), default=began)
    return {
        "moments": round(when["moments 1/1"] - began, 2),
        "factor_start_first_bit": round(first_bit - when["moments 1/1"], 2),
        "other_bits": round(last_bit - first_bit, 2),
        "hash_functions": round(when["hash functions 1/1"] - last_bit, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory-limit", default="3GB")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--solver", default="passes")
    parser.add_argument("--components", type=int, default=None)
    parser.add_argument("--chunk-rows", type=int, default=1 << 17)
    parser.add_argument("--compare", action="store_true", help="fit in memory, in this process, too")
    parser.add_argument("--kill", action="store_true", help="fit once more and kill a worker half-way")
    parser.add_argument("--no-encode", action="store_true")
    options = parser.parse_args()

    import dask

    from distributed import Client, LocalCluster
    from hashlearn import distributed

    dask.config.set({"distributed.admin.low-level-log-length": 10})  # as docs/distributed.md advises
    files, n = write_rows(options.folder / "rows", options.gigabytes)
    settings = {
        "n_bits": options.bits,
        "n_sweeps": options.sweeps,
        "solver": options.solver,
        "n_components": options.components,
        "chunk_rows": options.chunk_rows,
        "random_state": 0,
    }
    found: dict[str, object] = {"gigabytes": options.gigabytes, "rows": n, "workers": options.workers, **settings}
    found["memory_limit"] = options.memory_limit
    cluster = LocalCluster(
        n_workers=options.workers,
        threads_per_worker=1,
        memory_limit=options.memory_limit,
        dashboard_address=None,
        local_directory=str(options.folder / "dask"),
    )
    with cluster, Client(cluster) as client:
        memory, log, began = WorkerMemory(client), [], time.perf_counter()
        hasher = distributed.fit(files, client=client, progress=stages(log), **settings)
        found["fit_seconds"] = round(time.perf_counter() - began, 2)
        found["stages"] = seconds_of_stages(began, log)
        found["passes_per_bit"] = 1
        found["objectives"] = [hasher.inference_report_.start_objective, *hasher.inference_report_.objectives]
        found["digest"] = digest(hasher)
        if not options.no_encode:
            began = time.perf_counter()
            encoded = distributed.encode(hasher, files, options.folder / "codes", client=client)
            found["encode_seconds"] = round(time.perf_counter() - began, 2)
            found["encoded_rows"] = encoded.rows
        found["worker_peak_bytes"] = memory.stop()
        if options.kill:
            found["kill"] = killed_fit(client, files, settings, found["digest"])
    found["client_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if options.compare:
        found["in_memory"] = in_memory(files, settings, found["digest"])
        found["overhead"] = round(found["fit_seconds"] / found["in_memory"]["fit_seconds"], 3)
    print(json.dumps(found, indent=1))


def killed_fit(client, files, settings, expected) -> dict[str, object]:
    from hashlearn import distributed

    killed: list[int] = []
    half = settings["n_bits"] * settings["n_sweeps"] // 2

    def kill(progress) -> None:
        if progress.stage == "inference" and progress.done >= half and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    began = time.perf_counter()
    again = distributed.fit(files, client=client, progress=kill, **settings)
    same = digest(again) == expected
    return {"same_digest": same, "fit_seconds": round(time.perf_counter() - began, 2), "killed": len(killed)}


def in_memory(files, settings, expected) -> dict[str, object]:
    from hashlearn import distributed
    from hashlearn.files import open_rows

    parts = [open_rows(file).read() for file in files]
    step = settings["chunk_rows"]
    lengths = [min(step, len(part) - first) for part in parts for first in range(0, len(part), step)]
    rows = np.concatenate(parts)
    del parts
    began = time.perf_counter()
    hasher = distributed.fit(rows, n_workers=0, **{**settings, "chunk_rows": lengths})
    seconds = round(time.perf_counter() - began, 2)
    return {"same_digest": digest(hasher) == expected, "fit_seconds": seconds}


if __name__ == "__main__":
    main()
