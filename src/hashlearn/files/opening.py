"""Open files by address: ``rows.npy``, ``data.npz::X``, ``data.parquet::embedding``; ``::`` picks a part.

A name that ends in .csv, .npy, .npz or .parquet is read in that format.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.files.numpy_files import MatrixRows, array_of
from hashlearn.files.row_source import RowSource, require_file
from hashlearn.files.table_files import CsvRows, ParquetRows, label_columns

PART = "::"
SUFFIXES = (".npy", ".npz", ".parquet", ".csv")
TABLES = (".parquet", ".csv")


def open_rows(
    address: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    id_column: str | bool | None = None,
    keep: Sequence[str] = (),
) -> RowSource:
    """Rows of features in a file.

    Parameters
    ----------
    address : an npy file; an npz, with ``::NAME`` where it has several arrays, or a CSR matrix that
        `scipy.sparse.save_npz` wrote; a Parquet file of numeric columns or with one column of lists, or a CSV file of
        numeric columns, where ``::a,b,c`` picks columns
    names : columns to take from a Parquet or CSV file, in this order, where it has them all and ``address`` names none
    id_column : column with the ids of the rows, which is then not a feature. None: a column called "id", if it has
        integers, text or UUIDs and is not named as a feature. False: rows are numbered
    keep : columns that `encode_file` carries along, beside ids and codes
    """
    path, part = split_address(address)
    suffix = _suffix(path)
    if suffix in TABLES:
        kind = CsvRows if suffix == ".csv" else ParquetRows
        return kind(path, part, names=names, id_column=id_column, keep=keep)
    if id_column or keep:
        raise ValueError(f"{path}: has no columns that could be ids or be kept; Parquet and CSV files have")
    return MatrixRows(path, part)


def read_labels(address: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels (n,), numbers or text, or 0/1 indicators (n, n_labels), from a file named as in `open_rows`."""
    path, part = split_address(address)
    labels = label_columns(path, part) if _suffix(path) in TABLES else np.array(array_of(path, part)[0])
    if labels.ndim not in (1, 2) or len(labels) == 0:
        raise ValueError(f"{address}: has shape {labels.shape}; labels are (n,), or 0/1 indicators (n, n_labels)")
    return labels


def read_images(address: str | os.PathLike[str]) -> NDArray[Any]:
    """Images (n, h, w) or (n, h, w, 3) from an npy file, memory-mapped, or from an npz."""
    path, part = split_address(address)
    if _suffix(path) in TABLES:
        raise ValueError(f"{address}: images are read from npy or npz; np.save writes them")
    return array_of(path, part)[0]


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


def _suffix(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path}: files of rows are {', '.join(SUFFIXES)}, got {path.suffix or 'no ending'!r}")
    require_file(path)
    return path.suffix.lower()
