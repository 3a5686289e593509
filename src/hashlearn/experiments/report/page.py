"""One self-contained page from stored results: no script, no request, light and dark, narrow and printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from hashlearn import __version__
from hashlearn.experiments.report.bounds import bound_figures
from hashlearn.experiments.report.compare import PaperValue, Verdict, compare, tally
from hashlearn.experiments.report.costs import bit_table, seconds_table
from hashlearn.experiments.report.figures import curve_figure, map_figure, score_figure
from hashlearn.experiments.report.formatting import counted, dataset_name, features_name, in_sentence, listed
from hashlearn.experiments.report.gallery import gallery
from hashlearn.experiments.report.headline import Rows, glance, headline, leaders
from hashlearn.experiments.report.load_results import Stored, stored
from hashlearn.experiments.report.markup import Markup, element, join
from hashlearn.experiments.report.model import Block, blocks
from hashlearn.experiments.report.provenance import commands, missing_part, provenance_part
from hashlearn.experiments.report.style import STYLE
from hashlearn.experiments.report.tables import comparison_table, map_table, verdict_mark

TITLE = "Learned binary codes, measured beside the paper"
Section = tuple[str, str, list[Markup]]  # anchor, heading, content
Part = tuple[Block, Rows]


def results_page(results: Any, title: str = TITLE, paper_value: PaperValue | None = None) -> str:
    """The whole page as text.

    Parameters
    ----------
    results : what `hashlearn.experiments.bench.results.read` gives, or a list of the stored cells' dictionaries
    title : heading of the page
    paper_value : (table, data set, method, n_bits) → the published value in per cent, or None where there is none;
        by default `hashlearn.experiments.bench.paper.value`
    """
    if paper_value is None:
        from hashlearn.experiments.bench import paper

        paper_value = paper.value
    held = stored(results)
    parts: list[Part] = [(block, compare(block, paper_value)) for block in blocks(held.cells)]
    sections = _sections(held, parts)
    body = element("body", _head(title, held, parts, sections), element("main", map(_section, sections)), _foot())
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _sections(held: Stored, parts: Sequence[Part]) -> list[Section]:
    """Tables first, then what lies behind them; a section without content is left out."""
    held_blocks = [block for block, _ in parts]
    sections = [
        (f"table-{table.name}", table.title, [element("p", table.about), *map(_block, group)])
        for table, group in ((t, list(g)) for t, g in groupby(parts, key=lambda part: part[0].table))
    ]
    sections += [
        ("bounds", "Objective and bound", _bounds(held_blocks)),
        ("bits", "Bit statistics", _folded((block, bit_table(block)) for block in held_blocks)),
        ("seconds", "Seconds", _folded((block, seconds_table(block)) for block in held_blocks)),
        ("gallery", "Gallery", _galleries(held_blocks)),
        ("missing", "What is missing", [missing_part(held.missing)]),
        ("commands", "Run it again", [_commands(held_blocks, held.folder)]),
        ("provenance", "Provenance", provenance_part(held, held_blocks)),
    ]
    return [section for section in sections if section[2]]


def _head(title: str, held: Stored, parts: Sequence[Part], sections: Sequence[Section]) -> Markup:
    count = counted(len(held.cells), "cell")
    lacking = f"{counted(len(held.missing), 'cell')} missing" if held.missing else "none missing"
    best = leaders(parts)
    contents = [element("li", element("a", heading, href=f"#{anchor}")) for anchor, heading, _ in sections]
    return element(
        "header",
        element("p", f"hashlearn · {count} measured, {lacking}", class_="over"),
        element("h1", title),
        element("p", headline(parts), class_="lead"),
        element("p", best) if best else None,
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


def _section(section: Section) -> Markup:
    anchor, heading, content = section
    return element("section", element("h2", heading), content, id=anchor)


def _block(part: Part) -> Markup:
    block, rows = part
    longest = block.lengths[-1]
    main = [map_figure(block) or score_figure(block), curve_figure(block, longest)]
    shorter = _present(curve_figure(block, n_bits) for n_bits in block.lengths[:-1])
    numbers = map_table(block)
    return element(
        "article",
        element("h3", dataset_name(block.dataset), element("small", _drawn(block))),
        comparison_table(block, rows),
        element("div", _present(main), class_="plots"),
        element("details", element("summary", "mAP in numbers"), numbers) if numbers else None,
        element(
            "details",
            element("summary", "Precision and recall at the other lengths"),
            element("div", shorter, class_="plots"),
        )
        if shorter
        else None,
        id=block.key,
    )


def _drawn(block: Block) -> str:
    """The features, and how many samples play which part."""
    protocol = block.cells[0].get("protocol") or {}
    counts = (("n_train", "training sample"), ("n_database", "database item"), ("n_queries", "query"))
    said = [
        counted(protocol[key], name, "queries" if name == "query" else None)
        for key, name in counts
        if protocol.get(key)
    ]
    return f"Features: {features_name(block.features)}" + "".join(f" · {text}" for text in said)


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


def _commands(held: Sequence[Block], folder: str) -> Markup:
    about = element(
        "p", "Cells that are stored already are not run again: name a new folder to measure all of them anew."
    )
    return join(
        [about, element("pre", (element("code", line) for line in commands(held, folder)), data_part="commands")]
    )


def _present(parts: Iterable[Markup | None]) -> list[Markup]:
    return [part for part in parts if part is not None]


def _foot() -> Markup:
    return element("footer", element("p", f"Made by hashlearn {__version__} from stored results alone."))
