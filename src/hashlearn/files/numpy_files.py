"""npy and npz files, which NumPy reads without unpickling anything.

``part`` names an array of an npz; None stands for an npy file. An npy is memory-mapped, so it may be larger than
memory. Arrays of an npz are read whole.
"""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numpy_array(path: Path, part: str | None = None) -> NDArray[Any]:
    """The whole array: memory-mapped from an npy, in memory from an npz."""
    with _damage_named(str(path) if part is None else f"{path}::{part}"):
        if part is None:
            return np.lib.format.open_memmap(path, mode="r")
        with zipfile.ZipFile(path) as archive, archive.open(f"{part}.npy") as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array


def npz_names(path: Path) -> list[str]:
    """The arrays of an npz."""
    with _damage_named(str(path)), zipfile.ZipFile(path) as archive:
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


@contextmanager
def _damage_named(name: str) -> Iterator[None]:
    """Name the file in whatever NumPy and zipfile raise when one is damaged."""
    try:
        yield
    except MemoryError:
        words = "does not fit into memory; save it as npy or Parquet, which are read in batches"
        raise MemoryError(f"{name}: {words}") from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        text = " ".join(str(error).split())
        raise ValueError(f"{name}: cannot be read; it is damaged, or holds Python objects: {text}") from None
