"""Stores in one file: what the engine reads by itself, and behind it ids and settings as a zip archive.

Engines read their own bytes from the beginning and ignore what follows. A zip archive is read from its end, so every
zip program reads the rest: ``about.json``, and ``ids.json`` unless ids are integers. Since all of it is one file, a
kill leaves the old file or the new one, and never codes with the ids of other codes.

Integer ids are the engine's keys. Text is in ``ids.json``, a list, and the engine's keys are places in it.

A checksum detects accidental damage before the engine reads the file. A forged file can carry a valid checksum, and the
engine's own reader then decides what happens. Load only files from a source that you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import zipfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

import numpy as np

from hashlearn.core.atomic_files import regular_file, replacing
from hashlearn.core.checks import whole_number
from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER
from hashlearn.search.stores.base import Batch, Store

HEADER, IDS = "about.json", "ids.json"
FORMAT = "hashlearn codes in {}, format 1"
BLOCK = 1 << 20
NO_ARCHIVE = (zipfile.BadZipFile, KeyError, TypeError, ValueError, RuntimeError, OSError, EOFError, struct.error)


class Header(NamedTuple):
    """What a file says of itself."""

    about: About
    settings: dict[str, Any]  # of the engine
    index_bytes: int
    mark: str  # random for every file


def write_file(
    path: str | os.PathLike[str],
    engine: str,
    write_index: Callable[[str], Any],
    *,
    about: About,
    settings: Mapping[str, Any],
    ids: list[Any],
) -> str:
    """Write what ``write_index`` writes and all that belongs to it, atomically; return the mark of the file.

    ``ids`` are text in the order of the engine's keys, or None where a key has no code.
    """
    mark = secrets.token_hex(16)
    header: dict[str, Any] = {
        "format": FORMAT.format(engine),
        "about": about.to_json(),
        "settings": dict(settings),
        "mark": mark,
    }
    with replacing(Path(path)) as beside:
        write_index(os.fspath(beside))
        with open(beside, "rb") as file:
            header["index_sha256"], header["index_bytes"] = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
        with zipfile.ZipFile(beside, "a") as archive:
            _add_member(archive, HEADER, json.dumps(header, indent=1))
            if about.id_type != INTEGER:
                _add_member(archive, IDS, json.dumps(ids, ensure_ascii=False))
    return mark


def read_file(
    path: str | os.PathLike[str], engine: str, read_index: Callable[[Header, BinaryIO, list[Any]], Any] | None = None
) -> Any:
    """What ``read_index`` makes of a file, of its start and of the ids; None: what the file says of itself.

    Errors are a ValueError that names the file and says why it is refused.
    """
    try:
        with regular_file(path) as (file, size):
            header, sha256, ids = _read_header(file, size, engine)
            if read_index is None:
                return header
            file.seek(0)
            if _sha256(file, header.index_bytes) != sha256:
                raise ValueError("the checksum of its index is wrong: it is damaged")
            file.seek(0)
            return read_index(header, file, ids)
    except (ValueError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from None


class FileStore(Store):
    """A store in one file, whose codes are in memory. `save` and `close` write the file.

    A store overwrites a file only if its mark is the one that the store has read.

    A new store sets ``engine``, the engine's name, and implements `_write`.
    """

    has_fields = False
    engine: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        super().__init__(path)
        self.path = None if path is None else Path(path)
        self._described = "the index" if path is None else f"index {os.fspath(path)!r}"
        self._mark: str | None = None  # that of the file when it was last read or written; None: there was no file
        self._unsaved = True

    @property
    def _is_there(self) -> bool:
        return self.path is not None and os.path.lexists(self.path)

    def _take_header(self, header: Header, asked: About | None) -> None:
        """Take what the file says. Refuse codes of another width or model, and other ids than were asked for."""
        self._adopt(header.about, asked)
        self._mark, self._unsaved = header.mark, False

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
            if self._is_there and read_file(self.path, self.engine).mark != self._mark:
                raise ValueError(
                    f"{self._described} was written by another store after this one read it; nothing is saved. "
                    "Open it again and repeat the changes"
                )
            self._mark = self._write(self.path)
            self._unsaved = False

    @abstractmethod
    def _write(self, path: Path) -> str:
        """Write all codes with `write_file`; return the mark of the file."""

    def _close(self) -> None:
        self.save()

    def _close_after_error(self) -> None:
        """The file stays as it was."""


def joined(batches: Iterable[Batch]) -> Batch | None:
    """All batches of codes and ids as one, or None if there are none."""
    parts = list(batches)
    if not parts:
        return None
    codes, ids = (np.concatenate(arrays) for arrays in zip(*((part.codes, part.ids) for part in parts), strict=True))
    return Batch(codes, ids, {})


def _add_member(archive: zipfile.ZipFile, name: str, text: str) -> None:
    member = zipfile.ZipInfo(name)  # without a date, so that the same content gives the same bytes
    member.external_attr = 0o644 << 16
    archive.writestr(member, text)


def _read_header(file: BinaryIO, size: int, engine: str) -> tuple[Header, str, list[Any]]:
    """What the archive says, the checksum of the index, and the ids."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = json.loads(_member(archive, HEADER, size))
            about = About.from_json(parts["about"])
            names = json.loads(_member(archive, IDS, size)) if about.id_type != INTEGER else []
    except NO_ARCHIVE:
        raise ValueError(f"it was not written by hashlearn as a file of {engine}, or it is damaged") from None
    try:
        if parts["format"] != FORMAT.format(engine):
            raise ValueError(f"its format is {parts['format']!r}, and {FORMAT.format(engine)!r} can be read")
        if not (isinstance(parts["mark"], str) and isinstance(parts["settings"], dict) and isinstance(names, list)):
            raise TypeError("mark, settings and ids.json must be text, a mapping and a list")
        index_bytes = whole_number(parts["index_bytes"], "index_bytes", least=1, most=size)
        return Header(about, parts["settings"], index_bytes, parts["mark"]), str(parts["index_sha256"]), names
    except KeyError as error:
        raise ValueError(f"its about.json has no entry {error}") from None
    except TypeError as error:
        raise ValueError(f"its about.json is damaged: {error}") from None


def _member(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """A member, which must be stored as it is, so that none is larger than the file."""
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or member.file_size > size:
        raise ValueError(f"{name} is compressed or larger than the file")
    return archive.read(member)


def _sha256(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()
