"""The page of a collection: one HTML file with the codes, the map, what items look like, and the script that searches.

The page is the template ``explorer.html`` of `hashlearn.pages`, with scripts and a style sheet of its own. It makes no
request, and its content security policy allows none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from hashlearn.core.atomic_files import output_place, write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.core.progress import ProgressCallback
from hashlearn.explorer.contents import (
    base64_of,
    checked_images,
    checked_texts,
    class_data,
    contents_within,
    json_text,
)
from hashlearn.explorer.encoding import codes_and_places, row_count
from hashlearn.pages.formatting import MOST_LETTERS, counted, cut
from hashlearn.pages.rendering import render

LARGEST_PAGE = 2**30  # bytes; browsers do not open more
SPARE_BYTES = 500  # for the sentences about how much is in the page, which are written last


class ExplorerPage(NamedTuple):
    """What `write_page` wrote."""

    path: str
    bytes: int
    n_rows: int
    n_bits: int
    n_texts: int  # rows whose text is in the page
    n_images: int  # rows whose thumbnail is in the page


def write_page(
    hasher: Any,
    X: Any,
    path: str | os.PathLike[str],
    *,
    texts: Any = None,
    images: Any = None,
    labels: Any = None,
    ids: Any = None,
    title: str | None = None,
    max_bytes: int = 5_000_000,
    thumbnail: int = 32,
    progress: ProgressCallback | None = None,
) -> ExplorerPage:
    """Write the page to a file, completely or not at all.

    Parameters
    ----------
    hasher : fitted
    X : rows to show, an array or rows of `hashlearn.files.open_rows`
    texts : a text for each row; long ones are cut
    images : uint8 (n, h, w) or (n, h, w, 3), an image for each row
    labels : a class for each row, numbers or text; classes have colors
    ids : an id for each row, which the page shows instead of the row's number
    title : name of the collection, shown above the page
    max_bytes : the largest file. Codes, map, classes and ids are always complete; if not all texts and images fit,
        random rows have them, and the page says how many
    thumbnail : the longest side of an image in the page, in pixels
    progress : called with a `hashlearn.core.progress.Progress` after each block of rows
    """
    output_place(path)
    n, n_bits = row_count(X), int(hasher.n_bits)
    whole_number(max_bytes, "max_bytes", least=1, most=LARGEST_PAGE)
    whole_number(thumbnail, "thumbnail", least=4, most=256)
    _require_space(n * (-(-n_bits // 8) + 4) * 4 // 3, n, n_bits, max_bytes)  # before the rows are encoded
    data: dict[str, Any] = {"count": n, "bits": n_bits, "classes": None if labels is None else class_data(labels, n)}
    data["ids"] = None if ids is None else checked_texts(ids, n, "ids")
    held_texts = None if texts is None else checked_texts(texts, n)
    held_images = None if images is None else checked_images(images, n)
    codes, places = codes_and_places(hasher, X, progress)
    data |= {"codes": base64_of(codes), "places": base64_of(places)}
    shown = {kind: 0 for kind, given in (("texts", texts), ("images", images)) if given is not None}
    smallest = len(_page(data, shown, title, max_bytes).encode()) + SPARE_BYTES
    _require_space(smallest, n, n_bits, max_bytes)
    contents = contents_within(max_bytes - smallest, n, held_texts, held_images, thumbnail)
    shown |= {kind: len(part) if kind == "texts" else part["count"] for kind, part in contents.items() if kind in shown}
    page = _page(data | contents, shown, title, max_bytes).encode()
    write_atomically(Path(path), [page])
    return ExplorerPage(os.fspath(path), len(page), n, n_bits, shown.get("texts", 0), shown.get("images", 0))


def _require_space(needed: int, n: int, n_bits: int, max_bytes: int) -> None:
    if needed > max_bytes:
        raise ValueError(
            f"max_bytes must be at least {needed:,} for {counted(n, 'row')} of {n_bits} bits, got {max_bytes:,}; "
            "raise it, or give fewer rows"
        )


def _page(data: dict[str, Any], shown: dict[str, int], title: str | None, max_bytes: int) -> str:
    return render(
        "explorer.html",
        title=f"Explore {counted(data['count'], 'item')}" if title is None else cut(title),
        count=data["count"],
        n_bits=data["bits"],
        classes=None if data["classes"] is None else data["classes"]["names"],
        shown=shown,
        max_bytes=max_bytes,
        most_letters=MOST_LETTERS,
        data=Markup(json_text(data)),
    )
