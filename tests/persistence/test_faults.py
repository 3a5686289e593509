"""Files that are not what they should be: refused, with no code run and no memory wasted."""

import hashlib
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.mutated_files import rewritten

from hashlearn.core.container import BLANK, LARGEST_HEADER, parse_header
from hashlearn.persistence import FORMAT_VERSION, PersistenceError, describe, load
from tests.persistence.models import TRAIN, X, Y, fitted, unfitted

FLIPS = int(os.environ.get("HASHLEARN_FLIPS", "2000"))
ran = []


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return explode, ("boom",)


def explode(word):
    ran.append(word)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    fitted("two_step").save(path)
    return path.read_bytes()


@pytest.fixture
def refused(tmp_path):
    """A function that checks that bytes are refused, in these words."""

    def check(content, match=None, also_described=True):
        path = tmp_path / "model"
        path.write_bytes(content)
        with pytest.raises(PersistenceError, match=match):
            load(path)
        if also_described:
            with pytest.raises(PersistenceError, match=match):
                describe(path)

    return check


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_refused_and_nothing_runs(refused, protocol):
    refused(pickle.dumps(Bomb(), protocol), "pickle" if protocol > 1 else None)
    refused(pickle.dumps([Bomb()] * 100, protocol))
    assert ran == []
    pickle.loads(pickle.dumps(Bomb(), protocol))
    assert ran.pop() == "boom"  # it does run where it is unpickled


def test_other_files_are_refused_by_name(refused, tmp_path):
    refused(b"", "truncated, or no file of hashlearn: 0 bytes")
    refused(b"\0" * 500, "neither a model nor an index")
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Bomb()))
    refused((tmp_path / "archive").read_bytes(), "zip archive")
    text = json.dumps({"x": {"dtype": "F32", "shape": [40], "data_offsets": [0, 160]}}).encode()
    refused(len(text).to_bytes(8, "little") + text + bytes(160), "safetensors file, but none of hashlearn")
    assert ran == []


def test_pipes_and_folders_do_not_keep_us_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PersistenceError, match="not a regular file"):
        load(tmp_path / "pipe")
    with pytest.raises((PersistenceError, IsADirectoryError)):
        load(tmp_path)


@pytest.mark.parametrize("part", range(64))
def test_truncation(data, refused, part):
    cut = len(data) * part // 64
    refused(data[:cut], "truncated")
    refused(data[: cut + 1], "truncated")


def test_the_last_byte_and_trailing_bytes(data, refused):
    refused(data[:-1], "truncated")
    refused(data + b"\0", "trailing bytes")
    refused(data + data, "trailing bytes")


def test_byte_flips_are_all_detected(data, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "model"
    header = 8 + int.from_bytes(data[:8], "little")
    places = {*rng.integers(header, size=FLIPS // 2).tolist(), *rng.integers(len(data), size=FLIPS // 2).tolist()}
    places |= {*range(110)}
    path.write_bytes(data)
    with open(path, "r+b", buffering=0) as file:
        for place in places:
            os.pwrite(file.fileno(), bytes([data[place] ^ 1 << int(rng.integers(8))]), place)
            with pytest.raises(PersistenceError):
                load(path)
            os.pwrite(file.fileno(), data[place : place + 1], place)
    load(path)


def first_array(header):
    return next(value for name, value in header.items() if name != "__metadata__")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"shape": [2**60]}, "shape"),
        ({"shape": [2**60], "data_offsets": [0, 2**63]}, "shape"),
        ({"shape": [2**30, 2**30]}, "must take the bytes"),
        ({"shape": [2**40], "data_offsets": [0, 2**43]}, "must take the bytes"),
        ({"shape": [2**32, 2**32]}, "must take the bytes"),  # 2⁶⁴ elements, 0 in machine arithmetic
        ({"shape": [-1]}, "claims the shape"),
        ({"shape": [1.5]}, "claims the shape"),
        ({"shape": [True]}, "claims the shape"),
        ({"shape": "8"}, "claims the shape"),
        ({"data_offsets": [8, 0]}, "must take the bytes"),
        ({"dtype": "F8_E4M3"}, "not described"),
        ({"dtype": "O"}, "not described"),
        ({"dtype": ["F64"]}, "not described"),
        ({"more": 1}, "not described"),
    ],
)
def test_lying_headers_are_refused_before_anything_is_allocated(data, refused, change, match):
    lie = rewritten(data, lambda header, model, payload: first_array(header).update(change))
    tracemalloc.start()
    try:
        refused(lie, match)
        assert tracemalloc.get_traced_memory()[1] < 30 * len(data) < 3e6
    finally:
        tracemalloc.stop()


def array(first, last, dtype="U8", shape=None):
    return {"dtype": dtype, "shape": [last - first] if shape is None else shape, "data_offsets": [first, last]}


@pytest.mark.parametrize(
    ("arrays", "size", "match"),
    [
        ([array(0, 4), array(4, 8)], 8, None),
        ([array(0, 4), array(5, 8)], 8, "array 'b' of shape .* must take the bytes"),
        ([array(0, 4), array(3, 8)], 8, "array 'b' of shape .* must take the bytes"),
        ([array(1, 4), array(4, 8)], 8, "array 'a' of shape .* must take the bytes"),
        ([array(0, 4), array(4, 8)], 9, "trailing bytes"),
        ([array(0, 4), array(4, 8)], 7, "truncated"),
        ([array(0, 4, shape=[3]), array(4, 8)], 8, "must take the bytes"),
        ([array(0, 4, shape=[5]), array(4, 8)], 8, "must take the bytes"),
        ([array(0, 4), array(4, 12, "F64", [1])], 12, "must take the bytes"),  # between two numbers
    ],
)
def test_arrays_lie_one_after_the_other_and_fill_the_file(arrays, size, match):
    text = json.dumps({"__metadata__": {"sha256": BLANK.decode()}, **dict(zip("ab", arrays, strict=True))})
    blank = len(text).to_bytes(8, "little") + text.replace(" ", "").encode().ljust(len(text))
    raw = blank.replace(BLANK, hashlib.sha256(blank).hexdigest().encode(), 1)
    if match is None:
        assert [entry.name for entry in parse_header(raw, len(raw) + size).entries] == ["a", "b"]
        return
    with pytest.raises(PersistenceError, match=match):
        parse_header(raw, len(raw) + size)


def test_a_long_header_is_refused_though_the_file_is_as_long(data, refused):
    length = LARGEST_HEADER + 64
    refused(length.to_bytes(8, "little") + data[8:].ljust(length, b" "), f"{LARGEST_HEADER:,} are allowed")
    assert LARGEST_HEADER <= 2**23  # it is read into memory before its checksum is known


def test_repeated_keys_and_numbers_that_are_no_json_are_refused(data, refused):
    def signed(text):
        blank = len(text).to_bytes(8, "little") + text
        return blank.replace(BLANK, hashlib.sha256(blank).hexdigest().encode(), 1)

    opening = b'{"__metadata__":{"sha256":"' + BLANK + b'"}'
    refused(signed(opening + b',"a":NaN}'), "not valid JSON")
    refused(signed(opening + b',"a":1,"a":2}'), "occurs twice")
    refused(signed(opening + b',"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "JSON")
    refused(signed(opening + b',"a":[' + b"0," * 200_000 + b"0]}"), "too many values")
    refused(signed(opening + b"}"), "format None")
    refused(signed(opening + b"\xff}"), "ASCII")


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        ("method", "os.system", "unknown method 'os.system'"),
        ("method", "lsh", "does not describe a valid model"),
        ("parameters/solver", {"$": "record", "kind": "os/system", "fields": {}}, "KeyError"),
        ("parameters/solver", {"$": "record", "kind": "solver/sdr", "fields": {"tol": -1}}, "tol"),
        ("parameters/solver", {"$": "call", "name": "eval"}, "KeyError"),
        ("parameters/n_bits", 12, "do not fit"),
        ("parameters/n_bits", 2**60, "do not fit"),
        ("parameters/unknown", 1, "unknown"),
        ("parameters/hash_function", 0, "hash_function"),
        ("fitted/n_features_in_", 2**60, "do not fit"),
        ("fitted/fit", "x", "no name of a fitted attribute"),
        ("fitted/__class__", "x", "no name of a fitted attribute"),
        ("fitted/hash_functions_", None, "must have hash functions"),
        ("fitted/hash_functions_/state/kind", "estimators", "KeyError"),
        ("fitted/hash_functions_/state/n_features", 2**60, "points must have shape"),
        ("fitted/hash_functions_/state/gamma", -1.0, "gamma"),
        ("sha256", None, "SHA-256 for every array"),
    ],
)
def test_forged_descriptions_are_refused(data, refused, path, value, match):
    def forge(header, model, payload):
        *way, last = path.split("/")
        for step in way:
            model = model[step]
        model[last] = value

    refused(rewritten(data, forge), match, also_described=False)


def test_a_digest_too_many_is_refused(data, refused):
    more = rewritten(data, lambda header, model, payload: model["sha256"].update(more="0" * 64))
    refused(more, "and for no other", also_described=False)


@pytest.mark.parametrize(
    ("name", "array", "value"),
    [
        ("two_step", "bit_source", 11),
        ("two_step", "bit_source", -2),
        ("two_step", "bit_columns", 2**62),
        ("fasthash", "forest_features", 64),
        ("fasthash", "forest_features", -1),
        ("kmeans_hashing", "sizes", 60),
    ],
)
def test_wild_indices_in_forged_arrays_are_refused(refused, tmp_path, name, array, value):
    fitted(name).save(tmp_path / "model")

    def forge(header, model, payload):
        entry = header[f"hash_functions_/{array}"]
        width = {"I32": 4, "I64": 8}[entry["dtype"]]
        first = entry["data_offsets"][0]
        payload[first : first + width] = value.to_bytes(width, "little", signed=True)

    refused(rewritten((tmp_path / "model").read_bytes(), forge), "must lie from", also_described=False)


def test_wild_indices_of_sparse_points_are_refused(refused, tmp_path):
    hasher = unfitted("ksh").fit(sp.csr_array(X[TRAIN]), Y[TRAIN])
    hasher.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    for part, value in (("indices", 2**30), ("indices", -5), ("indptr", 2**30)):

        def forge(header, model, payload, part=part, value=value):
            first = header[f"hash_functions_/points_{part}"]["data_offsets"][0]
            payload[first + 8 : first + 12] = value.to_bytes(4, "little", signed=True)

        refused(rewritten(content, forge), "does not describe a valid model", also_described=False)


def test_other_formats_are_refused_with_a_clear_word(data, refused):
    for version in (str(FORMAT_VERSION + 1), str(FORMAT_VERSION - 1), "0", "", "x", "1.0", "٣"):
        other = rewritten(data, lambda header, *_, v=version: header["__metadata__"].update(format_version=v))
        refused(other, f"has format {version}, and this hashlearn reads format {FORMAT_VERSION} only")
    refused(rewritten(data, lambda header, *_: header["__metadata__"].update(format="other")), "format 'other'")
