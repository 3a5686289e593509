"""Stored results: one JSON file for each table or group of figures, with the command that measured them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path("docs") / "results"
ABOUT = ("command", "commit", "machine", "date")
ALIGN = {"l": "---", "r": "---:"}
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?")


class ClaimError(ValueError):
    """A stored result or a mark that cannot be read."""


@dataclass(frozen=True)
class Stored:
    """The content of one file: values by key, or a table, or both."""

    name: str
    command: str | None
    commit: str
    machine: str
    date: str
    transcribed: bool = False  # copied from a page, not written by a benchmark; commit and date are those of its line
    note: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    align: str = ""  # one letter for each column, l or r; nothing is l everywhere

    def value(self, path: str, spec: str = "") -> str:
        """What a mark shows, from ``.key`` or ``[row][column]#number``."""
        if path.startswith("."):
            if path[1:] not in self.values:
                raise ClaimError(f"{self.name} has no value {path[1:]!r}; it has {_names(self.values)}")
            return shown(self.values[path[1:]], spec)
        *first, column = re.findall(r"\[([^\]]*)\]", path)
        cell = str(self._cell(first, column))
        place = path.rpartition("]")[2]
        if place:
            numbers = NUMBER.findall(cell)
            if not 1 <= int(place[1:]) <= len(numbers):
                raise ClaimError(f"{self.name}{path}: the cell {cell!r} has {len(numbers)} numbers")
            cell = numbers[int(place[1:]) - 1]
        return shown(float(cell.replace(",", "")), spec) if spec and NUMBER.fullmatch(cell) else shown(cell, spec)

    def table(self) -> str:
        """The table as Markdown."""
        if not self.columns:
            raise ClaimError(f"{self.name} has no table, only the values {_names(self.values)}")
        rule = "|".join(ALIGN[letter] for letter in self.align or "l" * len(self.columns))
        lines = [" | ".join(map(str, cells)) for cells in (self.columns, *self.rows)]
        head, *body = (re.sub("  +", " ", f"| {line} |") for line in lines)  # an empty cell is one space wide
        return "\n".join([head, f"|{rule}|", *body, ""])

    def _cell(self, first: list[str], column: str) -> Any:
        if self.columns.count(column) != 1:
            raise ClaimError(f"{self.name} needs one column {column!r}; it has {_names(self.columns)}")
        found = [row for row in self.rows if first and [str(cell) for cell in row[: len(first)]] == first]
        if len(found) != 1:
            raise ClaimError(f"{self.name}: {len(found)} rows begin with {first}, one is needed; name more cells")
        return found[0][self.columns.index(column)]


def shown(value: Any, spec: str = "") -> str:
    """A value as text.

    >>> shown(18000, ","), shown(96.61, ".1f"), shown([93.1, 95.0])
    ('18,000', '96.6', '93.1 / 95.0')
    """
    if isinstance(value, list):
        return " / ".join(shown(part, spec) for part in value)
    try:
        return format(value, spec)
    except ValueError as reason:
        raise ClaimError(f"the format {spec!r} does not fit {value!r}: {reason}") from None


def read_all(root: Path) -> dict[str, Stored]:
    """Every stored result of a checkout by name."""
    return {path.stem: read(path) for path in sorted((root / FOLDER).glob("*.json"))}


def read(path: Path) -> Stored:
    """One file, validated."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as reason:
        raise ClaimError(f"{path.name} is not valid JSON: {reason}") from None
    if not isinstance(content, dict):
        raise ClaimError(f"{path.name} must hold a JSON object")
    missing = [key for key in ABOUT if key not in content]
    unknown = sorted(set(content) - set(Stored.__dataclass_fields__) | ({"name"} & set(content)))
    if missing or unknown:
        raise ClaimError(f"{path.name}: missing keys {missing}, unknown keys {unknown}")
    if content["command"] is None and not content.get("note"):
        raise ClaimError(f"{path.name} names no command; say why in a note")
    result = Stored(path.stem, **content)
    if not result.values and not result.rows:
        raise ClaimError(f"{path.name} needs values, or columns and rows")
    wrong = [row for row in result.rows if not isinstance(row, list) or len(row) != len(result.columns)]
    if wrong or set(result.align) - set(ALIGN) or len(result.align) not in (0, len(result.columns)):
        raise ClaimError(f"{path.name}: rows and align must fit its {len(result.columns)} columns")
    return result


def _names(names: Any) -> str:
    return ", ".join(repr(name) for name in names) or "none"
