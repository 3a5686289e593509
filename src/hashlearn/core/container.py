"""Named arrays and a description in one file, with a SHA-256 over every byte: model files and index files.

The layout is that of safetensors, so its readers can open our files: eight bytes of length, JSON with the place and the
meaning of every array, then the data. The JSON opens with a SHA-256 of itself, over the eight bytes and the header with
the 64 digits as zeros. The header is parsed only if this digest is right, and nothing is allocated before all sizes
agree with the size of the file. A file is opened once, so a file that is replaced meanwhile is read as it was. The
arrays share one buffer: memory is the file's size.

We do not use the safetensors package (0.8.0 was tried), because we would lose guards and save nothing:

- It parses the header before anybody can check a digest. It accepts repeated keys, unknown fields, arrays that begin
  between two numbers, truth values other than 0 and 1, any number of dimensions, and headers of 10 MB. All of these
  checks would remain here, as a second parser.
- It needs twice the size of the file in memory: +196 MB for a file of 98 MB, against +98 MB here.
- It writes the metadata in random order, so the digest would not come first and equal models would differ in bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import bytes_of, regular_file, write_atomically

Arrays = dict[str, NDArray[Any]]
BLOCK = 2**20
OPENING = b'{"__metadata__":{"sha256":"'
DIGITS = 64
BLANK = b"0" * DIGITS
ALIGNMENT = 64
LARGEST_HEADER = 4 * 2**20
MOST_VALUES = 2**17  # JSON of many small values takes fifty times its size in memory
MOST_DIMENSIONS, LONGEST_SIDE = 8, 2**40
CODES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]
DTYPES = {f"{code[0].upper()}{8 * int(code[1])}": f"<{code}" for code in CODES} | {"BOOL": "|b1"}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


class PersistenceError(ValueError):
    """A hasher cannot be stored or exported, or a file is damaged, of another version, or of another kind."""


class Kind(NamedTuple):
    """A kind of file. One version is read; files of all others are refused."""

    name: str  # also the key of the description in the header
    format: str  # as the header states it
    version: int


class Entry(NamedTuple):
    """Name, type, shape and place of one array."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


class Header(NamedTuple):
    """A verified header."""

    metadata: dict[str, str]
    entries: list[Entry]  # in the order of their data


class Contents(NamedTuple):
    """What `read_container` returns."""

    description: dict[str, Any]
    arrays: Arrays
    header: Header
    size: int  # of the file, in bytes


def write_container(
    path: str | os.PathLike[str],
    kind: Kind,
    description: Mapping[str, Any],
    arrays: Arrays,
    check: Callable[[Path], Any] | None = None,
) -> None:
    """Write a file, all or nothing. ``arrays`` come from `plain`, and ``check`` is that of `write_atomically`."""
    text = json.dumps({**description, "sha256": digests(arrays)}, separators=(",", ":"), allow_nan=False)
    metadata = {"format": kind.format, "format_version": str(kind.version), kind.name: text}
    write_atomically(Path(path), _file_parts(metadata, arrays), check)


def read_container(path: str | os.PathLike[str], kind: Kind, *, with_arrays: bool = True) -> Contents:
    """The verified description and arrays of a file, or a `PersistenceError` that names it."""
    try:
        with regular_file(path) as (file, size):
            header = read_header(file, size)
            description = _description(header, kind)
            arrays = _read_arrays(file, header, description["sha256"]) if with_arrays else {}
            return Contents(description, arrays, header, size)
    except ValueError as error:
        raise PersistenceError(f"{str(path)!r}: {error}") from error


def has_kind(path: str | os.PathLike[str], kind: Kind) -> bool:
    """Whether the header of a file, which may be damaged, states this kind."""
    with suppress(ValueError), regular_file(path) as (file, size):
        return read_header(file, size).metadata.get("format") == kind.format
    return False


def _description(header: Header, kind: Kind) -> dict[str, Any]:
    metadata = header.metadata
    if metadata.get("format") != kind.format:
        raise PersistenceError(f"this is a file of format {metadata.get('format')!r}, and no {kind.name} of hashlearn")
    version = metadata.get("format_version")
    if version != str(kind.version):
        raise PersistenceError(
            f"this {kind.name} has format {version}, and this hashlearn reads format {kind.version} only; install the "
            f"hashlearn that wrote it, or make the {kind.name} again"
        )
    description = strict_json(metadata.get(kind.name, ""))
    digests_of_arrays = description.get("sha256")
    if not isinstance(digests_of_arrays, dict) or set(digests_of_arrays) != {entry.name for entry in header.entries}:
        raise PersistenceError("the header must state a SHA-256 for every array, and for no other")
    return description


def read_header(file: BinaryIO, file_size: int) -> Header:
    """The verified header. Afterwards the file is at the first byte of the data."""
    start = file.read(8 + len(OPENING) + DIGITS)
    if not start[8:].startswith(OPENING):
        raise PersistenceError(_what_else(start, file_size))
    length = int.from_bytes(start[:8], "little")
    if not len(OPENING) + DIGITS < length <= LARGEST_HEADER:
        raise PersistenceError(f"the header claims {length:,} bytes, {LARGEST_HEADER:,} are allowed: damaged or forged")
    if 8 + length > file_size:
        raise PersistenceError(f"truncated: the header alone takes {8 + length:,} bytes, the file has {file_size:,}")
    return parse_header(start + file.read(8 + length - len(start)), file_size)


def parse_header(raw: bytes, file_size: int) -> Header:
    """Verify the stored length and header, and read them."""
    at = 8 + len(OPENING)
    stored, blank = raw[at : at + DIGITS], raw[:at] + BLANK + raw[at + DIGITS :]
    if hashlib.sha256(blank).hexdigest().encode() != stored:
        raise PersistenceError("the header does not have the SHA-256 it states: the file is damaged")
    text = raw[8:]
    if not text.isascii() or text.count(b",") + text.count(b"[") + text.count(b"{") > MOST_VALUES:
        raise PersistenceError("the header must be ASCII, and not made of too many values: damaged or forged")
    whole = strict_json(text.decode("ascii"))
    metadata = whole.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise PersistenceError("the header's metadata must be strings")
    entries, end = [], 0
    for name, value in whole.items():
        entries.append(_entry(name, value, end))
        end = entries[-1].last
    size = len(raw) + end
    if size != file_size:
        what = "truncated" if size > file_size else "trailing bytes"
        raise PersistenceError(f"{what}: the header describes {size:,} bytes, the file has {file_size:,}")
    return Header(metadata, entries)


def strict_json(text: str) -> dict[str, Any]:
    """Parse a JSON object. Repeated keys, NaN and very deep nesting are refused."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise PersistenceError(f"the header is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise PersistenceError("the header must be a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _entry(name: str, value: Any, first: int) -> Entry:
    """Check one array, whose bytes must begin at ``first``. Python's products cannot overflow."""
    fields = {"dtype", "shape", "data_offsets"}
    if not isinstance(value, dict) or set(value) != fields or value["dtype"] not in list(DTYPES):
        raise PersistenceError(f"array {name!r} is not described as safetensors has it")
    dtype, shape = np.dtype(DTYPES[value["dtype"]]), value["shape"]
    sides = isinstance(shape, list) and all(type(side) is int and 0 <= side <= LONGEST_SIDE for side in shape)
    if not sides or len(shape) > MOST_DIMENSIONS:
        raise PersistenceError(f"array {name!r} claims the shape {shape!r}: damaged or forged")
    last = first + math.prod(shape) * dtype.itemsize
    if value["data_offsets"] != [first, last] or first % dtype.itemsize:
        raise PersistenceError(
            f"array {name!r} of shape {shape} must take the bytes {[first, last]}, got {value['data_offsets']}"
        )
    return Entry(name, dtype, tuple(shape), first, last)


def _what_else(start: bytes, file_size: int) -> str:
    """The likely kind of a file that is not ours."""
    never = "hashlearn never unpickles, for that can run any code; make it again and call save(path)"
    if start[:1] == b"\x80":
        return f"this is a pickle, no file of hashlearn; {never}"
    if start[:2] == b"PK":
        return f"this is a zip archive (npz, joblib, torch?), no file of hashlearn; {never}"
    if file_size < 8 + len(OPENING) + DIGITS:
        return f"truncated, or no file of hashlearn: {file_size} bytes"
    if start[8:9] == b"{":
        return "this may be a safetensors file, but none of hashlearn: its header does not open with a SHA-256"
    return "neither a model nor an index of hashlearn, nor a store that it filled"


def plain(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array as it is stored: row-major, little-endian, of a dtype that every reader knows."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise PersistenceError(f"{name} has dtype {array.dtype}, which cannot be stored; {', '.join(DTYPES)} can be")
    return np.asarray(array, dtype=dtype, order="C")


def _file_parts(metadata: Mapping[str, str], arrays: Arrays) -> Iterator[Any]:
    """The bytes of a file, in pieces: length, header, data."""
    # Widest items first, so that each array begins at a multiple of its item size.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    first, entries = 0, {}
    for name, array in ordered:
        offsets = [first, first + array.nbytes]
        entries[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        first += array.nbytes
    whole = {"__metadata__": {"sha256": BLANK.decode(), **metadata}, **entries}
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False).encode("ascii")
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > LARGEST_HEADER:
        raise PersistenceError(
            f"the description takes {len(text):,} bytes, {LARGEST_HEADER:,} are allowed; it holds too many "
            "separate values"
        )
    blank = len(text).to_bytes(8, "little") + text
    yield blank.replace(BLANK, hashlib.sha256(blank).hexdigest().encode(), 1)
    for _, array in ordered:
        yield bytes_of(array)


def digests(arrays: Arrays) -> dict[str, str]:
    """SHA-256 of the bytes of every array, as hexadecimal digits."""
    return {name: hashlib.sha256(bytes_of(array)).hexdigest() for name, array in arrays.items()}


def _read_arrays(file: BinaryIO, header: Header, expected: Mapping[str, Any]) -> Arrays:
    """Every array, verified against its SHA-256 in ``expected``; a file that ends too early has another one."""
    buffer = np.empty(header.entries[-1].last if header.entries else 0, dtype=np.uint8)
    arrays = {}
    for entry in header.entries:
        raw, digest = buffer[entry.first : entry.last], hashlib.sha256()
        for first in range(0, len(raw), BLOCK):
            block = raw[first : first + BLOCK].data
            file.readinto(block)  # type: ignore[attr-defined]
            digest.update(block)
        if digest.hexdigest() != expected[entry.name]:
            raise PersistenceError(f"array {entry.name!r} does not have its SHA-256: the file is damaged")
        if entry.dtype.kind == "b" and len(raw) and raw.max() > 1:
            raise PersistenceError(f"array {entry.name!r} holds truth values other than 0 and 1")
        arrays[entry.name] = raw.view(entry.dtype).reshape(entry.shape)
    return arrays
