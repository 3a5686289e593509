"""Tables of a page: values beside the paper's, mAP, seconds, bit statistics, and the main finding in sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from hashlearn.experiments.bench.blocks import Block, Entry, Reader, Record, Verdict, duration, finite, metric
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.pages.formatting import ABSENT, counted, fixed, listed, seconds, signed
from hashlearn.pages.markup import Markup, element, join
from hashlearn.pages.series_styles import Look, look, swatch
from hashlearn.pages.tables import plain_table, table

Part = tuple[Block, Mapping[str, list[Entry]]]  # a block, and its entries beside the paper's, by method
_STAGES = ("inference", "encode", "evaluate")
_STATISTICS: dict[str, Callable[[float], str]] = {
    "entropy": lambda value: fixed(value, 2),
    "mean_correlation": lambda value: fixed(value, 3),
    "collisions": lambda value: f"{fixed(100.0 * value, 2)} %",
    "n_distinct": lambda value: f"{value:,.0f}",
}


def tally(rows: Mapping[str, list[Entry]]) -> Counter[Verdict]:
    """How many entries are better, within and worse."""
    return Counter(entry.verdict for row in rows.values() for entry in row if entry.verdict is not None)


def headline(parts: Sequence[Part]) -> str:
    """How many measured values reach the paper's."""
    counts: Counter[Verdict] = sum((tally(rows) for _, rows in parts), Counter())
    compared = counts.total()
    if not compared:
        cells = sum(len(block.records) for block, _ in parts)
        return f"{counted(cells, 'cell')} measured."
    reached = counts[Verdict.BETTER] + counts[Verdict.WITHIN]
    share = "All" if reached == compared else f"{reached} of"
    above = f"{counts[Verdict.BETTER]} of them clearly better" if counts[Verdict.BETTER] else "none clearly better"
    below = f"; {counts[Verdict.WORSE]} {'is' if counts[Verdict.WORSE] == 1 else 'are'} worse" if share != "All" else ""
    return f"{share} {compared} measured values are within tolerance of the paper’s or better, {above}{below}."


def glance(parts: Sequence[Part]) -> Markup:
    """One line for each table and data set: what is measured, and how it compares with the paper."""
    rows = []
    any_compared = any(tally(compared) for _, compared in parts)
    for block, compared in parts:
        what = [element("a", block.table.title, href=f"#{block.key}"), element("small", dataset_name(block.dataset))]
        amount = [counted(len(block.methods), "method"), element("small", counted(block.draws, "draw"))]
        contents = (amount, _agreement(tally(compared))) if any_compared else (amount,)
        entries = [element("td", content) for content in contents]
        rows.append(element("tr", element("th", what, scope="row"), entries))
    heads = ["experiment", "measured", *(["against the paper"] if any_compared else [])]
    return plain_table("glance", element("strong", "At a glance"), heads, rows, "At a glance")


def _agreement(counts: Counter[Verdict]) -> Markup:
    """A bar of better, within and worse, with the counts in words."""
    if not counts.total():
        return element("small", "no values in the paper")
    present = [verdict for verdict in Verdict if counts[verdict]]
    bar = [element("i", class_=verdict.value, style=f"flex-grow:{counts[verdict]}") for verdict in present]
    words = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in present)
    return element("div", element("span", bar, class_="agreement", aria_hidden="true"), element("small", words))


def comparison_table(block: Block, rows: Mapping[str, list[Entry]]) -> Markup:
    """Methods down, code lengths across. Each entry holds our value, the paper's, and the difference in words."""
    best = [_best(entries) for entries in zip(*rows.values(), strict=True)]
    compared = any(entry.paper is not None for row in rows.values() for entry in row)
    caption = [
        element("strong", f"{heading(block.metric)}, %, {dataset_name(block.dataset)}"),
        f" Mean of {block.drawn(block.draws)} ± standard deviation" if block.draws > 1 else " One draw",
        "; bold is the highest measured at a length.",
        " Beside ours stand the paper’s." if compared else None,
        f" Learned without labels: {listed(block.without_labels)}." if block.without_labels else None,
    ]
    cells = {method: [_compared(*pair) for pair in zip(row, best, strict=True)] for method, row in rows.items()}
    return _by_length(block, caption, cells, "results")


def other_tables(block: Block) -> dict[str, Markup]:
    """The metrics beside the most important one, and mean average precision: a table for each that is stored."""
    found = {}
    for name in dict.fromkeys((*block.metrics[1:], "map")):
        rows = {
            method: [block.entry(method, n_bits, metric(name)) for n_bits in block.lengths] for method in block.methods
        }
        if name != block.metric and any(entry.values for row in rows.values() for entry in row):
            best = [_best(entries) for entries in zip(*rows.values(), strict=True)]
            contents = {method: [_value(*pair) for pair in zip(row, best, strict=True)] for method, row in rows.items()}
            caption = element("strong", f"{heading(name)}, %, {dataset_name(block.dataset)}")
            kind = re.sub(r"\W", "-", name)
            found[heading(name)] = _by_length(block, caption, contents, kind)
    return found


def heading(name: str) -> str:
    """A metric in words, as a heading."""
    title = metric_title(name)
    return title[0].upper() + title[1:]


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
        rows.append(element("tr", method_cell(block, method), lengths, element("td", bar, class_="track"), stages))
    heads = ["method", *(f"fit, {n_bits} bits" for n_bits in block.lengths), "", "of it inference", *_STAGES[1:]]
    caption = f"Mean over draws; the bar and the last three columns are for {longest} bits."
    return plain_table("seconds", caption, heads, rows, f"Seconds, {block.table.title}, {block.dataset}")


def verdict_mark(verdict: Verdict, text: str | None = None) -> Markup:
    """A verdict by sign, word and color."""
    return element("span", f"{verdict.sign} {text or verdict.value}", class_=f"verdict {verdict.value}")


def look_in(block: Block, method: str) -> Look:
    """The style of a method everywhere in its block; methods that were not run come last."""
    return look(block.methods.index(method) if method in block.methods else len(block.methods))


def method_cell(block: Block, method: str) -> Markup:
    """The first cell of a method's row."""
    return element("th", swatch(look_in(block, method)), element("span", method), scope="row")


def mean_cell(block: Block, method: str, n_bits: int, reader: Reader, form: Callable[[float], str]) -> Markup:
    """The mean over draws of what ``reader`` finds, as ``form`` shows it."""
    mean = block.entry(method, n_bits, reader).mean
    return element("td", ABSENT if mean is None else form(mean))


def _by_length(block: Block, caption: object, rows: Mapping[str, Iterable[Markup]], kind: str) -> Markup:
    body = []
    for method, contents in rows.items():
        pairs = zip(block.lengths, contents, strict=True)
        cells = [element("td", content, data_bits=f"{n_bits} bits") for n_bits, content in pairs]
        body.append(element("tr", method_cell(block, method), cells))
    heads = ["method", *(f"{n_bits} bits" for n_bits in block.lengths)]
    return table(caption, heads, body, class_="by-length", data_table=kind)


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


def bit_table(block: Block) -> Markup | None:
    """Balance, entropy, correlation and collisions at the longest code; None if none is stored."""
    n_bits = block.lengths[-1]
    known = [method for method in block.methods if any(map(_statistics, block.at(method, n_bits)))]
    if not known:
        return None
    rows = [
        element(
            "tr",
            method_cell(block, method),
            element("td", _range(block.at(method, n_bits)[0])),
            (mean_cell(block, method, n_bits, _statistic(name), form) for name, form in _STATISTICS.items()),
        )
        for method in known
    ]
    caption = f"At {n_bits} bits, codes of the whole database, mean over draws."
    heads = ["method", "share of ones in a bit", "entropy of codes, bits", "mean |correlation|"]
    heads += ["pairs with one code", "distinct codes"]
    return plain_table("bits", caption, heads, rows, f"Bit statistics, {block.table.title}, {block.dataset}")


def _statistics(record: Record) -> dict[str, object]:
    return record.get("bit_statistics") or {}


def _statistic(name: str) -> Reader:
    return lambda record: finite(_statistics(record).get(name))


def _range(record: Record) -> str:
    """The smallest and the largest share of ones of a bit."""
    balance = _statistics(record).get("balance")
    known = [share for share in map(finite, balance if isinstance(balance, list) else ()) if share is not None]
    return f"{min(known):.2f} … {max(known):.2f}" if known else ABSENT
