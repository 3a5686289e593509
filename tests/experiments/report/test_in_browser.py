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
SIZED = (
    "[...document.querySelectorAll('%s')].filter(e => e.getClientRects().length && e.getClientRects()[0].width > 20)"
)


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


def test_every_table_and_plot_is_there(browser: Browser) -> None:
    browser.look(1280)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    count = {
        kind: browser.evaluate(f"{SIZED % f'[data-table={kind}]'}.length") for kind in ("results", "map", "seconds")
    }
    assert count == {"results": 3, "map": 3, "seconds": 3}
    assert browser.evaluate(f"{SIZED % '[data-table=bits]'}.length") == 3
    plots = {
        kind: browser.evaluate(f"{SIZED % f'[data-plot={kind}] > svg'}.length")
        for kind in ("map", "curve", "bound", "gap", "objective")
    }
    # Curves at every length; bounds by SDR in each table and by "SDR distance" in the unsupervised one.
    assert plots == {"map": 3, "curve": 4 + 4 + 3, "bound": 4, "gap": 3, "objective": 3}
    assert browser.evaluate("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")


def test_gallery_images_load(browser: Browser) -> None:
    methods = [len(synthetic.METHODS[table]) for table, _ in BLOCKS]
    sizes = browser.evaluate("[...document.images].map(image => [image.complete, image.naturalWidth])")
    assert len(sizes) == sum(6 * (1 + 8 * count) for count in methods)
    assert all(complete and width in (24, 32) for complete, width in sizes)


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_page_never_scrolls_sideways(browser: Browser, width: int) -> None:
    browser.look(width)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.overflowing() == []


def test_plots_stay_readable_on_a_phone(browser: Browser) -> None:
    browser.look(375)
    assert browser.evaluate("document.querySelector('.plot .tick').getBoundingClientRect().height") >= 10.0


def test_dark_is_dark_and_print_is_light(browser: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    browser.look(1280, scheme="dark")
    assert max(browser.evaluate(colour)[:3]) < 60
    browser.look(1280, scheme="dark", media="print")
    assert min(browser.evaluate(colour)[:3]) > 240


def test_prints(browser: Browser, shots: Path) -> None:
    import base64

    browser.look(1280)
    content = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    (shots / "printed.pdf").write_bytes(content)
    assert content.startswith(b"%PDF")
    assert content.count(b"/Type /Page\n") > 3


def test_nothing_is_cut_off_on_paper(browser: Browser) -> None:
    browser.look(690, media="print")  # A4 between the margins
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 690


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width"), [("desktop", 1280), ("phone", 375)])
def test_screenshots(browser: Browser, shots: Path, name: str, width: int, scheme: str) -> None:
    browser.look(width, scheme=scheme)
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    content = browser.screenshot(shots / f"{name}-{scheme}.png")
    assert int.from_bytes(content[16:20]) == width
    assert int.from_bytes(content[20:24]) > 3 * width
