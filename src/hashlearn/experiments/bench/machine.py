"""What a result was measured with: versions, the machine, and how much of its memory is free."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from hashlearn import __version__
from hashlearn.core.threads import n_threads

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
GIB = 2**30


@cache
def versions() -> dict[str, str]:
    """Of hashlearn, Python and the packages that numbers may depend on."""
    return {
        "hashlearn": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


@cache
def machine() -> dict[str, str | int | float | None]:
    """System, processor, cores that this process may use, memory. Nothing that names the machine or its user."""
    total = _physical_memory()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": n_threads(),
        "memory_gib": None if total is None else round(total / GIB, 1),
    }


def available_memory() -> int | None:
    """Bytes that new processes may take, by the system and by the control group; None where neither says."""
    found = []
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) * 1024)
    limit, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit and used and limit[0].isdigit():
        found.append(max(0, int(limit[0]) - int(used[0])))
    return min(found, default=None)


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []
