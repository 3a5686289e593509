"""npy and npz files: the header is checked against the size of the file, and nothing is unpickled.

``part`` names an array of an npz; None stands for an npy file. Rows of an npy are read a batch at a time, so it may be
larger than memory. Arrays of an npz are read whole.
"""

from __future__ import annotations

import errno
import io
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.streams.rows import PICKED_NUMBERS, RowSource, require_matrix

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError)
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others can decompress to any size
NO_OBJECTS = (
    "holds Python objects, which only pickle could read, and that can run any code; save numbers or text instead, "
    "np.save(file, array.astype(float)) or .astype(str)"
)


class Header(NamedTuple):
    """The header of an npy."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    start: int  # where the data begin


class NumpyRows(RowSource):
    """Rows of an npy file."""

    def __init__(self, path: Path) -> None:
        self._header = numpy_header(path)
        shape = self._header.shape
        require_matrix(shape, self._header.dtype, str(path))
        super().__init__(path, None, (shape[0], shape[1]))

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        header = self._header
        counts = [(at, min(size, last - at)) for at in range(first, last, size)]
        if header.by_columns:  # a row is scattered over the whole array
            rows = numpy_array(self.path)
            yield from (np.array(rows[at : at + count], order="C") for at, count in counts)
            return
        with open(self.path, "rb") as file:
            file.seek(header.start + first * self.n_features * header.dtype.itemsize)
            for _, count in counts:
                entries = _read(file, count * self.n_features, header.dtype, self.name)
                yield entries.reshape(count, self.n_features)

    def _picked(self, rows: NDArray[np.int64]) -> Iterator[Any]:
        array, size = numpy_array(self.path), max(1, PICKED_NUMBERS // self.n_features)
        return (np.asarray(array[rows[at : at + size]]) for at in range(0, len(rows), size))


def numpy_header(path: Path, part: str | None = None) -> Header:
    """Shape and dtype of an array; its data are not read."""
    with _opened(path, part) as (file, n_bytes):
        return _read_header(file, n_bytes, _name(path, part))


def numpy_array(path: Path, part: str | None = None) -> NDArray[Any]:
    """The whole array: memory-mapped from an npy, in memory from an npz."""
    name = _name(path, part)
    with _opened(path, part) as (file, n_bytes):
        header = _read_header(file, n_bytes, name)
        order: Literal["F", "C"] = "F" if header.by_columns else "C"
        if part is None and 0 not in header.shape:
            return np.memmap(path, header.dtype, "r", offset=header.start, shape=header.shape, order=order)
        try:
            with _damage_named(f"{name}: is damaged"):
                return _read(file, math.prod(header.shape), header.dtype, name).reshape(header.shape, order=order)
        except MemoryError:
            words = "does not fit into memory; save it as npy or Parquet, which are read in batches"
            raise MemoryError(f"{name}: {words}") from None


def npz_names(path: Path) -> list[str]:
    """The arrays of an npz."""
    with _damage_named(f"{path}: cannot be read as npz"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def chosen(wanted: str | None, names: list[str], file: str, what: str) -> str:
    """The part of a file that was asked for, or its only one."""
    shown = ", ".join(names[:20]) or "nothing"
    if wanted is None:
        if len(names) == 1:
            return names[0]
        raise ValueError(f"{file}: has {len(names)} {what}s ({shown}); say which one, as {file}::NAME")
    if wanted not in names:
        raise ValueError(f"{file}: has no {what} {wanted!r}; it has {shown}")
    return wanted


def _name(path: Path, part: str | None) -> str:
    return str(path) if part is None else f"{path}::{part}"


@contextmanager
def _opened(path: Path, part: str | None) -> Iterator[tuple[IO[bytes], int]]:
    """The npy file, or the member of an npz that holds one array, and its size."""
    with ExitStack() as stack:
        if part is None:
            yield stack.enter_context(open(path, "rb")), path.stat().st_size
            return
        with _damage_named(f"{path}::{part}: cannot be read"):
            archive = stack.enter_context(zipfile.ZipFile(path))
            member = archive.getinfo(f"{part}.npy")
            if member.compress_type not in PACKINGS:
                raise NotImplementedError("it is packed in another way than NumPy packs; save it with np.savez again")
            file = stack.enter_context(archive.open(member))
        yield file, member.file_size


@contextmanager
def _damage_named(words: str) -> Iterator[None]:
    """Turn what a damaged archive raises into a ValueError that begins with ``words``."""
    try:
        yield
    except BROKEN as error:
        raise ValueError(f"{words}: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{words}: it names places outside the file") from None


def _read(file: IO[bytes], count: int, dtype: np.dtype[Any], name: str) -> NDArray[Any]:
    """The next entries. An archive can claim any size, so memory is allocated only for data that are there."""
    if isinstance(file, io.BufferedReader):
        entries = np.fromfile(file, dtype, count)
    else:
        data = file.read(count * dtype.itemsize)
        entries = np.frombuffer(data, dtype, len(data) // max(dtype.itemsize, 1))
    if len(entries) != count:
        raise ValueError(f"{name}: ends too early; the file is damaged")
    return entries


def _read_header(file: IO[bytes], n_bytes: int, name: str) -> Header:
    """Read the header of an npy and compare it with the size; the product is Python's, so it cannot overflow."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        start = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy evaluates the header as a Python literal, which can fail in many ways
        raise ValueError(f"{name}: cannot be read as npy: {' '.join(str(error).split())}") from None
    if dtype.hasobject:
        raise ValueError(f"{name}: {NO_OBJECTS}")
    expected = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or start + expected != n_bytes:
        raise ValueError(
            f"{name}: its header speaks of {expected:,} bytes of data (shape {shape}, {dtype}), and there are "
            f"{n_bytes - start:,}: it is cut off or damaged"
        )
    return Header(shape, by_columns, dtype, start)
