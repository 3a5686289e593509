"""One static HTML page to look through a collection by its codes: a map, nearest items, sliders for bits and radius.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from hashlearn.hashers import LSH
>>> rows = np.random.default_rng(0).standard_normal((100, 16))
>>> hasher = LSH(n_bits=12, random_state=0).fit(rows)
>>> with tempfile.TemporaryDirectory() as folder:
...     page = write_page(hasher, rows, Path(folder) / "explore.html", texts=[f"row {i}" for i in range(100)])
>>> page.n_rows, page.n_texts, page.n_images, page.bytes < 100_000
(100, 100, 0, True)
"""

from __future__ import annotations

from hashlearn.explorer.page import ExplorerPage, write_page

__all__ = ["ExplorerPage", "write_page"]
