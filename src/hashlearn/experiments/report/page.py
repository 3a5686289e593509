"""A self-contained page of stored results: no script, no request, light and dark, narrow and printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from hashlearn import __version__
from hashlearn.experiments.bench.blocks import Block, PaperValue, Verdict, blocks, published_value
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.dataset_names import dataset_name, features_name
from hashlearn.experiments.report.figures import bound_figures, curve_figure, main_figure
from hashlearn.experiments.report.gallery import gallery
from hashlearn.experiments.report.provenance import commands, missing_part, provenance_part
from hashlearn.experiments.report.tables import (
    Part,
    bit_table,
    comparison_table,
    glance,
    headline,
    other_tables,
    seconds_table,
    tally,
    verdict_mark,
)
from hashlearn.pages.document import document
from hashlearn.pages.formatting import counted, in_sentence, listed
from hashlearn.pages.markup import Markup, element

TITLE = "Learned binary codes, measured beside the paper"
TITLE_WITHOUT_PAPER = "Learned binary codes, measured"
Section = tuple[str, str, list[Markup]]  # anchor, heading, content


def results_page(results: Results, title: str | None = None, paper_value: PaperValue = published_value) -> str:
    """The whole page as text.

    Parameters
    ----------
    results : what `hashlearn.experiments.bench.results.read` returns; only the name of its folder is shown
    title : heading of the page; None: one that names the paper only if it has values for these cells
    paper_value : (table, data set, method, n_bits) → the published value in per cent, or None
    """
    records = results.cells
    if not records:
        raise ValueError("results must hold at least one cell; `hashlearn bench` makes them")
    parts = [(block, block.beside_paper(paper_value)) for block in blocks(records, results.requests)]
    held, n_missing = [block for block, _ in parts], len(results.missing)
    if title is None:
        title = TITLE if any(tally(rows) for _, rows in parts) else TITLE_WITHOUT_PAPER
    sections = [
        *_table_sections(parts),
        ("bounds", "Objective and bound", _bounds(held)),
        ("bits", "Bit statistics", _folded((block, bit_table(block)) for block in held)),
        ("seconds", "Seconds", _folded((block, seconds_table(block)) for block in held)),
        ("gallery", "Gallery", _galleries(held)),
        ("missing", "What is missing", missing_part(results)),
        ("commands", "Run it again", _commands(held, results.folder)),
        ("provenance", "Provenance", provenance_part(records, held)),
    ]
    shown = [section for section in sections if section[2]]
    lacking = f"{counted(n_missing, 'cell')} missing" if n_missing else "none missing"
    amount = f"hashlearn · {counted(len(records), 'cell')} measured, {lacking}"
    main = element("main", (element("section", element("h2", name), body, id=anchor) for anchor, name, body in shown))
    foot = element("footer", element("p", f"Made by hashlearn {__version__} from stored results alone."))
    return document(title, _head(title, amount, parts, shown), main, foot)


def _head(title: str, amount: str, parts: Sequence[Part], sections: Sequence[Section]) -> Markup:
    contents = [element("li", element("a", heading, href=f"#{anchor}")) for anchor, heading, _ in sections]
    return element(
        "header",
        element("p", amount, class_="over"),
        element("h1", title),
        element("p", headline(parts), class_="lead"),
        element("nav", element("h2", "Contents"), element("ol", contents), aria_label="Contents"),
        glance(parts),
        _key(parts) if any(tally(rows) for _, rows in parts) else None,
    )


def _key(parts: Sequence[Part]) -> Markup:
    """What the marks mean."""
    titles: dict[float, dict[str, None]] = {}
    for block, _ in parts:
        titles.setdefault(block.table.tolerance, {})[in_sentence(block.table.title)] = None
    tolerances = [f"{tolerance:g} for {listed(list(names))}" for tolerance, names in sorted(titles.items())]
    text = (
        f". The tolerance, in points of per cent, is {'; '.join(tolerances)}. Differences are ours minus the paper’s."
    )
    better, within, worse = map(verdict_mark, Verdict)
    return element("p", "Beyond a tolerance a value is marked ", better, " or ", worse, ", else ", within, text)


def _table_sections(parts: Sequence[Part]) -> list[Section]:
    return [
        (f"table-{table.name}", table.title, [element("p", table.about), *map(_block, group)])
        for table, group in groupby(parts, key=lambda part: part[0].table)
    ]


def _block(part: Part) -> Markup:
    block, rows = part
    curves = {n_bits: curve_figure(block, n_bits) for n_bits in block.lengths}
    longest = curves.pop(block.lengths[-1])
    return element(
        "article",
        element("h3", dataset_name(block.dataset), element("small", _drawn(block))),
        comparison_table(block, rows),
        element("div", main_figure(block), longest, class_="plots"),
        [_details(f"{name} in numbers", content) for name, content in other_tables(block).items()],
        _details("Precision and recall at the other lengths", element("div", curves.values(), class_="plots"))
        if any(curves.values())
        else None,
        id=block.key,
    )


def _details(title: str, content: Markup) -> Markup:
    return element("details", element("summary", title), content)


def _drawn(block: Block) -> str:
    """The features, and the numbers of training samples, database items and queries."""
    protocol = block.records[0].get("protocol") or {}
    nouns = {
        "n_train": ("training sample", "training samples"),
        "n_database": ("database item", "database items"),
        "n_queries": ("query", "queries"),
    }
    counts = [counted(protocol[key], *noun) for key, noun in nouns.items() if protocol.get(key)]
    own = ["the data set’s own split, training samples are searched too"] if protocol.get("split") == "own" else []
    return " · ".join([f"Features: {features_name(block.features)}", *own, *counts])


def _bounds(held: Sequence[Block]) -> list[Markup]:
    figures = [(block, bound_figures(block)) for block in held]
    folded = _folded((block, element("div", found, class_="plots")) for block, found in figures if found)
    about = "Each bit is one binary quadratic problem. The first draw is shown, at the longest code."
    return [element("p", about), *folded] if folded else []


def _folded(contents: Iterable[tuple[Block, Markup | None]]) -> list[Markup]:
    """One part for each block that has content; the first is open."""
    parts: list[Markup] = []
    for block, content in contents:
        if content:
            title = element("summary", element("strong", f"{block.table.title}, {dataset_name(block.dataset)}"))
            parts.append(element("details", title, content, open=not parts, class_="part"))
    return parts


def _galleries(held: Sequence[Block]) -> list[Markup]:
    found: list[Markup] = []
    for block in held:
        pictures = gallery(block, opened=not found)
        if pictures:
            found.append(pictures)
    about = (
        "The nearest images by Hamming distance, ties in the order of the database; ✓ has the query’s label, ✗ another."
    )
    return [element("p", about), *found] if found else []


def _commands(held: Sequence[Block], folder: Path) -> list[Markup]:
    about = "Cells that are stored already are not run again: name a new folder to measure all of them anew."
    shown = (folder.name or "results") if folder.is_absolute() else str(folder)
    lines = [element("code", line) for line in commands(held, shown)]
    return [element("p", about), element("pre", lines, data_part="commands")]
