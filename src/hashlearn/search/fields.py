"""Columns that a store keeps beside id and code: text, integers, real numbers and truth values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hashlearn.core.names import require_choice

FIELD_TYPES: dict[str, type] = {"text": str, "integer": int, "real": float, "boolean": bool}
LARGEST_INTEGER = 2**63 - 1


def checked_field_types(fields: Mapping[str, Any] | None, taken: tuple[str, ...] = ("id", "code")) -> dict[str, str]:
    """The declared columns: names to "text", "integer", "real" or "boolean". Python's own types stand for these.

    >>> checked_field_types({"lang": str, "year": "integer"})
    {'lang': 'text', 'year': 'integer'}
    """
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields must be a mapping from column names to types, got {type(fields).__name__}")
    by_type = {kind: name for name, kind in FIELD_TYPES.items()}
    found: dict[str, str] = {}
    for name, kind in fields.items():
        if not isinstance(name, str) or not name or "\0" in name:
            raise ValueError(f"fields must have names that are text, not empty and without NUL, got {name!r}")
        if name.lower() in {*map(str.lower, taken), *map(str.lower, found)}:
            raise ValueError(f"fields must have names of their own, but {name!r} is taken")
        word = by_type.get(kind, kind) if isinstance(kind, type) else kind
        require_choice(word, f"fields[{name!r}]", FIELD_TYPES)
        found[name] = str(word)
    return found


def checked_fields(values: Mapping[str, Any] | None, declared: Mapping[str, str], n: int) -> dict[str, list[Any]]:
    """A list of ``n`` values for each declared column, of Python's own types; None is a missing value."""
    given: Mapping[str, Any] = {} if values is None else values
    if not isinstance(given, Mapping):
        raise TypeError(f"fields must be a mapping from column names to values, got {type(given).__name__}")
    for name in given:
        if name not in declared:
            there = ", ".join(map(repr, declared)) or "none"
            raise ValueError(f"fields has a column {name!r} that is not stored; stored are {there}")
    for name in declared:
        if name not in given:
            raise ValueError(f"fields must have a value of {name!r} for each code; None is a missing value")
    return {name: _checked_values(given[name], name, declared[name], n) for name in declared}


def _checked_values(values: Any, name: str, kind: str, n: int) -> list[Any]:
    if hasattr(values, "to_pylist"):
        listed = values.to_pylist()
    else:
        listed = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(listed) != n:
        raise ValueError(f"fields[{name!r}] must have one entry for each of the {n} code(s), got {len(listed)}")
    if set(map(type, listed)) <= {FIELD_TYPES[kind], type(None)} and _are_usable(listed, kind):
        return listed
    return [_checked_value(value, name, kind, row) for row, value in enumerate(listed)]


def is_usable(value: str | float) -> bool:
    """Whether every engine stores and compares a value as it is."""
    if isinstance(value, str):
        return "\0" not in value and value.encode(errors="replace").decode() == value
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= LARGEST_INTEGER


def is_of(value: Any, kind: str) -> bool:
    """Whether a column of this type can hold the value, or be compared with it."""
    types: Any = (int, float) if kind == "real" else FIELD_TYPES[kind]
    return isinstance(value, types) and isinstance(value, bool) == (kind == "boolean") and is_usable(value)


def _are_usable(values: list[Any], kind: str) -> bool:
    """Whether values of the right type, or missing, need no closer look: all of them at once, which is fast."""
    there = [value for value in values if value is not None]
    if kind == "integer":
        return max(map(abs, there), default=0) <= LARGEST_INTEGER
    if kind == "real":
        return all(map(math.isfinite, there))
    return kind != "text" or is_usable("".join(there))


def _checked_value(value: Any, name: str, kind: str, row: int) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not is_of(value, kind):
        raise ValueError(f"fields[{name!r}] must be {kind} or None, got {value!r} at row {row}")
    return float(value) if kind == "real" else value
