"""One HTML page of the digits experiment: the table, and searches as pictures. Opens from disk, light or dark."""

from __future__ import annotations

import html
from collections.abc import Iterable
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.bench.digits import DigitsResult, Search

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --dim: #5b6478; --paper: #fbfcfe; --line: #d9deea; --good: #2f7d4f;
        --bad: #b3423a; --accent: #2b6cb0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f2; --dim: #9aa3b8; --paper: #14171f; --line: #2d3446;
        --good: #6cc592; --bad: #ef8d85; --accent: #7db3ea; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p, figcaption { color: var(--dim); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.bar { display: inline-block; height: .6rem; background: var(--accent); border-radius: 2px; vertical-align: middle; }
.row { display: flex; gap: .35rem; align-items: center; margin: .3rem 0; flex-wrap: wrap; }
.row b { width: 11rem; font-weight: 500; }
figure { margin: 0; text-align: center; } figcaption { font-size: .7rem; line-height: 1.2; }
svg.digit { width: 44px; height: 44px; background: #fff; border: 2px solid transparent; border-radius: 4px; }
.right svg { border-color: var(--good); } .wrong svg { border-color: var(--bad); }
.query svg { border-color: var(--dim); }
pre { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; padding: .8rem; }
@media print { body { max-width: none; } }
"""


def page(result: DigitsResult) -> str:
    """The whole page as text."""
    n, n_bits = len(result.labels), result.n_bits
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>hashlearn: digits in {n_bits} bits</title><style>{STYLE}</style></head><body>
<h1>Handwritten digits in {n_bits} bits</h1>
<p>{n:,} images of 64 pixels became codes of {n_bits} bits. Queries are searched among the others by Hamming distance;
an image is right when it shows the same digit. All of it took {result.seconds:.1f} s.</p>
<h2>How good the codes are</h2>
<div class="wide"><table><thead><tr><th>learned from</th><th>method</th><th>precision within 2 bits</th>
<th>mean average precision</th><th></th><th>fit, s</th><th>encode all, s</th></tr></thead><tbody>
{"".join(_table_rows(result))}</tbody></table></div>
<h2>Searches</h2>
<p>Left the query, then its nearest images; below each its distance in bits. Green shows the same digit.</p>
{"".join(_search_blocks(result))}
<h2>Inference, bit by bit</h2><pre>{html.escape(result.report)}</pre>
</body></html>
"""


def _table_rows(result: DigitsResult) -> Iterable[str]:
    for row in result.rows:
        bar = f'<span class="bar" style="width:{120 * row.mean_average_precision:.0f}px"></span>'
        yield (
            f"<tr><td>{html.escape(row.setting)}</td><td>{html.escape(row.method)}</td>"
            f"<td>{100 * row.precision:.1f} %</td><td>{100 * row.mean_average_precision:.1f} %</td>"
            f'<td style="text-align:left">{bar}</td>'
            f"<td>{row.fit_seconds:.2f}</td><td>{row.encode_seconds:.2f}</td></tr>\n"
        )


def _search_blocks(result: DigitsResult) -> Iterable[str]:
    searches = sorted(result.searches, key=lambda search: search.query)
    for query, group in groupby(searches, key=lambda search: search.query):
        yield f"<h3>A {result.labels[query]}</h3>"
        for search in group:
            yield f'<div class="row"><b>{html.escape(search.method)}</b>{_figure(result, query, "query", "query")}'
            yield "".join(_neighbours(result, search)) + "</div>\n"


def _neighbours(result: DigitsResult, search: Search) -> Iterable[str]:
    for index, distance in zip(search.neighbours, search.distances, strict=True):
        right = result.labels[index] == result.labels[search.query]
        yield _figure(result, int(index), "right" if right else "wrong", f"{distance}")


def _figure(result: DigitsResult, index: int, kind: str, caption: str) -> str:
    label = f"digit {result.labels[index]}"
    return (
        f'<figure class="{kind}"><svg class="digit" viewBox="0 0 8 8" role="img" aria-label="{label}">'
        f"{_pixels(result.images[index])}</svg><figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _pixels(image: NDArray[np.float64]) -> str:
    """One path for each of four levels of grey."""
    levels = np.ceil(image / 4.0).astype(int)  # 0 is paper, 4 is ink
    paths = []
    for level in range(1, 5):
        cells = "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(levels == level))
        if cells:
            paths.append(f'<path fill="#1d2433" fill-opacity="{level / 4}" d="{cells}"/>')
    return "".join(paths)
