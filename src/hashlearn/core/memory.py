"""The memory of this machine, and what may become dense.

Memory never decides which algorithm runs, so the same seed gives the same codes on every machine. It decides what is
cached. What does not fit is refused.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from hashlearn.core.thresholds import LARGEST_DENSE_FORM

SHARE_OF_MEMORY = 4  # one cache may take a quarter
FLOAT64_BYTES = 8


def dense_form(X: Any) -> str:
    """What sparse rows would take as a dense array, and what to do instead: the end of an error."""
    n, n_features = X.shape
    size = FLOAT64_BYTES * n * n_features
    return (
        f"as a dense array its {n:,} × {n_features:,} numbers take {size / 1e9:,.1f} GB. Reduce its columns with "
        "sklearn.decomposition.TruncatedSVD, or take hashlearn.hashers.ITQ, which keeps rows sparse"
        + ("" if size > LARGEST_DENSE_FORM else "; or pass X.toarray()")
    )


def densified(X: Any, purpose: str) -> Any:
    """Sparse rows as a dense array, refused above `LARGEST_DENSE_FORM` bytes; dense rows unchanged."""
    if not hasattr(X, "toarray"):
        return X
    if FLOAT64_BYTES * X.shape[0] * X.shape[1] > LARGEST_DENSE_FORM:
        limit = f"more than the {LARGEST_DENSE_FORM / 1e9:.0f} GB that are allowed"
        raise ValueError(f"{purpose} needs dense rows, and X is too large for that, {limit}: {dense_form(X)}")
    return X.toarray()


@cache
def memory_share() -> int:
    """Bytes: a quarter of the physical memory, or of the control group's or the process's limit where one is lower."""
    total = physical_memory() or 8 * 2**30
    for limit_file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        limit = text_lines(limit_file)
        if limit and limit[0].isdigit():
            total = min(total, int(limit[0]))
    return min(total, _address_space() or total) // SHARE_OF_MEMORY


def physical_memory() -> int | None:
    """Bytes of physical memory; None if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def text_lines(path: str) -> list[str]:
    """The lines of a file of the system; none if it cannot be read."""
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []


def _address_space() -> int | None:
    """What ``ulimit -v`` allows this process, in bytes; None where nothing is set, or on a system without it."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit
