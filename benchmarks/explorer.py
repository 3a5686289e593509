"""The explorer's page with 100,000 codes in headless Chromium: size, time to load, time of a query and of a choice.

``python -m benchmarks.explorer [--rows 100000] [--bits 64] [--queries 200]``

Rows are Gaussian clusters, with a text and a class for each. A query is the distances to all codes and the 24 nearest
of them; a choice also updates the lists and draws the map. The clock of the browser has steps of 0.1 ms, so ten
queries are timed together. The fastest ten say what an idle machine would do; the median says what this one did.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from tests.pages.browser import Browser, find_browser

from benchmarks.claims.recording import add_option, record
from hashlearn.explorer import write_page
from hashlearn.hashers import LSH

QUERIES = """(() => {
  const rows = Array.from({length: %d}, (_, i) => (i * 7919) %% explorer.codes.count);
  const timed = (work) => {
    const times = [];
    for (let first = 0; first < rows.length; first += 10) {
      const ten = rows.slice(first, first + 10);
      const begin = performance.now();
      ten.forEach(work);
      times.push((performance.now() - begin) / ten.length);
    }
    times.sort((a, b) => a - b);
    return [times[0], times[times.length >> 1]];
  };
  const query = timed((row) => { explorer.codes.measure(row, explorer.used); explorer.codes.nearest(24); });
  return [...query, ...timed((row) => explorer.choose(row))];
})()"""
LOAD = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--turns", type=int, default=5)
    add_option(parser)
    given = parser.parse_args()
    executable = find_browser()
    if executable is None:
        print("Chromium is missing: put it on the PATH")
        return 1
    rng = np.random.default_rng(0)
    classes = rng.integers(20, size=given.rows)
    rows = (2.0 * rng.standard_normal((20, 64))[classes] + rng.standard_normal((given.rows, 64))).astype(np.float32)
    texts = [f"text {row} about subject {subject}" for row, subject in enumerate(classes)]
    with tempfile.TemporaryDirectory() as folder:
        hasher = LSH(n_bits=given.bits, random_state=0).fit(rows)
        page = write_page(hasher, rows, Path(folder) / "explore.html", texts=texts, labels=classes)
        print(f"{page.n_rows:,} codes of {page.n_bits} bits: {page.bytes:,} bytes, {page.n_texts:,} texts in the page")
        browser = Browser(executable)
        try:
            browser.look(1280)
            print("    load | a query: fastest, median | a choice: fastest, median")
            turns = []
            for _ in range(given.turns):
                browser.open(Path(page.path))
                browser.evaluate("explorer.ready")
                load = browser.evaluate(LOAD)
                times = browser.evaluate(QUERIES % given.queries)
                turns.append([load, *times])
                print(f"{load:5.0f} ms | {times[0]:6.2f}, {times[1]:6.2f} ms | {times[2]:6.2f}, {times[3]:6.2f} ms")
        finally:
            browser.close()
    loads, fastest, query, least, choice = np.transpose(turns)
    shown = [
        ("open the page until it answers", f"{loads.min():.0f} ms", f"{np.median(loads):.0f} ms"),
        ("a query: distances to all codes, 24 nearest", f"{fastest.min():.2f} ms", f"{np.median(query):.2f} ms"),
        ("a choice: the query, the lists and the map", f"{least.min():.1f} ms", f"{np.median(choice):.1f} ms"),
    ]
    record(given.json, ("", "fastest", "median"), shown, {"bytes": page.bytes})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
