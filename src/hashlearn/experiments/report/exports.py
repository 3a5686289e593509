"""The tables of a page as CSV and LaTeX, its figures as SVG files: for a paper, a spreadsheet or a plot of your own."""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from importlib import resources

from hashlearn.experiments.bench.blocks import Block, Entry, blocks, metric, published_value
from hashlearn.experiments.bench.choices import metric_title
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.dataset_names import dataset_name
from hashlearn.experiments.report.figures import bound_figures, curve_figure, main_figure
from hashlearn.experiments.report.frontier import frontier_figures
from hashlearn.pages.formatting import fixed
from hashlearn.pages.markup import Markup

CSV_HEADS = (
    "table", "data set", "features", "protocol", "method", "bits", "metric", "mean", "standard deviation", "draws",
    "paper",
)  # fmt: skip
# What LaTeX reads as commands, and how it prints them.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_PICTURE = re.compile(r"<svg viewBox=\"0 0 ([\d.]+) ([\d.]+)\"(.*?)</svg>", re.DOTALL)
_DRAWN = "tick|axis-title|label|halo|grid|axis|divider|between|line|whiskers|leader"
_RULE = re.compile(rf"(?:svg text|\.(?:{_DRAWN})\b)[^{{]*{{[^}}]*}}")


def as_csv(results: Results) -> str:
    """One line for each table, data set, method, code length and metric; values in per cent."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(CSV_HEADS)
    for block in blocks(results.cells, results.asked):
        protocol = (block.records[0].get("protocol") or {}).get("name", "")
        for method in block.methods:
            for n_bits in block.lengths:
                for name in block.metrics:
                    entry = _entry(block, method, n_bits, name)
                    if entry.values:
                        key = [block.table.name, block.dataset, block.features, protocol, method, n_bits, name]
                        numbers = [_number(value) for value in (entry.mean, entry.deviation)]
                        lines.writerow([*key, *numbers, len(entry.values), _number(entry.paper)])
    return out.getvalue()


def as_latex(results: Results) -> str:
    """A table for each data set and metric, for ``\\usepackage{booktabs}``; the highest mean of a column is bold."""
    parts = ["% Needs \\usepackage{booktabs}. Values in per cent."]
    for block in blocks(results.cells, results.asked):
        for name in block.metrics:
            rows = {method: [_entry(block, method, bits, name) for bits in block.lengths] for method in block.methods}
            if any(entry.values for row in rows.values() for entry in row):
                parts.append(_latex_table(block, name, rows))
    return "\n\n".join(parts) + "\n"


def as_svgs(results: Results) -> dict[str, str]:
    """File name → picture, for every figure of the page."""
    found = {}
    for block in blocks(results.cells, results.asked):
        named: dict[str, Markup | None] = {}
        if block.table.all_rows is not None:
            named.update((f"recall-{place}", figure) for place, figure in enumerate(frontier_figures(block), start=1))
        else:
            named["score"] = main_figure(block)
            named.update((f"curve-{n_bits}", curve_figure(block, n_bits)) for n_bits in block.lengths)
            named.update((f"inference-{place}", figure) for place, figure in enumerate(bound_figures(block), start=1))
        for name, figure in named.items():
            if figure is not None:
                found[f"{block.key}-{name}.svg"] = _standalone(str(figure))
    return found


def _entry(block: Block, method: str, n_bits: int, name: str) -> Entry:
    paper = None
    if name == block.table.metric and block.is_published:
        paper = published_value(block.table.name, block.dataset, method, n_bits)
    return block.entry(method, n_bits, metric(name), paper)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _latex_table(block: Block, name: str, rows: dict[str, list[Entry]]) -> str:
    best = [
        max((fixed(entry.mean) for entry in column if entry.mean is not None), key=float, default=None)
        for column in zip(*rows.values(), strict=True)
    ]
    body = [
        f"{_escaped(method)} & {' & '.join(_latex(entry, top) for entry, top in zip(row, best, strict=True))} \\\\"
        for method, row in rows.items()
    ]
    over = f"mean of {block.drawn(block.draws)} $\\pm$ standard deviation" if block.draws > 1 else "one draw"
    where = _escaped(f"{block.table.title}, {dataset_name(block.dataset)}: {metric_title(name)}")
    return "\n".join(
        [
            "\\begin{table}",
            "  \\centering",
            f"  \\caption{{{where} in \\%, {over}.}}",
            f"  \\begin{{tabular}}{{l{'r' * len(block.lengths)}}}",
            "    \\toprule",
            f"    method & {' & '.join(f'{n_bits} bits' for n_bits in block.lengths)} \\\\",
            "    \\midrule",
            *(f"    {line}" for line in body),
            "    \\bottomrule",
            "  \\end{tabular}",
            "\\end{table}",
        ]
    )


def _latex(entry: Entry, best: str | None) -> str:
    if entry.mean is None:
        return "--"
    text = fixed(entry.mean)
    shown = f"\\textbf{{{text}}}" if text == best else text
    return shown if entry.deviation is None else f"{shown} $\\pm$ {fixed(entry.deviation)}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def _standalone(figure: str) -> str:
    """The picture of a figure as a file: its name space, its size, and the style and colors of light paper."""
    picture = max(_PICTURE.finditer(figure), key=lambda match: float(match[1]))  # the others are samples of lines
    width, height, rest = picture[1], picture[2], picture[3]
    attributes, _, content = rest.partition(">")
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size}{attributes}>'
    colors, rules = _style()
    whole = f"{opening}<style>{rules}</style>{content}</svg>\n"
    return re.sub(r"var\((--[\w-]+)\)", lambda name: colors[name[1]], whole)  # few programs know variables


@cache
def _style() -> tuple[dict[str, str], str]:
    """The colors of light paper by name, and the rules of the pages' style sheet that figures use."""
    text = resources.files("hashlearn.pages").joinpath("style.css").read_text("utf-8")
    colors = dict(re.findall(r"(--[\w-]+): (#\w{6})", text.partition("@media")[0]))
    rules = [found[0] for line in text.partition("@media print")[0].splitlines() if (found := _RULE.match(line))]
    return colors, " ".join(rules)
