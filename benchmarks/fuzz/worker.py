"""The child process: case after case, one line for each, until it is done or dies.

python -m benchmarks.fuzz.worker TARGET FOLDER SEED FIRST LAST SECONDS MEGABYTES FILE_SECONDS
"""

from __future__ import annotations

import faulthandler
import resource
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

from benchmarks.fuzz.models import IndexFiles, ModelFiles
from benchmarks.fuzz.rows import CodeFiles, DenseFeatures, NpyFeatures, ParquetFeatures, Shards, SparseFeatures

TARGETS = {
    "model": ModelFiles,
    "index": IndexFiles,
    "sparse": SparseFeatures,
    "npz": DenseFeatures,
    "npy": NpyFeatures,
    "parquet": ParquetFeatures,
    "codes": CodeFiles,
    "shards": Shards,
}


def main(arguments: list[str]) -> None:
    name, place, *numbers = arguments
    seed, first, last, seconds, megabytes, file_seconds = map(float, numbers)
    folder = Path(place)
    target, case = TARGETS[name](folder / "seeds"), folder / "case"
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        _warmed_up(target, case)
        _limit_memory(int(megabytes))
        begin = time.perf_counter()
        for number in range(int(first), int(last)):
            if time.perf_counter() - begin > seconds:
                break
            shutil.rmtree(case, ignore_errors=True)
            case.mkdir()
            print(number, end="\t", flush=True)
            faulthandler.dump_traceback_later(file_seconds, exit=True)
            try:
                outcome = target.case(np.random.default_rng([int(seed), number]), case)
            except BaseException as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                outcome = f"FAILED: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            faulthandler.cancel_dump_traceback_later()
            if outcome.startswith("FAILED"):
                shutil.copytree(case, folder / "failures" / str(number))
            print(" ".join(outcome.split()), flush=True)
        print("end", flush=True)


def _warmed_up(target: object, case: Path) -> None:
    """Kernels are compiled and threads are started before memory is limited and time is taken."""
    for number in range(30):
        shutil.rmtree(case, ignore_errors=True)
        case.mkdir()
        target.case(np.random.default_rng([2**31, number]), case)  # type: ignore[attr-defined]


def _limit_memory(megabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main(sys.argv[1:])
