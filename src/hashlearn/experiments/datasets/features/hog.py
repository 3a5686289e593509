"""HOG: histograms of gradient orientations, weighted by the gradient's length, over a grid of cells.

N. Dalal and B. Triggs, Histograms of oriented gradients for human detection, CVPR 2005. scikit-image computes it:
in a color image the channel with the longest gradient counts, and blocks of cells are normalized by L2-Hys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.features.base import check_images, in_batches

BATCH = 128


@dataclass(frozen=True)
class Hog:
    """HOG features, ordered by block row, block column, cell row, cell column, orientation.

    The defaults give 625 numbers for a 32 × 32 image: 25 orientations in 5 × 5 cells of 6 × 6 pixels, all cells in one
    block. The last two rows and columns of pixels are in no cell. The only other layout of 625 numbers with several
    orientations is ``block=1``. It normalizes each cell by itself and so loses the relative strength of the cells.

    Attributes
    ----------
    orientations : bins from 0 to 180 degrees
    cell : pixels along the side of a cell
    block : cells along the side of a block; blocks move by one cell
    side : pixels along the side of an image

    >>> import numpy as np
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    >>> Hog().compute(images).shape
    (2, 625)
    """

    name: ClassVar[str] = "hog"
    version: ClassVar[int] = 2

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
        """Number of features of an image."""
        return (self.side // self.cell - self.block + 1) ** 2 * self.block**2 * self.orientations

    def compute(self, images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> NDArray[np.float32]:
        """(n, side, side) or (n, side, side, 3) bytes → float32 (n, n_features)."""
        check_images(images)
        if images.shape[1:3] != (self.side, self.side):
            raise ValueError(
                f"images must be {self.side} × {self.side} pixels, got {images.shape[1]} × {images.shape[2]}"
            )
        hog = require("skimage.feature", "data", "HOG").hog

        def rows(batch: NDArray[np.uint8]) -> NDArray[np.float32]:
            features = [
                hog(
                    image / 255.0,
                    orientations=self.orientations,
                    pixels_per_cell=(self.cell, self.cell),
                    cells_per_block=(self.block, self.block),
                    block_norm="L2-Hys",
                    channel_axis=-1 if images.ndim == 4 else None,
                )
                for image in batch
            ]
            return np.array(features, np.float32)

        return in_batches(rows, images, self.n_features, BATCH, "HOG", progress)
