"""GIST by its laws: what it must not see, what it must, and how it turns with the image."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn.experiments.datasets.features import gist, prefilter, stretched_gray, transfer_functions

SIDE = 32


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Smooth random color images, of no more contrast than leaves room for brightening."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(20, 100, (40, 8, 8, 3))
    smooth = coarse.repeat(4, axis=1).repeat(4, axis=2) + rng.integers(0, 20, (40, SIDE, SIDE, 3))
    return smooth.astype(np.uint8)


def by_filter_and_block(features: np.ndarray) -> np.ndarray:
    return features.reshape(len(features), 20, 4, 4)


def stripes(cycles_per_pixel: float, angle: float) -> np.ndarray:
    down, right = np.mgrid[:SIDE, :SIDE]
    phase = 2 * np.pi * cycles_per_pixel * (np.cos(angle) * right + np.sin(angle) * down)
    return np.rint(127.5 + 100 * np.sin(phase)).astype(np.uint8)


def test_320_numbers_for_a_cifar_image(images: np.ndarray) -> None:
    features = gist(images)
    assert features.shape == (40, 320)
    assert features.dtype == np.float32
    assert np.all(features > 0)


def test_image_of_one_gray_has_no_features() -> None:
    plain = np.stack([np.full((SIDE, SIDE), gray, np.uint8) for gray in (0, 7, 255)])
    assert not gist(plain).any()


def test_brightness_and_contrast_do_not_matter(images: np.ndarray) -> None:
    features = gist(images)
    np.testing.assert_allclose(gist(images + np.uint8(50)), features, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(gist(images * np.uint8(2)), features, rtol=1e-3, atol=1e-5)


def test_quarter_turn_permutes_filters_and_blocks(images: np.ndarray) -> None:
    """Turned filters point into the opposite half-plane, which for a real image is the same modulus."""
    before = by_filter_and_block(gist(images))
    after = by_filter_and_block(gist(np.rot90(images, axes=(1, 2)).copy()))
    turned = np.concatenate([(np.arange(n) + n // 2) % n + first for first, n in ((0, 8), (8, 8), (16, 4))])
    expected = np.rot90(before[:, turned], axes=(2, 3))
    # Frequencies of exactly half a cycle a pixel have one sign only, so that the law holds but nearly.
    assert np.abs(after - expected).mean() < 0.01 * expected.mean()
    assert np.abs(after - before).mean() > 0.1 * expected.mean()


@pytest.mark.parametrize("k", range(8))
def test_stripes_excite_the_filter_of_their_direction(k: int) -> None:
    response = by_filter_and_block(gist(stripes(0.25, -np.pi * k / 8)[None]))[0].mean(axis=(1, 2))
    assert response[:8].argmax() == k


@pytest.mark.parametrize("corner", [(0, 0), (0, 3), (3, 1)])
def test_texture_is_seen_where_it_is(corner: tuple[int, int]) -> None:
    image = np.full((SIDE, SIDE), 128, np.uint8)
    row, column = 8 * corner[0], 8 * corner[1]
    image[row : row + 8, column : column + 8] = stripes(0.25, 0.0)[:8, :8]
    seen = by_filter_and_block(gist(image[None]))[0][0]
    assert np.unravel_index(seen.argmax(), (4, 4)) == corner


def test_responses_are_circular_convolutions(images: np.ndarray) -> None:
    """One filter at a few pixels, summed in the image plane in double precision."""
    white = prefilter(stretched_gray(images[:1]))[0].astype(float)
    padded = np.pad(white, 32, mode="symmetric")
    impulse = np.fft.ifft2(transfer_functions(96, 96)[5].astype(float))
    down, right = np.mgrid[:96, :96]
    response = np.empty((8, 8))
    for i in range(8):
        for j in range(8):
            response[i, j] = abs(np.sum(padded * impulse[(40 + i - down) % 96, (56 + j - right) % 96]))
    features = by_filter_and_block(gist(images[:1]))[0]
    assert features[5, 1, 3] == pytest.approx(response.mean(), rel=1e-5)


def test_neither_batches_nor_threads_matter(images: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gist(images)
    monkeypatch.setenv("HASHLEARN_NUM_THREADS", "1")
    assert np.array_equal(gist(images), whole)
    np.testing.assert_allclose(gist(images[35:36]), whole[35:36], rtol=1e-4)


def test_other_sizes() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 21, 30), dtype=np.uint8)
    assert gist(images).shape == (2, 320)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (np.zeros((3, 32, 32)), "uint8, got float64"),
        (np.zeros((32, 32), np.uint8), "shape"),
        (np.zeros((1, 32, 32, 4), np.uint8), "shape"),
        (np.zeros((0, 32, 32), np.uint8), "shape"),
        (np.zeros((1, 3, 32), np.uint8), "cannot be cut into 4 × 4"),
    ],
)
def test_bad_images_are_refused(bad: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gist(bad)
