"""Files that FAISS reads by itself: a binary index, and behind it ids and settings as a zip archive.

``faiss.read_index_binary`` reads the index and ignores what follows. A zip archive is read from its end, so every zip
program reads the rest: ``about.json``, and ``ids.json`` unless ids are integers. Since all of it is one file, a kill
leaves the old file or the new one, and never codes with the ids of other codes.

The index is an ``IndexBinaryIDMap2`` around an ``IndexBinaryFlat``, ``IndexBinaryHNSW`` or ``IndexBinaryIVF``. If ids
are integers, FAISS has them as its own. Text and UUIDs are in ``ids.json``, a list, and the ids of FAISS are places in
it.

Checksums detect accidental damage before FAISS reads the file. A forged file can carry valid checksums, and FAISS's
own reader then decides what happens. Load only files from a source that you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
import uuid
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import regular_file, replacing
from hashlearn.core.checks import whole_number
from hashlearn.core.names import require_choice
from hashlearn.search.ids import INTEGER, UUID, IdArray, checked_id_type, checked_ids, empty_ids, type_of
from hashlearn.search.interface import checked_codes, require_n_bits
from hashlearn.search.model_digest import checked_model, require_same_model
from hashlearn.search.stores.faiss_kinds import KINDS, FaissFlat, Kind, as_kind, faiss_package, one_thread

FORMAT = 1
ABOUT, IDS = "about.json", "ids.json"
BLOCK = 1 << 20

NO_ARCHIVE = (zipfile.BadZipFile, KeyError, TypeError, ValueError, RuntimeError, OSError, EOFError, struct.error)


class FaissAbout(NamedTuple):
    """What a file says of itself."""

    n_bits: int
    id_type: str
    model: str | None
    kind: Kind
    n: int
    index_bytes: int
    index_sha256: str
    mark: str  # random for every file


class FaissFile(NamedTuple):
    """What is in a file. ``ids`` are in the order of ``codes``."""

    about: FaissAbout
    index: Any  # the IndexBinaryIDMap2
    codes: NDArray[np.uint8]
    ids: IdArray


def write_faiss(
    path: str | os.PathLike[str],
    codes: Any,
    ids: Any,
    n_bits: int,
    *,
    kind: str | Kind = "flat",
    model: str | None = None,
) -> None:
    """Write codes as a file for ``faiss.read_index_binary``, atomically.

    ``kind`` is "flat" (exact), "hnsw" or "ivf" (approximate), or an object such as ``FaissHNSW(search_width=256)``.
    ``model`` is the digest of the hasher that made the codes, from `hashlearn.persistence.fingerprint`.

    If ids are integers, FAISS answers with them. Otherwise it answers with rows. The file is also a zip archive, and
    ``ids.json`` in it lists the id of each row.
    """
    codes = checked_codes(codes, require_n_bits(n_bits))
    ids = checked_ids(ids, len(codes))
    chosen, id_type = as_kind(kind), type_of(ids) if len(ids) else INTEGER
    write_index(path, faiss_index(codes, ids, chosen), ids, id_type, n_bits, chosen, model)


def read_faiss(path: str | os.PathLike[str], *, model: str | None = None) -> tuple[NDArray[np.uint8], IdArray, int]:
    """Codes, ids and n_bits of a file that `write_faiss` wrote. Refuse codes of another model."""
    found = read_index(path)
    require_same_model(found.about.model, model, repr(os.fspath(path)))
    return found.codes, found.ids, found.about.n_bits


def faiss_index(codes: NDArray[np.uint8], ids: IdArray, kind: Kind) -> Any:
    """An ``IndexBinaryIDMap2`` with these codes. Without codes it is flat, because lists need codes to be trained."""
    faiss = faiss_package()
    index = faiss.IndexBinaryIDMap2((kind if len(codes) else FaissFlat()).empty(codes))
    with one_thread(faiss):
        index.add_with_ids(codes, ids if ids.dtype.kind == "i" else np.arange(len(ids)))
    return index


def write_index(
    path: str | os.PathLike[str], index: Any, ids: IdArray, id_type: str, n_bits: int, kind: Kind, model: str | None
) -> str:
    """Write an index of `faiss_index` and all that belongs to it; return the mark of the file."""
    mark = secrets.token_hex(16)
    about: dict[str, Any] = {
        "format": FORMAT,
        "n_bits": n_bits,
        "id_type": id_type,
        "model": checked_model(model),
        "kind": next(name for name, known in KINDS.items() if isinstance(kind, known)),
        "settings": asdict(kind),
        "n": len(ids),
        "mark": mark,
    }
    with replacing(Path(path)) as beside:
        faiss_package().write_index_binary(index, os.fspath(beside))
        with open(beside, "rb") as file:
            about["index_bytes"] = os.fstat(file.fileno()).st_size
            about["index_sha256"] = _sha256(file, about["index_bytes"])
        with zipfile.ZipFile(beside, "a") as archive:
            _put(archive, ABOUT, json.dumps(about, indent=1))
            if id_type != INTEGER:
                _put(archive, IDS, json.dumps([str(item) for item in ids.tolist()], ensure_ascii=False))
    return mark


def _put(archive: zipfile.ZipFile, name: str, text: str) -> None:
    member = zipfile.ZipInfo(name)  # without a date, so that the same content gives the same bytes
    member.external_attr = 0o644 << 16
    archive.writestr(member, text)


def read_index(path: str | os.PathLike[str]) -> FaissFile:
    """All of a file, or a ValueError that says why it is refused."""
    try:
        with regular_file(path) as (file, size):
            about, names = _read_about(file, size)
            file.seek(0)
            if _sha256(file, about.index_bytes) != about.index_sha256:
                raise ValueError("the checksum of its index is wrong: it is damaged")
            file.seek(0)
            faiss = faiss_package()
            index = faiss.read_index_binary(faiss.PyCallbackIOReader(file.read, BLOCK))
        return _checked(about, index, names)
    except (ValueError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from None


def read_about(path: str | os.PathLike[str]) -> FaissAbout:
    """What a file says of itself; the index is not read."""
    try:
        with regular_file(path) as (file, size):
            return _read_about(file, size)[0]
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from None


def _read_about(file: BinaryIO, size: int) -> tuple[FaissAbout, list[Any]]:
    """What the archive says, and the ids in it. Members must be stored as they are, so none is larger than the file."""
    try:
        with zipfile.ZipFile(file) as archive:
            about = json.loads(_member(archive, ABOUT, size))
            id_type = checked_id_type(about["id_type"])
            names = json.loads(_member(archive, IDS, size)) if id_type != INTEGER else []
    except NO_ARCHIVE:
        raise ValueError("it was not written by write_faiss or FaissStore, or it is damaged") from None
    try:
        file_format = whole_number(about["format"], "format", least=1)
        if file_format > FORMAT:
            raise ValueError(f"its format is {file_format}, and this version reads up to {FORMAT}; update hashlearn")
        if not isinstance(about["mark"], str) or not isinstance(names, list):
            raise TypeError("mark and ids.json must be text and a list")
        require_choice(about["kind"], "kind", KINDS)
        found = FaissAbout(
            require_n_bits(about["n_bits"]),
            id_type,
            checked_model(about["model"]),
            KINDS[about["kind"]](**about["settings"]),
            whole_number(about["n"], "n", least=0),
            whole_number(about["index_bytes"], "index_bytes", least=1, most=size),
            str(about["index_sha256"]),
            about["mark"],
        )
        return found, names
    except KeyError as error:
        raise ValueError(f"its about.json has no entry {error}") from None
    except TypeError as error:
        raise ValueError(f"its about.json is damaged: {error}") from None


def _member(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or member.file_size > size:
        raise ValueError(f"{name} is compressed or larger than the file")
    return archive.read(member)


def _checked(about: FaissAbout, index: Any, names: list[Any]) -> FaissFile:
    """Codes and ids out of an index, if they are what the file says."""
    faiss = faiss_package()
    width = -(-about.n_bits // 8)
    if not isinstance(index, faiss.IndexBinaryIDMap2) or (index.d, index.ntotal) != (8 * width, about.n):
        raise ValueError(f"its index is not one of {about.n} code(s) of {about.n_bits} bits under ids")
    inner = faiss.downcast_IndexBinary(index.index)
    if isinstance(inner, faiss.IndexBinaryHNSW):
        inner = faiss.downcast_IndexBinary(inner.storage)
    if isinstance(inner, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(inner.xb).reshape(-1, width)
    else:
        codes = _listed(faiss, inner.invlists, about.n, width)
    numbers = faiss.vector_to_array(index.id_map)
    if about.id_type == INTEGER:
        ids = checked_ids(numbers, about.n)
    else:
        if not np.array_equal(numbers, np.arange(about.n)):
            raise ValueError("the ids of its index must be the places in ids.json")
        given = [uuid.UUID(name) for name in names] if about.id_type == UUID else names
        ids = checked_ids(given, about.n, about.id_type)
    return FaissFile(about, index, checked_codes(codes, about.n_bits), ids if about.n else empty_ids(about.id_type))


def _listed(faiss: Any, lists: Any, n: int, width: int) -> NDArray[np.uint8]:
    """The codes of inverted lists, by row. In FAISS 1.10 to 1.12, ``reconstruct_n`` returns other bytes."""
    codes = np.zeros((n, width), np.uint8)
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            rows = faiss.rev_swig_ptr(lists.get_ids(number), size)
            codes[rows] = faiss.rev_swig_ptr(lists.get_codes(number), size * width).reshape(size, width)
    return codes


def _sha256(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, BLOCK))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()
