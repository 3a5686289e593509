"""`read_problem` and `write_problem`: max-cut, QUBO and Ising problems in files.

| format | endings | holds |
|---|---|---|
| ``rudy`` | ``.txt``, ``.rud``, ``.gset``, ``.mc``, others | max-cut: ``n m``, then m rows ``i j w`` or ``i j`` |
| ``biqmac`` | ``.sparse`` | QUBO: ``n m``, then m rows ``i j w``, w at (i, j) and at (j, i) |
| ``coo`` | ``.coo`` | dimod's COO: rows ``i j w`` below ``# vartype=BINARY`` (a QUBO) or ``# vartype=SPIN`` (Ising) |

Files may be gzipped (``.gz``). NumPy reads the rows, in O(rows) time and memory; lines that begin with # are comments.
For other formats, read the matrix or the graph with SciPy, pandas or networkx and pass it to `max_cut` or `qubo`.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

import numpy as np

from hashlearn.bqp.modeling.problem import SENSES, Problem, Sense
from hashlearn.core.arrays import FloatArray, IntArray
from hashlearn.core.atomic_files import regular_file, write_atomically
from hashlearn.core.names import require_choice

# Endings of each format. "rudy" also takes unknown endings.
FORMATS = {"rudy": (".txt", ".rud", ".gset", ".mc"), "biqmac": (".sparse",), "coo": (".coo",)}
WRITTEN: dict[str, tuple[Sense, ...]] = {"rudy": ("max-cut",), "biqmac": ("qubo",), "coo": ("qubo", "ising")}
VARTYPES: dict[str, Sense] = {"BINARY": "qubo", "SPIN": "ising"}
VARTYPE = re.compile(r"^\s*#.*?vartype\s*[:=]\s*(BINARY|SPIN)\b", re.MULTILINE)
MAX_VARIABLES = 10_000_000  # a header with more variables counts as damaged
TERM = [("i", np.int64), ("j", np.int64), ("w", np.float64)]


class ProblemFileError(ValueError):
    """A file that cannot be read as a problem. The message names the file and, for bad rows, the row."""


def read_problem(path: str | os.PathLike[str], sense: Sense | None = None, format: str | None = None) -> Problem:
    """Read a max-cut, QUBO or Ising file, plain or gzipped (``.gz``).

    The formats are rudy and BiqMac (`n m`, then rows `i j w`) and dimod's COO. Entries given twice, in either order,
    are summed. A self-loop is in no cut and contributes nothing.

    Parameters
    ----------
    path : the file
    sense : "max-cut", "qubo" or "ising"; None goes by the format
    format : a name from `FORMATS`; None goes by the ending, and by "rudy" for unknown endings

    Raises
    ------
    ProblemFileError
        With the file's name, and the row as NumPy counts it, below the header.

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
    if sense is not None:
        require_choice(sense, "sense", SENSES)
    path = Path(path)
    name = _format_name(path, format)
    try:
        with regular_file(path) as (file, _):
            content = file.read()
        text = (gzip.decompress(content) if path.name.lower().endswith(".gz") else content).decode("utf-8-sig")
        rows = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if name != "coo":
            return _counted(rows, sense or WRITTEN[name][0], path)
        senses = {VARTYPES[vartype] for vartype in VARTYPE.findall(text)} | ({sense} if sense else set())
        if len(senses) != 1:
            raise ValueError(f"expected '# vartype=BINARY' or '# vartype=SPIN', or a sense; got {sorted(senses)}")
        return _coo(rows, senses.pop(), path)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        message = getattr(error, "strerror", None) or str(error).partition(";")[0]
        raise ProblemFileError(f"{path}: {message}") from None


def write_problem(problem: Problem, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a problem to a file, which replaces an old one only when it is complete. `read_problem` gives it back.

    Weights are written so that reading gives the same floats. What the format cannot say is refused: an offset,
    maximized energies, labels that are not numbers, or another kind of problem.

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
        raise TypeError(f"problem must be a Problem, as of qubo_problem, got {type(problem).__name__}")
    path = Path(path)
    name = _format_name(path, format)
    if problem.sense not in WRITTEN[name]:
        raise ValueError(f"{path}: format {name!r} holds {' or '.join(WRITTEN[name])} problems, not {problem.sense}")
    if problem.offset or (problem.maximize and problem.sense != "max-cut") or not problem.n:
        raise ValueError(f"{path}: a file holds no offset, no maximized energy and no problem without variables")
    number, w = _numbers(problem, path, name), problem.w
    header = f"{problem.n} {len(w)}\n"
    if name == "coo":
        unused = np.setdiff1d(number, number[np.append(problem.i, problem.j)])
        header = f"# vartype={'SPIN' if problem.sense == 'ising' else 'BINARY'}\n"
        header += "".join(f"{k} {k} 0\n" for k in unused)
    elif problem.sense == "qubo":
        w = np.where(problem.i == problem.j, w, w / 2.0)
        if np.any(np.where(problem.i == problem.j, w, 2.0 * w) != problem.w):
            raise ValueError(f"{path}: half of a coefficient is too small for float64; write a .coo file")
    rows = zip(number[problem.i].tolist(), number[problem.j].tolist(), w, strict=True)
    # dimod reads no exponents.
    text = header + "".join(f"{i} {j} {np.format_float_positional(weight, trim='-')}\n" for i, j, weight in rows)
    content = text.encode()
    write_atomically(path, [gzip.compress(content, mtime=0) if path.name.lower().endswith(".gz") else content])


def _format_name(path: Path, format: str | None) -> str:
    if format is not None:
        require_choice(format, "format", FORMATS)
        return format
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    return next((name for name, endings in FORMATS.items() if ending in endings), "rudy")


def _counted(rows: list[str], sense: Sense, path: Path) -> Problem:
    """The problem of a rudy or BiqMac file."""
    header = re.fullmatch(r"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*", rows[0] if rows else "")
    if header is None:
        raise ValueError("its first line must be 'n m', the numbers of variables and of rows to follow")
    n, count = map(int, header.groups())
    if not 1 <= n <= MAX_VARIABLES:
        raise ValueError(f"the number of variables must be from 1 to {MAX_VARIABLES:,}, got {n}")
    if len(rows) - 1 != count:
        raise ValueError(f"it has {len(rows) - 1} of {count} rows; is it truncated?")
    i, j, w = _terms(rows[1:], 1, n, weighted=sense != "max-cut")
    if sense == "qubo":
        w = np.where(i == j, w, 2.0 * w)
    return Problem(sense, n, i - 1, j - 1, w, 0.0, sense == "max-cut", range(1, n + 1), path)


def _coo(rows: list[str], sense: Sense, path: Path) -> Problem:
    """The problem of a COO file; its labels are whole numbers, in ascending order."""
    if not rows:
        raise ValueError("it has no rows 'i j w'")
    i, j, w = _terms(rows, 0, 2**63 - 1)
    labels, numbers = np.unique(np.append(i, j), return_inverse=True)
    i, j = np.split(numbers, 2)
    return Problem(sense, len(labels), i, j, w, 0.0, sense == "max-cut", tuple(labels.tolist()), path)


def _terms(rows: list[str], first: int, last: int, weighted: bool = True) -> tuple[IntArray, IntArray, FloatArray]:
    """i, j and w of the rows ``i j w``; w is 1 in rows ``i j``, which are allowed unless they must be ``weighted``."""
    if not weighted and (not rows or len(rows[0].split()) == 2):
        rows = [f"{row} 1" for row in rows]
    table = np.loadtxt(rows, TERM, ndmin=1) if rows else np.empty(0, TERM)
    i, j = table["i"], table["j"]
    outside = np.flatnonzero((np.minimum(i, j) < first) | (np.maximum(i, j) > last))
    if len(outside):
        raise ValueError(
            f"i and j must be from {first} to {last}, and are not at row {outside[0]}: {rows[outside[0]]!r}"
        )
    return i, j, table["w"]


def _numbers(problem: Problem, path: Path, name: str) -> IntArray:
    """The number of each variable in a file."""
    labels = list(problem.index)
    if name != "coo" and set(labels) == set(range(problem.n)):
        labels = [label + 1 for label in labels]  # type: ignore[operator]
    least, most = (0, 2**63 - 1) if name == "coo" else (1, problem.n)
    for label in labels:
        if not isinstance(label, int | np.integer) or isinstance(label, bool) or not least <= label <= most:
            raise ValueError(f"{path}: the label {label!r} cannot be written; rename labels to 0 to {problem.n - 1}")
    return np.array(labels, np.int64)
