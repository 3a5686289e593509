"""Tables of text."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns that hold a number aligned right, but for the first, and the others left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    sides = ["<", *(">" if any(cell[:1].isdigit() for cell in cells) else "<" for _, *cells in columns[1:])]

    def line(row: Sequence[str]) -> str:
        return "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])
