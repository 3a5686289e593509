"""The file of an index: it comes back as it was, or is refused; a failed save leaves the old one.

Damage of every kind to such files is tested in tests/persistence, since models are stored in the same way.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.mutated_files import rewritten

from hashlearn.hashers import LSH
from hashlearn.persistence import load
from hashlearn.search import HammingIndex
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT
from tests.search.codes import random_codes, some_ids


def saved(path: Path, n: int = 40, n_bits: int = 33, id_type: str = INTEGER) -> HammingIndex:
    index = HammingIndex(n_bits)
    index.add(random_codes(n, n_bits), np.arange(n)[::-1] * 3 if id_type == INTEGER else some_ids(id_type, n))
    index.save(path)
    return index


@pytest.mark.parametrize("n_bits", [1, 12, 33, 100])
@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("id_type", ID_TYPES)
def test_round_trip(tmp_path: Path, n_bits: int, n: int, id_type: str) -> None:
    index = saved(tmp_path / "a", n, n_bits, id_type=id_type)
    other = HammingIndex.load(tmp_path / "a")
    np.testing.assert_array_equal(other.ids, index.ids)
    np.testing.assert_array_equal(other.codes, index.codes)
    assert (other.n_bits, len(other)) == (n_bits, n)
    assert other.id_type == index.id_type == (id_type if n else None)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_an_index_that_was_emptied_keeps_its_kind_of_ids(tmp_path: Path, id_type: str) -> None:
    index = saved(tmp_path / "a", id_type=id_type)
    index.remove(index.ids)
    index.save(tmp_path / "a")
    other = HammingIndex.load(tmp_path / "a")
    assert (len(other), other.id_type) == (0, id_type)
    with pytest.raises(TypeError, match="as those that are stored"):
        other.add(random_codes(1, 33), some_ids(TEXT if id_type == INTEGER else INTEGER, 1))


def test_the_next_id_comes_back(tmp_path: Path) -> None:
    index = saved(tmp_path / "a")
    index.remove([117])
    index.save(tmp_path / "a")
    assert HammingIndex.load(tmp_path / "a").add(random_codes(1, 33))[0] == 118


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_damaged_files_are_refused(tmp_path: Path, id_type: str) -> None:
    saved(tmp_path / "a", id_type=id_type)
    content, rng = (tmp_path / "a").read_bytes(), np.random.default_rng(0)
    damaged = [content[: len(content) * part // 16] for part in range(16)] + [content + b"\0"]
    for place, change in zip(rng.integers(0, len(content), 300), rng.integers(1, 256, 300), strict=True):
        damaged.append(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
    for case in damaged:
        (tmp_path / "b").write_bytes(case)
        with pytest.raises(ValueError, match="b'"):
            HammingIndex.load(tmp_path / "b")


@pytest.mark.parametrize(
    ("id_type", "changes", "words"),
    [
        (INTEGER, {"n_bits": 2**60}, "n_bits must be"),
        (INTEGER, {"n_bits": 24}, "5 byte|3 byte"),
        (INTEGER, {"n_bits": 34}, None),
        (INTEGER, {"n_bits": "33"}, "n_bits must be"),
        (INTEGER, {"model": "x"}, "model must be the digest"),
        (INTEGER, {"next_id": "x"}, "next_id must be an integer from 0"),
        (INTEGER, {"next_id": 1e308}, "next_id must be an integer from 0"),
        (INTEGER, {"next_id": -1}, "next_id must be an integer from 0"),
        (INTEGER, {"id_type": "float"}, "id_type must be one of"),
        (INTEGER, {"id_type": TEXT}, "not a valid index"),
        (TEXT, {"id_type": INTEGER}, "not a valid index"),
        (TEXT, {"id_type": None}, "not a valid index"),
        (TEXT, {"sha256": None}, "a SHA-256 for every array"),
    ],
)
def test_forged_descriptions_are_refused(
    tmp_path: Path, id_type: str, changes: dict[str, Any], words: str | None
) -> None:
    saved(tmp_path / "a", id_type=id_type)

    def forge(header: Any, description: Any, body: bytearray) -> None:
        about = json.loads(description["about"])
        (description if set(changes) <= set(description) else about).update(changes)
        description["about"] = json.dumps(about)

    (tmp_path / "a").write_bytes(rewritten((tmp_path / "a").read_bytes(), forge))
    if words is None:  # it is an index, only another one
        assert HammingIndex.load(tmp_path / "a").n_bits == changes["n_bits"]
        return
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=words):
        HammingIndex.load(tmp_path / "a")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"abcdef", b"ab\xffdef", "can't decode"),
        (b'abcdef"', b'\\u0000"', "NUL characters"),
        (b'"abcdef", "abcdeg"', b'["abcd", "abcdeg"]', "ids must be"),
        (b'["abcdef"', b'{"abcdef"', "not a valid index"),
        (b'"abcdef"', b'""      ', "ids must not be empty text"),
        (b"abcdef", b"abcdeg", "ids must be distinct, got 'abcdeg'"),
        (b'"abcdef"', b"12345678", "ids must be all of one kind"),
    ],
)
def test_bad_ids_behind_a_right_checksum_are_refused(tmp_path: Path, old: bytes, new: bytes, words: str) -> None:
    index = HammingIndex(8)
    index.add(random_codes(2, 8), ["abcdef", "abcdeg"])
    index.save(tmp_path / "a")

    def forge(header: Any, about: Any, body: bytearray) -> None:
        assert (body.count(old), len(old)) == (1, len(new))
        body[:] = body.replace(old, new)

    (tmp_path / "a").write_bytes(rewritten((tmp_path / "a").read_bytes(), forge))
    with pytest.raises(ValueError, match=words):
        HammingIndex.load(tmp_path / "a")


def test_pad_bits_are_checked_behind_a_right_checksum(tmp_path: Path) -> None:
    saved(tmp_path / "a")

    def forge(header: Any, about: Any, body: bytearray) -> None:
        body[header["codes"]["data_offsets"][1] - 1] |= 1

    (tmp_path / "a").write_bytes(rewritten((tmp_path / "a").read_bytes(), forge))
    with pytest.raises(ValueError, match="zero past bit 33"):
        HammingIndex.load(tmp_path / "a")


def test_other_files_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "index")
    LSH(8, random_state=0).fit(np.eye(3)).save(tmp_path / "model")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pickle").write_bytes(pickle.dumps([1]))
    with pytest.raises(ValueError, match="format 'hashlearn index', and no model"):
        load(tmp_path / "index")
    for path, words in (
        (tmp_path / "model", "format 'hashlearn', and no index"),
        (tmp_path / "pickle", "pickle"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
    ):
        with pytest.raises(ValueError, match=words):
            HammingIndex.load(path)
    with pytest.raises(FileNotFoundError):
        HammingIndex.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        HammingIndex(8).save(tmp_path / "none" / "a")
