"""The explorer in a real browser: its answers are those of NumPy, and it works by mouse, by keyboard, narrow and dark.

Screenshots go to the folder that $HASHLEARN_SCREENSHOTS names, else to pytest's temporary one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hashlearn.explorer import write_page
from tests.explorer.pages import HASHER, IMAGES, LABELS, N_BITS, TEXTS, N, X, ranking
from tests.pages.browser import Browser, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")
SHOWN = (
    "[...document.querySelectorAll('#nearest button')].map(b => [Number(b.dataset.row), Number(b.dataset.distance)])"
)
KEYS = {"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    assert BROWSER is not None
    browser = Browser(BROWSER)
    try:
        yield browser
    finally:
        browser.close()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages with everything, with nothing but codes, with some texts and images only, and with one item."""
    folder = tmp_path_factory.mktemp("explorer")
    found = {name: folder / f"{name}.html" for name in ("full", "bare", "partial", "single")}
    write_page(HASHER, X, found["full"], texts=TEXTS, images=IMAGES, labels=LABELS, title="Digits")
    bare = write_page(HASHER, X, found["bare"]).bytes
    write_page(HASHER, X, found["partial"], texts=TEXTS, images=IMAGES, max_bytes=bare + 14_000)
    write_page(HASHER, X[:1], found["single"], texts=TEXTS[:1])
    return found


@pytest.fixture
def browser(opened: Browser, paths: dict[str, Path]) -> Browser:
    """The full page, just opened."""
    return fresh(opened, paths["full"])


def fresh(browser: Browser, path: Path, width: int = 1280, scheme: str = "light") -> Browser:
    browser.look(width, scheme=scheme)
    browser.open(path)
    browser.evaluate("explorer.ready")
    return browser


def press(browser: Browser, *keys: str) -> None:
    for key in keys:
        named = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        browser.call("Input.dispatchKeyEvent", type="keyDown", **named, **text)
        browser.call("Input.dispatchKeyEvent", type="keyUp", **named)


def tab_to(browser: Browser, wanted: str) -> None:
    """Press Tab until the focus is on an element that matches a selector."""
    for _ in range(20):
        press(browser, "Tab")
        if browser.evaluate(f"document.activeElement.matches('{wanted}')"):
            return
    raise AssertionError(f"{wanted} cannot be reached by Tab")


def mouse(browser: Browser, kind: str, x: float, y: float, **more: Any) -> None:
    browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def middle(browser: Browser, selector: str) -> tuple[float, float]:
    at = "(e => (e.scrollIntoView({block: 'center'}), e.getBoundingClientRect()))"
    box = browser.evaluate(
        f"(b => [b.x + b.width / 2, b.y + b.height / 2])({at}(document.querySelector('{selector}')))"
    )
    return box[0], box[1]


def text_of(browser: Browser, name: str) -> str:
    return str(browser.evaluate(f"document.getElementById('{name}').textContent"))


def slide(browser: Browser, name: str, value: int) -> None:
    browser.evaluate(f"(s => {{ s.value = {value}; s.dispatchEvent(new Event('input')); }})(at('{name}'))")


@pytest.mark.parametrize("name", ["full", "bare", "partial", "single"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_fails_is_fetched_or_sticks_out(opened: Browser, paths: dict[str, Path], name: str, width: int) -> None:
    fresh(opened, paths[name], width)
    assert opened.problems() == []
    assert opened.overflowing() == []
    opened.evaluate("at('random').click()")
    assert opened.problems() == []
    assert opened.overflowing() == []


@pytest.mark.parametrize("n_bits", [1, 7, 32, 33, N_BITS])
@pytest.mark.parametrize("row", [0, 17, N - 1])
def test_nearest_items_are_those_of_numpy(browser: Browser, row: int, n_bits: int) -> None:
    slide(browser, "bits", n_bits)
    browser.evaluate(f"explorer.choose({row})")
    order, distances = ranking(row, n_bits)
    assert browser.evaluate(SHOWN) == [[near, distances[near]] for near in order[:24]]
    assert browser.evaluate("explorer.codes.nearest(explorer.codes.count)") == order
    assert browser.evaluate("[...explorer.codes.distance]") == distances.tolist()
    assert text_of(browser, "bits-shown") == f"first {n_bits} of {N_BITS}"


@pytest.mark.parametrize("radius", [0, 9, 20])
def test_radius_counts_the_items_within(browser: Browser, radius: int) -> None:
    browser.evaluate("explorer.choose(5)")
    slide(browser, "radius", radius)
    _, distances = ranking(5, N_BITS)
    inside = distances <= radius
    total, same = inside.sum() - 1, (inside & (LABELS[5] == LABELS)).sum() - 1
    bits = "1 bit" if radius == 1 else f"{radius} bits"
    items = "1 other item" if total == 1 else f"{total} other items"
    expected = f"{items} within {bits}" + (f", {same} of the same class." if total else ".")
    assert text_of(browser, "within") == expected


def test_a_click_on_the_map_chooses_the_nearest_point(browser: Browser) -> None:
    x, y = browser.evaluate(
        "(b => [b.x + explorer.map.x(42), b.y + explorer.map.y(42)])(at('map').getBoundingClientRect())"
    )
    mouse(browser, "mouseMoved", x, y)
    assert "item 42" in text_of(browser, "pointed")
    mouse(browser, "mousePressed", x, y, button="left", clickCount=1)
    mouse(browser, "mouseReleased", x, y, button="left", clickCount=1)
    assert browser.evaluate("explorer.state.chosen") == 42
    assert TEXTS[42] in text_of(browser, "chosen")
    assert browser.evaluate(SHOWN)[0][0] == ranking(42, N_BITS)[0][0]


def test_bits_that_differ_from_the_neighbor_under_the_pointer_are_marked(browser: Browser) -> None:
    order, distances = ranking(0, N_BITS)
    mouse(browser, "mouseMoved", *middle(browser, "#nearest li:nth-child(3) button"))
    assert text_of(browser, "differing") == f"{distances[order[2]]} bits differ from item {order[2]}."
    marked = browser.evaluate("[...document.querySelectorAll('#barcode i')].map(c => c.classList.contains('differs'))")
    bits = HASHER.transform(X[[0, order[2]]])
    assert marked == (bits[0] != bits[1]).tolist()
    on = browser.evaluate("[...document.querySelectorAll('#barcode i')].map(c => Number(c.classList.contains('on')))")
    assert on == bits[0].tolist()
    mouse(browser, "mouseMoved", 5, 5)
    assert browser.evaluate("document.querySelectorAll('#barcode .differs').length") == 0


def test_contents_of_some_items(opened: Browser, paths: dict[str, Path]) -> None:
    fresh(opened, paths["partial"])
    texts = opened.evaluate("Array.from({length: explorer.codes.count}, (_, row) => explorer.items.text(row))")
    held = [row for row, text in enumerate(texts) if text is not None]
    assert 0 < len(held) < N
    assert [texts[row] for row in held] == [TEXTS[row] for row in held]
    with_picture = opened.evaluate("explorer.items.images.count")
    assert 0 < with_picture < N
    missing = next(row for row in range(N) if row not in held)
    opened.evaluate(f"explorer.choose({missing})")
    assert text_of(opened, "chosen") == f"item {missing}"


def test_search_finds_parts_of_words(browser: Browser) -> None:
    browser.evaluate("at('words').focus()")
    browser.call("Input.insertText", text="SEV writ")
    sevens = [row for row, label in enumerate(LABELS) if label == "seven"]
    assert text_of(browser, "found") == f"{len(sevens)} items found, the first 20 are shown."
    assert (
        browser.evaluate("[...document.querySelectorAll('#hits button')].map(b => Number(b.dataset.row))")
        == sevens[:20]
    )
    press(browser, "Enter")
    assert browser.evaluate("explorer.state.chosen") == sevens[0]
    press(browser, "ArrowDown", "ArrowDown", "Enter")
    assert browser.evaluate("explorer.state.chosen") == sevens[1]


def test_keyboard_alone_reaches_an_answer(browser: Browser) -> None:
    tab_to(browser, "#map")
    press(browser, "ArrowLeft", "ArrowLeft", "ArrowDown")
    cursor = browser.evaluate("explorer.state.cursor")
    assert cursor != 0
    assert f"Item {cursor}, {LABELS[cursor]}" in text_of(browser, "said")
    press(browser, "Enter")
    assert browser.evaluate("explorer.state.chosen") == cursor
    order, distances = ranking(cursor, N_BITS)
    assert f"Nearest: item {order[0]} at {distances[order[0]]} bit" in text_of(browser, "said")
    tab_to(browser, "#bits")
    press(browser, "ArrowLeft")
    assert text_of(browser, "bits-shown") == f"first {N_BITS - 1} of {N_BITS}"
    tab_to(browser, "#nearest button")
    press(browser, "ArrowRight", "ArrowRight")
    order, distances = ranking(cursor, N_BITS - 1)
    assert f"differ from item {order[2]}." in text_of(browser, "differing")
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    press(browser, "Enter")
    assert browser.evaluate("explorer.state.chosen") == order[2]
    assert browser.evaluate("document.activeElement.closest('#nearest') !== null")
    assert browser.problems() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_screenshots(opened: Browser, paths: dict[str, Path], width: int, scheme: str, tmp_path: Path) -> None:
    fresh(opened, paths["full"], width, scheme)
    folder = Path(os.environ.get("HASHLEARN_SCREENSHOTS", tmp_path))
    content = opened.screenshot(folder / f"explore-{width}-{scheme}.png")
    assert int.from_bytes(content[16:20]) == width
    colors = opened.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(colors[:3]) < 60) == (scheme == "dark")
    ink = opened.evaluate("explorer.map.ink")
    assert ink == ("#e5e8ef" if scheme == "dark" else "#1c2230")
