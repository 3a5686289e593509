"""What the codes are like and what they cost: statistics of the bits, and seconds by stage."""

from __future__ import annotations

from collections.abc import Callable

from hashlearn.experiments.report.formatting import ABSENT, fixed, seconds
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.model import Block, Cell, Reader, duration, finite
from hashlearn.experiments.report.series_styles import look_of
from hashlearn.experiments.report.tables import method_cell, plain_table

Form = Callable[[float], str]

_STRIP_HEIGHT = 26.0
_STAGES = ("inference", "encode", "evaluate")
_STATISTICS: dict[str, Form] = {
    "entropy": lambda value: fixed(value, 2),
    "mean_correlation": lambda value: fixed(value, 3),
    "collisions": lambda value: f"{fixed(100.0 * value, 2)} %",
    "n_distinct": lambda value: f"{value:,.0f}",
}


def bit_table(block: Block) -> Markup | None:
    """Balance, entropy, correlation and collisions at the longest code; None where none is stored."""
    n_bits = block.lengths[-1]
    known = [method for method in block.methods if any(map(_statistics, block.at(method, n_bits)))]
    if not known:
        return None
    rows = [
        element(
            "tr",
            method_cell(method),
            element("td", _strip(block.at(method, n_bits)[0], method)),
            (element("td", _mean(block, method, n_bits, _statistic(name), form)) for name, form in _STATISTICS.items()),
        )
        for method in known
    ]
    caption = f"At {n_bits} bits, codes of the whole database, mean over draws."
    heads = ["method", "share of ones, bit by bit", "entropy of codes, bits", "mean |correlation|"]
    heads += ["pairs with one code", "distinct codes"]
    return plain_table("bits", caption, heads, rows, f"Bit statistics, {block.table.title}, {block.dataset}")


def seconds_table(block: Block) -> Markup:
    """Seconds to fit at each length; at the longest also what of it was inference, and encoding and evaluation."""
    longest = block.lengths[-1]
    fits = {method: block.spread(method, longest, duration("fit")) for method in block.methods}
    slowest = max((spread.mean for spread in fits.values() if spread), default=0.0)
    rows = []
    for method in block.methods:
        fit = fits[method]
        bar = f"width:{100.0 * fit.mean / slowest:.1f}%" if fit and slowest > 0.0 else None
        track = element("td", element("span", style=bar, class_="bar") if bar else None, class_="track")
        lengths = [element("td", _mean(block, method, n_bits, duration("fit"), seconds)) for n_bits in block.lengths]
        stages = [element("td", _mean(block, method, longest, duration(stage), seconds)) for stage in _STAGES]
        rows.append(element("tr", method_cell(method), lengths, track, stages))
    heads = [
        "method",
        *(f"fit, {n_bits} bits" for n_bits in block.lengths),
        "",
        "of it inference",
        "encode",
        "evaluate",
    ]
    caption = f"Mean over draws; the bar and the last three columns are for {longest} bits."
    return plain_table("seconds", caption, heads, rows, f"Seconds, {block.table.title}, {block.dataset}")


def _statistics(cell: Cell) -> dict[str, object]:
    return cell.get("bit_statistics") or {}


def _statistic(name: str) -> Reader:
    return lambda cell: finite(_statistics(cell).get(name))


def _mean(block: Block, method: str, n_bits: int, reader: Reader, form: Form) -> str:
    spread = block.spread(method, n_bits, reader)
    return ABSENT if spread is None else form(spread.mean)


def _strip(cell: Cell, method: str) -> Markup | str:
    """One bar a bit, up where ones prevail and down where zeros do; the frame is all ones and all zeros."""
    balance = _statistics(cell).get("balance")
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
