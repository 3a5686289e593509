"""`HammingIndex`: packed codes in, neighbors out. Every engine behaves in the same way."""

from __future__ import annotations

import os
import threading
from dataclasses import asdict
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import finite_float64, require_k, require_radius, whole_number
from hashlearn.core.names import require_choice
from hashlearn.search.asymmetric import asymmetric_search
from hashlearn.search.code_table import CodeTable, read_table, write_table
from hashlearn.search.faiss_backends import FaissFlat, FaissHNSW, FaissIVF, FaissMultiHash
from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import (
    Backend,
    Engine,
    RadiusResult,
    ScoredResult,
    SearchResult,
    checked_codes,
    require_n_bits,
)
from hashlearn.search.model_digest import checked_model, require_same_model
from hashlearn.search.scan import NumPy

BACKENDS: dict[str, type[Any]] = {
    backend.name: backend for backend in (NumPy, FaissFlat, FaissIVF, FaissHNSW, FaissMultiHash)
}


class HammingIndex:
    """Search packed codes by Hamming distance, or by the margins of the query.

    Parameters
    ----------
    n_bits : length of a code; codes have ⌈n_bits / 8⌉ bytes, big-endian, pad bits zero, as ``encode`` returns them
    backend : "auto" or "numpy" (exact, nothing to install), "faiss_flat" (exact), "faiss_ivf", "faiss_hnsw",
        "faiss_multi_hash" (approximate), or a backend object such as ``FaissHNSW(search_width=256)``
    model : digest of the hasher that makes the codes, from `hashlearn.persistence.fingerprint`; `save` stores it

    Exact backends give identical answers, including ties, which are broken by id. "auto" is "numpy". The first search
    after a change updates the engine: adding ids in ascending order extends it, every other change rebuilds it.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn.search import HammingIndex
    >>> index = HammingIndex(n_bits=12)
    >>> index.add(np.array([[0b00000000, 0], [0b11000000, 0], [0b10000000, 0]], np.uint8))
    array([0, 1, 2])
    >>> found = index.search(np.array([[0b01000000, 0]], np.uint8), k=2)
    >>> found.indices, found.distances
    (array([[0, 1]]), array([[1, 1]], dtype=int32))
    >>> index.search_radius(np.array([[0, 0]], np.uint8), radius=1)[0].indices
    array([0, 2])
    """

    def __init__(self, n_bits: int, backend: str | Backend = "auto", model: str | None = None) -> None:
        self.n_bits = require_n_bits(n_bits)
        self.backend = as_backend(backend)
        self.model = checked_model(model)
        self._table = CodeTable(self.n_bits)
        self._engine: Engine | None = None
        self._engine_state = (-1, 0)  # state of the table when the engine was last updated
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"HammingIndex(n_bits={self.n_bits}, backend={self.backend!r}): {len(self)} code(s)"

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids, ascending."""
        return self._table.ids.copy()

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of `ids`."""
        return self._table.codes.copy()

    def add(self, codes: Any, ids: Any = None) -> NDArray[np.int64]:
        """Add codes under new ids (None: the next free ones, from 0) and return the ids. All are added, or none."""
        with self._lock:
            return self._table.add(codes, ids)

    def remove(self, ids: Any) -> None:
        """Remove codes by id. If one is missing, raise KeyError and remove nothing."""
        with self._lock:
            self._table.remove(ids)

    @overload
    def search(self, codes: Any, k: int) -> SearchResult: ...

    @overload
    def search(self, codes: None = None, *, k: int, margins: Any) -> ScoredResult: ...

    def search(self, codes: Any = None, k: Any = None, *, margins: Any = None) -> SearchResult:
        """The k nearest of each code, nearest first, ties by id; k from 1 to ``len(index)``.

        With ``margins``, what ``decision_function`` returns, instead of codes: the k with the highest score
        Σ_b margin_b · sign_b, see `asymmetric_search`. That search is exact with every backend.
        """
        if (codes is None) == (margins is None):
            given = "neither" if codes is None else "both"
            raise ValueError(f"search takes either codes or margins, got {given}")
        if margins is not None:
            return self._search_margins(margins, k)
        codes = checked_codes(codes, self.n_bits)
        k = require_k(k, len(self))
        engine, ids = self._current()
        rows, distances = engine.nearest(codes, k)
        return SearchResult(np.where(rows >= 0, ids[rows], NOTHING), distances)

    def _search_margins(self, margins: Any, k: Any) -> ScoredResult:
        margins = finite_float64(margins, "margins", ndim=2, may_be_empty=True)
        if margins.shape[1] != self.n_bits:
            raise ValueError(f"margins must have {self.n_bits} columns, one for each bit, got shape {margins.shape}")
        with self._lock:
            ids, stored = self._table.ids, self._table.codes
        found = asymmetric_search(margins, stored, k)
        return ScoredResult(ids[found.indices], found.scores)

    def search_radius(self, codes: Any, radius: int) -> RadiusResult:
        """All items at distance ``radius`` or less, nearest first, ties by id. Exact with every backend."""
        codes = checked_codes(codes, self.n_bits)
        require_k(1, len(self))  # refuses an empty index
        radius = require_radius(radius)
        engine, ids = self._current()
        limits, rows, distances = engine.within(codes, radius)
        return RadiusResult(limits, ids[rows], distances)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, ids and settings into one file, atomically. A loaded index builds its engine again."""
        header = {
            "n_bits": self.n_bits,
            "backend": self.backend.name,
            "settings": asdict(self.backend),  # type: ignore[call-overload]
            "next_id": self._table.next_id,
            **({} if self.model is None else {"model": self.model}),
        }
        with self._lock:
            write_table(path, header, self._table.ids, self._table.codes)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: str | None = None) -> HammingIndex:
        """Read a file of `save`. Loading runs no code from the file, and a checksum covers every byte.

        ValueError: the file is damaged, of another kind or of a newer format; it has codes of another ``model``;
        settings, ids or codes are invalid; or the path is a pipe, a device or a folder.
        """
        header, ids, codes = read_table(path)
        try:
            made_by = checked_model(header.get("model"))
            index = cls(header["n_bits"], BACKENDS[header["backend"]](**header["settings"]), made_by)
            index._table.add(codes, ids)
            next_id = whole_number(header["next_id"], "next_id", least=0, most=2**63)
            index._table.next_id = max(index._table.next_id, next_id)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{os.fspath(path)!r} is not a valid index: {error}") from None
        require_same_model(index.model, model, repr(os.fspath(path)))
        return index

    def _current(self) -> tuple[Engine, NDArray[np.int64]]:
        """The engine, updated to all codes, and the id of each of its rows."""
        with self._lock:
            table = self._table
            state = (table.rewritten, len(table))
            if self._engine is None or self._engine_state != state:
                rewritten, n = self._engine_state
                only_grown = rewritten == table.rewritten
                if self._engine is None or not (only_grown and self._engine.extend(table.codes[n:])):
                    self._engine = self.backend.build(table.codes, self.n_bits)
                self._engine_state = state
            return self._engine, table.ids

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_engine", "_engine_state", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _engine=None, _engine_state=(-1, 0), _lock=threading.Lock())


def as_backend(backend: Any) -> Backend:
    """A backend object from its name; an object is returned unchanged."""
    if not isinstance(backend, tuple(BACKENDS.values())):
        require_choice(backend, "backend", ["auto", *BACKENDS])
        backend = NumPy() if backend == "auto" else BACKENDS[backend]()
    known: Backend = backend
    return known
