"""Packed codes → neighbors: exact search in memory, and `stores` for databases and other engines.

>>> import numpy as np
>>> from hashlearn.search import HammingIndex
>>> index = HammingIndex(n_bits=8)
>>> index.add(np.array([[0], [255], [1]], np.uint8))
array([0, 1, 2])
>>> index.search(np.array([[3]], np.uint8), k=2).indices
array([[2, 0]])
"""

from __future__ import annotations

from hashlearn.search.asymmetric import asymmetric_search
from hashlearn.search.index import HammingIndex
from hashlearn.search.interface import RadiusResult, ScoredResult, SearchResult
from hashlearn.search.ranks import worst_ranks
from hashlearn.search.rescoring import VectorFile, rescore
from hashlearn.search.scan import nearest_codes

__all__ = [
    "HammingIndex",
    "RadiusResult",
    "ScoredResult",
    "SearchResult",
    "VectorFile",
    "asymmetric_search",
    "nearest_codes",
    "rescore",
    "worst_ranks",
]
