"""Run tests in a scratch copy, with or without a mutant, and say how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.mutants.mutant import Mutant, NotApplicable
from benchmarks.mutants.scratch import Scratch

KILLED, SURVIVED, TIMED_OUT, NOT_APPLICABLE = "killed", "survived", "timed out", "not applicable"
EQUIVALENT = "equivalent"
PASSED, FAILED = 0, 1  # exit codes of pytest


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    verdict: str
    seconds: float
    reason: str  # the first test that failed, or why there is no verdict


def tried(scratch: Scratch, mutant: Mutant, limit: float) -> Outcome:
    """Apply the mutant, run its tests until one fails, take the mutant back."""
    began = time.perf_counter()
    missing = mutant.missing_tests(scratch.root)
    if missing:
        return Outcome(NOT_APPLICABLE, 0.0, f"no such test: {', '.join(missing)}")
    try:
        with scratch.applied(mutant):
            code, output = run_tests(scratch, mutant.tests, limit)
    except NotApplicable as error:
        return Outcome(NOT_APPLICABLE, 0.0, str(error))
    seconds = time.perf_counter() - began
    if code is None:
        return Outcome(KILLED if mutant.hangs else TIMED_OUT, seconds, mutant.hangs or f"no end after {limit:g} s")
    if code == PASSED:
        return Outcome(EQUIVALENT if mutant.equivalent else SURVIVED, seconds, mutant.equivalent)
    if code == FAILED or code < 0:  # below 0: the interpreter itself was killed, for instance by a wild index
        return Outcome(KILLED, seconds, _first_failure(output) or f"ended by signal {-code}")
    return Outcome(NOT_APPLICABLE, seconds, f"pytest ended with code {code}: {_last_line(output)}")


def run_tests(scratch: Scratch, tests: Iterable[str], limit: float | None) -> tuple[int | None, str]:
    """Exit code and output of pytest; the code is None where it was ended after ``limit`` seconds.

    Hypothesis draws with a fixed seed, so that a mutant has the same fate every time.
    """
    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=scratch.root,
        env=scratch.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, output


def require_own_package(scratch: Scratch) -> None:
    """Refuse to go on if Python would import another copy of the package than the scratch one."""
    program = "import hashlearn; print(hashlearn.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=scratch.root, env=scratch.environment(), capture_output=True, text=True
    )
    if not found.stdout.startswith(str(scratch.root)):
        raise RuntimeError(
            f"tests must import hashlearn from {scratch.root}, got {found.stdout.strip() or found.stderr.strip()}"
        )


def _first_failure(output: str) -> str:
    lines = (line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    return next(lines, "").partition(" - ")[0].partition("[")[0]


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else "no output"
