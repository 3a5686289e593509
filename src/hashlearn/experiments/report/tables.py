"""Tables of measured values, each beside the paper's: mean and deviation over draws, and what the difference means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hashlearn.experiments.report.compare import Comparison, Verdict
from hashlearn.experiments.report.formatting import dataset_name, fixed, signed
from hashlearn.experiments.report.markup import Markup, element, join
from hashlearn.experiments.report.model import Block, Spread, metric
from hashlearn.experiments.report.series_styles import look_of, swatch


def comparison_table(block: Block, rows: Mapping[str, list[Comparison]]) -> Markup:
    """Methods down, code lengths across; each entry holds our value, the paper's, and the difference in words."""
    best = [_best(entries) for entries in zip(*rows.values(), strict=True)]
    compared = any(entry.paper is not None for row in rows.values() for entry in row)
    caption = [
        element("strong", f"{block.table.metric_title.capitalize()}, %, {dataset_name(block.dataset)}"),
        f" Mean of {block.draws} draws ± standard deviation" if block.draws > 1 else " One draw",
        "; bold is the highest measured at a length.",
        None if compared else " The paper has no values for this data set.",
    ]
    body = [
        element("tr", method_cell(method), (_entry(entry, best[i]) for i, entry in enumerate(entries)))
        for method, entries in rows.items()
    ]
    return _by_length(caption, block.lengths, body, "results")


def map_table(block: Block) -> Markup | None:
    """Mean average precision in numbers; the paper has it in figures only. None where none is stored."""
    rows = {
        method: [block.spread(method, n_bits, metric("map")) for n_bits in block.lengths] for method in block.methods
    }
    if all(value is None for values in rows.values() for value in values):
        return None
    caption = [
        element("strong", f"Mean average precision, %, {dataset_name(block.dataset)}"),
        " The paper shows it in figures, without numbers to compare with.",
    ]
    body = []
    for method, values in rows.items():
        pairs = zip(block.lengths, values, strict=True)
        entries = [element("td", _value(value), data_bits=f"{n_bits} bits") for n_bits, value in pairs]
        body.append(element("tr", method_cell(method), entries))
    return _by_length(caption, block.lengths, body, "map")


def verdict_mark(verdict: Verdict, text: str | None = None) -> Markup:
    """A verdict by sign, word and colour."""
    return element("span", f"{verdict.sign} {text or verdict.value}", class_=f"verdict {verdict.value}")


def plain_table(kind: str, caption: object, heads: Sequence[object], rows: Iterable[object], name: str) -> Markup:
    """Any other table: it scrolls inside the page where the page is narrow, by keyboard too."""
    head = element("tr", (element("th", text, scope="col") for text in heads))
    table = element(
        "table", element("caption", caption), element("thead", head), element("tbody", rows), data_table=kind
    )
    return element("div", table, class_="wide", role="region", aria_label=name, tabindex=0)


def method_cell(method: str) -> Markup:
    """The first cell of a method's row."""
    return element("th", swatch(look_of(method)), element("span", method), scope="row")


def _by_length(caption: object, lengths: Sequence[int], body: Sequence[Markup], kind: str) -> Markup:
    heads = [element("th", f"{n_bits} bits", scope="col") for n_bits in lengths]
    head = element("thead", element("tr", element("th", "method", scope="col"), heads))
    return element(
        "table", element("caption", caption), head, element("tbody", body), class_="by-length", data_table=kind
    )


def _entry(entry: Comparison, best: str | None) -> Markup:
    verdict, difference = entry.verdict, entry.difference
    mark = None
    if verdict is not None and difference is not None:
        mark = verdict_mark(verdict, f"{signed(difference)} {verdict.value}")
    return element(
        "td",
        _value(entry.measured, entry.measured is not None and fixed(entry.measured.mean) == best),
        element("span", f"paper {fixed(entry.paper)}", class_="paper") if entry.paper is not None else None,
        mark,
        data_bits=f"{entry.n_bits} bits",
    )


def _value(value: Spread | None, best: bool = False) -> Markup:
    if value is None:
        return element("span", "not run", class_="none")
    shown = element("strong" if best else "span", fixed(value.mean), class_="value")
    return join([shown, element("span", f" ± {fixed(value.sd)}", class_="sd") if value.sd is not None else None])


def _best(entries: Sequence[Comparison]) -> str | None:
    """The highest value as it is printed, so that equals are equal."""
    means = [entry.measured.mean for entry in entries if entry.measured is not None]
    return fixed(max(means)) if means else None
