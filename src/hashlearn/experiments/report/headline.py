"""The main finding in one to three sentences, computed from the records; and a line for each table and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hashlearn.experiments.bench.blocks import Block, Entry, Verdict
from hashlearn.experiments.formatting import ABSENT, counted, dataset_name, fixed, listed
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.tables import plain_table

Part = tuple[Block, Mapping[str, list[Entry]]]  # a block, and its entries beside the paper's, by method


def tally(rows: Mapping[str, list[Entry]]) -> Counter[Verdict]:
    """How many entries are better, within and worse."""
    return Counter(entry.verdict for row in rows.values() for entry in row if entry.verdict is not None)


def headline(parts: Sequence[Part]) -> str:
    """How many measured values reach the paper's."""
    counts: Counter[Verdict] = sum((tally(rows) for _, rows in parts), Counter())
    compared = counts.total()
    if not compared:
        cells = sum(len(block.records) for block, _ in parts)
        return f"{counted(cells, 'cell')} measured; the paper has no value to compare them with."
    reached = counts[Verdict.BETTER] + counts[Verdict.WITHIN]
    share = "All" if reached == compared else f"{reached} of"
    above = f"{counts[Verdict.BETTER]} of them clearly better" if counts[Verdict.BETTER] else "none clearly better"
    below = f"; {counts[Verdict.WORSE]} {'is' if counts[Verdict.WORSE] == 1 else 'are'} worse" if share != "All" else ""
    return f"{share} {compared} measured values are within tolerance of the paper’s or better, {above}{below}."


def leaders(parts: Sequence[Part]) -> str | None:
    """Which method has the highest mean over code lengths, and how often; None if nothing can be compared."""
    found = [best[0] for block, _ in parts if (best := leader(block)) is not None]
    if not found:
        return None
    (first, wins), *others = Counter(found).most_common()
    rest = f", {listed([f'{name} in {count}' for name, count in others])}" if others else ""
    comparisons = counted(len(found), "comparison")
    return f"{first} has the highest mean over code lengths in {wins} of {comparisons}{rest}."


def leader(block: Block) -> tuple[str, float] | None:
    """The method with the highest mean of the table's metric over the lengths that all methods have, and that mean.

    None for a single method, or if no length is shared.
    """
    means = {method: [block.score(method, n_bits).mean for n_bits in block.lengths] for method in block.methods}
    shared = [column for column in zip(*means.values(), strict=True) if None not in column]
    if not shared or len(means) < 2:
        return None
    over_lengths = [sum(values) / len(shared) for values in zip(*shared, strict=True)]
    best = max(range(len(means)), key=over_lengths.__getitem__)
    return list(means)[best], over_lengths[best]


def glance(parts: Sequence[Part]) -> Markup:
    """One line for each table and data set: what is measured, which method leads, how it compares with the paper."""
    rows = []
    for block, compared in parts:
        best = leader(block)
        what = [element("a", block.table.title, href=f"#{block.key}"), element("small", dataset_name(block.dataset))]
        amount = [counted(len(block.methods), "method"), element("small", counted(block.draws, "draw"))]
        lead = [best[0], element("small", f"{fixed(best[1])} %")] if best else ABSENT
        entries = [element("td", content) for content in (amount, lead, _agreement(tally(compared)))]
        rows.append(element("tr", element("th", what, scope="row"), entries))
    heads = ["experiment", "measured", "highest mean", "against the paper"]
    return plain_table("glance", element("strong", "At a glance"), heads, rows, "At a glance")


def _agreement(counts: Counter[Verdict]) -> Markup:
    """A bar of better, within and worse, with the counts in words."""
    if not counts.total():
        return element("small", "no values in the paper")
    present = [verdict for verdict in Verdict if counts[verdict]]
    bar = [element("i", class_=verdict.value, style=f"flex-grow:{counts[verdict]}") for verdict in present]
    words = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in present)
    return element("div", element("span", bar, class_="agreement", aria_hidden="true"), element("small", words))
