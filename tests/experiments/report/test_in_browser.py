"""The page in a real browser: nothing fails, nothing is fetched, everything is there, at any width and in the dark.

Screenshots go to the folder that $HASHLEARN_SCREENSHOTS names, else to pytest's temporary one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hashlearn.experiments.report import results_page
from tests.experiments.report import synthetic
from tests.pages.browser import Browser, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")

BLOCKS = (("inference", "mnist"), ("unsupervised", "cifar10"), ("knn", "mnist"))


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = os.environ.get("HASHLEARN_SCREENSHOTS")
    return Path(folder) if folder else tmp_path_factory.mktemp("screenshots")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = tmp_path_factory.mktemp("page") / "report.html"
    found = synthetic.results(synthetic.cells(BLOCKS, draws=2))
    text = results_page(found, paper_value=synthetic.paper_value)
    path.write_text(text, encoding="utf-8")
    assert BROWSER is not None
    opened = Browser(BROWSER)
    try:
        opened.look(1280)
        opened.open(path)
        yield opened
    finally:
        opened.close()


def test_nothing_fails_and_nothing_is_fetched(browser: Browser) -> None:
    assert browser.problems() == []


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_page_never_scrolls_sideways(browser: Browser, width: int) -> None:
    browser.look(width)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.overflowing() == []


def test_dark_is_dark_and_print_is_light(browser: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    browser.look(1280, scheme="dark")
    assert max(browser.evaluate(colour)[:3]) < 60
    browser.look(1280, scheme="dark", media="print")
    assert min(browser.evaluate(colour)[:3]) > 240


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width"), [("desktop", 1280), ("phone", 375)])
def test_screenshots(browser: Browser, shots: Path, name: str, width: int, scheme: str) -> None:
    browser.look(width, scheme=scheme)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    content = browser.screenshot(shots / f"{name}-{scheme}.png")
    assert int.from_bytes(content[16:20]) == width
    assert int.from_bytes(content[20:24]) > 3 * width
