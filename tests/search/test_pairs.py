"""The self-join of codes equals all distances, for any width, radius, number of rows and threads."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn.bits import hamming_distances
from hashlearn.search import pairs_within
from hashlearn.search.pairs import ROWS_PER_BLOCK, ROWS_PER_GROUP, map_pairs_within


def clustered(n: int, width: int, seed: int = 0) -> np.ndarray:
    """Packed codes with pairs at every distance: copies of a few codes, with random bits flipped."""
    rng = np.random.default_rng(seed)
    bits = rng.random((5, 8 * width)) < 0.5
    flips = rng.random((n, 8 * width)) < rng.random((n, 1)) * 0.5
    return np.packbits(bits[rng.integers(0, 5, n)] ^ flips, axis=1)


def expected(codes: np.ndarray, radius: int) -> np.ndarray:
    return np.argwhere(np.triu(hamming_distances(codes, codes) <= radius, 1))


@pytest.mark.parametrize("width", [1, 3, 8, 9, 16, 20, 40])
def test_every_radius_equals_all_distances(width: int) -> None:
    codes = clustered(300, width)
    for radius in range(8 * width + 1):
        np.testing.assert_array_equal(pairs_within(codes, radius), expected(codes, radius))


@pytest.mark.parametrize("n", [1, 2, ROWS_PER_GROUP, ROWS_PER_GROUP + 1, ROWS_PER_BLOCK + 700])
@pytest.mark.parametrize("radius", [0, 7, 17, 40])
def test_groups_and_blocks_lose_nothing(n: int, radius: int) -> None:
    codes = clustered(n, 16)
    found = pairs_within(codes, radius)
    np.testing.assert_array_equal(found, expected(codes, radius))
    assert (found.dtype, found.shape[1]) == (np.int64, 2)


def test_a_radius_of_all_bits_gives_all_pairs() -> None:
    assert len(pairs_within(clustered(200, 4), 10**30)) == 200 * 199 // 2


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = clustered(ROWS_PER_BLOCK + 300, 16)
    in_tiles = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        in_tiles.append(list(map_pairs_within(lambda first, second: (first.tolist(), second.tolist()), codes, 9)))
    assert in_tiles[0] == in_tiles[1]
    assert sum(len(tile[0]) for group in in_tiles[0] for tile in group) == len(expected(codes, 9)) > 0


@pytest.mark.parametrize(
    ("codes", "radius", "words"),
    [
        (np.zeros((3, 2), np.uint8), -1, "radius must be an integer of at least 0, got -1"),
        (np.zeros((3, 2), np.uint8), 1.5, "radius must be an integer of at least 0, got 1.5"),
        (np.zeros(3, np.uint8), 1, "codes must"),
    ],
)
def test_bad_input(codes: np.ndarray, radius: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pairs_within(codes, radius)  # type: ignore[arg-type]
