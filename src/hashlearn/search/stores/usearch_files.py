"""What `UsearchStore` writes behind usearch's bytes: ids that are text or UUIDs, the model, the number of bits, a mark.

usearch reads its own bytes from the beginning of the file and ignores what follows. With text or UUIDs, this is:

     8 n      usearch's key of each id
     4 n      the length of each id in bytes
     …        the ids, one after another
    24 bytes  the kind of ids, their number n, and their length together
    32 bytes  the digest of the model; zeros if it is unknown
    36 bytes  what this is (16 bytes), n_bits, and the mark: 16 bytes that are random for every save

Integer ids are usearch's keys. Then the file has the ending only, and before it the digest if the model is known.
"""

from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER, LARGEST_ID, TEXT, UUID, IdArray, as_objects, checked_ids, empty_ids

ENDING = struct.Struct("<16sI16s")  # what this is, n_bits, mark
MAGIC = b"hashlearn codes\0"
MAGIC_WITH_MODEL = b"hashlearn model\0"  # the digest comes before the ending
MAGIC_WITH_IDS = b"hashlearn named\0"  # the ids and the digest come before the ending
ABOUT_IDS = struct.Struct("<8sQQ")  # kind, number, bytes together
DIGEST_BYTES, KEY_BYTES, LENGTH_BYTES = 32, 8, 4


class Ending(NamedTuple):
    """What stands behind usearch's bytes."""

    n_bits: int
    mark: bytes
    model: str | None
    id_type: str
    keys: NDArray[np.uint64]  # usearch's key of each id; none if the ids are integers
    ids: IdArray


def read_ending(path: Path) -> Ending | None:
    """What a file of `UsearchStore` says, or None if there is no file. Other files are refused."""
    if not path.exists():
        return None
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a regular file; name a file for the usearch index")
    with open(path, "rb") as file:
        end = path.stat().st_size
        last = _read_before(file, end, min(end, DIGEST_BYTES + ENDING.size))
        digest, last = last[: -ENDING.size], last[-ENDING.size :]
        if len(last) != ENDING.size or not last.startswith((MAGIC, MAGIC_WITH_MODEL, MAGIC_WITH_IDS)):
            raise ValueError(
                f"{str(path)!r} was not written by this version of UsearchStore, or is not whole; name another file"
            )
        magic, n_bits, mark = ENDING.unpack(last)
        id_type, keys, ids = INTEGER, np.zeros(0, np.uint64), empty_ids(INTEGER)
        if magic == MAGIC_WITH_IDS:
            try:
                id_type, keys, ids = _read_ids(file, end - DIGEST_BYTES - ENDING.size)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{str(path)!r} is not whole: {error}; name another file") from None
    known = magic == MAGIC_WITH_MODEL or (magic == MAGIC_WITH_IDS and any(digest))
    return Ending(int(n_bits), bytes(mark), digest.hex() if known else None, id_type, keys, ids)


def as_bytes(ending: Ending) -> bytes:
    """The bytes of the ending."""
    digest = bytes.fromhex(ending.model or "")
    if ending.id_type == INTEGER:
        return digest + ENDING.pack(MAGIC if ending.model is None else MAGIC_WITH_MODEL, ending.n_bits, ending.mark)
    named = [item.bytes if ending.id_type == UUID else item.encode() for item in ending.ids.tolist()]
    lengths = np.array([len(item) for item in named], "<u4")
    about = ABOUT_IDS.pack(ending.id_type.encode(), len(named), sum(map(len, named)))
    parts = [ending.keys.astype("<u8").tobytes(), lengths.tobytes(), *named, about, digest or bytes(DIGEST_BYTES)]
    return b"".join(parts) + ENDING.pack(MAGIC_WITH_IDS, ending.n_bits, ending.mark)


def _read_ids(file: Any, end: int) -> tuple[str, NDArray[np.uint64], IdArray]:
    """The kind of ids, usearch's keys and the ids, which stand before byte ``end``."""
    kind, n, n_bytes = ABOUT_IDS.unpack(_read_before(file, end, ABOUT_IDS.size))
    id_type = kind.rstrip(b"\0").decode(errors="replace")
    if id_type not in (TEXT, UUID):
        raise ValueError(f"its ids are of the unknown kind {id_type!r}")
    data = _read_before(file, end - ABOUT_IDS.size, n * (KEY_BYTES + LENGTH_BYTES) + n_bytes)
    keys = np.frombuffer(data, "<u8", n).astype(np.uint64)
    ends = np.cumsum(np.frombuffer(data, "<u4", n, n * KEY_BYTES), dtype=np.int64)
    if len(np.unique(keys)) != n or keys.max(initial=0) > LARGEST_ID or ends[-1:].sum() != n_bytes:
        raise ValueError("its ids and their keys do not fit together")
    named = data[n * (KEY_BYTES + LENGTH_BYTES) :]
    items = [named[first:last] for first, last in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
    read: Any = (lambda item: uuid.UUID(bytes=item)) if id_type == UUID else bytes.decode
    return id_type, keys, checked_ids(as_objects(map(read, items)), id_type=id_type)


def _read_before(file: Any, end: int, size: int) -> bytes:
    """``size`` bytes that end before byte ``end``; the file is asked for no more than it has."""
    if size > end:
        raise ValueError("it ends too early")
    file.seek(end - size)
    return bytes(file.read(size))
