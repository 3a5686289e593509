"""Kills at random moments: nothing mixed, nothing half-written.

    python -m benchmarks.kills --kills 200

Four kinds of work: ``hashlearn encode``, `distributed.encode`, ``hashlearn onnx`` and ``hashlearn fit``. Each round
forks a child from this process, where everything is imported and compiled, and kills it. In half of the rounds the
moment is uniform over the time that the work takes, in the others it comes shortly after an output began to be written.
Two kills of three are SIGKILL, the others SIGTERM. Then each output must be the old one or the new one, whole. In three
rounds of four the input is replaced next, by one of the same name, size and mtime. Then a child is left to finish: its
output must be right to the bit, and the folder must hold nothing else but unfinished files of the killed ones.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from hashlearn import distributed, load
from hashlearn.cli import main as hashlearn
from hashlearn.files import codes_and_ids
from hashlearn.hashers import LSH

MTIME = 1_000_000_000
BITS = 64
WRITE_SECONDS = 0.002


class Work:
    """One kind of work in a folder of its own, on inputs 0 and 1 that differ in content only."""

    name = ""
    kept: tuple[str, ...] = ()  # what the folder holds when all is done, with `outputs`
    outputs: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.current = 0

    def use(self, number: int) -> None:
        """Let the input be number 0 or 1."""
        self.current = number

    def run(self) -> None:
        """The work; a child does it."""
        raise NotImplementedError

    def is_right(self, output: str, number: int) -> bool:
        """Whether the whole output is that of input ``number``."""
        raise NotImplementedError

    def _place(self, rows: np.ndarray, name: str) -> None:
        """In place, as ``cp -p`` does it."""
        np.save(self.folder / name, rows)
        os.utime(self.folder / name, (MTIME, MTIME))


class Encode(Work):
    name = "encode, input replaced"
    kept, outputs = ("model", "rows.npy"), ("codes.npy",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._rows = _inputs(3000, 16)
        self._hasher = LSH(BITS, random_state=0).fit(self._rows[0])
        self._hasher.save(folder / "model")

    def use(self, number: int) -> None:
        super().use(number)
        self._place(self._rows[number], "rows.npy")

    def run(self) -> None:
        os.chdir(self.folder)
        hashlearn(["encode", "model", "rows.npy", "-o", "codes.npy", "--batch-rows", "100"], standalone_mode=False)

    def is_right(self, output: str, number: int) -> bool:
        codes = np.load(self.folder / output)
        return bool(np.array_equal(codes, self._hasher.encode(self._rows[number])))


class EncodeFiles(Work):
    name = "distributed.encode, an input replaced"
    kept = ("rows",)
    outputs = tuple(f"codes/part-{part}.parquet" for part in range(3))

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "rows").mkdir()
        (folder / "codes").mkdir()
        self._rows = _inputs(2400, 16)
        self._hasher = LSH(BITS, random_state=0).fit(self._rows[0])

    def use(self, number: int) -> None:
        super().use(number)
        for part in range(3):
            self._place(self._rows[number][800 * part : 800 * part + 800], f"rows/part-{part}.npy")

    def run(self) -> None:
        distributed.encode(self._hasher, self.folder / "rows", self.folder / "codes", batch_rows=100, n_workers=0)

    def is_right(self, output: str, number: int) -> bool:
        part = self.outputs.index(output)
        rows = slice(800 * part, 800 * part + 800)
        codes, ids = codes_and_ids(self.folder / output, BITS)
        wanted = self._hasher.encode(self._rows[number][rows])
        return bool(np.array_equal(codes, wanted) and np.array_equal(ids, np.arange(2400)[rows]))


class Onnx(Work):
    name = "onnx"
    kept, outputs = ("model-0", "model-1"), ("encoder.onnx",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._whole = []
        for number, rows in enumerate(_inputs(100, 2000)):
            LSH(BITS, random_state=0).fit(rows).save(folder / f"model-{number}")
            self.use(number)
            _in_child(self.run)
            self._whole.append((folder / "encoder.onnx").read_bytes())
        assert self._whole[0] != self._whole[1]

    def run(self) -> None:
        os.chdir(self.folder)
        hashlearn(["onnx", f"model-{self.current}", "-o", "encoder.onnx"], standalone_mode=False)

    def is_right(self, output: str, number: int) -> bool:
        return (self.folder / output).read_bytes() == self._whole[number]


class Fit(Work):
    name = "fit"
    kept, outputs = ("rows.npy",), ("model",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rows = _inputs(200, 4000)[0]
        self._some = rows[:50]
        self._place(rows, "rows.npy")
        self._codes = []
        for number in (0, 1):
            self.use(number)
            _in_child(self.run)
            self._codes.append(load(folder / "model").encode(self._some))
        assert (self._codes[0] != self._codes[1]).any()

    def run(self) -> None:
        os.chdir(self.folder)
        settings = ["--bits", str(BITS), "--method", "lsh", "--seed", str(self.current)]
        hashlearn(["fit", "rows.npy", "-o", "model", *settings], standalone_mode=False)

    def is_right(self, output: str, number: int) -> bool:
        return bool(np.array_equal(load(self.folder / output).encode(self._some), self._codes[number]))


WORKS: dict[str, Callable[[Path], Work]] = {"encode": Encode, "distributed": EncodeFiles, "onnx": Onnx, "fit": Fit}


def killed_often(work: Work, kills: int, rng: random.Random) -> Counter[str]:
    """Counts of what happened; every key that begins with "wrong" should be missing."""
    counts: Counter[str] = Counter()
    seconds = []
    for number in (0, 1, 0):
        work.use(number)
        began = time.perf_counter()
        _in_child(work.run)
        seconds.append(time.perf_counter() - began)
        _look(work, counts, finished=True)
    longest = sorted(seconds)[1]
    while counts["killed"] < kills:
        work.use(rng.randrange(2))
        before = {output: _bytes(work.folder / output) for output in work.outputs}
        how = signal.SIGTERM if rng.random() < 1 / 3 else signal.SIGKILL
        if not _killed(work, rng, longest, how):
            counts["finished first"] += 1
            _look(work, counts, finished=True)
            continue
        counts["killed"] += 1
        counts[how.name] += 1
        counts["killed in the middle of writing"] += any(_unfinished(work))
        _look(work, counts, finished=False, before=before)
        for path in work.folder.rglob("*.unfinished"):
            path.unlink()
        if rng.random() < 0.75:
            work.use(1 - work.current)
        _in_child(work.run)
        _look(work, counts, finished=True)
    return counts


def _look(work: Work, counts: Counter[str], *, finished: bool, before: dict[str, bytes | None] | None = None) -> None:
    """Count what is wrong with the outputs."""
    for output in work.outputs:
        there = _bytes(work.folder / output)
        if not finished and before is not None and there == before[output]:
            continue
        try:
            right = there is not None and work.is_right(output, work.current)
        except Exception as error:
            counts[f"wrong: half-written, {type(error).__name__}"] += 1
        else:
            counts["wrong: mixed, or of another input"] += not right
    if finished:
        found = {path.relative_to(work.folder).as_posix() for path in work.folder.rglob("*") if path.is_file()}
        inputs = {name for name in found if name.partition("/")[0] in work.kept}
        counts["wrong: files left behind"] += len(found - inputs - set(work.outputs))
    for key in [key for key in counts if key.startswith("wrong") and not counts[key]]:
        del counts[key]


def _unfinished(work: Work) -> list[Path]:
    return [*work.folder.rglob("*.unfinished"), *work.folder.rglob("*.shards")]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _forked(run: Callable[[], Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
            run()
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _in_child(run: Callable[[], Any]) -> None:
    status = os.waitpid(_forked(run), 0)[1]
    if status:
        raise RuntimeError(f"the work failed with status {status}")


def _killed(work: Work, rng: random.Random, seconds: float, how: signal.Signals) -> bool:
    """Whether the kill ended the child; False where it had finished."""
    while_writing = rng.random() < 0.5
    child = _forked(work.run)
    if while_writing:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not _is_writing(work):
            time.sleep(0.0005)
        time.sleep(rng.expovariate(1 / WRITE_SECONDS))
    else:
        time.sleep(rng.uniform(0.0, seconds))
    os.kill(child, how)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return True
    if status:
        raise RuntimeError(f"the work failed with status {status}")
    return False


def _is_writing(work: Work) -> bool:
    """Whether one of the outputs is being written; shards come before."""
    folders = {(work.folder / output).parent for output in work.outputs}
    return any(name.endswith(".unfinished") for folder in folders for name in os.listdir(folder))


def _inputs(n: int, width: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32) for seed in (0, 1)]


def _warm(works: list[str]) -> None:
    """Import and compile here what children will use."""
    tqdm.set_lock(threading.RLock())  # its own lock is shared by all children, and a killed one may hold it
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nothing:
        if "onnx" in works:
            import onnx  # noqa: F401
            import onnxruntime  # noqa: F401
        for name in works:
            place = Path(folder, name)
            place.mkdir()
            work = WORKS[name](place)
            work.use(0)
            with contextlib.redirect_stdout(nothing), contextlib.chdir(place):
                if name != "onnx":  # its runtime starts threads, which a fork would lose
                    work.run()
                    work.is_right(work.outputs[0], 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="of each kind of work")
    parser.add_argument("--works", nargs="+", choices=list(WORKS), default=list(WORKS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    _warm(given.works)
    wrong = 0
    for name in given.works:
        folder = Path(tempfile.mkdtemp(prefix=f"kills-{name}-"))
        began = time.perf_counter()
        work = WORKS[name](folder)
        counts = killed_often(work, given.kills, random.Random(given.seed))
        here = sum(count for key, count in counts.items() if key.startswith("wrong"))
        wrong += here
        seconds = round(time.perf_counter() - began, 1)
        print(json.dumps({"work": work.name, **counts, "wrong": here, "seconds": seconds}), flush=True)
        if not here:
            shutil.rmtree(folder)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
