"""What image features have in common: images in batches, batches on all cores, results that depend on neither."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback, tell


@runtime_checkable
class ImageFeatures(Protocol):
    """A frozen dataclass of parameters that turns images into rows of numbers.

    ``version`` is raised whenever the same parameters give other numbers, so that old caches are not used.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def n_features(self) -> int:
        """Numbers for each image."""
        ...

    def compute(self, images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """(n, height, width) or (n, height, width, 3) → (n, n_features)."""
        ...


def parameters(features: Any) -> dict[str, Any]:
    """Name, version and every parameter, as plain JSON values."""
    values = {field.name: getattr(features, field.name) for field in dataclasses.fields(features)}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    return {"name": features.name, "version": features.version, **plain}


def check_images(images: Any) -> None:
    """Refuse what is not a stack of grey or colour images of bytes."""
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
    """``function`` of every batch of images, stacked; batches are cut by n alone."""
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
