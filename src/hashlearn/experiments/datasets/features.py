"""GIST and HOG of images, by name in `IMAGE_FEATURES`: a new kind is one function and one entry there.

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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.image_features import check_images, in_batches

Floats = NDArray[np.float32]
GIST_BATCH = 32  # the spectra of a batch of CIFAR-10 take 2.4 MB and fit in the cache
ORIENTATIONS = (8, 8, 4)  # at each scale of GIST, finest first
BLOCKS = 4  # along each side of GIST's grid
PREFILTER_CYCLES = 4.0  # per image, at which the prefilter's low-pass has fallen to one half
BOUNDARY = 32  # pixels mirrored around the image before the filters
MARGIN = 5  # pixels mirrored around the image for the prefilter
CONTRAST_FLOOR = 0.2  # local contrast below which nothing is amplified further
HIGHEST_FREQUENCY = 0.3  # cycles per pixel, center of the finest scale
SCALE_RATIO = 1.85  # ratio of the centers of two scales
RADIAL_SHARPNESS = 3.5
ANGULAR_SHARPNESS = 2.0 * np.pi / 64.0  # multiplied by the number of orientations squared
HOG_BATCH = 128
HOG_SIDE = 32  # pixels
HOG_CELLS = 5  # along each side of the one block
HOG_ORIENTATIONS = 25  # from 0 to 180 degrees


def gist(images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> Floats:
    """(n, height, width) or (n, height, width, 3) bytes → float32 (n, 320), by scale, orientation and block.

    >>> gist(np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)).shape
    (2, 320)
    """
    check_images(images)
    height, width = images.shape[1:3]
    if min(height, width) < BLOCKS:
        raise ValueError(f"images of {height} × {width} pixels cannot be cut into {BLOCKS} × {BLOCKS}")
    filters = transfer_functions(height + 2 * BOUNDARY, width + 2 * BOUNDARY)

    def batch_of_rows(batch: NDArray[np.uint8]) -> Floats:
        return _filter(prefilter(stretched_gray(batch)), filters)

    return in_batches(batch_of_rows, images, len(filters) * BLOCKS**2, GIST_BATCH, "GIST", progress)


def _filter(images: Floats, filters: Floats) -> Floats:
    n, height, width = images.shape
    rows, columns = slice(BOUNDARY, BOUNDARY + height), slice(BOUNDARY, BOUNDARY + width)
    margin = (BOUNDARY, BOUNDARY)
    spectrum = scipy.fft.fft2(np.pad(images, [(0, 0), margin, margin], mode="symmetric"))
    features = np.empty((n, len(filters), BLOCKS, BLOCKS), np.float32)
    for k, gain in enumerate(filters):
        # One axis after the other: the second transform then skips the mirrored rows.
        part = scipy.fft.ifft(spectrum * gain, axis=1, overwrite_x=True)[:, rows]
        response = scipy.fft.ifft(part, axis=2, overwrite_x=True)[:, :, columns]
        features[:, k] = _block_means(np.abs(response))
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


def prefilter(images: Floats) -> Floats:
    """Logarithm, less its low frequencies, divided by the local contrast (the same low-pass of its square)."""
    height, width = images.shape[1:]
    side = max(height, width) + 2 * MARGIN
    side += side % 2
    after = (side - height - MARGIN, side - width - MARGIN)
    padded = np.pad(np.log1p(images), [(0, 0), (MARGIN, after[0]), (MARGIN, after[1])], mode="symmetric")
    vertical, horizontal = np.fft.fftfreq(side, 1.0 / side), np.fft.rfftfreq(side, 1.0 / side)
    low_pass = np.exp2(-(vertical[:, None] ** 2 + horizontal**2) / PREFILTER_CYCLES**2).astype(np.float32)

    def smooth(x: Floats) -> Floats:
        smoothed: Floats = scipy.fft.irfft2(scipy.fft.rfft2(x) * low_pass, s=(side, side))
        return smoothed

    detail = padded - smooth(padded)
    contrast = np.sqrt(np.abs(smooth(detail * detail)))
    whitened = (detail / (np.float32(CONTRAST_FLOOR) + contrast)).astype(np.float32, copy=False)
    return whitened[:, MARGIN : MARGIN + height, MARGIN : MARGIN + width]


def transfer_functions(height: int, width: int) -> Floats:
    """Gains of all filters at all frequencies: a Gaussian in the radius times a Gaussian in the angle."""
    down, right = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    radius, angle = np.hypot(down, right), np.arctan2(down, right)
    gains = []
    for scale, count in enumerate(ORIENTATIONS):
        off_center = radius * (SCALE_RATIO**scale / HIGHEST_FREQUENCY) - 1.0
        for k in range(count):
            turned = angle + np.pi * k / count
            turned = np.where(turned > np.pi, turned - 2.0 * np.pi, turned)
            gains.append(np.exp(-RADIAL_SHARPNESS * off_center**2 - ANGULAR_SHARPNESS * count**2 * turned**2))
    return np.array(gains, np.float32)


def _block_means(x: Floats) -> Floats:
    """Means over a grid of blocks, as equal as whole pixels allow."""
    for axis in (1, 2):
        edges = np.arange(BLOCKS + 1) * x.shape[axis] // BLOCKS
        sizes = np.expand_dims(np.diff(edges).astype(np.float32), [a for a in range(3) if a != axis])
        x = np.add.reduceat(x, edges[:-1], axis=axis) / sizes
    return x


def hog(images: NDArray[np.uint8], progress: ProgressCallback | None = None) -> Floats:
    """(n, 32, 32) or (n, 32, 32, 3) bytes → float32 (n, 625), by cell and orientation.

    The 5 × 5 cells of 6 × 6 pixels are one block. The last two rows and columns of pixels are in no cell.

    >>> hog(np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)).shape
    (2, 625)
    """
    check_images(images)
    if images.shape[1:3] != (HOG_SIDE, HOG_SIDE):
        raise ValueError(f"images must be {HOG_SIDE} × {HOG_SIDE} pixels, got {images.shape[1]} × {images.shape[2]}")
    of_one = require("skimage.feature", "data", "HOG").hog
    settings = {
        "orientations": HOG_ORIENTATIONS,
        "pixels_per_cell": (HOG_SIDE // HOG_CELLS, HOG_SIDE // HOG_CELLS),
        "cells_per_block": (HOG_CELLS, HOG_CELLS),
        "block_norm": "L2-Hys",
        "channel_axis": -1 if images.ndim == 4 else None,
    }

    def batch_of_rows(batch: NDArray[np.uint8]) -> Floats:
        return np.array([of_one(image / 255.0, **settings) for image in batch], np.float32)

    return in_batches(batch_of_rows, images, HOG_CELLS**2 * HOG_ORIENTATIONS, HOG_BATCH, "HOG", progress)


class ImageFeatures(NamedTuple):
    """A function of images, the number of its features, and a version, which changes whenever its numbers do."""

    compute: Callable[[NDArray[np.uint8], ProgressCallback | None], Floats]
    n_features: int
    version: int


IMAGE_FEATURES = {"gist": ImageFeatures(gist, 320, 1), "hog": ImageFeatures(hog, 625, 2)}
