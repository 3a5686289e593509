"""Named arrays and a few strings in one file, with a SHA-256 over every byte. Independent of hashers.

A file is opened once, so a file that is replaced meanwhile is read as it was. The arrays share one buffer: memory is
the file's size. Threads hash blocks while the next ones are read; hashing and reading take about equally long.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import bytes_of, read_into
from hashlearn.core.threads import n_threads
from hashlearn.persistence.errors import PersistenceError
from hashlearn.persistence.header import (
    DIGITS,
    DTYPES,
    NAMES,
    OPENING,
    Entry,
    Header,
    build_header,
    header_length,
    parse_header,
)

BLOCK = 2**20
MOST_HASHERS = 4
Arrays = dict[str, NDArray[Any]]


def plain(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array as it is stored: row-major, little-endian, of a dtype that every reader knows."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise PersistenceError(f"{name} has dtype {array.dtype}, which cannot be stored; {', '.join(DTYPES)} can be")
    return np.asarray(array, dtype=dtype, order="C")


def in_file_order(arrays: Arrays) -> list[tuple[str, NDArray[Any]]]:
    """Widest items first, so that each array begins at a multiple of its item size."""
    return sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))


def file_parts(metadata: Mapping[str, str], arrays: Arrays) -> Iterator[Any]:
    """The bytes of a file, in pieces; ``arrays`` come from `plain`."""
    ordered = in_file_order(arrays)
    yield build_header(metadata, ordered)
    for _, array in ordered:
        yield bytes_of(array)


def digests(arrays: Arrays) -> dict[str, str]:
    """SHA-256 of the bytes of every array, as hexadecimal digits."""
    return {name: hashlib.sha256(bytes_of(array)).hexdigest() for name, array in arrays.items()}


def read_header(file: BinaryIO, file_size: int) -> Header:
    """The verified header. Afterwards the file is at the first byte of the data."""
    start = _read(file, min(file_size, 8 + len(OPENING) + DIGITS))
    length = header_length(start, file_size)
    return parse_header(start + _read(file, 8 + length - len(start)), file_size)


def read_arrays(file: BinaryIO, header: Header, expected: Mapping[str, Any]) -> Arrays:
    """Every array, verified against its SHA-256 in ``expected``."""
    if set(expected) != {entry.name for entry in header.entries}:
        raise PersistenceError("the header must state a SHA-256 for every array, and for no other")
    entries = sorted(header.entries, key=lambda entry: (entry.first, entry.last))
    buffer = np.empty(entries[-1].last if entries else 0, dtype=np.uint8)
    memory = bytes_of(buffer)
    found = {entry.name: hashlib.sha256() for entry in entries}
    with ExitStack() as stack:
        count = min(MOST_HASHERS, n_threads(), len(entries)) if len(buffer) > BLOCK else 0
        workers = [
            stack.enter_context(ThreadPoolExecutor(1)) for _ in range(count)
        ]  # one thread each, so that blocks stay in order
        waiting: list[Future[None]] = []
        by_size = sorted(range(len(entries)), key=lambda i: entries[i].first - entries[i].last)
        worker_of = {i: workers[rank % count] for rank, i in enumerate(by_size)} if count else {}
        for i, entry in enumerate(entries):
            for first in range(entry.first, entry.last, BLOCK):
                block = memory[first : min(first + BLOCK, entry.last)]
                read_into(file, block)
                if count:
                    waiting.append(worker_of[i].submit(found[entry.name].update, block))
                else:
                    found[entry.name].update(block)
        for future in waiting:
            future.result()
    for name, digest in found.items():
        if digest.hexdigest() != expected[name]:
            raise PersistenceError(f"array {name!r} does not have the SHA-256 it should have: the file is damaged")
    return {entry.name: _view(buffer, entry) for entry in entries}


def _view(buffer: NDArray[np.uint8], entry: Entry) -> NDArray[Any]:
    raw = buffer[entry.first : entry.last]
    if entry.dtype.kind == "b" and len(raw) and raw.max() > 1:
        raise PersistenceError(f"array {entry.name!r} holds truth values other than 0 and 1")
    return raw.view(entry.dtype).reshape(entry.shape)


def _read(file: BinaryIO, count: int) -> bytes:
    data = bytearray(count)
    read_into(file, memoryview(data))
    return bytes(data)
