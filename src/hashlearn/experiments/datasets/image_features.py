"""What all image features share: images in batches on all cores, and a cache of the results.

The cache holds one ``.npy`` for each data set, kind and version of features, and version of the source files.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import replacing
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import SourceFile
from hashlearn.experiments.datasets.files import user_cache

_log = logging.getLogger(__name__)


def check_images(images: Any) -> None:
    """Refuse anything but a stack of gray or color images of bytes."""
    shape = np.shape(images)
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] != 3) or 0 in shape:
        raise ValueError(f"images must have shape (n, height, width) or (n, height, width, 3), got {shape}")
    if images.dtype != np.uint8:
        raise ValueError(f"images must be uint8, got {images.dtype}")


def in_batches(
    function: Callable[[NDArray[np.uint8]], NDArray[np.float32]],
    images: NDArray[np.uint8],
    n_features: int,
    batch: int,
    what: str,
    progress: ProgressCallback | None,
) -> NDArray[np.float32]:
    """``function`` of every batch of images, stacked. Batches depend on n alone, never on the number of threads."""
    from hashlearn.core.threads import map_threads  # here, so that listing data sets loads no compiled kernels

    n = len(images)
    rows = np.empty((n, n_features), np.float32)

    def fill(first: int) -> int:
        last = min(first + batch, n)
        rows[first:last] = function(images[first:last])
        return last

    for done in map_threads(fill, range(0, n, batch)):
        tell(progress, what, done, n)
    return rows


def cached(
    name: str,
    described: dict[str, Any],
    files: Sequence[SourceFile],
    shape: tuple[int, int],
    compute: Callable[[], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """What ``compute`` returns, from the user's cache folder if it was computed before; a damaged file is not used."""
    key = json.dumps([described, sorted(file.sha256 for file in files)], sort_keys=True)
    path = user_cache() / f"{name}-{described['name']}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
    with suppress(OSError, ValueError, EOFError):
        rows: NDArray[np.float32] = np.load(path, allow_pickle=False)
        if rows.shape == shape and rows.dtype == np.float32:
            return rows
    rows = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside, open(beside, "wb") as file:
            np.save(file, rows, allow_pickle=False)
    except OSError as error:
        _log.info("features cannot be cached at %s: %s", path, error)
    return rows
