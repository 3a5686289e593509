"""A Sphinx extension: docstrings in our style as reStructuredText, and a check that every public name has its place.

Our docstrings say ``name : what it means`` where NumPy's say ``name : type``. They also use plain ``|x|`` and
``codes_``, which reStructuredText would read as markup. Both are translated here, so docstrings stay easy to read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

API = Path(__file__).parent / "api" / "index.md"
FIELDS = {"Parameters", "Attributes"}
FIELD = re.compile(r"([\w*.]+(?:, [\w*.]+)*) : (.+)")
LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")
GENERATED = re.compile(r"Alias for field number \d+")


def as_restructured_text(lines: list[str]) -> list[str]:
    """The docstring with its fields as NumPy's docstrings have them, and without accidental markup.

    >>> as_restructured_text(["Parameters", "----------", "tol : of |x|, as in codes_", "    and `x_`"])
    ['Parameters', '----------', 'tol', '    of \\\\|x\\\\|, as in codes\\\\_', '    and `x_`']
    """
    result: list[str] = []
    section, example = "", False
    for place, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if example:
            result.append(line)
            continue
        if place + 1 < len(lines) and line.strip() and re.fullmatch(r" *-{3,}", lines[place + 1]):
            section = line.strip()
        field = FIELD.fullmatch(line) if section in FIELDS else None
        if field:
            result += [field[1], "    " + _escaped(field[2])]
        else:
            result.append(_escaped(line))
    return result


def _escaped(line: str) -> str:
    """The line with ``|`` and the underscore at the end of a word escaped, outside of code.

    >>> _escaped("|x| of codes_, but ``codes_``")
    '\\\\|x\\\\| of codes\\\\_, but ``codes_``'
    """
    parts = LITERAL.split(line)
    parts[::2] = [UNDERSCORE.sub(r"\\_", part.replace("|", r"\|")) for part in parts[::2]]
    return "".join(parts)


def contents(value: Any) -> str | None:
    """What a constant holds, in words, if it has no docstring of its own.

    >>> contents({"sdr": 1, "al": 2}), contents(3)
    ('By name: ``"sdr"``, ``"al"``.', 'The value is ``3``.')
    """
    if isinstance(value, Mapping):
        return "By name: " + ", ".join(f'``"{key}"``' for key in value) + "."
    if isinstance(value, str | int | float):
        return f"The value is ``{value!r}``."
    if isinstance(value, tuple | list | set | frozenset):
        return "One of " + ", ".join(f"``{item!r}``" for item in value) + "."
    return None


def listed_packages() -> list[str]:
    """The packages that the page of the API lists."""
    return re.findall(r"^   (hashlearn[\w.]*)$", API.read_text("utf-8"), re.MULTILINE)


def public_names(package: str) -> list[str]:
    """What is public in a package: its ``__all__`` without modules and dunder names."""
    module = import_module(package)
    names = [name for name in module.__all__ if not name.startswith("__")]
    return [name for name in names if not isinstance(getattr(module, name), ModuleType)]


def _process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    told = contents(obj) if what == "data" else None
    lines[:] = [told] if told else as_restructured_text(lines)


def _skip(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn's base classes add, and fields of named tuples without a description."""
    generated = GENERATED.fullmatch(getattr(obj, "__doc__", None) or "")
    foreign = str(getattr(obj, "__module__", "")).startswith("sklearn.")
    return True if generated or foreign else None


def _missing(app: Any, env: Any) -> None:
    from sphinx.util import logging

    known = env.get_domain("py").objects
    for package in listed_packages():
        for name in public_names(package):
            if f"{package}.{name}" not in known:
                logging.getLogger(__name__).warning("%s.%s has no place in the API pages", package, name)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx; before napoleon, whose priority is 500."""
    from sphinx.ext import autosummary

    autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # a summary does not end there
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", _skip)
    app.connect("env-check-consistency", _missing)
    return {"parallel_read_safe": True}
