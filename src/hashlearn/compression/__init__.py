"""Which code keeps which recall: the frontier, the promise, its certificate and its page."""

from __future__ import annotations

from hashlearn.compression.compress import compress
from hashlearn.compression.contenders import FAMILIES
from hashlearn.compression.records import Certificate, Example, FrontierRow
from hashlearn.compression.result import Compression
from hashlearn.compression.searcher import Searcher
from hashlearn.compression.verification import Verification, verify

__all__ = [
    "FAMILIES",
    "Certificate",
    "Compression",
    "Example",
    "FrontierRow",
    "Searcher",
    "Verification",
    "compress",
    "verify",
]
