"""`read_problem` and `write_problem`: max-cut, QUBO and Ising problems in the file formats of their communities.

| format | endings | holds |
|---|---|---|
| ``rudy`` | ``.txt``, ``.rud``, ``.gset``, ``.mc``, any other | max-cut: ``n m``, then ``i j w`` |
| ``biqmac`` | ``.sparse`` | QUBO: ``n m``, then ``i j w``, w at (i, j) and at (j, i) |
| ``qbsolv`` | ``.qubo`` | QUBO: ``p qubo 0 maxNodes nNodes nCouplers``, then ``i j w`` |
| ``mtx`` | ``.mtx`` | Matrix Market; max-cut unless a sense is given |
| ``edges`` | ``.edges``, ``.edgelist`` | ``u v w`` with text labels; max-cut unless a sense is given |
| ``csv`` | ``.csv`` | ``u,v,w`` with text labels; max-cut unless a sense is given |
| ``coo`` | ``.coo`` | dimod's COO: QUBO or Ising, by ``# vartype=`` |

Every file may be gzipped (``.gz``). Reading takes one pass, O(lines) time and memory, whatever n a header claims.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn.bqp.modeling.problem import SENSES, Problem, Sense
from hashlearn.bqp.problem_files import counted, labeled, matrix_market
from hashlearn.bqp.problem_files.lines import MAX_VARIABLES, Lines, ProblemFileError, opened
from hashlearn.core.atomic_files import write_atomically
from hashlearn.core.names import did_you_mean

__all__ = [
    "FORMATS",
    "MAX_VARIABLES",
    "Format",
    "Problem",
    "ProblemFileError",
    "Sense",
    "read_problem",
    "write_problem",
]


@dataclass(frozen=True)
class Format:
    """A file format: how it is read and written, and which problems it can hold."""

    endings: tuple[str, ...]
    read: Callable[[Lines, Any], Problem]
    write: Callable[[Problem], Iterator[str]]
    senses: tuple[Sense, ...]  # that can be written; the only one if the file does not state its sense
    numbered: bool = True  # variables have numbers, no labels
    states_sense: bool = False


FORMATS: dict[str, Format] = {
    "rudy": Format((".txt", ".rud", ".gset", ".mc"), counted.read_counted, counted.write_counted, ("max-cut",)),
    "biqmac": Format((".sparse",), counted.read_counted, counted.write_counted, ("qubo",)),
    "qbsolv": Format((".qubo",), counted.read_qbsolv, counted.write_qbsolv, ("qubo",)),
    "mtx": Format((".mtx",), matrix_market.read_matrix_market, matrix_market.write_matrix_market, ("max-cut",)),
    "edges": Format((".edges", ".edgelist"), labeled.read_edges, labeled.write_edges, ("max-cut",), numbered=False),
    "csv": Format((".csv",), labeled.read_csv, labeled.write_csv, ("max-cut",), numbered=False),
    "coo": Format((".coo",), labeled.read_coo, labeled.write_coo, ("qubo", "ising"), False, states_sense=True),
}


def read_problem(path: str | os.PathLike[str], sense: Sense | None = None, format: str | None = None) -> Problem:
    """Read a max-cut, QUBO or Ising file, plain or gzipped (``.gz``).

    The module `hashlearn.bqp.problem_files` lists the formats. Blank lines are skipped anywhere. Entries given twice,
    in either order, are summed. A self-loop is in no cut and contributes nothing.

    Parameters
    ----------
    path : the file
    sense : "max-cut", "qubo" or "ising"; None goes by the format
    format : a name from `FORMATS`; None goes by the ending, and by "rudy" for unknown endings

    Raises
    ------
    ProblemFileError
        With the file's name, the line number and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from hashlearn import bqp
    >>> file = pathlib.Path(tempfile.mkdtemp(), "square.txt")
    >>> _ = file.write_text("4 4\\n1 2\\n2 3\\n3 4\\n4 1\\n")
    >>> problem = bqp.read_problem(file)
    >>> bqp.solve_problem(problem, method="exact").cut
    4.0
    """
    if sense is not None and sense not in SENSES:
        raise ValueError(f"sense must be one of {', '.join(SENSES)} or None, got {sense!r}")
    path = Path(path)
    chosen = FORMATS[_format_name(path, format)]
    if sense is None and not chosen.states_sense:
        sense = chosen.senses[0]
    with opened(path) as file:
        return chosen.read(Lines(path, file, "'n m' and then lines 'i j w'"), sense)


def write_problem(problem: Problem, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a problem to a file, which replaces an old one only when it is complete. `read_problem` gives it back.

    Weights are written so that reading gives the same floats. What the format cannot say is refused: an offset,
    maximized energies, labels other than the numbers 0 to n − 1, or another kind of problem than the one as which
    `read_problem` takes such a file.

    Parameters
    ----------
    problem : from `max_cut_problem`, `qubo_problem`, `ising_problem` or `read_problem`
    path : the file; the ending ``.gz`` compresses it
    format : a name from `FORMATS`; None goes by the ending

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from hashlearn import bqp
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pair.coo")
    >>> bqp.write_problem(bqp.qubo_problem({(0, 0): -1.5, (0, 1): 2.0}), file)
    >>> print(file.read_text(), end="")
    # vartype=BINARY
    0 0 -1.5
    0 1 2
    """
    if not isinstance(problem, Problem):
        raise TypeError(
            f"problem must be a Problem, got {type(problem).__name__}; make one with qubo_problem, ising_problem or "
            "max_cut_problem"
        )
    path = Path(path)
    name = _format_name(path, format)
    _require_sayable(problem, path, name)
    if FORMATS[name].numbered:
        problem = _in_order(problem)
    try:
        content = "".join(FORMATS[name].write(problem)).encode()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    write_atomically(path, [gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content])


def _format_name(path: Path, given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise ValueError(
                f"format must be one of {', '.join(FORMATS)} or None, got {given!r}{did_you_mean(given, FORMATS)}"
            )
        return given
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    return next((name for name, known in FORMATS.items() if ending in known.endings), "rudy")


def _require_sayable(problem: Problem, path: Path, name: str) -> None:
    """Refuse what files of this format cannot say."""
    chosen = FORMATS[name]
    if problem.sense not in chosen.senses:
        endings = " or ".join(known.endings[0] for known in FORMATS.values() if problem.sense in known.senses)
        raise ValueError(
            f"{path}: a file of format {name!r} is read as a {' or '.join(chosen.senses)} problem, and this is a "
            f"{problem.sense} problem; use the ending {endings}"
        )
    if problem.offset:
        raise ValueError(f"{path}: the problem has the offset {problem.offset:g}, which no file can say; leave it out")
    if problem.maximize and problem.sense != "max-cut":
        raise ValueError(f"{path}: the energy is maximized, and files are minimized; negate all coefficients")
    if problem.n == 0:
        raise ValueError(f"{path}: the problem has no variables")
    if chosen.numbered and _first_number(problem) is None:
        other = ", or use the ending .edges or .csv" if problem.sense == "max-cut" else ""
        raise ValueError(
            f"{path}: format {name!r} numbers its variables and has no labels; "
            f"rename them to 0 to {problem.n - 1}{other}"
        )


def _first_number(problem: Problem) -> int | None:
    """0 or 1 if the labels are the n integers from there on, in any order; else None."""
    if problem.labels is None:
        return 0
    labels = {label for label in problem.labels if isinstance(label, int | np.integer)}
    return next((first for first in (0, 1) if labels == set(range(first, first + problem.n))), None)


def _in_order(problem: Problem) -> Problem:
    """The problem with its variables in the order of their numbers."""
    if problem.labels is None:
        return problem
    number = np.array(problem.labels, dtype=np.int64) - (_first_number(problem) or 0)
    return dataclasses.replace(problem, i=number[problem.i], j=number[problem.j], labels=None)
