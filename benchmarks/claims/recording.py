"""Writes a stored result: what was measured, by which command, at which commit, on which machine, and when."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

OPTION = "--json"


def add_option(parser: argparse.ArgumentParser) -> None:
    """``--json FILE``."""
    parser.add_argument(OPTION, type=Path, metavar="FILE", help="write a stored result, for docs/results")


def record(
    path: Path | None,
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[Any]] = (),
    values: Mapping[str, Any] | None = None,
    note: str = "",
) -> None:
    """Write the file, if a path is given. ``rows`` are cells as they are shown; ``values`` may be numbers."""
    if path is None:
        return
    content: dict[str, Any] = {"command": command(), "commit": commit(), "machine": machine()}
    content["date"] = time.strftime("%Y-%m-%d")
    more = {
        "note": note,
        "values": dict(values or {}),
        "columns": list(columns),
        "rows": [[str(cell) for cell in row] for row in rows],
    }
    content |= {key: value for key, value in more.items() if len(value)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumped(content), encoding="utf-8")


class Table:
    """A Markdown table that is printed row by row, and kept to be recorded."""

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self.rows: list[list[str]] = []
        print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)

    def row(self, *cells: Any) -> None:
        """Print a row."""
        self.rows.append([str(cell) for cell in cells])
        print(f"| {' | '.join(self.rows[-1])} |", flush=True)

    def record(self, path: Path | None, values: Mapping[str, Any] | None = None) -> None:
        """Write the stored result, if a path is given."""
        record(path, self.columns, self.rows, values)


def dumped(content: Mapping[str, Any]) -> str:
    """JSON with one line for each row of the table."""
    head = {key: value for key, value in content.items() if key != "rows"}
    text = json.dumps(head, indent=1, ensure_ascii=False, default=_plain)
    if "rows" in content:
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False, default=_plain)}" for row in content["rows"])
        text = text[: text.rindex("\n}")] + f',\n "rows": [\n{rows}\n ]\n}}'
    return text + "\n"


def command() -> str:
    """How this program was started, without the option that names the file and without folders of this machine."""
    module = sys.modules["__main__"].__spec__
    start = "hashlearn" if module is None else f"python -m {module.name.removesuffix('.__main__')}"
    arguments = sys.argv[1:]
    if OPTION in arguments:
        place = arguments.index(OPTION)
        del arguments[place : place + 2]
    kept = [argument for argument in arguments if not argument.startswith(f"{OPTION}=")]
    return shlex.join([*start.split(), *(Path(part).name if Path(part).is_absolute() else part for part in kept)])


def commit() -> str:
    """The commit of the checkout; "+" marks changes that are not committed."""
    where = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=where, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> str:
    """Processor, cores, memory, and the GPU if PyTorch is loaded and sees one."""
    parts = [processor(), f"{len(os.sched_getaffinity(0))} cores", f"{_memory() / 2**30:.0f} GiB"]
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def processor() -> str:
    """The processor's name as Linux has it."""
    file = Path("/proc/cpuinfo")
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
