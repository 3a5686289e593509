"""Matrix Market files (``.mtx``): a square matrix of weights, of Q or of J, symmetric or general.

A cut needs a symmetric matrix. A QUBO is zᵀQz and an Ising energy sᵀJs, so that every entry counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.io

from hashlearn.bqp.modeling.matrices import entries, halved
from hashlearn.bqp.modeling.problem import Problem, Sense
from hashlearn.bqp.problem_files.lines import MAX_VARIABLES, Lines, ProblemFileError, opened, shown, written

_WANTED = "expected '%%MatrixMarket matrix coordinate real symmetric', or 'array', 'integer', 'pattern', 'general'"


def read_matrix_market(lines: Lines, sense: Sense) -> Problem:
    """The problem of a Matrix Market file."""
    _check_header(lines)
    try:
        with opened(lines.path) as file:
            matrix = scipy.io.mmread(file.buffer, spmatrix=False)
        n, i, j, w = entries(matrix, "the matrix")
        if sense == "max-cut":
            n, i, j, w = halved(n, i, j, w, "the matrix")
        elif sense == "ising" and np.any(w[i == j]):
            raise ValueError("an Ising matrix must have a zero diagonal, since s² is always 1")
    except ProblemFileError:
        raise
    except (ValueError, OverflowError, TypeError) as error:
        raise ProblemFileError(f"{lines.path}: {error}") from None
    return Problem(sense, n, i, j, w, 0.0, sense == "max-cut", None, lines.path)


def write_matrix_market(problem: Problem) -> Iterator[str]:
    """The lines of a Matrix Market file: the weights of a cut as a symmetric matrix."""
    i, j = np.maximum(problem.i, problem.j), np.minimum(problem.i, problem.j)
    yield "%%MatrixMarket matrix coordinate real symmetric\n"
    yield f"{problem.n} {problem.n} {len(problem.w)}\n"
    for row, column, w in zip((i + 1).tolist(), (j + 1).tolist(), problem.w.tolist(), strict=True):
        yield f"{row} {column} {written(w)}\n"


def _check_header(lines: Lines) -> None:
    """Refuse what is no real square matrix, before anything is allocated."""
    first = lines.peek(())
    fields = first.lower().split()
    if len(fields) != 5 or fields[:2] != ["%%matrixmarket", "matrix"]:
        lines.fail(f"{_WANTED}, got {shown(first)}")
    if fields[2] not in ("coordinate", "array") or fields[3] not in ("real", "double", "integer", "pattern"):
        lines.fail(f"{_WANTED}, got {shown(first)}")
    if fields[4] not in ("symmetric", "general"):
        lines.fail(f"{_WANTED}, got {shown(first)}")
    rest = iter(lines)
    next(rest)
    text = next((text for text in rest if not text.startswith("%")), "")
    wanted = "expected 'rows columns entries'" if fields[2] == "coordinate" else "expected 'rows columns'"
    sizes = lines.header(text, wanted, text.split(), 3 if fields[2] == "coordinate" else 2)
    if sizes[0] != sizes[1] or sizes[0] < 1:
        lines.fail(f"{wanted} of a square matrix, got {shown(text)}")
    if fields[2] == "array" and sizes[0] ** 2 > MAX_VARIABLES * 10:
        lines.fail(f"an array of {sizes[0]:,} rows is larger than the {MAX_VARIABLES * 10:,} entries that are read")
