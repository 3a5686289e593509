"""Tables of a page, which scroll inside it where they are too wide, and tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hashlearn.pages.markup import Markup, element


def plain_table(kind: str, caption: object, heads: Sequence[object], rows: Iterable[object], name: str) -> Markup:
    """A table that scrolls inside a narrow page, by keyboard too."""
    inner = table(caption, heads, rows, data_table=kind)
    return element("div", inner, class_="wide", role="region", aria_label=name, tabindex=0)


def table(caption: object, heads: Iterable[object], rows: Iterable[object], **attributes: object) -> Markup:
    """A table with its caption and the heads of its columns."""
    head = element("thead", element("tr", (element("th", text, scope="col") for text in heads)))
    return element("table", element("caption", caption), head, element("tbody", rows), **attributes)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns that hold a number aligned right, but for the first, and the others left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    sides = ["<", *(">" if any(cell[:1].isdigit() for cell in cells) else "<" for _, *cells in columns[1:])]

    def line(row: Sequence[str]) -> str:
        return "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])
