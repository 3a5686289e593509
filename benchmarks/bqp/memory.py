"""Peak memory of processes, from Linux's ``/proc``.

``ru_maxrss`` would not do: a child inherits its parent's through fork and exec. VmHWM is the peak of one
program, and can be reset.
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def peak_rss(pid: int | str = "self") -> int:
    """The most bytes that the process held in memory since it began, or since `reset_peak`; 0 where
    unknown."""
    return _status(pid, "VmHWM")


def current_rss(pid: int | str = "self") -> int:
    """Bytes that the process holds in memory now; 0 where unknown."""
    return _status(pid, "VmRSS")


def reset_peak() -> None:
    """Let `peak_rss` of this process count from now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def children(pid: int) -> list[int]:
    """The processes that ``pid`` started and that are alive."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def available_memory() -> int:
    """Bytes that new work may take before the machine swaps or kills."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable"):
            return 1024 * int(line.split()[1])
    raise OSError("no MemAvailable in /proc/meminfo")


def _status(pid: int | str, key: str) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(key):
            return 1024 * int(line.split()[1])
    return 0
