"""usearch: an HNSW graph over bits (``b1``, Hamming) in memory, saved to one file.

usearch takes whole bytes, so codes stay padded; the order of bits does not matter. Its file has no checksum, so load
only files of your own. After usearch's bytes we write the model's digest if it is known, the number of bits, and a mark
that is random for every save. A store overwrites a file only if its mark is the one that the store has read.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import replacing
from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import NOWHERE
from hashlearn.search.stores.base import Encoder, Store

try:
    import fcntl
except ImportError:  # without locks, the user must not save from two processes at the same moment
    fcntl = None  # type: ignore[assignment]

ENDING = struct.Struct("<16sI16s")  # what this is, n_bits, mark
MAGIC = b"hashlearn codes\0"
MAGIC_WITH_MODEL = b"hashlearn model\0"  # 32 bytes before the ending are the model's digest
DIGEST_BYTES = 32


class UsearchStore(Store):
    """A usearch index. Open it with `create`; `save` and `close` write it.

    A ``with`` block that ends in an error does not write it.

    >>> store = UsearchStore.create("codes.usearch", 32)  # doctest: +SKIP
    """

    packages, extra = ("usearch.index",), "usearch"

    def __init__(
        self, path: Path | None, n_bits: int, hasher: Encoder | None, model: str | None, settings: dict[str, int]
    ) -> None:
        super().__init__(n_bits, hasher, model)
        usearch = self._package("usearch.index")
        kinds = {"metric": usearch.MetricKind.Hamming, "dtype": usearch.ScalarKind.B1}
        self.index = usearch.Index(ndim=8 * self.n_bytes, **kinds, **settings)
        self.path = path
        self._described = "the index" if path is None else f"index {str(path)!r}"
        self._mark: bytes | None = None  # mark of the file when it was last read or written; None: there was no file
        self._unsaved, self._whole = True, True

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        model: str | None = None,
        n_links: int = 16,
        build_width: int = 128,
        search_width: int = 64,
    ) -> Self:
        """Open the file, or start empty if there is none. With None nothing is ever written.

        A file that this store did not write is refused.
        """
        settings = {"connectivity": n_links, "expansion_add": build_width, "expansion_search": search_width}
        store = cls(None if path is None else Path(path), n_bits, hasher, model, settings)
        ending = None if store.path is None else _ending(store.path)
        if ending is not None:
            n_bits, store._mark, made_by = ending
            store._require_bits(n_bits)
            store._require_model(made_by)
            store.index.load(str(store.path))
            store._unsaved = False
        return store

    def save(self) -> None:
        """Write the file atomically. Refused if another store has written it since this one read it."""
        with self._lock:
            if not self._whole:
                raise RuntimeError(f"an upsert into {self._described} failed half-way; open it again, nothing is saved")
            if self.path is None or not self._unsaved:
                return
            with _only_writer_in(self.path), replacing(self.path) as beside:
                ending = _ending(self.path)
                if ending is not None and ending[1] != self._mark:
                    raise ValueError(
                        f"{self._described} was written by another store after this one read it; nothing is saved. "
                        "Open it again and repeat the changes"
                    )
                mark = secrets.token_bytes(16)
                self.index.save(str(beside))
                magic = MAGIC if self.model is None else MAGIC_WITH_MODEL
                with open(beside, "ab") as file:
                    file.write(bytes.fromhex(self.model or "") + ENDING.pack(magic, self.n_bits, mark))
            self._mark, self._unsaved = mark, False

    def _count(self) -> int:
        return len(self.index)

    def _close(self) -> None:
        self.save()

    def _close_after_error(self) -> None:
        """The file stays as it was."""

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        keys = ids.astype(np.uint64)
        self._whole = False  # until all rows are in
        self._drop(keys)
        # With several threads the graph would depend on which is faster.
        self.index.add(keys, codes, threads=1)
        self._whole = self._unsaved = True

    def _remove(self, ids: NDArray[np.int64]) -> int:
        return self._drop(ids.astype(np.uint64))

    def _drop(self, keys: NDArray[np.uint64]) -> int:
        there = keys[np.asarray(self.index.contains(keys))]
        if len(there):
            self.index.remove(there)
            self._unsaved = True
        return len(there)

    def _ask(self, codes: NDArray[np.uint8], count: int, exact: bool) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        # At least two queries, because the answer to a single one has another shape.
        padded = np.concatenate([codes, codes]) if len(codes) == 1 else codes
        matches = self.index.search(padded, count, exact=exact)
        keys, distances, found = matches.keys[: len(codes)], matches.distances[: len(codes)], matches.counts
        missing = np.arange(keys.shape[1]) >= np.asarray(found)[: len(codes), None]
        self._require_id(int(np.where(missing, keys.dtype.type(0), keys).max(initial=0)))
        ids = np.where(missing, np.int64(NOTHING), keys.astype(np.int64))
        near = np.where(missing, np.float32(0), distances).astype(np.int64)
        return ids, np.where(missing, NOWHERE, near).astype(np.int32)


def _ending(path: Path) -> tuple[int, bytes, str | None] | None:
    """Number of bits, mark and model of a file that `UsearchStore` wrote, or None if there is no file."""
    if not path.exists():
        return None
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a regular file; name a file for the usearch index")
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - DIGEST_BYTES - ENDING.size))
        last = file.read()
    digest, last = last[: -ENDING.size], last[-ENDING.size :]
    if len(last) != ENDING.size or not last.startswith((MAGIC, MAGIC_WITH_MODEL)):
        raise ValueError(
            f"{str(path)!r} was not written by this version of UsearchStore, or is not whole; name another file"
        )
    magic, n_bits, mark = ENDING.unpack(last)
    return int(n_bits), bytes(mark), digest.hex() if magic == MAGIC_WITH_MODEL else None


@contextlib.contextmanager
def _only_writer_in(path: Path) -> Iterator[None]:
    """Hold a lock on the folder: other processes that save in it wait."""
    folder = Path(os.path.realpath(path)).parent
    if fcntl is None or not folder.is_dir():
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
