"""The short examples for other systems: the codes are those of `encode`, and no example is long."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from examples import codes_for_engines, encode_batches, sign_embeddings
from hashlearn.bits import hamming_distances
from hashlearn.hashers import ITQ

X = np.random.default_rng(0).standard_normal((40, 16))
HASHER = ITQ(n_bits=12, random_state=0).fit(X)
CODES = HASHER.encode(X)
BYTES = [code.tobytes() for code in CODES]


@pytest.mark.parametrize("example", [codes_for_engines, encode_batches, sign_embeddings])
def test_an_example_has_at_most_25_lines(example: object) -> None:
    assert len(Path(str(example.__file__)).read_text("utf-8").splitlines()) <= 25  # type: ignore[attr-defined]


def test_workers_encode_batches(tmp_path: Path) -> None:
    path = tmp_path / "model.hashlearn"
    HASHER.save(path)
    ids = np.arange(40)
    made = encode_batches.encode_batch({"id": ids, "x": X}, path)
    assert (list(made), made["code"]) == (["id", "code"], BYTES)
    assert encode_batches.model(path) is encode_batches.model(path)
    frame = pytest.importorskip("pandas").DataFrame({"id": ids, "x": list(X)})
    parts = list(encode_batches.encode_frames(iter([frame[:30], frame[30:]]), path))
    assert [code for part in parts for code in part["code"]] == BYTES
    assert list(parts[0]) == ["id", "code"]


def test_signs_rank_as_codes_do() -> None:
    class Texts:
        def encode(self, texts: list[str]) -> np.ndarray:
            return X[[int(text) for text in texts]]

    encoder, texts = sign_embeddings.SignEncoder(Texts(), HASHER), [str(row) for row in range(40)]
    signs = encoder.encode(texts)
    np.testing.assert_array_equal(signs @ signs.T, 12 - 2 * hamming_distances(CODES, CODES))
    np.testing.assert_array_equal(encoder.encode(texts, margins=True), HASHER.decision_function(X))


def test_other_engines_get_the_bytes_of_the_codes() -> None:
    code = np.array([[0b10000000, 0b00010000]], np.uint8)
    assert codes_for_engines.milvus_rows(code, [7]) == [{"id": 7, "code": b"\x80\x10"}]
    action, document = map(json.loads, codes_for_engines.bulk_lines(code, ["a"], index="codes"))
    assert (action["index"], document) == ({"_index": "codes", "_id": "a"}, {"code": [-128, 16]})
    assert "BIT_COUNT(code ^ x'8010') AS distance FROM codes" in codes_for_engines.mysql_search(code[0], 5)
