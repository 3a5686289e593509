"""The PNG writer, read back by a decoder that knows nothing of it but the format."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hashlearn.pages.png import png_bytes


def decode(content: bytes) -> np.ndarray:
    """Chunks with their checksums, then the filters None, Sub and Up undone byte by byte."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        name, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length]) == (zlib.crc32(name + body),)
        chunks[name], at = body, at + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3}[colour]
    stride = width * channels
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (stride + 1)
    rows: list[list[int]] = []
    for y in range(height):
        kind, *line = raw[y * (stride + 1) : (y + 1) * (stride + 1)]
        for x in range(stride):
            left = line[x - channels] if x >= channels else 0
            above = rows[-1][x] if rows else 0
            line[x] = (line[x] + (0, left, above)[kind]) % 256
        rows.append(line)
    pixels = np.array(rows, np.uint8)
    return pixels if channels == 1 else pixels.reshape(height, width, 3)


sides = st.integers(1, 7)
shapes = st.one_of(st.tuples(sides, sides), st.tuples(sides, sides, st.just(3)))


@given(shapes.flatmap(lambda shape: arrays(np.uint8, shape)))
def test_pixels_survive(pixels: np.ndarray) -> None:
    assert np.array_equal(decode(png_bytes(pixels)), pixels)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_filter_that_shrinks_most_is_taken(kind: int) -> None:
    y, x = np.mgrid[0:32, 0:32]
    noise = np.random.default_rng(0).integers(0, 256, 32)
    pixels = (noise[x] * (y % 2), noise[y] + 7 * x, noise[x] + 7 * y)[kind].astype(np.uint8)
    content = png_bytes(pixels)
    assert zlib.decompress(content[41:-16])[0] == kind
    assert np.array_equal(decode(content), pixels)


@pytest.mark.parametrize(
    ("pixels", "said"),
    [
        (np.zeros((2, 2)), "float64"),
        (np.zeros((2, 2, 4), np.uint8), r"\(2, 2, 4\)"),
        (np.zeros(4, np.uint8), r"\(4,\)"),
        (np.zeros((0, 3), np.uint8), "empty"),
    ],
)
def test_other_arrays_are_refused(pixels: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        png_bytes(pixels)
