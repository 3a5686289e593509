"""Images as PNG files: 8 bits for each channel, gray or RGB, written with zlib alone.

Reference: W3C, Portable Network Graphics (PNG) Specification, second edition, 2003.
"""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB = 0, 2


def png_bytes(pixels: NDArray[np.uint8]) -> bytes:
    """The file of an image of shape (height, width) or (height, width, 3).

    >>> png_bytes(np.zeros((2, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise ValueError(
            f"pixels must be uint8 of shape (h, w) or (h, w, 3), not {pixels.dtype} of shape {pixels.shape}"
        )
    if pixels.size == 0:
        raise ValueError(f"pixels must not be empty, but have shape {pixels.shape}")
    height, width = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, _GRAY if pixels.ndim == 2 else _RGB, 0, 0, 0)
    smallest = min((zlib.compress(rows, 9) for rows in _filtered(pixels)), key=len)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", smallest) + _chunk(b"IEND", b"")


def data_uri(pixels: NDArray[np.uint8]) -> str:
    """The image as a ``data:`` address, which needs no file."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(pixels)).decode("ascii")


def _filtered(pixels: NDArray[np.uint8]) -> list[bytes]:
    """The image under each of the filters None, Sub and Up: differences wrap around, as the format prescribes."""
    left, above = np.zeros_like(pixels), np.zeros_like(pixels)
    left[:, 1:] = pixels[:, :-1]
    above[1:] = pixels[:-1]
    images = (image.reshape(len(image), -1) for image in (pixels, pixels - left, pixels - above))
    return [np.insert(rows, 0, kind, axis=1).tobytes() for kind, rows in enumerate(images)]


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
