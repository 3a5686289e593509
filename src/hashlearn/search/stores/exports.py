"""Codes in the formats of engines that have their own clients.

Packed codes have ⌈n_bits / 8⌉ bytes, the first bit is the highest of the first byte, and pad bits are zero. All these
engines use the same order of bits. Most need whole bytes: declare 8 · ⌈n_bits / 8⌉ bits. Pad bits are zero in queries
and database, so they add nothing to a distance. The engines differ in how a byte is written:

| engine | field | a code is written as | ids |
|---|---|---|---|
| Parquet, Arrow | fixed-size binary | its bytes | int64, text, Arrow's UUID |
| Milvus | BINARY_VECTOR, metric HAMMING | its bytes | INT64 or VARCHAR |
| Elasticsearch | dense_vector, element_type bit | signed bytes, −128 … 127 | text of at most 512 bytes |
| OpenSearch | knn_vector, data_type binary, space hamming | signed bytes | text of at most 512 bytes |
| Vespa | tensor<int8>(x[n_bytes]), distance-metric hamming | hexadecimal, signed bytes | text without control codes |
| Qdrant | n_bits floats, distance Dot, binary quantization | ±1, so score = n_bits − 2 · distance | integers or UUIDs |

Each ``…_rows`` function makes the client's input, ``…_field`` the declaration of the field, ``from_…`` is the inverse.
UUIDs become text where an engine has no type for them. An inverse takes the kind of the ids as ``id_type``.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import pack_signs, unpack_signs
from hashlearn.search.ids import INTEGER, TEXT, UUID, IdArray, checked_id_type, checked_ids, shown, type_of
from hashlearn.search.interface import checked_codes
from hashlearn.search.stores.arrow import from_arrow as from_arrow
from hashlearn.search.stores.arrow import read_parquet as read_parquet
from hashlearn.search.stores.arrow import to_arrow as to_arrow
from hashlearn.search.stores.arrow import write_parquet as write_parquet

ELASTICSEARCH_ID_BYTES = 512  # longer ids are refused by the servers
NONCHARACTERS = "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF))
NO_TEXT_OF_VESPA = re.compile(f"[\0-\x08\x0b\x0c\x0e-\x1f\ufdd0-\ufdef{NONCHARACTERS}]")
FROM_TEXT: dict[str, Callable[[str], Any]] = {INTEGER: int, TEXT: str, UUID: uuid.UUID}


def milvus_rows(codes: Any, ids: Any, n_bits: int) -> list[dict[str, Any]]:
    """Rows for ``MilvusClient.insert`` or ``upsert``; the field has ``dim`` 8 · ⌈n_bits / 8⌉.

    The primary key is INT64 if ids are integers, else VARCHAR. Its ``max_length`` counts bytes: 36 for UUIDs, and at
    most 2,000 for text.

    >>> milvus_rows(np.array([[160]], np.uint8), [7], n_bits=3)
    [{'id': 7, 'code': b'\\xa0'}]
    """
    codes, ids = _checked(codes, ids, n_bits)
    return [{"id": item, "code": code.tobytes()} for item, code in zip(_plain(ids), codes, strict=True)]


def elasticsearch_field(n_bits: int) -> dict[str, Any]:
    """The mapping of the field: brute-force or HNSW search by Hamming distance.

    >>> elasticsearch_field(12)["dims"]
    16
    """
    return {"type": "dense_vector", "element_type": "bit", "dims": 8 * -(-n_bits // 8), "similarity": "l2_norm"}


def opensearch_field(n_bits: int) -> dict[str, Any]:
    """The mapping of the field, with an HNSW graph by Hamming distance."""
    method = {"name": "hnsw", "engine": "faiss", "space_type": "hamming"}
    return {"type": "knn_vector", "dimension": 8 * -(-n_bits // 8), "data_type": "binary", "method": method}


def bulk_lines(codes: Any, ids: Any, n_bits: int, *, index: str, field: str = "code") -> Iterator[str]:
    """Lines for the ``_bulk`` API of Elasticsearch and OpenSearch: an action and a document for each code.

    >>> list(bulk_lines(np.array([[160]], np.uint8), [7], 3, index="codes"))
    ['{"index": {"_index": "codes", "_id": "7"}}', '{"code": [-96]}']
    """
    codes, ids = _checked(codes, ids, n_bits)
    texts = [str(item) for item in ids.tolist()]
    for text in texts:
        if len(text.encode()) > ELASTICSEARCH_ID_BYTES:
            raise ValueError(
                f"ids must have at most {ELASTICSEARCH_ID_BYTES} bytes for Elasticsearch and OpenSearch, got "
                f"{len(text.encode())}: {shown(text)}"
            )
    for text, code in zip(texts, codes.view(np.int8).tolist(), strict=True):
        yield json.dumps({"index": {"_index": index, "_id": text}})
        yield json.dumps({field: code})


def from_bulk_lines(
    lines: Iterable[str], n_bits: int, *, field: str = "code", id_type: str = INTEGER
) -> tuple[NDArray[np.uint8], IdArray]:
    """The inverse of `bulk_lines`."""
    texts, from_text = list(lines), FROM_TEXT[checked_id_type(id_type)]
    ids = [from_text(json.loads(line)["index"]["_id"]) for line in texts[::2]]
    codes = np.array([json.loads(line)[field] for line in texts[1::2]], np.int8).view(np.uint8)
    return _checked(codes.reshape(len(ids), -(-n_bits // 8)), ids, n_bits)


def vespa_field(n_bits: int) -> str:
    """The declaration of the field in a Vespa schema."""
    return (
        f"field code type tensor<int8>(x[{-(-n_bits // 8)}]) {{ indexing: attribute | index  "
        "attribute { distance-metric: hamming } }"
    )


def vespa_documents(codes: Any, ids: Any, n_bits: int, *, schema: str = "codes") -> Iterator[dict[str, Any]]:
    """Documents for Vespa's feed: the bytes as hexadecimal, two digits each, which Vespa reads as signed bytes.

    An id stands unchanged at the end of the document's id. Clients percent-encode it where they write it into a URL.

    >>> list(vespa_documents(np.array([[160]], np.uint8), [7], 3))
    [{'put': 'id:codes:codes::7', 'fields': {'code': {'values': 'a0'}}}]
    """
    codes, ids = _checked(codes, ids, n_bits)
    if not schema or ":" in schema:
        raise ValueError(f"schema must be a name without colons, got {schema!r}")
    texts = [str(item) for item in ids.tolist()]
    for text in texts:
        if NO_TEXT_OF_VESPA.search(text):
            raise ValueError(
                f"ids must have no control characters but tab and line ends, and no noncharacters, for Vespa, got "
                f"{shown(text)}"
            )
    for text, code in zip(texts, codes, strict=True):
        yield {"put": f"id:{schema}:{schema}::{text}", "fields": {"code": {"values": code.tobytes().hex()}}}


def from_vespa_documents(
    documents: Iterable[Mapping[str, Any]], n_bits: int, *, id_type: str = INTEGER
) -> tuple[NDArray[np.uint8], IdArray]:
    """The inverse of `vespa_documents`."""
    from_text = FROM_TEXT[checked_id_type(id_type)]
    rows = [(from_text(row["put"].split(":", 4)[4]), row["fields"]["code"]["values"]) for row in documents]
    codes = np.frombuffer(bytes.fromhex("".join(text for _, text in rows)), np.uint8)
    return _checked(codes.reshape(len(rows), -(-n_bits // 8)).copy(), [item for item, _ in rows], n_bits)


def qdrant_vectors(codes: Any, n_bits: int) -> NDArray[np.float32]:
    """Vectors of ±1 for a collection with ``Distance.DOT``; its binary quantization keeps one bit of each number."""
    return unpack_signs(checked_codes(codes, n_bits), n_bits).astype(np.float32)


def qdrant_points(codes: Any, ids: Any, n_bits: int) -> list[dict[str, Any]]:
    """Points as ``PointStruct(**point)`` takes them. Qdrant knows unsigned integers and UUIDs, so text is refused.

    >>> qdrant_points(np.array([[160]], np.uint8), [7], n_bits=3)
    [{'id': 7, 'vector': [1.0, -1.0, 1.0]}]
    """
    codes, ids = _checked(codes, ids, n_bits)
    if len(ids) and type_of(ids) == TEXT:
        raise TypeError(
            f"ids must be integers or UUIDs for Qdrant, got text: {shown(ids[0])}; uuid.uuid5 makes a UUID of text"
        )
    vectors = qdrant_vectors(codes, n_bits).tolist()
    return [{"id": item, "vector": vector} for item, vector in zip(_plain(ids), vectors, strict=True)]


def from_qdrant_vectors(vectors: Any) -> NDArray[np.uint8]:
    """The inverse of `qdrant_vectors`."""
    return pack_signs(np.asarray(vectors))


def qdrant_distances(scores: Any, n_bits: int) -> NDArray[np.int32]:
    """Hamming distances from Qdrant's scores, which are inner products: eq. (2).

    >>> qdrant_distances([12.0, 8.0], n_bits=12)
    array([0, 2], dtype=int32)
    """
    return np.rint((n_bits - np.asarray(scores, np.float64)) / 2).astype(np.int32)


def _checked(codes: Any, ids: Any, n_bits: int) -> tuple[NDArray[np.uint8], IdArray]:
    codes = checked_codes(codes, n_bits)
    return codes, checked_ids(ids, len(codes))


def _plain(ids: IdArray) -> list[int] | list[str]:
    """Integers, or text; UUIDs as text."""
    return [str(item) for item in ids.tolist()] if ids.dtype.kind == "O" else ids.tolist()
