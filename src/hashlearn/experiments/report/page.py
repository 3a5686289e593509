"""A self-contained page of stored results: no script, no request, light and dark, narrow and printed.

The page itself is the template ``report.html``.
"""

from __future__ import annotations

from itertools import groupby

from hashlearn import __version__
from hashlearn.experiments.bench.blocks import PaperValue, Verdict, blocks, published_value
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.report import provenance
from hashlearn.experiments.report.figures import bound_figures, curve_figures, main_figure
from hashlearn.experiments.report.gallery import gallery
from hashlearn.experiments.report.tables import Part, best_values, heading, headline
from hashlearn.pages.formatting import in_sentence
from hashlearn.pages.rendering import render

TITLE = "Learned binary codes, measured beside the paper"
TITLE_WITHOUT_PAPER = "Learned binary codes, measured"


def results_page(results: Results, title: str | None = None, paper_value: PaperValue = published_value) -> str:
    """The whole page as text.

    Parameters
    ----------
    results : what `hashlearn.experiments.bench.results.read` returns; only the name of its folder is shown
    title : heading of the page; None: one that names the paper only if it has values for these cells
    paper_value : (table, data set, method, n_bits) → the published value in per cent, or None
    """
    records, folder = results.cells, results.folder
    if not records:
        raise ValueError("results must hold at least one cell; `hashlearn bench` makes them")
    parts = [Part(block, block.beside_paper(paper_value)) for block in blocks(records, results.requests)]
    compared = any(part.counts for part in parts)
    tables = [(table, list(group)) for table, group in groupby(parts, key=lambda part: part.block.table)]
    bounds = {part.block.key: figure for part in parts if (figure := bound_figures(part))}
    galleries = [found for part in parts if (found := gallery(part))]
    sections = {
        **{f"table-{table.name}": (table.title, True) for table, _ in tables},
        "bounds": ("Objective and bound", bounds),
        "bits": ("Bit statistics", any(part.with_statistics for part in parts)),
        "seconds": ("Seconds", True),
        "gallery": ("Gallery", galleries),
        "missing": ("What is missing", True),
        "commands": ("Run it again", True),
        "provenance": ("Provenance", True),
    }
    return render(
        "report.html",
        title=title if title is not None else TITLE if compared else TITLE_WITHOUT_PAPER,
        version=__version__,
        n_cells=len(records),
        n_missing=len(results.missing),
        headline=headline(parts),
        verdicts=Verdict,
        parts=parts,
        compared=compared,
        tolerances=_tolerances(parts),
        sections={anchor: name for anchor, (name, content) in sections.items() if content},
        tables=tables,
        heading=heading,
        best_values=best_values,
        main_figure=main_figure,
        curve_figures=curve_figures,
        bounds=bounds,
        galleries=galleries,
        missing=provenance.missing_cells(results),
        commands=provenance.commands(parts, (folder.name or "results") if folder.is_absolute() else str(folder)),
        machines=provenance.machines(records),
        sources=provenance.sources(parts),
        configurations=list(provenance.configurations(parts)),
        warnings=provenance.heard_warnings(records),
    )


def _tolerances(parts: list[Part]) -> dict[float, list[str]]:
    """The tables of each tolerance."""
    found: dict[float, dict[str, None]] = {}
    for part in parts:
        found.setdefault(part.block.table.tolerance, {})[in_sentence(part.block.table.title)] = None
    return {tolerance: list(found[tolerance]) for tolerance in sorted(found)}
