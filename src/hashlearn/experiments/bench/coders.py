"""Ways to store vectors in few bytes, all with one interface: our hashers, FAISS and two packages of TurboQuant.

A coder is fitted, stores the database, and says how many bytes a row takes, everything included: RaBitQ's factors and
TurboQuant's norm count. Equal Hamming distances and equal asymmetric scores of bits come in ascending order of rows.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import pack_bits
from hashlearn.core.packages import require
from hashlearn.core.threads import n_threads
from hashlearn.hashers import BaseHasher
from hashlearn.search import HammingIndex, asymmetric_search

Rows = NDArray[np.float32]
Rankings = dict[str, NDArray[np.int64]]  # "hamming" or "asymmetric" → row numbers (n_queries, depth), best first
CALIBRATION_ROWS = 1024  # what turbovec recommends
NORM_BYTES = 4  # that both packages of TurboQuant store with each row


class Coder(ABC):
    """A method at one size: it learns from rows, stores rows, and searches what is stored."""

    description: str  # what it is built of
    bytes_per_row: int

    @abstractmethod
    def fit(self, X: Rows) -> None:
        """Learn from the rows."""

    @abstractmethod
    def store(self, X: Rows) -> None:
        """Encode the database and keep it."""

    @abstractmethod
    def search(self, queries: Rows, depth: int) -> Rankings:
        """The best ``depth`` rows of each query, for each kind of search that the method has."""

    @abstractmethod
    def content(self) -> bytes:
        """What is stored."""

    def digest(self) -> str:
        """SHA-256 of what is stored."""
        return hashlib.sha256(self.content()).hexdigest()


class Bits(Coder):
    """Packed codes, searched with the query's code and with its margins."""

    def __init__(self, n_bits: int, description: str) -> None:
        self.n_bits, self.bytes_per_row, self.description = n_bits, -(-n_bits // 8), description

    @abstractmethod
    def margins(self, X: Rows) -> NDArray[Any]:
        """Real numbers whose signs are the bits."""

    def encode(self, X: Rows) -> NDArray[np.uint8]:
        """Packed codes."""
        return pack_bits((self.margins(X) >= 0.0).astype(np.uint8))

    def store(self, X: Rows) -> None:
        self._codes = self.encode(X)

    def search(self, queries: Rows, depth: int) -> Rankings:
        index = HammingIndex(self.n_bits)
        index.add(self._codes)
        return {
            "hamming": index.search(self.encode(queries), depth).indices,
            "asymmetric": asymmetric_search(self.margins(queries), self._codes, depth).indices,
        }

    def content(self) -> bytes:
        return self._codes.tobytes()


class HasherBits(Bits):
    """The codes of a hasher."""

    def __init__(self, hasher: BaseHasher) -> None:
        super().__init__(hasher.n_bits, type(hasher).__name__)
        self._hasher = hasher

    def fit(self, X: Rows) -> None:
        self._hasher.fit(X)

    def margins(self, X: Rows) -> NDArray[Any]:
        return np.asarray(self._hasher.decision_function(X))

    def encode(self, X: Rows) -> NDArray[np.uint8]:
        return np.asarray(self._hasher.encode(X))


class FaissITQ(Bits):
    """ITQTransform of FAISS; its signs are the bits."""

    def __init__(self, n_bits: int, n_features: int) -> None:
        super().__init__(n_bits, f"ITQTransform({n_features}, {n_bits}, True)")
        if n_bits > n_features:
            raise ValueError(f"FAISS ITQ makes at most one bit of each feature: {n_features}, not {n_bits}")
        self._transform = faiss().ITQTransform(n_features, n_bits, True)

    def fit(self, X: Rows) -> None:
        self._transform.train(X)

    def margins(self, X: Rows) -> NDArray[Any]:
        return np.asarray(self._transform.apply(X))


class FaissIndex(Coder):
    """An index of FAISS by its factory string, for rows with zero columns added up to a multiple of ``parts``.

    With ``decoded`` the stored rows are decoded once, and the decoded rows are searched. The answers are those of the
    index, which decodes every row again for every query.
    """

    def __init__(self, description: str, n_features: int, parts: int = 1, decoded: bool = False) -> None:
        self.description = description
        self._padding, self._decoded = -n_features % parts, decoded
        self._index = faiss().index_factory(n_features + self._padding, description)
        self.bytes_per_row = int(self._index.sa_code_size())

    def fit(self, X: Rows) -> None:
        faiss().omp_set_num_threads(n_threads())
        with _warnings_from_stderr():
            self._index.train(self._padded(X))

    def store(self, X: Rows) -> None:
        self._index.add(self._padded(X))

    def search(self, queries: Rows, depth: int) -> Rankings:
        asked = self._padded(queries)
        if self._decoded:
            rows = self._index.reconstruct_n(0, self._index.ntotal)
            return {"asymmetric": faiss().knn(asked, rows, depth)[1]}
        return {"asymmetric": self._index.search(asked, depth)[1]}

    def content(self) -> bytes:
        return bytes(faiss().serialize_index(self._index))

    def _padded(self, X: Rows) -> Rows:
        return np.pad(X, ((0, 0), (0, self._padding))) if self._padding else X


class Turbovec(Coder):
    """TurboQuant by turbovec: 2 or 4 bits for each of as many principal directions as fit, and a norm.

    It ranks by inner product, so directions are not centered, and rows must have unit length.
    """

    def __init__(self, n_bytes: int, n_features: int, metric: str, bit_width: int) -> None:
        if metric != "cosine":
            raise ValueError(f"turbovec ranks by inner product, so the metric must be cosine, got {metric}")
        room = (n_bytes - NORM_BYTES) * 8 // bit_width
        self._dim = min(n_features, room) // 8 * 8
        self.bytes_per_row = self._dim * bit_width // 8 + NORM_BYTES
        self.description = f"TurboQuantIndex({self._dim}, {bit_width})"
        self._index = import_module("turbovec").TurboQuantIndex(dim=self._dim, bit_width=bit_width)

    def fit(self, X: Rows) -> None:
        directions = np.linalg.eigh(X.T.astype(np.float64) @ X)[1][:, ::-1]  # largest eigenvalue first
        self._directions = directions[:, : self._dim].astype(np.float32)
        sample = np.random.default_rng(0).permutation(len(X))[:CALIBRATION_ROWS]
        self._index.calibrate(self._projected(X[sample]))

    def store(self, X: Rows) -> None:
        self._index.add(self._projected(X))

    def search(self, queries: Rows, depth: int) -> Rankings:
        return {"asymmetric": np.asarray(self._index.search(self._projected(queries), k=depth)[1], np.int64)}

    def content(self) -> bytes:
        return bytes(self._index.to_bytes())

    def _projected(self, X: Rows) -> Rows:
        return np.ascontiguousarray(X @ self._directions)


class TurboquantPro(Coder):
    """TurboQuant by turboquant-pro, which has a PCA of its own. It learns and encodes in one call: that is `store`."""

    def __init__(self, n_bytes: int, n_features: int, metric: str, bit_width: int) -> None:
        self._dim, self._bits = min(n_features, (n_bytes - NORM_BYTES) * 8 // bit_width), bit_width
        self._metric = "l2" if metric == "euclidean" else metric
        self.bytes_per_row = -(-self._dim * bit_width // 8) + NORM_BYTES
        self.description = f"TQEIndex(output_dim={self._dim}, bits={bit_width})"
        self._kind = import_module("turboquant_pro").TQEIndex

    def fit(self, X: Rows) -> None:
        pass

    def store(self, X: Rows) -> None:
        self._index = self._kind.create(
            X, output_dim=self._dim, bits=self._bits, keep_originals=False, metric=self._metric
        )

    def search(self, queries: Rows, depth: int) -> Rankings:
        return {"asymmetric": np.asarray(self._index.search(queries, k=depth)[0], np.int64)}

    def content(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "index.tqe"
            self._index.save(str(path))
            return path.read_bytes()


def faiss() -> Any:
    """The module."""
    return require("faiss", "faiss", "this row of the frontier")


@contextmanager
def _warnings_from_stderr() -> Iterator[None]:
    """Lines that C++ code writes to standard error inside the block become warnings, each once."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as heard:
        os.dup2(heard.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
        heard.seek(0)
        for line in dict.fromkeys(heard.read().decode("utf-8", "replace").splitlines()):
            warnings.warn(line, stacklevel=3)
