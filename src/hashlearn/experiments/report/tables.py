"""Tables of measured values: each beside the paper's, mean average precision, and seconds by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hashlearn.experiments.bench.blocks import Block, Entry, Reader, Verdict, duration, metric
from hashlearn.experiments.formatting import ABSENT, dataset_name, fixed, seconds, signed
from hashlearn.experiments.report.markup import Markup, element, join
from hashlearn.experiments.report.series_styles import look_of, swatch

_STAGES = ("inference", "encode", "evaluate")


def comparison_table(block: Block, rows: Mapping[str, list[Entry]]) -> Markup:
    """Methods down, code lengths across. Each entry holds our value, the paper's, and the difference in words."""
    best = [_best(entries) for entries in zip(*rows.values(), strict=True)]
    compared = any(entry.paper is not None for row in rows.values() for entry in row)
    caption = [
        element("strong", f"{block.table.metric_title.capitalize()}, %, {dataset_name(block.dataset)}"),
        f" Mean of {block.draws} draws ± standard deviation" if block.draws > 1 else " One draw",
        "; bold is the highest measured at a length.",
        None if compared else " The paper has no values for this data set.",
    ]
    cells = {method: [_compared(*pair) for pair in zip(row, best, strict=True)] for method, row in rows.items()}
    return _by_length(caption, block.lengths, cells, "results")


def map_table(block: Block) -> Markup | None:
    """Mean average precision in numbers, which the paper shows in figures only; None if none is stored."""
    rows = {
        method: [block.entry(method, n_bits, metric("map")) for n_bits in block.lengths] for method in block.methods
    }
    if not any(entry.values for row in rows.values() for entry in row):
        return None
    caption = [
        element("strong", f"Mean average precision, %, {dataset_name(block.dataset)}"),
        " The paper shows it in figures, without numbers to compare with.",
    ]
    return _by_length(caption, block.lengths, {method: map(_value, row) for method, row in rows.items()}, "map")


def seconds_table(block: Block) -> Markup:
    """Seconds to fit at each length; at the longest also the share of inference, and encoding and evaluation."""
    longest = block.lengths[-1]
    fits = {method: block.entry(method, longest, duration("fit")).mean or 0.0 for method in block.methods}
    slowest = max(fits.values(), default=0.0)
    rows = []
    for method, fit in fits.items():
        bar = element("span", style=f"width:{100.0 * fit / slowest:.1f}%", class_="bar") if fit > 0.0 else None
        lengths = [mean_cell(block, method, n_bits, duration("fit"), seconds) for n_bits in block.lengths]
        stages = [mean_cell(block, method, longest, duration(stage), seconds) for stage in _STAGES]
        rows.append(element("tr", method_cell(method), lengths, element("td", bar, class_="track"), stages))
    heads = ["method", *(f"fit, {n_bits} bits" for n_bits in block.lengths), "", "of it inference", *_STAGES[1:]]
    caption = f"Mean over draws; the bar and the last three columns are for {longest} bits."
    return plain_table("seconds", caption, heads, rows, f"Seconds, {block.table.title}, {block.dataset}")


def verdict_mark(verdict: Verdict, text: str | None = None) -> Markup:
    """A verdict by sign, word and color."""
    return element("span", f"{verdict.sign} {text or verdict.value}", class_=f"verdict {verdict.value}")


def plain_table(kind: str, caption: object, heads: Sequence[object], rows: Iterable[object], name: str) -> Markup:
    """A table that scrolls inside a narrow page, by keyboard too."""
    table = _table(caption, heads, rows, data_table=kind)
    return element("div", table, class_="wide", role="region", aria_label=name, tabindex=0)


def method_cell(method: str) -> Markup:
    """The first cell of a method's row."""
    return element("th", swatch(look_of(method)), element("span", method), scope="row")


def mean_cell(block: Block, method: str, n_bits: int, reader: Reader, form: Callable[[float], str]) -> Markup:
    """The mean over draws of what ``reader`` finds, as ``form`` shows it."""
    mean = block.entry(method, n_bits, reader).mean
    return element("td", ABSENT if mean is None else form(mean))


def _by_length(caption: object, lengths: Sequence[int], rows: Mapping[str, Iterable[Markup]], kind: str) -> Markup:
    body = []
    for method, contents in rows.items():
        pairs = zip(lengths, contents, strict=True)
        cells = [element("td", content, data_bits=f"{n_bits} bits") for n_bits, content in pairs]
        body.append(element("tr", method_cell(method), cells))
    heads = ["method", *(f"{n_bits} bits" for n_bits in lengths)]
    return _table(caption, heads, body, class_="by-length", data_table=kind)


def _table(caption: object, heads: Iterable[object], rows: Iterable[object], **attributes: object) -> Markup:
    head = element("thead", element("tr", (element("th", text, scope="col") for text in heads)))
    return element("table", element("caption", caption), head, element("tbody", rows), **attributes)


def _compared(entry: Entry, best: str | None) -> Markup:
    verdict, difference = entry.verdict, entry.difference
    paper = element("span", f"paper {fixed(entry.paper)}", class_="paper") if entry.paper is not None else None
    mark = None
    if verdict is not None and difference is not None:
        mark = verdict_mark(verdict, f"{signed(difference)} {verdict.value}")
    return join([_value(entry, best), paper, mark])


def _value(entry: Entry, best: str | None = None) -> Markup:
    if entry.mean is None:
        return element("span", "not run", class_="none")
    shown = element("strong" if fixed(entry.mean) == best else "span", fixed(entry.mean), class_="value")
    deviation = element("span", f" ± {fixed(entry.deviation)}", class_="sd") if entry.deviation is not None else None
    return join([shown, deviation])


def _best(entries: Sequence[Entry]) -> str | None:
    """The highest value as it is printed, so that equal values are equal."""
    means = [entry.mean for entry in entries if entry.mean is not None]
    return fixed(max(means)) if means else None
