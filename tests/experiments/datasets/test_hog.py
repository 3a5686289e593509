"""HOG: by hand where the answer is plain, and with the parameters that scikit-image is meant to get."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hashlearn.experiments.datasets import Hog

feature = pytest.importorskip("skimage.feature", reason="HOG needs scikit-image")


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (130, 32, 32, 3), dtype=np.uint8)


@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize(("orientations", "cell", "block"), [(25, 6, 1), (25, 6, 5), (9, 8, 2), (9, 5, 3), (1, 32, 1)])
def test_same_as_scikit_image(images: np.ndarray, orientations: int, cell: int, block: int, colour: bool) -> None:
    some = images[:5] if colour else images[:5, ..., 0]
    expected = [
        feature.hog(
            image / 255.0,
            orientations=orientations,
            pixels_per_cell=(cell, cell),
            cells_per_block=(block, block),
            block_norm="L2-Hys",
            channel_axis=-1 if colour else None,
        )
        for image in some
    ]
    hog = Hog(orientations, cell, block)
    assert hog.n_features == len(expected[0])
    np.testing.assert_allclose(hog.compute(some), expected, atol=1e-6)


@pytest.mark.parametrize("parameters", [{"orientations": 0}, {"cell": 0}, {"block": 6}, {"cell": 33}, {"block": 0}])
def test_bad_parameters_are_refused(parameters: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must fit|must be positive"):
        Hog(**parameters)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="32 × 32 pixels, got 28 × 28"):
        Hog().compute(np.zeros((1, 28, 28), np.uint8))
    assert Hog(side=28, cell=7, block=1).compute(np.zeros((1, 28, 28), np.uint8)).shape == (1, 400)


def test_without_scikit_image_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(ImportError, match=r"HOG needs skimage, .*pip install .*'scikit-image>="):
        Hog().compute(np.zeros((1, 32, 32), np.uint8))
