"""Raw results as JSON, with machine and versions, and tables as Markdown, under ``results/bqp``."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bqp.memory import available_memory
from benchmarks.bqp.peers import PEERS, NotInstalled
from benchmarks.bqp.peers.programs import threads
from benchmarks.claims.recording import processor

RESULTS = Path("results") / "bqp"
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn")


class Report:
    """The text of a benchmark, printed as it grows and kept as Markdown; and its raw results."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.name, self.options = name, options
        self.parts: list[str] = []
        self.raw: list[dict[str, Any]] = []
        self.started = time.strftime("%Y-%m-%d %H:%M:%S")

    def say(self, text: str = "") -> None:
        """A paragraph."""
        print(text, flush=True)
        self.parts.append(text)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A Markdown table with its columns aligned, so that it reads well in a terminal too."""
        rows = list(rows)
        self.say(markdown_table(header, rows) if rows else "(none)")

    def add(self, result: dict[str, Any]) -> None:
        """A raw result, and the file with all so far, so that an interrupted run is not lost."""
        self.raw.append(result)
        self._write_json()

    def save(self) -> None:
        """Write both files and say where."""
        self._write_json()
        path = RESULTS / f"{self.name}.md"
        about = "\n".join(f"- {key}: {value}" for key, value in self._about().items())
        path.write_text(f"# {self.name}\n\n{about}\n\n" + "\n\n".join(self.parts) + "\n", encoding="utf-8")
        print(f"\nwritten: {path} and {path.with_suffix('.json')}", file=sys.stderr)

    def _write_json(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        content = {"about": self._about(), "results": self.raw}
        text = json.dumps(content, indent=1, default=str)
        (RESULTS / f"{self.name}.json").write_text(text, encoding="utf-8")

    def _about(self) -> dict[str, Any]:
        return {"started": self.started, "options": self.options, **machine(), **versions()}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "machine": platform.machine(),
        "processor": processor(),
        "cores": threads(),
        "memory available": f"{available_memory() / 2**30:.1f} GiB",
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Of the libraries we use and of every peer."""
    found = {name: version(name) for name in LIBRARIES}
    for peer in PEERS.values():
        try:
            found[f"peer {peer.name}"] = f"{peer.package} {peer.version()}"
        except NotInstalled as reason:
            found[f"peer {peer.name}"] = str(reason)
    return found


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Cells padded to one width a column; numbers to the right."""
    cells = [list(map(str, header)), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(_is_number(cell) for cell in column[1:]) for column in zip(*cells, strict=True)]

    def line(row: list[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def fitted_exponent(n: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log n, by least squares."""
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def mebibytes(count: float) -> str:
    """Bytes as MiB."""
    return f"{count / 2**20:,.0f}"


def progress(text: str) -> None:
    """A line on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _is_number(cell: str) -> bool:
    return not cell or cell[0] in "+-−–.0123456789"
