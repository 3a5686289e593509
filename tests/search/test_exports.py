"""Codes leave in the formats of other engines and come back bit by bit, through the engines' own clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.bits import unpack_bits
from hashlearn.search.stores import exports
from tests.search.codes import engine, nearest, random_codes

WIDTHS = [12, 33, 64, 100]
IDS = np.random.default_rng(0).permutation(1000)[:80]


@pytest.mark.parametrize("n_bits", WIDTHS)
@pytest.mark.parametrize("n", [0, 80])
def test_parquet(tmp_path: Path, n_bits: int, n: int) -> None:
    engine("pyarrow")
    codes = random_codes(80, n_bits)[:n]
    exports.write_parquet(tmp_path / "a.parquet", codes, IDS[:n], n_bits)
    back, ids, bits = exports.read_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(ids, IDS[:n])
    assert bits == n_bits


def test_arrow_slices_chunks_and_foreign_tables() -> None:
    pyarrow = engine("pyarrow")
    codes = random_codes(80, 33)
    table = exports.to_arrow(codes, IDS, 33)
    np.testing.assert_array_equal(exports.from_arrow(table.slice(7, 20))[0], codes[7:27])
    joined = pyarrow.concat_tables([table.slice(0, 30), table.slice(30)])
    np.testing.assert_array_equal(exports.from_arrow(joined)[0], codes)
    assert table["code"][0].as_py() == codes[0].tobytes()
    with pytest.raises(ValueError, match="metadata of to_arrow"):
        exports.from_arrow(table.replace_schema_metadata({}))
    with pytest.raises(ValueError, match="bit order 'little'"):
        exports.from_arrow(table.replace_schema_metadata({"hashlearn.n_bits": "33", "hashlearn.bit_order": "little"}))
    with pytest.raises(ValueError, match=r"5 byte\(s\)|6 byte\(s\)"):
        exports.from_arrow(table.replace_schema_metadata({"hashlearn.n_bits": "41", "hashlearn.bit_order": "big"}))


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_milvus_through_its_client_s_messages(n_bits: int) -> None:
    engine("pymilvus")
    from pymilvus import CollectionSchema, DataType, FieldSchema
    from pymilvus.client.prepare import Prepare

    codes = random_codes(80, n_bits)
    rows = exports.milvus_rows(codes, IDS, n_bits)
    assert rows[0] == {"id": IDS[0], "code": codes[0].tobytes()}
    fields = [
        FieldSchema("id", DataType.INT64, is_primary=True),
        FieldSchema("code", DataType.BINARY_VECTOR, dim=8 * codes.shape[1]),
    ]
    schema = CollectionSchema(fields).to_dict()["fields"]
    message = Prepare.row_insert_param("codes", rows, "", fields_info=schema)
    sent = {field.field_name: field for field in type(message).FromString(message.SerializeToString()).fields_data}
    assert sent["code"].vectors.dim == 8 * codes.shape[1]
    back = np.frombuffer(sent["code"].vectors.binary_vector, np.uint8).reshape(codes.shape)
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(sent["id"].scalars.long_data.data, IDS)


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_elasticsearch_and_opensearch(n_bits: int) -> None:
    codes = random_codes(80, n_bits)
    lines = [*exports.bulk_lines(codes, IDS, n_bits, index="codes")]
    back, ids = exports.from_bulk_lines(lines, n_bits)
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(ids, IDS)
    for line in lines[1::2]:
        values = json.loads(line)["code"]
        assert len(values) == codes.shape[1] == exports.elasticsearch_field(n_bits)["dims"] // 8
        assert all(-128 <= value <= 127 for value in values)
    assert exports.opensearch_field(n_bits)["dimension"] == 8 * codes.shape[1]


@pytest.mark.parametrize(
    ("module", "serializer"),
    [("elasticsearch.serializer", "NdjsonSerializer"), ("opensearchpy.serializer", "JSONSerializer")],
)
def test_bulk_lines_through_the_clients(module: str, serializer: str) -> None:
    client = getattr(engine(module), serializer)()
    lines = [*exports.bulk_lines(random_codes(80, 33), IDS, 33, index="codes")]
    rows = [json.loads(line) for line in lines]
    if serializer == "NdjsonSerializer":
        sent = client.dumps(rows).decode().splitlines()
    else:
        sent = [client.dumps(row) for row in rows]
    np.testing.assert_array_equal(exports.from_bulk_lines(sent, 33)[0], random_codes(80, 33))


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_vespa(n_bits: int) -> None:
    codes = random_codes(80, n_bits)
    documents = json.loads(json.dumps([*exports.vespa_documents(codes, IDS, n_bits)]))
    back, ids = exports.from_vespa_documents(documents, n_bits)
    np.testing.assert_array_equal(back, codes)
    np.testing.assert_array_equal(ids, IDS)
    assert f"x[{codes.shape[1]}]" in exports.vespa_field(n_bits)
    assert all(len(document["fields"]["code"]["values"]) == 2 * codes.shape[1] for document in documents)


@pytest.mark.parametrize("n_bits", WIDTHS)
def test_qdrant_in_its_local_mode(n_bits: int) -> None:
    """Same distances as exact search; which of equally near points it returns is its own matter."""
    client_package: Any = engine("qdrant_client")
    from qdrant_client import models

    codes, queries = random_codes(80, n_bits), random_codes(5, n_bits, seed=1)
    vectors = exports.qdrant_vectors(codes, n_bits)
    np.testing.assert_array_equal(exports.from_qdrant_vectors(vectors), codes)
    client = client_package.QdrantClient(":memory:")
    client.create_collection("codes", vectors_config=models.VectorParams(size=n_bits, distance=models.Distance.DOT))
    client.upsert(
        "codes",
        [models.PointStruct(id=int(i), vector=v.tolist()) for i, v in zip(IDS, vectors, strict=True)],
    )
    stored = client.retrieve("codes", [int(i) for i in IDS], with_vectors=True)
    np.testing.assert_array_equal(exports.from_qdrant_vectors([p.vector for p in stored]), codes)
    for query in queries:
        vector = exports.qdrant_vectors(query[None], n_bits)[0].tolist()
        found = client.query_points("codes", query=vector, limit=10).points
        distances = exports.qdrant_distances([point.score for point in found], n_bits)
        np.testing.assert_array_equal(distances, nearest(query[None], codes, IDS, 10)[1][0])
    client.close()


def test_bytes_mean_the_same_bits_everywhere() -> None:
    """The first bit alone: the highest bit of the first byte, 0x80, and −128 where bytes have a sign."""
    code = np.array([[0b10000000, 0]], np.uint8)
    np.testing.assert_array_equal(unpack_bits(code, 12)[0], [1] + [0] * 11)
    assert exports.milvus_rows(code, [0], 12)[0]["code"] == b"\x80\x00"
    assert json.loads([*exports.bulk_lines(code, [0], 12, index="i")][1])["code"] == [-128, 0]
    assert next(exports.vespa_documents(code, [0], 12))["fields"]["code"]["values"] == "8000"
    np.testing.assert_array_equal(exports.qdrant_vectors(code, 12)[0], [1.0] + [-1.0] * 11)


def test_bad_codes_and_ids_are_refused() -> None:
    codes = random_codes(3, 12)
    for export in (exports.milvus_rows, lambda *a: [*exports.vespa_documents(*a)]):
        with pytest.raises(ValueError, match="zero past bit 12"):
            export(codes | 1, [0, 1, 2], 12)
        with pytest.raises(ValueError, match="ids must have one entry"):
            export(codes, [0, 1], 12)
        with pytest.raises(TypeError, match="uint8"):
            export(codes.astype(np.int8), [0, 1, 2], 12)
