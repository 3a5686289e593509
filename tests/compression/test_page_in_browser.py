"""The page of a promise in a real browser, wide and narrow, light and dark.

Screenshots go to the folder that $HASHLEARN_SCREENSHOTS names, else to pytest's temporary one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hashlearn.compression.page import write_page
from tests.compression import plans
from tests.pages.browser import Browser, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")


@pytest.fixture(scope="module", params=["texts", "images"])
def browser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = tmp_path_factory.mktemp("page") / f"{request.param}.html"
    contents = {
        "texts": [f"a text without end {'x' * 200} {row}" for row in range(plans.N_ROWS)],
        "images": np.random.default_rng(0).integers(0, 255, (plans.N_ROWS, 16, 16, 3), np.uint8),
    }
    write_page(plans.plan(), path, **{request.param: contents[request.param]})
    assert BROWSER is not None
    opened = Browser(BROWSER)
    try:
        opened.look(1280)
        opened.open(path)
        opened.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        yield opened
    finally:
        opened.close()


def test_nothing_fails_and_nothing_is_fetched(browser: Browser) -> None:
    assert browser.problems() == []


@pytest.mark.parametrize("width", [390, 1280])
def test_page_never_scrolls_sideways(browser: Browser, width: int) -> None:
    browser.look(width)
    assert browser.overflowing() == []


def test_tables_fit_a_desktop_and_scroll_in_their_box_on_a_phone(browser: Browser) -> None:
    hidden = "[...document.querySelectorAll('.wide')].map(box => box.scrollWidth - box.clientWidth)"
    browser.look(1280)
    assert browser.evaluate(hidden) == [0, 0]
    browser.look(390)
    assert min(browser.evaluate(hidden)) > 0


def test_figures_and_pictures_are_there(browser: Browser) -> None:
    browser.look(1280)
    sizes = browser.evaluate("[...document.querySelectorAll('.plot > svg')].map(e => e.getBoundingClientRect().width)")
    assert len(sizes) == 6
    assert min(sizes) > 300
    loaded = browser.evaluate("[...document.images].map(image => image.complete && image.naturalWidth)")
    assert loaded in ([], [16] * 27)  # two queries; ten neighbors each, and four and one in place of lost ones


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_screenshots(browser: Browser, width: int, scheme: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    browser.look(width, scheme=scheme)
    folder = Path(os.environ.get("HASHLEARN_SCREENSHOTS", tmp_path))
    kind = request.node.callspec.params["browser"]
    content = browser.screenshot(folder / f"promise-{kind}-{width}-{scheme}.png")
    assert int.from_bytes(content[16:20]) == width
    colors = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(colors[:3]) < 60) == (scheme == "dark")
