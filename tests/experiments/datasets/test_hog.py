"""HOG: by hand where the answer is plain, and with the parameters that scikit-image is meant to get."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hashlearn.experiments.datasets.features import hog

feature = pytest.importorskip("skimage.feature", reason="HOG needs scikit-image")


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (130, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("color", [True, False])
def test_same_as_scikit_image(images: np.ndarray, color: bool) -> None:
    some = images[:5] if color else images[:5, ..., 0]
    expected = [
        feature.hog(
            image / 255.0,
            orientations=25,
            pixels_per_cell=(6, 6),
            cells_per_block=(5, 5),
            block_norm="L2-Hys",
            channel_axis=-1 if color else None,
        )
        for image in some
    ]
    np.testing.assert_allclose(hog(some), expected, atol=1e-6)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="32 × 32 pixels, got 28 × 28"):
        hog(np.zeros((1, 28, 28), np.uint8))


def test_without_scikit_image_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(ImportError, match=r"HOG needs skimage, .*pip install .*'scikit-image>="):
        hog(np.zeros((1, 32, 32), np.uint8))
