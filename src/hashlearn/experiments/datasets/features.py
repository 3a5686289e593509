"""GIST and HOG of images, by name in `IMAGE_FEATURES`: a new kind is one class and one entry there.

GIST is the strength of each orientation, at each scale, in each block of an image: A. Oliva and A. Torralba, Modeling
the shape of the scene, IJCV 42 (2001), with the constants of their LMgist. The gray image (mean of the channels) is
stretched to 0 … 255; its logarithm loses the low frequencies and is divided by the local contrast; Gabor-like filters
follow, and the modulus of each response is averaged over a grid of blocks. Everything is a product in the frequency
domain, for batches of images: O(pixels · log(pixels) · filters) an image.

HOG are histograms of gradient orientations, weighted by the gradient's length, over a grid of cells: N. Dalal and
B. Triggs, Histograms of oriented gradients for human detection, CVPR 2005. scikit-image computes it: in a color image
the channel with the longest gradient counts, and blocks of cells are normalized by L2-Hys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.image_features import ImageFeatures, check_images, in_batches

Floats = NDArray[np.float32]
GIST_BATCH = 32  # the spectra of a batch of CIFAR-10 take 2.4 MB and fit in the cache
MARGIN = 5  # pixels mirrored around the image for the prefilter
CONTRAST_FLOOR = 0.2  # local contrast below which nothing is amplified further
HIGHEST_FREQUENCY = 0.3  # cycles per pixel, center of the finest scale
SCALE_RATIO = 1.85  # ratio of the centers of two scales
RADIAL_SHARPNESS = 3.5
ANGULAR_SHARPNESS = 2.0 * np.pi / 64.0  # multiplied by the number of orientations squared
HOG_BATCH = 128


@dataclass(frozen=True)
class Gist:
    """GIST features, ordered by scale (finest first), orientation, block row, block column.

    The defaults are those of GIST-320 for 32 × 32 images: 20 filters × 16 blocks.

    Attributes
    ----------
    orientations : number of orientations at each scale, finest first
    n_blocks : the grid has n_blocks × n_blocks blocks
    prefilter_cycles : cycles per image at which the prefilter's low-pass has fallen to one half
    boundary : pixels mirrored around the image before the filters

    >>> import numpy as np
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    >>> Gist().compute(images).shape
    (2, 320)
    """

    name: ClassVar[str] = "gist"
    version: ClassVar[int] = 1

    orientations: tuple[int, ...] = (8, 8, 4)
    n_blocks: int = 4
    prefilter_cycles: float = 4.0
    boundary: int = 32

    def __post_init__(self) -> None:
        if not self.orientations or min(self.orientations) < 1:
            raise ValueError(f"orientations must be positive numbers, one for each scale, got {self.orientations}")
        if self.n_blocks < 1 or self.boundary < 0 or not self.prefilter_cycles > 0.0:
            raise ValueError(f"n_blocks and prefilter_cycles must be positive and boundary not negative, got {self}")

    @property
    def n_features(self) -> int:
        """Number of features of an image."""
        return sum(self.orientations) * self.n_blocks**2

    def compute(self, images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> Floats:
        """(n, height, width) or (n, height, width, 3) bytes → float32 (n, n_features)."""
        check_images(images)
        height, width = images.shape[1:3]
        if min(height, width) < self.n_blocks:
            raise ValueError(
                f"images of {height} × {width} pixels cannot be cut into {self.n_blocks} × {self.n_blocks}"
            )
        filters = transfer_functions(self.orientations, height + 2 * self.boundary, width + 2 * self.boundary)

        def batch_of_rows(batch: NDArray[np.uint8]) -> Floats:
            return self._filter(prefilter(stretched_gray(batch), self.prefilter_cycles), filters)

        return in_batches(batch_of_rows, images, self.n_features, GIST_BATCH, "GIST", progress)

    def _filter(self, images: Floats, filters: Floats) -> Floats:
        n, height, width = images.shape
        rows, columns = slice(self.boundary, self.boundary + height), slice(self.boundary, self.boundary + width)
        margin = (self.boundary, self.boundary)
        spectrum = scipy.fft.fft2(np.pad(images, [(0, 0), margin, margin], mode="symmetric"))
        features = np.empty((n, len(filters), self.n_blocks, self.n_blocks), np.float32)
        for k, gain in enumerate(filters):
            # One axis after the other: the second transform then skips the mirrored rows.
            part = scipy.fft.ifft(spectrum * gain, axis=1, overwrite_x=True)[:, rows]
            response = scipy.fft.ifft(part, axis=2, overwrite_x=True)[:, :, columns]
            features[:, k] = _block_means(np.abs(response), self.n_blocks)
        return features.reshape(n, -1)


def stretched_gray(images: NDArray[np.uint8]) -> Floats:
    """Mean of the channels, stretched so that each image runs from 0 to 255; an image of a single gray becomes 0."""
    gray = images.astype(np.float32)
    if gray.ndim == 4:
        gray = gray.sum(axis=3) / np.float32(3.0)
    gray -= gray.min(axis=(1, 2), keepdims=True)
    brightest = gray.max(axis=(1, 2), keepdims=True)
    gray *= np.divide(np.float32(255.0), brightest, out=np.zeros_like(brightest), where=brightest > 0.0)
    return gray


def prefilter(images: Floats, cycles: float) -> Floats:
    """Logarithm, less its low frequencies, divided by the local contrast (the same low-pass of its square)."""
    height, width = images.shape[1:]
    side = max(height, width) + 2 * MARGIN
    side += side % 2
    after = (side - height - MARGIN, side - width - MARGIN)
    padded = np.pad(np.log1p(images), [(0, 0), (MARGIN, after[0]), (MARGIN, after[1])], mode="symmetric")
    vertical, horizontal = np.fft.fftfreq(side, 1.0 / side), np.fft.rfftfreq(side, 1.0 / side)
    low_pass = np.exp2(-(vertical[:, None] ** 2 + horizontal**2) / cycles**2).astype(np.float32)

    def smooth(x: Floats) -> Floats:
        smoothed: Floats = scipy.fft.irfft2(scipy.fft.rfft2(x) * low_pass, s=(side, side))
        return smoothed

    detail = padded - smooth(padded)
    contrast = np.sqrt(np.abs(smooth(detail * detail)))
    whitened = (detail / (np.float32(CONTRAST_FLOOR) + contrast)).astype(np.float32, copy=False)
    return whitened[:, MARGIN : MARGIN + height, MARGIN : MARGIN + width]


def transfer_functions(orientations: tuple[int, ...], height: int, width: int) -> Floats:
    """Gains of all filters at all frequencies: a Gaussian in the radius times a Gaussian in the angle."""
    down, right = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    radius, angle = np.hypot(down, right), np.arctan2(down, right)
    gains = []
    for scale, count in enumerate(orientations):
        off_center = radius * (SCALE_RATIO**scale / HIGHEST_FREQUENCY) - 1.0
        for k in range(count):
            turned = angle + np.pi * k / count
            turned = np.where(turned > np.pi, turned - 2.0 * np.pi, turned)
            gains.append(np.exp(-RADIAL_SHARPNESS * off_center**2 - ANGULAR_SHARPNESS * count**2 * turned**2))
    return np.array(gains, np.float32)


def _block_means(x: Floats, n_blocks: int) -> Floats:
    """Means over a grid of blocks, as equal as whole pixels allow."""
    for axis in (1, 2):
        edges = np.arange(n_blocks + 1) * x.shape[axis] // n_blocks
        sizes = np.expand_dims(np.diff(edges).astype(np.float32), [a for a in range(3) if a != axis])
        x = np.add.reduceat(x, edges[:-1], axis=axis) / sizes
    return x


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

        return in_batches(rows, images, self.n_features, HOG_BATCH, "HOG", progress)


IMAGE_FEATURES: dict[str, type[ImageFeatures]] = {"gist": Gist, "hog": Hog}
