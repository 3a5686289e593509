"""Stores in one file: the engine's own index, and behind it four lines of text that say what its codes are.

Engines read their own bytes from the beginning and ignore what follows. The lines are the `About` of the codes; the
settings of the index, and the id of each of the engine's keys unless ids are integers; where the lines begin, with a
SHA-256 over all that stands before it; and the format. ``tail -n 4`` shows them. Since all of it is one file, a kill
leaves the old file or the new one, and never codes with the ids of other codes.

The checksum detects accidental damage before the engine reads the file. A forged file can carry a valid checksum, and
the engine's own reader then decides what happens. Load only files from a source that you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import regular_file, replacing
from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.names import require_choice
from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, IdArray, are_found, as_objects, checked_ids, ids_at, no_ids
from hashlearn.search.index import HammingIndex
from hashlearn.search.interface import NOWHERE, SearchResult
from hashlearn.search.stores.base import Batch, Store, Where

PLACE_DIGITS, SHA256_DIGITS = 16, 64
BLOCK = 1 << 20
# Upper limits of settings. Engines allocate ``search_width`` candidates in every thread and ``n_links`` neighbors for
# every code, so a setting in a file could exhaust memory at the first search.
MOST = {"n_lists": 2**20, "n_probes": 2**20, "n_links": 512, "build_width": 2**14, "search_width": 2**18}
OF_SEARCHES = {"n_probes", "search_width"}  # settings that may differ from those of the file


class FileStore(Store):
    """Codes in memory, and a file that the engine reads by itself. `save` and `close` write it.

    ``index`` is a `HammingIndex` of all codes: it counts, filters and searches exactly. The engine's own index of the
    same codes is for approximate searches and for the file, and is brought up to date when one of these needs it. Its
    keys are the ids if these are integers, else places in a list of ids.

    With None as place, nothing is ever written. A file that this store did not write is refused. A store overwrites a
    file only if it has the checksum that the store has read. A ``with`` block that ends in an error does not write.

    A new store sets ``signature``, whose bytes are the last line of its files, and ``kinds``. It implements `_updated`,
    `_nearest`, `_write` and `_load`.
    """

    has_fields = False
    kinds: ClassVar[dict[str, dict[str, int | None]]]  # kinds of index with their settings; the first is the default

    def __init__(self, place: str | os.PathLike[str] | None, *, kind: str | None = None, **settings: int) -> None:
        super().__init__(place)
        self.path = None if place is None else Path(place)
        self._described = "the index" if place is None else f"index {os.fspath(place)!r}"
        self._asked: dict[str, Any] = settings if kind is None else {"kind": kind, **settings}
        self._engine_index: Any = None  # None: it must be built from all codes
        self._changes: list[IdArray] = []  # ids whose codes it does not have yet, or still has
        self._names: IdArray = no_ids((0,), INTEGER)  # the id of each of its keys if ids are text; None: it has no code
        self._checksum: bytes | None = None  # of the file when it was last read or written; None: there was no file
        self._unsaved = True

    def _open(self, asked: About | None) -> None:
        if self.path is None or not self.path.exists():
            self.settings = self._complete(self._asked)
            self.index = HammingIndex(self._adopt(None, asked).n_bits)
            return
        try:
            with regular_file(self.path) as (file, size):
                stored = self._read(self.path, file, size)
        except (ValueError, TypeError, AttributeError, LookupError, RuntimeError) as error:
            raise ValueError(f"{os.fspath(self.path)!r} cannot be loaded: {error}") from None
        self._adopt(stored, asked)
        others = {name: value for name, value in self._asked.items() if self.settings.get(name) != value}
        if not others.keys() <= OF_SEARCHES:
            raise ValueError(f"{self._described} is there already, with {self.settings} and not {others}")
        self.settings = self._complete({**self.settings, **others})

    def _read(self, path: Path, file: BinaryIO, size: int) -> About:
        """Take codes, ids and settings of the open file, and return what it says of them."""
        about, description, self._checksum = self._read_lines(file, size)
        self.settings, self._unsaved = self._complete(description["settings"]), False
        self._engine_index, keys, codes = self._load(os.fspath(path), about.n_bytes)
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            raise ValueError("it was replaced while it was read; open it again")
        ids = checked_ids(keys, len(codes))
        if about.id_type != INTEGER:
            self._names = as_objects(description["ids"])
            ids = self._names[ids]
        self.index = HammingIndex(about.n_bits)
        self.index.add(codes, ids)
        others = about.id_type != INTEGER and are_found(self._names).sum() != len(ids)
        if others or self.index.id_type not in (None, about.id_type):
            raise ValueError(f"it is damaged: it has {len(ids)} codes and other ids")
        return about

    @classmethod
    def _complete(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, with default values. Unknown ones are refused, and values that would fail or never end."""
        kind = settings.get("kind", next(iter(cls.kinds)))
        require_choice(kind, "kind", cls.kinds)
        defaults = {"kind": kind, **cls.kinds[kind]}
        for name, value in settings.items():
            if name not in defaults:
                raise ValueError(f"{name} is no setting of {cls.__name__} of kind {kind!r}")
            if name != "kind" and (value, defaults[name]) != (None, None):
                whole_number(value, name, least=1 if kind == "ivf" else 2, most=MOST[name])
        return {**defaults, **settings}

    def load(self, reader: Any, **options: Any) -> int:
        """Store all rows and save the file; `Store.load` says what the arguments are."""
        with self._lock:
            n_rows = super().load(reader, **options)
            self.save()
            return n_rows

    def save(self) -> None:
        """Write the file atomically. Refused if another store has written it since this one read it."""
        with self._lock:
            if self.path is None or not self._unsaved:
                return
            if self.path.exists() and self._checksum_there(self.path) != self._checksum:
                raise ValueError(
                    f"{self._described} was written by another store after this one read it; nothing is saved. "
                    "Open it again and repeat the changes"
                )
            index = self._current()
            with replacing(self.path) as unfinished:
                try:
                    self._write(index, os.fspath(unfinished))
                except RuntimeError as error:  # a full disk, in words that may not say so
                    raise OSError(f"{self._described} could not be written, nothing is saved: {error}") from None
                checksum = self._append_lines(unfinished)
            self._checksum, self._unsaved = checksum, False

    def _current(self) -> Any:
        """The engine's index of all codes, brought up to date."""
        if self._engine_index is None or self._changes:
            index, self._engine_index = self._engine_index, None  # after an error it is built from all codes
            self._engine_index, self._changes = self._updated(index, self._changes), []
        return self._engine_index

    @abstractmethod
    def _updated(self, index: Any, changes: list[IdArray]) -> Any:
        """The engine's index after changes of the codes under these ids. None as index: build it from all codes.

        If ids are text, this also sets ``_names``.
        """

    @abstractmethod
    def _nearest(self, index: Any, codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Keys and distances (n_codes, k) of what the engine finds, in any order; key −1 where it finds nothing."""

    @abstractmethod
    def _write(self, index: Any, place: str) -> None:
        """Write the engine's index to a file."""

    @abstractmethod
    def _load(self, place: str, n_bytes: int) -> tuple[Any, IdArray, NDArray[np.uint8]]:
        """The engine's index in a file, its keys and their codes. Refuse an index of codes of another width."""

    def _count(self, where: Where = None) -> int:
        return self.index.count(where)

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        parts = list(batches)
        if parts:
            codes, ids = (np.concatenate(arrays) for arrays in zip(*((p.codes, p.ids) for p in parts), strict=True))
            (self.index.upsert if replace else self.index.add)(codes, ids)
            self._changes.append(ids)
            self._unsaved = True

    def _remove(self, where: Any) -> int:
        count = self.index.remove(where=where)
        if count:
            self._changes.append(where)
            self._unsaved = True
        return count

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        """Among given ids, every search is exact."""
        if exact or where is not None or self.settings["kind"] == "flat" or len(codes) == 0:
            return self.index.search(codes, k, where=where)
        k = require_k(k, len(self.index))
        keys, distances = self._nearest(self._current(), codes, k)
        distances = np.where(keys < 0, NOWHERE, distances.astype(np.int32))
        ids = keys if self.id_type == INTEGER else ids_at(self._names, keys)
        order = np.lexsort((keys if self.id_type == INTEGER else np.where(keys < 0, "", ids), distances), axis=1)
        return SearchResult(*(np.take_along_axis(array, order, axis=1) for array in (ids, distances)))

    def _close(self) -> None:
        self.save()

    def _close_after_error(self) -> None:
        """The file stays as it was."""

    def _append_lines(self, path: Path) -> bytes:
        """Append the lines to the bytes of the engine, and return the checksum."""
        ids = None if self.id_type == INTEGER else self._names.tolist()
        description = json.dumps({"settings": self.settings, "ids": ids}, ensure_ascii=False)
        with open(path, "a+b") as file:
            file.write(f"\n{self.about.to_json()}\n{description}\n{file.tell():0{PLACE_DIGITS}}".encode())
            file.seek(0)
            checksum = hashlib.file_digest(file, "sha256").hexdigest().encode()
            file.write(checksum + self.signature[1])
        return checksum

    def _read_lines(self, file: BinaryIO, size: int) -> tuple[About, dict[str, Any], bytes]:
        """What `_append_lines` wrote, if the file is whole."""
        end = size - SHA256_DIGITS - len(self.signature[1])
        digest, left = hashlib.sha256(), end
        while left > 0 and (block := file.read(min(left, BLOCK))):
            digest.update(block)
            left -= len(block)
        checksum = digest.hexdigest().encode()
        if file.read() != checksum + self.signature[1]:
            raise ValueError(f"it was not written by this version of {type(self).__name__}, or it is damaged")
        file.seek(end - PLACE_DIGITS)
        file.seek(int(file.read(PLACE_DIGITS)))
        _, about, description, _ = file.read(end - file.tell()).decode().split("\n")
        return About.from_json(about).for_new_codes(), json.loads(description), checksum

    def _checksum_there(self, path: Path) -> bytes:
        """The checksum that a file states."""
        with regular_file(path) as (file, size):
            file.seek(max(0, size - SHA256_DIGITS - len(self.signature[1])))
            return file.read(SHA256_DIGITS)
