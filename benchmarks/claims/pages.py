"""Marks in Markdown pages: finding them, rendering them from stored results, comparing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from benchmarks.claims.stored import FOLDER, ClaimError, Stored

FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
PATH = r"\.\w+|(?:\[[^\]]*\])+(?:#\d+)?"
VALUE = rf"<!-- result (?P<name>\w+)(?P<path>{PATH})(?: (?P<spec>\S+))? -->(?P<value>.*?)<!-- end -->"
TABLE = r"^<!-- table (?P<table>\w+) -->\n(?P<body>(?:\|.*\n)*)<!-- end -->$"
MARK = re.compile(f"{TABLE}|{VALUE}", re.MULTILINE)
COMMENT = re.compile(r"<!-- *(?:result|table|end)\b[^\n]*?-->")


@dataclass(frozen=True)
class Claim:
    """One mark: where it is, what the page shows, and what the stored result says."""

    page: str
    line: int
    reference: str
    result: Stored
    shown: str
    stored: str
    begin: int  # of what is shown, in the page
    is_table: bool

    @property
    def figure(self) -> str:
        return f"table of {len(self.result.rows)} rows" if self.is_table else self.stored

    @property
    def n_figures(self) -> int:
        """Figures of a table are its cells with a digit, but for the first column."""
        if not self.is_table:
            return 1
        return sum(any(c.isdigit() for c in str(cell)) for row in self.result.rows for cell in row[1:])

    def differences(self) -> list[str]:
        """A line for each difference: page and line, what is shown, what is stored."""
        lines = zip_longest(self.shown.splitlines(), self.stored.splitlines())
        first = self.line + self.is_table
        return [
            f"{self.page}:{first + place}: shows {old or 'nothing'!r}, {self.reference} has {new or 'nothing'!r}"
            for place, (old, new) in enumerate(lines)
            if old != new
        ]


def pages_of(root: Path) -> list[Path]:
    """Pages that may hold marks."""
    return [path for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))] if path.exists()]


def claims_of(page: Path, root: Path, results: Mapping[str, Stored]) -> list[Claim]:
    """All marks of a page, in order. Blocks of code have none."""
    text = page.read_text("utf-8")
    name = str(page.relative_to(root))
    searched = FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    claims: list[Claim] = []
    left = searched
    for mark in MARK.finditer(searched):
        left = left[: mark.start()] + re.sub(r"[^\n]", " ", mark[0]) + left[mark.end() :]
        claims.append(_claim(mark, name, searched.count("\n", 0, mark.start()) + 1, results))
    stray = COMMENT.search(left)
    if stray:
        raise ClaimError(f"{name}:{left.count(chr(10), 0, stray.start()) + 1}: cannot read the mark {stray[0]}")
    return claims


def rendered(text: str, claims: list[Claim]) -> str:
    """The page with every mark filled from its stored result."""
    for claim in reversed(claims):
        text = text[: claim.begin] + claim.stored + text[claim.begin + len(claim.shown) :]
    return text


def unused(claims: list[Claim], results: Mapping[str, Stored]) -> list[str]:
    """What is stored and shown by no page."""
    shown = {claim.reference for claim in claims}
    names = {claim.result.name for claim in claims}
    lines = [f"{FOLDER / name}.json is used by no page" for name in results if name not in names]
    for name in sorted(names):
        keys = [key for key in results[name].values if f"{name}.{key}" not in shown]
        lines += [f"{FOLDER / name}.json: the value {key!r} is used by no page" for key in keys]
    return lines


def _claim(mark: re.Match[str], page: str, line: int, results: Mapping[str, Stored]) -> Claim:
    is_table = mark["table"] is not None
    name, group = (mark["table"], "body") if is_table else (mark["name"], "value")
    where = f"{page}:{line}"
    if name not in results:
        raise ClaimError(f"{where}: there is no {FOLDER / name}.json")
    before = mark.string[mark.string.rfind("\n", 0, mark.start()) + 1 : mark.start()]
    if not is_table and not before.strip(" -*"):
        raise ClaimError(f"{where}: a mark must not begin a line; move a word of the line above in front of it")
    result = results[name]
    try:
        stored = result.table() if is_table else result.value(mark["path"], mark["spec"] or "")
    except ClaimError as reason:
        raise ClaimError(f"{where}: {reason}") from None
    reference = name if is_table else name + mark["path"]
    return Claim(page, line, reference, result, mark[group], stored, mark.start(group), is_table)
