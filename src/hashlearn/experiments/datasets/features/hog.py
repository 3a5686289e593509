"""HOG: histograms of gradient orientations, weighted by the gradient's length, over a grid of cells.

N. Dalal and B. Triggs, Histograms of oriented gradients for human detection, CVPR 2005, as scikit-image computes it:
central differences (none at the border), of a colour image the channel with the longest gradient, unsigned
orientations, each pixel one vote, blocks of cells normalised by L2-Hys. Vectorised over images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.features.base import check_images, in_batches

Floats = NDArray[np.float32]

BATCH = 128
CLIP = 0.2  # L2-Hys: normalise, clip, normalise
EPSILON = 1e-5


@dataclass(frozen=True)
class Hog:
    """HOG features, ordered by block row, block column, cell row, cell column, orientation.

    The defaults give 625 numbers for a 32 × 32 image: 25 orientations in 5 × 5 cells of 6 × 6 pixels (the last two rows
    and columns of pixels are in no cell), all cells in one block. The only other layout of 625 with several
    orientations is ``block=1``, each cell normalised by itself, which loses how strong the cells are.

    Attributes
    ----------
    orientations : bins from 0 to 180 degrees
    cell : pixels along the side of a cell
    block : cells along the side of a block; blocks move by one cell

    >>> import numpy as np
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    >>> Hog().compute(images).shape
    (2, 625)
    """

    name: ClassVar[str] = "hog"
    version: ClassVar[int] = 1

    orientations: int = 25
    cell: int = 6
    block: int = 5
    side: int = 32

    def __post_init__(self) -> None:
        if min(self.orientations, self.cell, self.block) < 1:
            raise ValueError(f"orientations, cell and block must be positive, got {self}")
        if self.side // self.cell < self.block:
            raise ValueError(f"a block of {self.block} × {self.block} cells must fit into an image, got {self}")

    @property
    def n_features(self) -> int:
        """Numbers for each image."""
        return (self.side // self.cell - self.block + 1) ** 2 * self.block**2 * self.orientations

    def compute(self, images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> Floats:
        """(n, side, side) or (n, side, side, 3) bytes → float32 (n, n_features)."""
        check_images(images)
        if images.shape[1:3] != (self.side, self.side):
            raise ValueError(
                f"images must be {self.side} × {self.side} pixels, got {images.shape[1]} × {images.shape[2]}"
            )
        return in_batches(self._rows, images, self.n_features, BATCH, "HOG", progress)

    def _rows(self, images: NDArray[np.uint8]) -> Floats:
        histograms = self._histograms(*_gradients(images / np.float64(255.0)))
        n, cells = histograms.shape[:2]
        blocks = cells - self.block + 1
        windows = np.lib.stride_tricks.sliding_window_view(histograms, (self.block, self.block), axis=(1, 2))
        flat = windows.transpose(0, 1, 2, 4, 5, 3).reshape(n, blocks * blocks, -1)
        return _normalised(np.minimum(_normalised(flat), CLIP)).reshape(n, -1).astype(np.float32)

    def _histograms(self, length: NDArray[np.float64], angle: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, cells, cells, orientations): mean length of the gradients that point into each bin."""
        n, cells = len(length), self.side // self.cell
        inside = cells * self.cell
        shape = (n, cells, self.cell, cells, self.cell)
        bins = (angle[:, :inside, :inside] * (self.orientations / np.pi)).astype(np.int64) % self.orientations
        cell = np.arange(n * cells * cells).reshape(n, cells, 1, cells, 1)
        votes = np.bincount(
            (cell * self.orientations + bins.reshape(shape)).ravel(),
            length[:, :inside, :inside].ravel(),
            minlength=n * cells * cells * self.orientations,
        )
        return votes.reshape(n, cells, cells, self.orientations) / self.cell**2


def _gradients(images: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Length and angle (0 ≤ angle < π) of the longest gradient at each pixel."""
    down, right = np.zeros_like(images), np.zeros_like(images)
    down[:, 1:-1] = images[:, 2:] - images[:, :-2]
    right[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
    length = np.hypot(down, right)
    if images.ndim == 4:
        longest = length.argmax(axis=3, keepdims=True)
        down, right, length = (np.take_along_axis(x, longest, axis=3)[..., 0] for x in (down, right, length))
    return length, np.arctan2(down, right) % np.pi


def _normalised(x: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + EPSILON**2)
    return scaled
