"""The parent process: starts workers, counts outcomes, keeps the files that fail. See the package's docstring."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.fuzz import __doc__ as about
from benchmarks.fuzz.worker import TARGETS

MOST_FAILURES = 20


class Report(NamedTuple):
    """What became of the files of one target."""

    counts: Counter[str]
    failures: list[str]


def fuzz(
    name: str, folder: Path, *, seconds: float = 60.0, files: int = 10**9, seed: int = 0, megabytes: int = 1024,
    file_seconds: float = 30.0,
) -> Report:  # fmt: skip
    """Run one target for ``seconds`` or ``files``; failures and their files are kept in ``folder``."""
    place = folder / name
    (place / "seeds").mkdir(parents=True, exist_ok=True)
    TARGETS[name].prepare(place / "seeds")
    report, first, spent, ended = Report(Counter(), []), 0, 0.0, False
    while not ended and first < files and spent < seconds and len(report.failures) < MOST_FAILURES:
        numbers = [seed, first, files, seconds - spent, megabytes, file_seconds]
        command = [sys.executable, "-m", "benchmarks.fuzz.worker", name, str(place), *map(str, numbers)]
        with (
            open(place / "stderr", "w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as worker,
        ):
            assert worker.stdout is not None
            begin = time.perf_counter()
            for line in worker.stdout:
                number, _, outcome = line.strip().partition("\t")
                if ended := number == "end":
                    break
                if int(number) == first:
                    begin = time.perf_counter()  # the start is over
                last = int(number)
                report.counts[outcome if outcome and not outcome.startswith("FAILED") else "FAILED"] += 1
                if outcome.startswith("FAILED"):
                    report.failures.append(f"{name} {last}, seed {seed}: {outcome}; kept in {place}/failures/{last}")
            worker.wait()
            errors.seek(0)
            trace = errors.read()
        spent += time.perf_counter() - begin
        if not ended:
            if not (place / "case").is_dir() or not report.counts:
                raise RuntimeError(f"the worker of {name} did not start: {trace[-2000:]}")
            what = "took too long" if "Timeout (" in trace else f"ended the process ({worker.returncode})"
            shutil.copytree(place / "case", place / "failures" / str(last), dirs_exist_ok=True)
            kept = f"kept in {place}/failures/{last}"
            report.failures.append(f"{name} {last}, seed {seed}: FAILED: {what}; {kept}\n{trace[-2000:]}")
            first = last + 1
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--files", type=int, default=10**9, help="of each target, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--megabytes", type=int, default=1024, help="that a worker may take beyond its start")
    parser.add_argument("--file-seconds", type=float, default=30.0, help="for one file")
    parser.add_argument("--folder", type=Path, help="for files that fail; a new one by default")
    arguments = parser.parse_args()
    names = arguments.targets or list(TARGETS)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="hashlearn-fuzz-"))
    failures: list[str] = []
    for name in names:
        begin = time.perf_counter()
        report = fuzz(
            name, folder, seconds=arguments.seconds / len(names), files=arguments.files, seed=arguments.seed,
            megabytes=arguments.megabytes, file_seconds=arguments.file_seconds,
        )  # fmt: skip
        took = time.perf_counter() - begin
        print(f"{name}: {report.counts.total()} files in {took:.0f} s, seed {arguments.seed}")
        for outcome, count in sorted(report.counts.items()):
            print(f"{count:9} {outcome}", flush=True)
        failures += report.failures
    print("\n".join(failures) or "no failure")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
