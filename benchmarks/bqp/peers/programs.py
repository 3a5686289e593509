"""Peers that are programs: the SDPA sparse format they read, and a watched run of one.

In SDPA's words: min Σx, Σ x_i e_i e_iᵀ + A ⪰ 0, so x is our dual point d, and the program's other side is
tr(−AX).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.bqp.memory import peak_rss
from benchmarks.bqp.peers.base import FloatArray, GaveUp, NotInstalled


class Line(NamedTuple):
    """A line that the program printed, and when."""

    seconds: float
    text: str


class Output(NamedTuple):
    """All that a program printed, and the most memory it held."""

    lines: list[Line]
    peak_bytes: int

    def number(self, start: str) -> float:
        """The number after the last line that begins with ``start`` and after its separator."""
        return float(self.last(start).text[len(start) :].strip(" =:").split()[0])

    def last(self, start: str) -> Line:
        """The last line that begins with ``start`` (spaces aside)."""
        for line in reversed(self.lines):
            if line.text.lstrip().startswith(start):
                return line._replace(text=line.text.strip())
        raise GaveUp(f"failed: no line {start!r} in its output")

    def first(self, start: str) -> Line:
        """The first such line."""
        return Output(self.lines[::-1], 0).last(start)


def find_program(name: str, debian_package: str) -> str:
    """The path of a program, or how to install it."""
    path = shutil.which(name)
    if path is None:
        raise NotInstalled(f"not installed (apt install {debian_package})")
    return path


def debian_version(debian_package: str) -> str:
    """The version that dpkg knows, for the record."""
    query = ["dpkg-query", "--show", "--showformat=${Version}", debian_package]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def run_program(command: list[str], folder: Path) -> Output:
    """Run to the end, noting when each line came; output is line-buffered so that the times are true."""
    if stdbuf := shutil.which("stdbuf"):
        command = [stdbuf, "-oL", *command]
    started = time.perf_counter()
    lines, peak = [], 0
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for text in process.stdout:
            lines.append(Line(time.perf_counter() - started, text.rstrip()))
            peak = max(peak, peak_rss(process.pid))
    if process.returncode < 0:
        raise GaveUp(f"failed: ended by signal {-process.returncode}")
    return Output(lines, peak)


def write_sdpa(path: Path, A: FloatArray) -> None:
    """The problem in SDPA sparse format, every number to its last bit."""
    n = len(A)
    with path.open("w", encoding="ascii") as file:
        file.write(f"{n}\n1\n{n}\n{' '.join(['1'] * n)}\n")
        for i in range(n):
            row = (-A[i, i:]).tolist()
            file.writelines(f"0 1 {i + 1} {j} {a!r}\n" for j, a in enumerate(row, start=i + 1) if a)
        file.writelines(f"{i} 1 {i} {i} 1\n" for i in range(1, n + 1))


def read_numbers(text: str) -> FloatArray:
    """Numbers separated by spaces, or by commas in braces."""
    return np.array(text.replace(",", " ").strip("{} \n").split(), dtype=np.float64)


def threads() -> int:
    """Cores that a peer may use, as many as we use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
