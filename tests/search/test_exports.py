"""Codes leave in the formats of other engines and come back bit by bit, through the engines' own clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.bits import unpack_bits
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT, UUID
from hashlearn.search.stores import exports
from tests.search.codes import engine, nearest, random_codes, some_ids

WIDTHS = [12, 33, 64, 100]
KINDS = pytest.mark.parametrize("id_type", [TEXT, UUID])
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


@KINDS
def test_parquet_with_text_and_uuids(tmp_path: Path, id_type: str) -> None:
    pyarrow = engine("pyarrow")
    codes, ids = random_codes(80, 33), some_ids(id_type, 80)
    exports.write_parquet(tmp_path / "a.parquet", codes, ids, 33, fields={"lang": ["en"] * 80})
    back, back_ids, _ = exports.read_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(back, codes)
    assert back_ids.tolist() == ids
    table = engine("pyarrow.parquet").read_table(tmp_path / "a.parquet")
    assert table["id"].type == (pyarrow.string() if id_type == TEXT else pyarrow.uuid())
    assert table["lang"].to_pylist() == ["en"] * 80


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


@KINDS
def test_milvus_keys_of_text(id_type: str) -> None:
    """VARCHAR, through the client's own messages."""
    engine("pymilvus")
    from pymilvus import CollectionSchema, DataType, FieldSchema
    from pymilvus.client.prepare import Prepare

    codes, ids = random_codes(80, 33), some_ids(id_type, 80)
    rows = exports.milvus_rows(codes, ids, 33)
    fields = [
        FieldSchema("id", DataType.VARCHAR, is_primary=True, max_length=36),
        FieldSchema("code", DataType.BINARY_VECTOR, dim=40),
    ]
    schema = CollectionSchema(fields).to_dict()["fields"]
    message = Prepare.row_insert_param("codes", rows, "", fields_info=schema)
    sent = {field.field_name: field for field in type(message).FromString(message.SerializeToString()).fields_data}
    assert list(sent["id"].scalars.string_data.data) == [str(item) for item in ids]


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


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_bulk_lines_and_vespa_documents_with_every_kind_of_ids(id_type: str) -> None:
    codes, ids = random_codes(80, 33), some_ids(id_type, 80)
    if id_type == TEXT:
        ids[:4] = ["id:a:b::c", "two\nlines", 'say "no"', "x" * 512]
    lines = [*exports.bulk_lines(codes, ids, 33, index="codes")]
    assert not any("\n" in line for line in lines)
    back, back_ids = exports.from_bulk_lines(lines, 33, id_type=id_type)
    np.testing.assert_array_equal(back, codes)
    assert back_ids.tolist() == ids
    documents = json.loads(json.dumps([*exports.vespa_documents(codes, ids, 33)]))
    back, back_ids = exports.from_vespa_documents(documents, 33, id_type=id_type)
    np.testing.assert_array_equal(back, codes)
    assert back_ids.tolist() == ids
    assert documents[0]["put"] == f"id:codes:codes::{ids[0]}"


def test_ids_that_an_engine_does_not_take_are_refused_by_its_name() -> None:
    code = random_codes(1, 33)
    with pytest.raises(ValueError, match="at most 512 bytes for Elasticsearch and OpenSearch, got 514"):
        list(exports.bulk_lines(code, ["é" * 257], 33, index="codes"))
    for bad in ("a\x01", "a\uffff", "\ufdd0", "\U0001fffe"):
        with pytest.raises(ValueError, match=r"ids must have no control characters .* for Vespa"):
            list(exports.vespa_documents(code, [bad], 33))
    assert next(exports.vespa_documents(code, ["a\t:é\U0001f600"], 33))["put"].endswith("::a\t:é\U0001f600")
    for schema in ("", "a:b"):
        with pytest.raises(ValueError, match="schema must be a name without colons"):
            list(exports.vespa_documents(code, [1], 33, schema=schema))
    with pytest.raises(TypeError, match=r"ids must be integers or UUIDs for Qdrant, got text: 'a'; uuid.uuid5 makes"):
        exports.qdrant_points(code, ["a"], 33)
    with pytest.raises(ValueError, match="id_type must be one of"):
        exports.from_bulk_lines([], 33, id_type="text")


@pytest.mark.parametrize("id_type", [INTEGER, UUID])
def test_qdrant_points_in_its_local_mode(id_type: str) -> None:
    client_package: Any = engine("qdrant_client")
    from qdrant_client import models

    codes, ids = random_codes(30, 33), some_ids(id_type, 30)
    client = client_package.QdrantClient(":memory:")
    client.create_collection("codes", vectors_config=models.VectorParams(size=33, distance=models.Distance.DOT))
    client.upsert("codes", [models.PointStruct(**point) for point in exports.qdrant_points(codes, ids, 33)])
    stored = {str(point.id): point.vector for point in client.scroll("codes", limit=100, with_vectors=True)[0]}
    for item, code in zip(ids, codes, strict=True):
        np.testing.assert_array_equal(exports.from_qdrant_vectors([stored[str(item)]])[0], code)
    client.close()
    assert exports.qdrant_points(codes[:0], [], 33) == []


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
