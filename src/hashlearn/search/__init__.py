"""Packed codes → neighbors: exact search, FAISS if it is installed, and `stores` for databases.

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
from hashlearn.search.faiss_backends import FaissFlat, FaissHNSW, FaissIVF, FaissMultiHash
from hashlearn.search.faiss_files import read_faiss, write_faiss
from hashlearn.search.index import BACKENDS, HammingIndex
from hashlearn.search.interface import RadiusResult, ScoredResult, SearchResult
from hashlearn.search.pairs import pairs_within
from hashlearn.search.ranks import worst_ranks
from hashlearn.search.rescoring import VectorFile, rescore
from hashlearn.search.scan import NumPy, nearest_codes

__all__ = [
    "BACKENDS",
    "FaissFlat",
    "FaissHNSW",
    "FaissIVF",
    "FaissMultiHash",
    "HammingIndex",
    "NumPy",
    "RadiusResult",
    "ScoredResult",
    "SearchResult",
    "VectorFile",
    "asymmetric_search",
    "nearest_codes",
    "pairs_within",
    "read_faiss",
    "rescore",
    "worst_ranks",
    "write_faiss",
]
