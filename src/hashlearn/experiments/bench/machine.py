"""What a result was measured with: versions and the machine."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

from hashlearn import __version__
from hashlearn.core.memory import physical_memory, text_lines
from hashlearn.core.threads import n_threads

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
GIB = 2**30


@cache
def versions() -> dict[str, str]:
    """Versions of hashlearn, Python and the packages that results may depend on."""
    return {
        "hashlearn": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


@cache
def machine() -> dict[str, str | int | float | None]:
    """System, processor, usable cores, memory. Nothing that identifies the machine or its user."""
    total = physical_memory()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": n_threads(),
        "memory_gib": None if total is None else round(total / GIB, 1),
    }


def _processor() -> str:
    for line in text_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
