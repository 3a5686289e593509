"""The main finding in a sentence or three, computed from the cells; and a line for each table and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hashlearn.experiments.report.compare import Comparison, Verdict, tally
from hashlearn.experiments.report.formatting import counted, dataset_name, fixed, listed
from hashlearn.experiments.report.markup import Markup, element
from hashlearn.experiments.report.model import Block
from hashlearn.experiments.report.tables import plain_table

Rows = Mapping[str, list[Comparison]]


def headline(parts: Sequence[tuple[Block, Rows]]) -> str:
    """How many measured values reach the paper's."""
    counts = _total(parts)
    compared = counts.total()
    if not compared:
        cells = sum(len(block.cells) for block, _ in parts)
        return f"{counted(cells, 'cell')} measured; the paper has no value to compare them with."
    reached = counts[Verdict.BETTER] + counts[Verdict.WITHIN]
    share = "All" if reached == compared else f"{reached} of"
    above = f"{counts[Verdict.BETTER]} of them clearly better" if counts[Verdict.BETTER] else "none clearly better"
    below = f"; {counts[Verdict.WORSE]} {'is' if counts[Verdict.WORSE] == 1 else 'are'} worse" if share != "All" else ""
    return f"{share} {compared} measured values are within tolerance of the paper’s or better, {above}{below}."


def leaders(parts: Sequence[tuple[Block, Rows]]) -> str | None:
    """Who has the highest mean over code lengths, and how often; None where nothing can be compared."""
    found = [best[0] for block, _ in parts if (best := leader(block)) is not None]
    if not found:
        return None
    (first, wins), *others = Counter(found).most_common()
    rest = f", {listed([f'{name} in {count}' for name, count in others])}" if others else ""
    comparisons = counted(len(found), "comparison")
    return f"{first} has the highest mean over code lengths in {wins} of {comparisons}{rest}."


def leader(block: Block) -> tuple[str, float] | None:
    """The method with the highest mean of the table's metric over the lengths that all methods have; None for one."""
    scores = {method: [block.score(method, n_bits) for n_bits in block.lengths] for method in block.methods}
    shared = [i for i in range(len(block.lengths)) if all(row[i] is not None for row in scores.values())]
    if not shared or len(scores) < 2:
        return None
    means = {
        method: sum(spread.mean for i in shared if (spread := row[i]) is not None) / len(shared)
        for method, row in scores.items()
    }
    best = max(means, key=lambda method: means[method])
    return best, means[best]


def glance(parts: Sequence[tuple[Block, Rows]]) -> Markup:
    """One line a table and data set: what there is, who leads, how it stands to the paper."""
    rows = []
    for block, compared in parts:
        best = leader(block)
        what = [element("a", block.table.title, href=f"#{block.key}"), element("small", dataset_name(block.dataset))]
        amount = [counted(len(block.methods), "method"), element("small", counted(block.draws, "draw"))]
        lead = [best[0], element("small", f"{fixed(best[1])} %")] if best else "–"
        entries = [element("td", amount), element("td", lead), element("td", _agreement(tally(compared)))]
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


def _total(parts: Sequence[tuple[Block, Rows]]) -> Counter[Verdict]:
    return sum((tally(rows) for _, rows in parts), Counter())
