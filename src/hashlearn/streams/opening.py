"""Open files by address: ``rows.npy``, ``data.npz::X``, ``data.parquet::embedding``; ``::`` picks a part."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.interface import checked_codes
from hashlearn.search.stores.exports import read_parquet
from hashlearn.streams import parquet_files
from hashlearn.streams.numpy_files import NumpyRows, chosen, npz_names, numpy_array
from hashlearn.streams.rows import RowSource, SparseRows
from hashlearn.streams.sparse_files import SPARSE_PARTS, read_sparse

PART = "::"
SUFFIXES = (".npy", ".npz", ".parquet")


def open_rows(address: str | os.PathLike[str], *, names: Sequence[str] | None = None) -> RowSource:
    """Rows of features in a file.

    Parameters
    ----------
    address : an npy file; an npz, with ``::NAME`` where it has several arrays, or one that
        `scipy.sparse.save_npz` wrote; a Parquet file of numeric columns or with one column of lists, where
        ``::a,b,c`` picks columns
    names : columns to take from a Parquet file, in this order, where it has them all and ``address`` names none
    """
    path, part = split_address(address)
    suffix = _suffix(path)
    if suffix == ".npz":
        arrays = npz_names(path)
        if part is None and set(arrays) >= SPARSE_PARTS:
            return SparseRows(path, read_sparse(path, arrays))
        return NumpyRows(path, chosen(part, arrays, str(path), "array"))
    if suffix == ".parquet":
        return parquet_files.ParquetRows(path, part, names)
    _require_no_part(path, part)
    return NumpyRows(path)


def read_labels(address: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels (n,), numbers or text, or 0/1 indicators (n, n_labels), from a file named as in `open_rows`."""
    path, part = split_address(address)
    labels = parquet_files.parquet_labels(path, part) if _suffix(path) == ".parquet" else np.array(_array(path, part))
    if labels.ndim not in (1, 2) or len(labels) == 0:
        raise ValueError(f"{address}: has shape {labels.shape}; labels are (n,), or 0/1 indicators (n, n_labels)")
    return labels


def read_images(address: str | os.PathLike[str]) -> NDArray[Any]:
    """Images (n, h, w) or (n, h, w, 3) from an npy file, memory-mapped, or from an npz."""
    path, part = split_address(address)
    if _suffix(path) == ".parquet":
        raise ValueError(f"{address}: images are read from npy or npz; np.save writes them")
    return _array(path, part)


def read_codes(
    address: str | os.PathLike[str], n_bits: int, model: str | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Packed codes and their ids, from what `encode_file` wrote; in an npy the row is the id.

    With ``model``, a digest of `hashlearn.persistence.fingerprint`, Parquet files with codes of another model are
    refused. An npy file does not say which model made it.
    """
    path, part = split_address(address)
    suffix = _suffix(path)
    try:
        _require_no_part(path, part)
        if suffix == ".parquet":
            with parquet_files.damage_named(str(path)):
                codes, ids, stored = read_parquet(path, model=model)
            if stored != n_bits:
                raise ValueError(f"these are codes of {stored} bits, the model makes {n_bits}")
            return codes, ids
        if suffix != ".npy":
            raise ValueError("codes are npy or Parquet")
        codes = checked_codes(numpy_array(path), n_bits)
        return codes, np.arange(len(codes))
    except (TypeError, ValueError) as error:
        text = str(error)
        raise ValueError(text if text.startswith(str(address)) else f"{address}: {text}") from None


def split_address(address: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """The file, and the part of it that is named.

    >>> split_address("data.npz::X")[1], split_address("rows.npy")[1]
    ('X', None)
    """
    text = os.fspath(address)
    if PART not in text or Path(text).exists():
        return Path(text), None
    file, _, part = text.rpartition(PART)
    if not file or not part:
        raise ValueError(f"{text}: expected FILE::NAME")
    return Path(file), part


def _array(path: Path, part: str | None) -> NDArray[Any]:
    """The array of an npy file, or one array of an npz."""
    if path.suffix.lower() == ".npz":
        return numpy_array(path, chosen(part, npz_names(path), str(path), "array"))
    _require_no_part(path, part)
    return numpy_array(path)


def _suffix(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: files of rows are {', '.join(SUFFIXES)}, got {path.suffix or 'no ending'!r}")
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file")
    if not path.is_file():
        raise ValueError(f"{path}: is not a regular file")
    return path.suffix.lower()


def _require_no_part(path: Path, part: str | None) -> None:
    if part is not None:
        raise ValueError(f"{path}: has no parts; leave {PART}{part} out")
