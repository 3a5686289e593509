"""Files whose lines name their variables: edge lists ``u v w`` (labels are text) and dimod's COO (labels are integers).

Variables are numbered as they appear. A variable without terms is written as a line ``v v 0``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal

import numpy as np

from hashlearn.bqp.modeling.labels import Terms, parallel_note
from hashlearn.bqp.modeling.problem import Problem, Sense
from hashlearn.bqp.problem_files.lines import Lines, shown, written

COMMENTS = ("#", "%")
_VARTYPE = re.compile(r"\s*#.*?vartype\s*[:=]\s*(\w+)")
_VARTYPES: dict[str, Sense] = {"BINARY": "qubo", "SPIN": "ising"}


def read_edges(lines: Lines, sense: Sense, separator: str | None = None) -> Problem:
    """The problem of an edge list: ``u v`` or ``u v w``, with blanks or another separator between them."""
    sample = "'u v' or 'u v w'" if separator is None else "'u,v' or 'u,v,w'"
    lines.expected = f"{sample}, without a header line"
    terms = Terms()
    for text in lines:
        if text.lstrip().startswith(COMMENTS):
            continue
        fields = [field.strip() for field in text.split(separator)]
        if len(fields) not in (2, 3) or not all(fields):
            lines.fail(f"expected {sample}, got {len(fields)} field(s): {shown(text)}")
        terms.add(fields[0], fields[1], lines.weight(fields[2]) if len(fields) == 3 else 1.0, "the weight of")
    return _problem(lines, sense, terms)


def read_csv(lines: Lines, sense: Sense) -> Problem:
    """The problem of an edge list with commas."""
    return read_edges(lines, sense, ",")


def read_coo(lines: Lines, sense: Sense | None) -> Problem:
    """The problem of a COO file: ``i j w``, and perhaps first ``# vartype=BINARY`` or ``# vartype=SPIN``."""
    lines.expected = "'i j w'"
    terms = Terms()
    for text in lines:
        if text.lstrip().startswith("#"):
            sense = _sense_of(lines, text, sense)
            continue
        fields = text.split()
        if len(fields) != 3:
            lines.fail(f"expected 'i j w', got {len(fields)} field(s): {shown(text)}")
        i, j = (lines.index(field, 0, 2**63 - 1) for field in fields[:2])
        terms.add(i, j, lines.weight(fields[2]), "the weight of")
    if sense is None:
        lines.fail("expected a line '# vartype=BINARY' or '# vartype=SPIN', or a sense: 'qubo' or 'ising'")
    return _problem(lines, sense, terms)


def write_edges(problem: Problem, separator: str = " ") -> Iterator[str]:
    """The lines of an edge list."""
    names = [str(label) for label in problem.index]
    if len(set(names)) < len(names):
        raise ValueError("two labels have the same text, and labels of an edge list are text; rename them first")
    for name in names:
        if not name or name != name.strip() or separator in name or len(name.split()) > 1 or name[0] in "#%":
            raise ValueError(
                f"the label {name!r} cannot be written: it has blanks or a separator, or begins with # or %"
            )
    yield from _lines(problem, names, separator, written)


def write_csv(problem: Problem) -> Iterator[str]:
    """The lines of an edge list with commas."""
    return write_edges(problem, ",")


def write_coo(problem: Problem) -> Iterator[str]:
    """The lines of a COO file. dimod reads no exponents, so weights are written without them."""
    for label in problem.index:
        if not isinstance(label, int | np.integer) or isinstance(label, bool) or not 0 <= label < 2**63:
            raise ValueError(f"the label {label!r} cannot be written: labels of a COO file are integers from 0")
    vartype = next(name for name, sense in _VARTYPES.items() if sense == problem.sense)
    yield f"# vartype={vartype}\n"
    names = [str(int(label)) for label in problem.index]  # type: ignore[call-overload]
    yield from _lines(problem, names, " ", lambda w: f"{Decimal(written(w)):f}")


def _lines(problem: Problem, names: list[str], separator: str, weight: Callable[[float], str]) -> Iterator[str]:
    """One line for each term, after lines ``v v 0`` where the terms would number the variables in another order."""
    mentioned = np.stack([problem.i, problem.j], axis=1).ravel()
    first = np.full(problem.n, len(mentioned))
    np.minimum.at(first, mentioned, np.arange(len(mentioned)))
    in_order = bool(np.all(first[:-1] < first[1:])) and not np.any(first == len(mentioned))
    for name in () if in_order else names:
        yield f"{name}{separator}{name}{separator}0\n"
    for i, j, w in zip(problem.i.tolist(), problem.j.tolist(), problem.w.tolist(), strict=True):
        yield f"{names[i]}{separator}{names[j]}{separator}{weight(w)}\n"


def _problem(lines: Lines, sense: Sense, terms: Terms) -> Problem:
    if not terms.number:
        lines.fail(f"the file names no variables, expected {lines.expected}")
    i, j, w = terms.arrays()
    labels: tuple[Hashable, ...] = terms.labels
    notes = parallel_note(i, j, len(labels), labels.__getitem__, lines.path.name) if sense == "max-cut" else ()
    return Problem(sense, len(labels), i, j, w, 0.0, sense == "max-cut", labels, lines.path, notes)


def _sense_of(lines: Lines, text: str, sense: Sense | None) -> Sense | None:
    """The sense that a comment states, or the one that is known already."""
    match = _VARTYPE.match(text)
    if match is None:
        return sense
    if match[1] not in _VARTYPES:
        lines.fail(f"expected '# vartype=BINARY' or '# vartype=SPIN', got {shown(text)}")
    stated = _VARTYPES[match[1]]
    if sense not in (None, stated):
        lines.fail(f"the file says {match[1]}, which means sense {stated!r}, but sense {sense!r} was given")
    return stated
