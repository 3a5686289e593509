"""What items look like: classes, texts and thumbnails, as much of them as a number of bytes allows.

If not all texts or thumbnails fit, random rows get one, so that sorted rows do not leave whole classes without.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import to_numpy
from hashlearn.core.labels import checked_labels
from hashlearn.core.threads import map_threads
from hashlearn.pages.formatting import cut
from hashlearn.pages.png import data_uri

MOST_CLASSES = 2**16
COLUMNS = 8  # thumbnails in a row, and rows, of one picture in the page
AT_ONCE = 8  # pictures that are compressed before the bytes left are looked at again
ORDER_BYTES = 5.4  # of a row's number: 4 bytes in base64


def base64_of(array: NDArray[Any]) -> str:
    """The bytes of an array, little-endian, as text."""
    return base64.b64encode(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()).decode("ascii")


def class_data(labels: Any, n: int) -> dict[str, Any]:
    """The names of the classes, and the class of each row."""
    checked = checked_labels(labels, n, "labels")
    if checked.ndim != 1:
        raise ValueError(f"labels must be one class for each row, got shape {checked.shape}; pick one column")
    names, which = np.unique(checked, return_inverse=True)
    if len(names) > MOST_CLASSES:
        raise ValueError(f"labels must have at most {MOST_CLASSES:,} classes, got {len(names):,}; leave them out")
    wide = len(names) > 256
    return {
        "names": [cut(name) for name in names.tolist()],
        "of": base64_of(which.astype(np.uint16 if wide else np.uint8)),
    }


def checked_texts(texts: Any, n: int, name: str = "texts") -> list[str]:
    """A text of each row, cut."""
    found = texts.tolist() if hasattr(texts, "tolist") else texts
    if isinstance(found, str) or not hasattr(found, "__len__") or len(found) != n:
        count = f"{len(found):,}" if hasattr(found, "__len__") and not isinstance(found, str) else type(found).__name__
        raise ValueError(f"{name} must have {n:,} entries, one for each row of X, got {count}")
    return [cut(text) for text in found]


def checked_images(images: Any, n: int) -> NDArray[np.uint8]:
    """Images as one array (n, h, w) or (n, h, w, 3), not read yet if they are memory-mapped."""
    found = to_numpy(images)
    try:
        array: NDArray[Any] = found if isinstance(found, np.ndarray) else np.asarray(found)
    except ValueError:
        raise ValueError("images must all have one shape, (h, w) or (h, w, 3); resize them first") from None
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] != 3) or 0 in array.shape[1:]:
        raise ValueError(f"images must have shape (n, h, w) or (n, h, w, 3), got {array.shape}")
    if array.dtype != np.uint8:
        raise TypeError(f"images must be uint8, 0 to 255, got {array.dtype}; scale them and use astype(np.uint8)")
    if len(array) != n:
        raise ValueError(f"images must have {n:,} entries, one for each row of X, got {len(array):,}")
    return array


def contents_within(
    budget: int, n: int, texts: list[str] | None, images: NDArray[np.uint8] | None, thumbnail: int
) -> dict[str, Any]:
    """Texts and thumbnails of as many rows as fit into ``budget`` bytes. With both, texts may take half of it."""
    for_texts = 0 if texts is None else budget if images is None else budget // 2
    costs = np.array([len(json_text(text).encode()) + 1 for text in texts or ()], np.int64)
    raw = 0 if images is None else 1.5 * images.size + 1000.0 * (1 + n / COLUMNS**2)
    if costs.sum() <= for_texts and raw <= budget - costs.sum():
        order, number_bytes = np.arange(n), 0.0
    else:
        order, number_bytes = np.random.default_rng(0).permutation(n), ORDER_BYTES
    data: dict[str, Any] = {}
    n_texts = n_images = 0
    if texts is not None:
        spent = np.cumsum(costs[order] + number_bytes)
        n_texts = int(np.searchsorted(spent, for_texts, side="right"))
        data["texts"] = [texts[row] for row in order[:n_texts]]
        budget -= int(spent[n_texts - 1]) if n_texts else 0
    if images is not None:
        sheets, first = [], _thumbnails(images[:1], thumbnail)
        for rows, sheet in _sheets(images, order, thumbnail):
            budget -= int(len(sheet) + 3 + number_bytes * rows)
            if budget < 0:
                break
            sheets.append(sheet)
            n_images += rows
        data["images"] = {
            "height": first.shape[1],
            "width": first.shape[2],
            "columns": COLUMNS,
            "count": n_images,
            "sheets": sheets,
        }
    if number_bytes:
        data["order"] = base64_of(order[: max(n_texts, n_images)].astype(np.uint32))
    return data


def json_text(value: Any) -> str:
    """JSON that may stand inside a script element: no ``<`` can end the element.

    >>> json_text("</script>")
    '"\\\\u003c/script>"'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _sheets(images: NDArray[np.uint8], order: NDArray[np.int64], thumbnail: int) -> Iterator[tuple[int, str]]:
    """Pictures of up to `COLUMNS`² thumbnails each: how many, and the data address."""

    def sheet(first: int) -> tuple[int, str]:
        small = _thumbnails(images[order[first : first + COLUMNS**2]], thumbnail)
        count, height, width = small.shape[:3]
        lines = -(-count // COLUMNS)
        full = np.zeros((lines * COLUMNS, *small.shape[1:]), np.uint8)
        full[:count] = small
        grid = full.reshape(lines, COLUMNS, *small.shape[1:]).swapaxes(1, 2)
        return count, data_uri(grid.reshape(lines * height, COLUMNS * width, *small.shape[3:]))

    firsts = range(0, len(order), COLUMNS**2)
    for begin in range(0, len(firsts), AT_ONCE):
        yield from map_threads(sheet, firsts[begin : begin + AT_ONCE])


def _thumbnails(images: NDArray[np.uint8], largest: int) -> NDArray[np.uint8]:
    """Images of at most ``largest`` pixels a side: means of squares of pixels; a rest at the edges is cut off."""
    height, width = images.shape[1:3]
    step = -(-max(height, width) // largest)
    step = min(step, height, width)
    if step == 1:
        return np.asarray(images)
    h, w = height // step, width // step
    parts = images[:, : h * step, : w * step].reshape(len(images), h, step, w, step, *images.shape[3:])
    means: NDArray[np.float64] = parts.mean(axis=(2, 4))
    return np.rint(means).astype(np.uint8)
