"""The file of an index: it comes back as it was, or is refused; a failed save leaves the old one."""

from __future__ import annotations

import errno
import json
import os
import pickle
import resource
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex, code_table
from hashlearn.search.ids import ID_TYPES, INTEGER, TEXT, UUID
from tests.search.codes import random_codes, some_ids

REFUSED = "cannot be loaded|is not a valid index"


def saved(path: Path, n: int = 40, n_bits: int = 33, id_type: str = INTEGER) -> HammingIndex:
    index = HammingIndex(n_bits)
    index.add(random_codes(n, n_bits), np.arange(n)[::-1] * 3 if id_type == INTEGER else some_ids(id_type, n))
    index.save(path)
    return index


def with_header(path: Path, **changes: Any) -> None:
    """Change the header, with everything else, the checksum included, made to fit."""
    content = path.read_bytes()
    start = len(code_table.MAGIC) + code_table.LENGTH_BYTES
    length = int.from_bytes(content[len(code_table.MAGIC) : start], "little")
    text = json.dumps({**json.loads(content[start : start + length]), **changes}).encode()
    body = content[start + length : -code_table.DIGEST_BYTES]
    whole = code_table.MAGIC + len(text).to_bytes(code_table.LENGTH_BYTES, "little") + text + body
    path.write_bytes(whole + code_table.hashlib.sha256(whole).digest())


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


def test_files_with_integers_are_those_of_format_1(tmp_path: Path) -> None:
    """Byte by byte what older versions wrote, and therefore read."""
    index = HammingIndex(12)
    index.add(np.array([[1, 16], [2, 32]], np.uint8), [7, 5])
    index.save(tmp_path / "a")
    text = b'{"format": 1, "n": 2, "n_bits": 12, "next_id": 8}'
    whole = b"hashlearn index\n" + len(text).to_bytes(8, "little") + text
    whole += (5).to_bytes(8, "little") + (7).to_bytes(8, "little") + bytes([2, 32, 1, 16])
    assert (tmp_path / "a").read_bytes() == whole + code_table.hashlib.sha256(whole).digest()


def test_format_2_byte_by_byte(tmp_path: Path) -> None:
    index = HammingIndex(8)
    index.add(np.array([[1], [2]], np.uint8), ["é", "a"])
    index.save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    ends = (1).to_bytes(8, "little") + (3).to_bytes(8, "little")
    assert content[:-32].endswith(b"}" + ends + "aé".encode() + bytes([2, 1]))
    assert b'"format": 2, "id_bytes": 3, "id_type": "string"' in content
    ids = [uuid.UUID(int=2**100), uuid.UUID(int=5)]
    index = HammingIndex(8)
    index.add(np.array([[1], [2]], np.uint8), ids)
    index.save(tmp_path / "a")
    assert (tmp_path / "a").read_bytes()[:-32].endswith(b"}" + ids[1].bytes + ids[0].bytes + bytes([2, 1]))


def test_the_next_id_comes_back(tmp_path: Path) -> None:
    index = saved(tmp_path / "a")
    index.remove([117])
    index.save(tmp_path / "a")
    other = HammingIndex.load(tmp_path / "a")
    assert other.add(random_codes(1, 33))[0] == 118


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_truncation_at_every_sixty_fourth_is_refused(tmp_path: Path, id_type: str) -> None:
    saved(tmp_path / "a", id_type=id_type)
    content = (tmp_path / "a").read_bytes()
    for part in range(64):
        (tmp_path / "b").write_bytes(content[: len(content) * part // 64])
        with pytest.raises(ValueError, match=REFUSED):
            HammingIndex.load(tmp_path / "b")
    (tmp_path / "b").write_bytes(content + b"\0")
    with pytest.raises(ValueError, match=r"it has .* bytes and should have"):
        HammingIndex.load(tmp_path / "b")


@pytest.mark.parametrize("id_type", ID_TYPES)
def test_two_thousand_flipped_bytes_are_all_detected(tmp_path: Path, id_type: str) -> None:
    saved(tmp_path / "a", id_type=id_type)
    content = (tmp_path / "a").read_bytes()
    rng = np.random.default_rng(0)
    with open(tmp_path / "a", "r+b", buffering=0) as file:
        for place, change in zip(rng.integers(0, len(content), 2000), rng.integers(1, 256, 2000), strict=True):
            os.pwrite(file.fileno(), bytes([content[place] ^ change]), place)
            with pytest.raises(ValueError, match=REFUSED):
                HammingIndex.load(tmp_path / "a")
            os.pwrite(file.fileno(), content[place : place + 1], place)
    assert len(HammingIndex.load(tmp_path / "a")) == 40


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 2**60}, "should have"),
        ({"n": 10**400}, "should have"),
        ({"n": -1}, "header is damaged"),
        ({"n": 40.0}, "header is damaged"),
        ({"n_bits": 2**60}, "n_bits must be"),
        ({"n_bits": 32}, "should have"),
        ({"n_bits": "33"}, "n_bits must be"),
        ({"format": 3}, "its format is 3, and this version reads up to 2; update hashlearn"),
        ({"format": 2}, "header is damaged"),
        ({"format": 0}, "header is damaged"),
        ({"format": None}, "header is damaged"),
        ({"next_id": "x"}, "not a valid index"),
        ({"next_id": 1e308}, "next_id must be an integer from 0"),
        ({"next_id": -1}, "next_id must be an integer from 0"),
    ],
)
def test_lying_headers_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    saved(tmp_path / "a", n_bits=33)
    with_header(tmp_path / "a", **changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=words):
        HammingIndex.load(tmp_path / "a")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize(
    ("id_type", "changes", "words"),
    [
        (TEXT, {"id_bytes": 2**60}, "should have"),
        (TEXT, {"id_bytes": 10**400}, "should have"),
        (TEXT, {"id_bytes": -1}, "header is damaged"),
        (TEXT, {"id_bytes": "3"}, "header is damaged"),
        (TEXT, {"n": 2**60}, "should have"),
        (TEXT, {"id_type": UUID}, "should have"),
        (TEXT, {"id_type": INTEGER}, "header is damaged"),
        (TEXT, {"id_type": None}, "header is damaged"),
        (TEXT, {"format": 1}, "should have"),
        (UUID, {"n": 2**60}, "should have"),
        (UUID, {"n": 39}, "should have"),
        (UUID, {"id_type": TEXT, "id_bytes": 320}, "the ends of its ids are damaged"),
        (UUID, {"next_id": -1}, "next_id must be an integer from 0"),
    ],
)
def test_lying_headers_of_format_2_are_refused(
    tmp_path: Path, id_type: str, changes: dict[str, Any], words: str
) -> None:
    saved(tmp_path / "a", id_type=id_type)
    with_header(tmp_path / "a", **changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=words):
        HammingIndex.load(tmp_path / "a")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kilobytes


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"abcdef", b"ab\xffdef", "can't decode"),
        (b"abcdef", b"ab\0def", "NUL characters"),
        ((6, 12), (13, 12), "the ends of its ids are damaged"),
        ((6, 12), (-1, 12), "the ends of its ids are damaged"),
        ((6, 12), (6, 11), "the ends of its ids are damaged"),
        ((6, 12), (0, 12), "ids must not be empty text"),
        (b"abcdefabcdeg", b"abcdefabcdef", "ids must be distinct, got 'abcdef'"),
    ],
)
def test_bad_text_behind_a_right_checksum_is_refused(tmp_path: Path, old: Any, new: Any, words: str) -> None:
    index = HammingIndex(8)
    index.add(random_codes(2, 8), ["abcdef", "abcdeg"])
    index.save(tmp_path / "a")
    old, new = (item if isinstance(item, bytes) else np.array(item, "<i8").tobytes() for item in (old, new))
    content = (tmp_path / "a").read_bytes()
    assert content.count(old) == 1
    whole = content[: -code_table.DIGEST_BYTES].replace(old, new)
    (tmp_path / "a").write_bytes(whole + code_table.hashlib.sha256(whole).digest())
    with pytest.raises(ValueError, match=words):
        HammingIndex.load(tmp_path / "a")


def test_pipes_devices_and_folders_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "a pipe"), (tmp_path, "a folder"), (Path("/dev/zero"), "a device")):
        with pytest.raises(ValueError, match=f"cannot be loaded: it is not a regular file but {what}"):
            HammingIndex.load(path)


def test_pad_bits_and_ids_are_checked_behind_a_right_checksum(tmp_path: Path) -> None:
    codes = np.full((3, 2), 255, np.uint8)
    header = {"n_bits": 12, "next_id": 0}
    code_table.write_table(tmp_path / "a", header, np.arange(3), codes)
    with pytest.raises(ValueError, match="zero past bit 12"):
        HammingIndex.load(tmp_path / "a")
    code_table.write_table(tmp_path / "a", header, np.array([1, 1, -2]), codes & 0b11110000)
    with pytest.raises(ValueError, match="ids must be"):
        HammingIndex.load(tmp_path / "a")


class Malicious:
    def __reduce__(self) -> Any:
        return (os.mkdir, ("was_run",))


def test_a_pickle_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match="not an index of hashlearn"):
        HammingIndex.load("a")
    Path("b").write_bytes(code_table.MAGIC + pickle.dumps(Malicious()) * 3)
    with pytest.raises(ValueError, match=REFUSED):
        HammingIndex.load("b")
    assert not Path("was_run").exists()


@pytest.mark.parametrize("stage", ["fsync", "chmod", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    index = saved(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    index.add(random_codes(5, 33))

    def fail(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(code_table.os, stage, fail)
    with pytest.raises(OSError, match="No space left"):
        index.save(tmp_path / "a")
    monkeypatch.undo()
    assert (tmp_path / "a").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_kills_during_save_leave_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """One process saves two indexes in turns until it is killed; whatever is there then loads and is one of them."""
    code = """
import sys, numpy as np
from hashlearn.search import HammingIndex
indexes = []
for n in (20_000, 30_000):
    index = HammingIndex(64)
    index.add(np.full((n, 8), n // 10_000, np.uint8))
    indexes.append(index)
indexes[0].save(sys.argv[1])
print("ready", flush=True)
while True:
    for index in indexes:
        index.save(sys.argv[1])
"""
    seen = set()
    for attempt in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "a")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for _ in range(10):
            seen.add(len(HammingIndex.load(tmp_path / "a")))  # while it is being replaced, too
        process.kill()
        process.wait()
        process.stdout.close()
        index = HammingIndex.load(tmp_path / "a")
        assert len(index) in (20_000, 30_000), attempt
        assert (index.codes == len(index) // 10_000).all()
    assert seen <= {20_000, 30_000}


def test_a_missing_file_or_folder_is_the_system_s_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HammingIndex.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        HammingIndex(8).save(tmp_path / "none" / "a")
