"""How well the codes use their bits: balance bit by bit, entropy, correlation, collisions."""

from __future__ import annotations

from collections.abc import Callable

from hashlearn.experiments.bench.blocks import Block, Reader, Record, finite
from hashlearn.experiments.formatting import ABSENT, fixed
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.series_styles import look_of
from hashlearn.experiments.report.tables import mean_cell, method_cell, plain_table

_STRIP_HEIGHT = 26.0
_STATISTICS: dict[str, Callable[[float], str]] = {
    "entropy": lambda value: fixed(value, 2),
    "mean_correlation": lambda value: fixed(value, 3),
    "collisions": lambda value: f"{fixed(100.0 * value, 2)} %",
    "n_distinct": lambda value: f"{value:,.0f}",
}


def bit_table(block: Block) -> Markup | None:
    """Balance, entropy, correlation and collisions at the longest code; None if none is stored."""
    n_bits = block.lengths[-1]
    known = [method for method in block.methods if any(map(_statistics, block.at(method, n_bits)))]
    if not known:
        return None
    rows = [
        element(
            "tr",
            method_cell(method),
            element("td", _strip(block.at(method, n_bits)[0], method)),
            (mean_cell(block, method, n_bits, _statistic(name), form) for name, form in _STATISTICS.items()),
        )
        for method in known
    ]
    caption = f"At {n_bits} bits, codes of the whole database, mean over draws."
    heads = ["method", "share of ones, bit by bit", "entropy of codes, bits", "mean |correlation|"]
    heads += ["pairs with one code", "distinct codes"]
    return plain_table("bits", caption, heads, rows, f"Bit statistics, {block.table.title}, {block.dataset}")


def _statistics(record: Record) -> dict[str, object]:
    return record.get("bit_statistics") or {}


def _statistic(name: str) -> Reader:
    return lambda record: finite(_statistics(record).get(name))


def _strip(record: Record, method: str) -> Markup | str:
    """One bar for each bit, up if ones prevail and down if zeros do. The frame means all ones and all zeros."""
    balance = _statistics(record).get("balance")
    shares = [finite(share) for share in balance] if isinstance(balance, list) else []
    known = [share for share in shares if share is not None]
    if not known:
        return ABSENT
    middle = 0.5 * _STRIP_HEIGHT
    bars = []
    for place, share in enumerate(shares):
        reach = 0.0 if share is None else (share - 0.5) * _STRIP_HEIGHT
        top, height = middle - max(reach, 0.0), max(abs(reach), 0.6)
        bars.append(element("rect", x=place * 5 + 1, y=f"{top:.1f}", width=3.4, height=f"{height:.1f}"))
    width = 5 * len(shares) + 1
    picture = element(
        "svg",
        element("title", f"Share of ones in each bit: {min(known):.2f} to {max(known):.2f}"),
        element("rect", x=0.5, y=0.5, width=width - 1, height=_STRIP_HEIGHT - 1, class_="strip-frame"),
        element("path", d=f"M0 {middle:g}H{width}", class_="grid"),
        element("g", bars, fill=look_of(method).stroke),
        viewBox=f"0 0 {width} {_STRIP_HEIGHT:g}",
        width=width,
        height=int(_STRIP_HEIGHT),
        role="img",
        class_="strip",
    )
    shown = element("span", f"{min(known):.2f} … {max(known):.2f}", class_="range")
    return element("span", picture, shown, class_="strip-cell")
