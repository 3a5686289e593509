"""The page of a promise in a real browser: nothing fails, nothing is fetched, at any width and in the dark.

Screenshots go to the folder that $HASHLEARN_SCREENSHOTS names, else to pytest's temporary one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compression import plans
from tests.pages.browser import Browser, find_browser

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")
EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>'\"&\u2028" + "long" * 200
IMAGES = np.random.default_rng(0).integers(0, 255, (plans.N_ROWS, 8, 8), np.uint8)
CONTENTS: dict[str, dict[str, Any]] = {
    "numbers": {},
    "texts": {"texts": [EVIL] * plans.N_ROWS, "title": EVIL},
    "pictures": {"images": IMAGES},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert BROWSER is not None
    opened = Browser(BROWSER)
    try:
        yield opened
    finally:
        opened.close()


@pytest.mark.parametrize("contents", CONTENTS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_fails_is_fetched_or_sticks_out(
    browser: Browser, tmp_path: Path, width: int, scheme: str, contents: str
) -> None:
    plans.plan().page(tmp_path / "page.html", **CONTENTS[contents])
    browser.look(width, scheme=scheme)
    browser.open(tmp_path / "page.html")
    browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.problems() == []
    assert browser.overflowing() == []
    assert browser.evaluate("document.scripts.length") == 0
    folder = Path(os.environ.get("HASHLEARN_SCREENSHOTS", tmp_path))
    assert int.from_bytes(browser.screenshot(folder / f"compress-{contents}-{width}-{scheme}.png")[16:20]) == width
