"""npy and npz: headers verified against the size of the file, rows read from where they lie, nothing unpickled.

An npy file is memory-mapped, one batch at a time. A member of an npz is read in order, unpacked on
the way. Both may be larger than memory, and than what the process may address.
"""

from __future__ import annotations

import errno
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.streams.rows import RowSource, SparseRows, require_matrix
from hashlearn.streams.sparse_files import SPARSE_PARTS, read_sparse

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError)
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others unpack to any size
NO_OBJECTS = (
    "holds Python objects, which only pickle could read, and that can run any code; save numbers or text instead, "
    "np.save(file, array.astype(float)) or .astype(str)"
)


class Header(NamedTuple):
    """What an npy says about itself."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    start: int  # where the data begin


class NpyRows(RowSource):
    """Rows of an npy file."""

    def __init__(self, path: Path) -> None:
        self._header = _npy_header(path)
        require_matrix(self._header.shape, self._header.dtype, str(path))
        super().__init__(path, None, (self._header.shape[0], self._header.shape[1]))

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        header = self._header
        columns = _mapped(self.path, header) if header.by_columns else None
        row_bytes = self.n_features * header.dtype.itemsize
        for at in range(first, last, size):
            count = min(size, last - at)
            if columns is None:
                part = header._replace(shape=(count, self.n_features), start=header.start + at * row_bytes)
                yield np.array(_mapped(self.path, part), order="C")
            else:
                yield np.array(columns[at : at + count], order="C")


class NpzRows(RowSource):
    """Rows of one array of an npz."""

    def __init__(self, path: Path, part: str) -> None:
        self._header = npz_header(path, part)
        require_matrix(self._header.shape, self._header.dtype, f"{path}::{part}")
        super().__init__(path, part, (self._header.shape[0], self._header.shape[1]))

    def _pieces(self, size: int, first: int, last: int) -> Iterator[Any]:
        header = self._header
        if header.by_columns:  # rows are scattered over all of it
            rows = npz_array(self.path, self.part or "")
            yield from (np.ascontiguousarray(rows[at : min(at + size, last)]) for at in range(first, last, size))
            return
        row_bytes = self.n_features * header.dtype.itemsize
        with _damage_named(f"{self.name}: is damaged"), _member(self.path, self.part or "") as file:
            file.seek(header.start + first * row_bytes)
            for at in range(first, last, size):
                count = min(size, last - at)
                data = file.read(count * row_bytes)
                if len(data) != count * row_bytes:
                    raise ValueError(f"{self.name}: ends too early; the file is damaged")
                yield np.frombuffer(data, header.dtype).reshape(count, self.n_features)


def npz_rows(path: Path, part: str | None) -> RowSource:
    """Rows of the array ``part``, of the only one, or of a matrix that `scipy.sparse.save_npz` wrote."""
    names = npz_names(path)
    if part is None and set(names) >= SPARSE_PARTS:
        return SparseRows(path, None, read_sparse(path, names, npz_header, npz_array))
    return NpzRows(path, chosen(part, names, str(path), "array"))


def npy_array(path: Path) -> NDArray[Any]:
    """The array of an npy file, memory-mapped where it has bytes to map."""
    header = _npy_header(path)
    if math.prod(header.shape) == 0:
        return np.empty(header.shape, header.dtype)
    return _mapped(path, header)


def npz_header(path: Path, part: str) -> Header:
    """Shape and dtype of one array of an npz; its data are not read."""
    with _member(path, part) as file:
        return _read_header(file, _member_bytes(path, part), f"{path}::{part}")


def npz_array(path: Path, part: str) -> NDArray[Any]:
    """One array of an npz, in memory."""
    with _member(path, part) as file:
        header = _read_header(file, _member_bytes(path, part), f"{path}::{part}")
        with _damage_named(f"{path}::{part}: is damaged"):
            data = file.read()
    count = math.prod(header.shape)
    if len(data) != count * header.dtype.itemsize:
        raise ValueError(f"{path}::{part}: ends too early; the file is damaged")
    return np.frombuffer(data, header.dtype, count).reshape(header.shape, order="F" if header.by_columns else "C")


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


def _npy_header(path: Path) -> Header:
    with open(path, "rb") as file:
        return _read_header(file, path.stat().st_size, str(path))


def _mapped(path: Path, header: Header) -> NDArray[Any]:
    order: Literal["F", "C"] = "F" if header.by_columns else "C"
    return np.memmap(path, header.dtype, "r", offset=header.start, shape=header.shape, order=order)


@contextmanager
def _member(path: Path, part: str) -> Iterator[IO[bytes]]:
    """The file of one array in an npz, for reading; both are closed in the end."""
    with ExitStack() as stack:
        with _damage_named(f"{path}::{part}: cannot be read"):
            archive = stack.enter_context(zipfile.ZipFile(path))
            if archive.getinfo(f"{part}.npy").compress_type not in PACKINGS:
                raise NotImplementedError("it is packed in another way than NumPy packs; save it with np.savez again")
            file = stack.enter_context(archive.open(f"{part}.npy"))
        yield file


@contextmanager
def _damage_named(words: str) -> Iterator[None]:
    """What a damaged archive raises, as a ValueError that begins with ``words``."""
    try:
        yield
    except BROKEN as error:
        raise ValueError(f"{words}: {error}") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{words}: it names places outside the file") from None


def _member_bytes(path: Path, part: str) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.getinfo(f"{part}.npy").file_size


def _read_header(file: IO[bytes], n_bytes: int, name: str) -> Header:
    """Of an npy, with sizes that agree with the number of bytes there are; products are Python's, so none overflows."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        start = file.tell()
    except OSError:
        raise
    except Exception as error:  # NumPy reads the header as Python's literals, and these can fail in many ways
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
