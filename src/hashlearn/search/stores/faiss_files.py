"""Files that ``faiss.read_index_binary`` reads by itself. `hashlearn.search.stores.file_store` has the format.

The index is an ``IndexBinaryIDMap2`` around an ``IndexBinaryFlat``, ``IndexBinaryHNSW`` or ``IndexBinaryIVF``.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import require_choice
from hashlearn.search.ids import INTEGER, IdArray, checked_ids, empty_ids, type_of
from hashlearn.search.interface import checked_codes, require_n_bits
from hashlearn.search.model_digest import require_same_model
from hashlearn.search.stores.faiss_kinds import KINDS, FaissFlat, Kind, as_kind, faiss_package, one_thread
from hashlearn.search.stores.file_store import BLOCK, About, read_file, write_file

ENGINE = "FAISS"


class FaissFile(NamedTuple):
    """What is in a file. ``ids`` are in the order of ``codes``."""

    about: About
    kind: Kind
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
    chosen, id_type = as_kind(kind), type_of(ids)
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
    name = next(name for name, known in KINDS.items() if isinstance(kind, known))
    return write_file(
        path,
        ENGINE,
        lambda place: faiss_package().write_index_binary(index, place),
        n_bits=n_bits,
        id_type=id_type,
        model=model,
        settings={"kind": name, **asdict(kind)},
        ids=ids.tolist(),
    )


def read_index(path: str | os.PathLike[str]) -> FaissFile:
    """All of a file, or a ValueError that says why it is refused."""
    found: FaissFile = read_file(path, ENGINE, _read)
    return found


def _read(about: About, file: BinaryIO, names: list[Any]) -> FaissFile:
    """Codes and ids out of an index, if they are what the file says."""
    faiss, settings = faiss_package(), dict(about.settings)
    require_choice(name := settings.pop("kind", None), "kind", KINDS)
    kind = KINDS[name](**settings)
    index = faiss.read_index_binary(faiss.PyCallbackIOReader(file.read, BLOCK))
    width = -(-about.n_bits // 8)
    if not isinstance(index, faiss.IndexBinaryIDMap2) or index.d != 8 * width:
        raise ValueError(f"its index is not one of codes of {about.n_bits} bits under ids")
    inner, n = faiss.downcast_IndexBinary(index.index), index.ntotal
    if isinstance(inner, faiss.IndexBinaryHNSW):
        inner = faiss.downcast_IndexBinary(inner.storage)
    if isinstance(inner, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(inner.xb).reshape(-1, width)
    else:
        codes = _listed(faiss, inner.invlists, n, width)
    numbers = faiss.vector_to_array(index.id_map)
    if about.id_type == INTEGER:
        ids = checked_ids(numbers, n)
    else:
        if not np.array_equal(numbers, np.arange(n)):
            raise ValueError("the ids of its index must be the places in ids.json")
        ids = checked_ids(names, n, about.id_type)
    return FaissFile(about, kind, index, checked_codes(codes, about.n_bits), ids if n else empty_ids(about.id_type))


def _listed(faiss: Any, lists: Any, n: int, width: int) -> NDArray[np.uint8]:
    """The codes of inverted lists, by row. In FAISS 1.10 to 1.12, ``reconstruct_n`` returns other bytes."""
    codes = np.zeros((n, width), np.uint8)
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            rows = faiss.rev_swig_ptr(lists.get_ids(number), size)
            codes[rows] = faiss.rev_swig_ptr(lists.get_codes(number), size * width).reshape(size, width)
    return codes
