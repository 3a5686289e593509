"""The page of a collection: one HTML file with the codes, the map, what items look like, and the script that searches.

The script and the style sheet are files of this folder. The page makes no request, and its content security policy
allows none.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

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
from hashlearn.pages.document import document
from hashlearn.pages.formatting import MOST_LETTERS, counted, cut
from hashlearn.pages.markup import Markup, element

SCRIPTS = ("codes.js", "map.js", "items.js", "explore.js")
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
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
    X : rows to show, an array or rows of `hashlearn.streams.open_rows`
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
    n, n_bits = data["count"], data["bits"]
    name = f"Explore {counted(n, 'item')}" if title is None else cut(title)
    header = element(
        "header",
        element("p", "hashlearn explore", class_="over"),
        element("h1", name),
        element(
            "p",
            f"{counted(n, 'item')}, each a code of {counted(n_bits, 'bit')}. Choose one to see which items its code "
            "finds. Everything happens in this page.",
            class_="lead",
        ),
    )
    main = element(
        "main",
        _map_part(data, shown.get("texts")),
        _answer_part(n_bits, data["classes"] is not None),
        class_="explore with-texts" if "texts" in shown else "explore",
    )
    return document(
        name,
        header,
        element("noscript", element("p", "This page needs JavaScript: codes are searched in the browser.")),
        main,
        element("p", id="said", role="status", class_="unseen"),
        _footer(n, shown, max_bytes),
        element("script", Markup(json_text(data)), type="application/json", id="data"),
        element("script", Markup("\n".join(_file(script) for script in SCRIPTS))),
        head=(
            element("meta", http_equiv="Content-Security-Policy", content=POLICY),
            element("style", Markup(_file("explore.css"))),
        ),
    )


def _map_part(data: dict[str, Any], n_texts: int | None) -> Markup:
    """Search, map, and what is under the cursor."""
    search = element(
        "div",
        element("label", f"Search {counted(n_texts or 0, 'text')}", for_="words"),
        element("input", type="search", id="words", autocomplete="off", spellcheck="false"),
        element("p", id="found", role="status"),
        element("ul", id="hits", aria_label="Texts found"),
        class_="search",
    )
    help_text = (
        "Click or tap a point to choose it. By keyboard: arrow keys move, Enter chooses. Lines lead to the nearest "
        "items, and items within the radius are bright."
    )
    canvas = element(
        "canvas", id="map", tabindex=0, role="application", aria_label="Map of all items", aria_describedby="map-help"
    )
    tools = [element("button", "Random item", type="button", id="random")]
    if data["classes"] is not None:
        names = data["classes"]["names"]
        options = [element("option", "all classes", value=-1)]
        options += [element("option", name, value=number) for number, name in enumerate(names)]
        tools.append(element("label", "Show ", element("select", options, id="classes")))
    return element(
        "section",
        element("h2", "Map", class_="unseen"),
        None if n_texts is None else search,
        element("div", canvas, class_="frame"),
        element("div", tools, class_="tools"),
        element("p", element("small", help_text), id="map-help"),
        element("div", id="pointed", class_="item", aria_hidden="true"),
    )


def _answer_part(n_bits: int, has_classes: bool) -> Markup:
    """The chosen item, its bits, the sliders and the nearest items."""
    bars = element(
        "svg",
        element("path", id="inside"),
        element("path", id="outside"),
        id="histogram",
        viewBox="0 0 100 40",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return element(
        "section",
        element("h2", "Chosen item"),
        element("div", id="chosen", class_="item"),
        element("div", id="barcode", role="img"),
        element("p", element("small", id="differing")),
        element("div", _slider("bits", "Bits used", 1, n_bits), class_="slider"),
        element("div", _slider("radius", "Radius", 0, n_bits), bars, class_="slider"),
        element("p", id="within"),
        element("h3", "Nearest items", element("small", "A dashed edge marks another class.") if has_classes else None),
        element("ol", id="nearest", aria_label="Nearest items"),
    )


def _slider(name: str, label: str, least: int, most: int) -> list[Markup]:
    shown = element("output", id=f"{name}-shown", for_=name)
    slider = element("input", type="range", id=name, min=least, max=most, step=1, value=most)
    return [element("label", label, for_=name), shown, slider]


def _footer(n: int, shown: dict[str, int], max_bytes: int) -> Markup:
    facts = {
        "map": "the two main directions of the margins behind the bits, crowded parts spread out; "
        "items that are close on the map can have codes that differ",
        "distance": "the number of bits in which two codes differ; equal distances are sorted by item",
    }
    for kind, count in shown.items():
        part = "all items" if count == n else f"{count:,} random items of {n:,}"
        limit = "" if count == n else f", because the page was limited to {max_bytes:,} bytes"
        facts[kind] = f"in the page for {part}{limit}"
    if "texts" in shown:
        facts["texts"] += f"; cut after {MOST_LETTERS} letters"
    pairs = ((element("dt", name), element("dd", fact)) for name, fact in facts.items())
    return element("footer", element("dl", pairs, class_="facts"))


def _file(name: str) -> str:
    return resources.files("hashlearn.explorer").joinpath(name).read_text("utf-8")
