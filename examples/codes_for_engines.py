"""Codes as other engines read them. Declare 8 · ⌈n_bits / 8⌉ bits: pad bits are zero and add nothing to a distance."""

import json


def mysql_search(code, k):
    """The k nearest in MySQL 8, from a table with columns id and code BINARY(n_bytes)."""
    distance = f"BIT_COUNT(code ^ x'{code.tobytes().hex()}')"
    return f"SELECT id, {distance} AS distance FROM codes ORDER BY distance, id LIMIT {k}"


def milvus_rows(codes, ids):
    """Rows for ``MilvusClient.insert``: BINARY_VECTOR, metric HAMMING."""
    return [{"id": item, "code": code.tobytes()} for item, code in zip(ids, codes, strict=True)]


def bulk_lines(codes, ids, index):
    """Lines for ``_bulk``: dense_vector of bits in Elasticsearch, knn_vector of data_type binary in OpenSearch."""
    for item, code in zip(ids, codes.view("int8").tolist(), strict=True):  # bytes with a sign, −128 … 127
        yield json.dumps({"index": {"_index": index, "_id": str(item)}})
        yield json.dumps({"code": code})
