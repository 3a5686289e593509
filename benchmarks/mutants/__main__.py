"""The command: try mutants and print which of them the tests killed.

    python -m benchmarks.mutants [--only WORD] [--first I] [--last J] [--jobs N]

Every mutant is applied in a scratch copy, never in the working tree. The tests run once without a mutant first: they
must pass, and they compile what is not compiled yet. The exit code is 1 if a mutant is not applicable, or if fewer than
95 % of them are killed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants.scratch import Scratch
from benchmarks.mutants.table import AREAS
from benchmarks.mutants.trial import (
    EQUIVALENT,
    KILLED,
    NOT_APPLICABLE,
    Outcome,
    require_own_package,
    run_tests,
    tried,
)

ROOT = Path(__file__).parents[2]
LEAST_KILLED = 0.95
SECONDS = 180.0


def main() -> int:
    arguments = _arguments()
    numbered = [(area, mutant) for area, mutants in AREAS.items() for mutant in mutants]
    chosen = [
        (number, area, mutant)
        for number, (area, mutant) in enumerate(numbered)
        if arguments.first <= number <= arguments.last and _mentions(arguments.only, area, mutant)
    ]
    if not chosen:
        print("no mutant matches")
        return 1
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        first = Scratch.copied(ROOT, Path(os.path.realpath(folder)) / "0")
        require_own_package(first)
        named = [test for _, _, mutant in chosen for test in mutant.tests]
        tests = [name for name in dict.fromkeys(named) if name.partition("::")[0] == name or _file(name) not in named]
        code, output = run_tests(first, tests, None)
        if code != 0:
            print(f"the tests fail without any mutant (pytest ended with code {code}):\n{output}")
            return 1
        print(f"the tests pass without a mutant, {time.perf_counter() - began:.0f} s", flush=True)
        scratches: SimpleQueue[Scratch] = SimpleQueue()
        scratches.put(first)
        for number in range(1, arguments.jobs):
            scratches.put(Scratch.copied(first.root, Path(folder) / str(number)))

        def attempt(item: tuple[int, str, Mutant]) -> Outcome:
            number, area, mutant = item
            scratch = scratches.get()
            try:
                outcome = tried(scratch, mutant, arguments.seconds)
            finally:
                scratches.put(scratch)
            line = f"{number:3d} {outcome.verdict:<14} {outcome.seconds:4.0f} s  {area}: {mutant.breaks}"
            print(f"{line}  [{outcome.reason}]" if outcome.reason else line, flush=True)
            return outcome

        with ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = list(pool.map(attempt, chosen))
    return _summary(chosen, outcomes, time.perf_counter() - began)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a word in the area, the file or the description")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--last", type=int, default=10**6, help="number of the last mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time; default: all cores")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit for the tests of one mutant")
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error("--jobs must be at least 1")
    return arguments


def _mentions(word: str, area: str, mutant: Mutant) -> bool:
    return word.lower() in f"{area} {mutant.file} {mutant.breaks}".lower()


def _file(test: str) -> str:
    return test.partition("::")[0]


def _summary(chosen: list[tuple[int, str, Mutant]], outcomes: list[Outcome], seconds: float) -> int:
    verdicts = [outcome.verdict for outcome in outcomes]
    killed, equivalent, misfits = (verdicts.count(verdict) for verdict in (KILLED, EQUIVALENT, NOT_APPLICABLE))
    counted = len(outcomes) - equivalent
    share = killed / counted if counted else 1.0
    alive = [
        f"{number} {mutant.breaks} ({verdict})"
        for (number, _, mutant), verdict in zip(chosen, verdicts, strict=True)
        if verdict not in (KILLED, EQUIVALENT)
    ]
    also = f", {equivalent} equivalent and not counted" if equivalent else ""
    survivors = "; ".join(alive) or "none"
    print(f"{counted} mutants, {killed} killed ({100 * share:.1f} %){also}, {seconds:.0f} s, survivors: {survivors}")
    return 1 if misfits or share < LEAST_KILLED else 0


if __name__ == "__main__":
    raise SystemExit(main())
