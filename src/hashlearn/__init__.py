"""hashlearn: learned binary codes.

>>> import numpy as np
>>> from hashlearn import bqp
>>> bqp.solve(np.array([[0.0, 1.0], [1.0, 0.0]]), method="exact").value
-2.0
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = [
    "RankingHasher",
    "TwoStepHasher",
    "__version__",
    "bits",
    "bqp",
    "compress",
    "compression",
    "datasets",
    "distributed",
    "explorer",
    "files",
    "hash_functions",
    "hashers",
    "inference",
    "load",
    "metrics",
    "near_duplicates",
    "persistence",
    "search",
    "targets",
]


def __getattr__(name: str) -> Any:
    """Import the folders on first use, so that ``import hashlearn`` stays fast."""
    if name in ("RankingHasher", "TwoStepHasher"):
        return getattr(import_module("hashlearn.hashers"), name)
    if name == "compress":
        return import_module("hashlearn.compression").compress
    if name == "load":
        return import_module("hashlearn.persistence").load
    if name == "near_duplicates":
        return import_module("hashlearn.compression").near_duplicates
    if name == "datasets":
        return import_module("hashlearn.experiments.datasets")
    if name in __all__:
        return import_module(f"hashlearn.{name}")
    raise AttributeError(f"module 'hashlearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
