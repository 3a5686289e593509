"""Computed features are kept: one ``.npy`` for each data set, set of parameters and version of the source files."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.datasets.dataset import SourceFile
from hashlearn.experiments.datasets.folder import user_cache, written_whole

SUBFOLDER = "features"
_log = logging.getLogger(__name__)


def cached(
    name: str,
    described: dict[str, Any],
    files: Sequence[SourceFile],
    shape: tuple[int, int],
    folder: Path,
    compute: Callable[[], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """What ``compute`` gives, from disk if it was computed before.

    Kept in the data folder, or in the user's cache folder where that cannot be written. A damaged file is computed
    anew; where nothing can be written, so is everything.
    """
    file_name = f"{name}-{described['name']}-{_key(described, files)}.npy"
    places = list(dict.fromkeys([folder / SUBFOLDER / file_name, user_cache() / SUBFOLDER / file_name]))
    for path in places:
        rows = _stored(path, shape)
        if rows is not None:
            return rows
    rows = compute()
    for path in places:
        try:
            with written_whole(path) as file:
                np.save(file, rows, allow_pickle=False)
            break
        except OSError as error:
            _log.info("features cannot be kept at %s: %s", path, error)
    return rows


def _key(described: dict[str, Any], files: Sequence[SourceFile]) -> str:
    text = json.dumps([described, sorted(file.sha256 for file in files)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _stored(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    try:
        rows = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError, MemoryError) as error:
        _log.warning("%s is damaged and is computed anew: %s", path, error)
        return None
    if rows.shape != shape or rows.dtype != np.float32:
        _log.warning("%s has shape %s and type %s and is computed anew", path, rows.shape, rows.dtype)
        return None
    return rows
