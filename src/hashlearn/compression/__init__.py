"""Which code keeps which recall: the frontier, the promise, its certificate and its page; near-duplicates."""

from __future__ import annotations

from hashlearn.compression.compress import compress
from hashlearn.compression.contenders import FAMILIES
from hashlearn.compression.near_duplicates import NearDuplicates, near_duplicates
from hashlearn.compression.result import Certificate, Compression, Example, FrontierRow
from hashlearn.compression.vector_index import VectorIndex
from hashlearn.compression.verification import Verification, verify

__all__ = [
    "FAMILIES",
    "Certificate",
    "Compression",
    "Example",
    "FrontierRow",
    "NearDuplicates",
    "VectorIndex",
    "Verification",
    "compress",
    "near_duplicates",
    "verify",
]
