"""Readers for max-cut (Gset, rudy) and QUBO (BiqMac, Beasley) files: their problem as min xᵀAx, eq. (5).

A cut is maximized over sides x ∈ {−1, +1}ⁿ, a QUBO energy yᵀQy is minimized over y ∈ {0, 1}ⁿ. Both become
eq. (5): the cut with A = W, the QUBO with y = (1 + s·x) / 2, where the extra variable s represents the linear
term exactly. `Problem` translates values, bounds and assignments back into the file's own sense.

Reading takes one pass, O(lines) time and memory, whatever n the header claims.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, NoReturn, TextIO, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hashlearn.bqp.operators import Sparse
from hashlearn.bqp.solution import relative_gap
from hashlearn.core.arrays import EPS
from hashlearn.core.checks import signs

Sense: TypeAlias = Literal["max-cut", "qubo"]

SENSES: tuple[Sense, ...] = ("max-cut", "qubo")
QUBO_SUFFIXES = (".sparse", ".qubo")
# A header with more variables counts as damaged. Nothing is allocated before this check.
MAX_VARIABLES = 10_000_000
# No line of these formats is longer.
MAX_LINE = 10_000
# Sums of squares of weights up to this size stay finite in float64.
LARGEST_WEIGHT = 1e100
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)


class ProblemFileError(ValueError):
    """A file that cannot be read as a problem. The message names the file, the line and what was expected there."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem as its file states it, and the operator of eq. (5) that stands for it.

    Attributes
    ----------
    path : where it was read from
    sense : "max-cut" (the cut is maximized) or "qubo" (the energy is minimized)
    n : the file's own number of variables; a QUBO's operator has one more
    operator : A of min xᵀAx, with zero diagonal
    offset : objective = offset − value / 4 for a cut, offset + value / 4 for an energy
    rounding : how far rounding may move an objective, in the file's units; 0 for integer weights
    """

    path: Path
    sense: Sense
    n: int
    operator: Sparse
    offset: float
    rounding: float = 0.0

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return self.path.name

    def objective(self, value: float) -> float:
        """The file's own objective (cut, or QUBO energy) where xᵀAx = ``value``."""
        return self.offset + self._slope * value

    def objective_bound(self, bound: float) -> float:
        """A proven bound on the file's own optimum from a lower bound on xᵀAx, rounded to the safe side.

        No cut is larger than it, no energy is smaller; ±inf where there is no bound.
        """
        if not math.isfinite(bound):
            return -math.copysign(math.inf, self._slope)
        exact = Fraction(self.offset) + Fraction(self._slope) * Fraction(bound)
        if self.sense == "max-cut":
            return _float_at_least(exact + Fraction(self.rounding))
        return -_float_at_least(-exact + Fraction(self.rounding))

    def objective_gap(self, value: float, bound: float) -> float:
        """|objective − bound| / |bound| in the file's units; inf without a bound, or if 0 and not met."""
        sign = -1.0 if self.sense == "max-cut" else 1.0
        return relative_gap(sign * self.objective(value), sign * self.objective_bound(bound))

    def assignment(self, x: ArrayLike) -> NDArray[np.int8]:
        """The file's own variables from the signs x of eq. (5): sides ±1 of a cut, 0 and 1 of a QUBO."""
        x = signs(x, self.operator.n, "x")
        if self.sense == "max-cut":
            return x.astype(np.int8)
        return (x[:-1] * x[-1] > 0.0).astype(np.int8)

    @property
    def _slope(self) -> float:
        return -0.25 if self.sense == "max-cut" else 0.25


def read_problem(path: str | os.PathLike[str], sense: Sense | None = None) -> Problem:
    """Read a max-cut or QUBO file, plain or gzipped (``.gz``).

    Both formats are text: ``n m`` on the first line, then m lines ``i j w`` with i and j from 1 to n. Blank
    lines are skipped anywhere, comment lines (starting with ``#`` or ``c``) before the first line. Entries
    given twice, in either order, are summed.

    - max-cut: w is the weight of the edge between i and j, 1 where it is left out; a self-loop is in no cut
      and contributes nothing.
    - qubo: minimize yᵀQy; w stands at (i, j) and at (j, i), on the diagonal once.

    Parameters
    ----------
    path : the file
    sense : "max-cut" or "qubo"; None goes by the name: ``.sparse`` and ``.qubo`` are QUBOs, others max-cut

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
    >>> problem = read_problem(file)
    >>> problem.objective(problem.operator.value([1, -1, 1, -1]))
    4.0
    """
    if sense is not None and sense not in SENSES:
        raise ValueError(f"sense must be one of {', '.join(SENSES)} or None, got {sense!r}")
    path = Path(path)
    if sense is None:
        sense = "qubo" if path.name.lower().removesuffix(".gz").endswith(QUBO_SUFFIXES) else "max-cut"
    with _opened(path) as file:
        n, i, j, w = _Reader(path, sense).read(file)
    return _max_cut(path, n, i, j, w) if sense == "max-cut" else _qubo(path, n, i, j, w)


IntArray: TypeAlias = NDArray[np.int64]
Entries: TypeAlias = tuple[int, IntArray, IntArray, NDArray[np.float64]]  # n, i, j (from 0) and w


def _max_cut(path: Path, n: int, i: IntArray, j: IntArray, w: NDArray[np.float64]) -> Problem:
    """cut(x) = Σ w_ij (1 − x_i x_j) / 2 over the edges = (Σw) / 2 − xᵀWx / 4."""
    proper = i != j
    i, j, w = i[proper], j[proper], w[proper]
    W = _symmetric(n, i, j, w)
    return Problem(path, "max-cut", n, Sparse(W), math.fsum(w) / 2.0, _rounding(n, i, j, w))


def _qubo(path: Path, n: int, i: IntArray, j: IntArray, w: NDArray[np.float64]) -> Problem:
    """With y = (1 + s·x) / 2, q = Q1 and Q₀ = Q without its diagonal, A = [Q₀ q; qᵀ 0] and

    yᵀQy = (1ᵀQ1 + tr Q + 2 s qᵀx + xᵀQ₀x) / 4.
    """
    proper = i != j
    diagonal = np.bincount(i[~proper], w[~proper], minlength=n)
    Q0 = _symmetric(n, i[proper], j[proper], w[proper])
    q = Q0.sum(axis=1) + diagonal
    column = sp.csr_array(q[:, None])
    A = sp.block_array([[Q0, column], [column.T, None]], format="csr")
    offset = math.fsum(np.concatenate([w, w])) / 4.0
    return Problem(path, "qubo", n, Sparse(A), offset, _rounding(n, i, j, w))


def _symmetric(n: int, i: IntArray, j: IntArray, w: NDArray[np.float64]) -> sp.csr_array:
    half = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    return sp.csr_array(half + half.T)


def _rounding(n: int, i: IntArray, j: IntArray, w: NDArray[np.float64]) -> float:
    """Bound on the rounding in the offset and in A, whose entries sum at most ``terms`` weights each."""
    total = math.fsum(np.abs(w))
    if np.all(w == np.rint(w)) and total < 2.0**50:
        return 0.0
    terms = int((np.bincount(i, minlength=n) + np.bincount(j, minlength=n)).max())
    return 4.0 * EPS * (terms + 4) * total


def _float_at_least(exact: Fraction) -> float:
    """The smallest float that is not below ``exact``."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file as text. An error with the file as a whole becomes a `ProblemFileError`."""
    try:
        if path.is_dir():
            raise ProblemFileError(f"{path}: is a directory, expected a max-cut or QUBO file")
        if path.exists() and not path.is_file():  # opening a named pipe would wait for its writer
            raise ProblemFileError(f"{path}: is not a regular file, expected a max-cut or QUBO file")
        opener = gzip.open if path.name.lower().endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8-sig") as file:
            yield file
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror or error}") from None


class _Reader:
    """One pass over the lines. ``line`` is the number of the line just read, for error messages."""

    def __init__(self, path: Path, sense: Sense) -> None:
        self.path, self.line, self.n = path, 0, 0
        self.fields = (2, 3) if sense == "max-cut" else (3,)
        self.wanted = "'i j w' or 'i j'" if sense == "max-cut" else "'i j w'"

    def read(self, file: TextIO) -> Entries:
        lines = self._lines(file)
        expected = self._header(lines)
        rows, columns, weights = array("q"), array("q"), array("d")
        for text in lines:
            if len(weights) == expected:
                self._fail(f"more lines than the {expected} that the header announces")
            i, j, w = self._entry(text)
            rows.append(i)
            columns.append(j)
            weights.append(w)
        if len(weights) < expected:
            self._fail(f"the file ends after {len(weights)} of {expected} lines 'i j w'; is it truncated?")
        return self.n, np.array(rows, np.int64) - 1, np.array(columns, np.int64) - 1, np.array(weights, np.float64)

    def _lines(self, file: TextIO) -> Iterator[str]:
        """The lines that are not blank."""
        try:
            while text := file.readline(MAX_LINE + 1):
                self.line += 1
                if len(text) > MAX_LINE:
                    self._fail(f"more than {MAX_LINE:,} characters in a line, expected 'i j w'")
                if not text.isspace():
                    yield text
        except UnicodeDecodeError:
            self.line += 1
            self._fail("not text from here on, expected 'n m' and then lines 'i j w'")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self.line += 1
            self._fail(f"the gzip file is damaged from here on: {error}")

    def _header(self, lines: Iterable[str]) -> int:
        text = next((text for text in lines if not text.lstrip().startswith(("#", "c"))), None)
        wanted = "expected 'n m', the numbers of variables and of lines to follow"
        if text is None:
            self._fail(f"the file is empty, {wanted}" if self.line == 0 else f"no header, {wanted}")
        fields = text.split()
        if len(fields) != 2:
            self._fail(f"{wanted}, got {len(fields)} fields: {_shown(text)}")
        self.n, count = (self._integer(field, wanted) for field in fields)
        if self.n < 1:
            self._fail(f"the number of variables must be at least 1, got {self.n}")
        if self.n > MAX_VARIABLES:
            self._fail(f"{_shown(fields[0])} variables are announced, more than the {MAX_VARIABLES:,} that are read")
        if count < 0:
            self._fail(f"the number of lines to follow must not be negative, got {count}")
        return count

    def _entry(self, text: str) -> tuple[int, int, float]:
        fields = text.split()
        try:
            i, j, w = int(fields[0]), int(fields[1]), float(fields[2]) if len(fields) > 2 else 1.0
        except (ValueError, IndexError):
            return self._checked_entry(text, fields)
        inside = 1 <= i <= self.n and 1 <= j <= self.n and abs(w) <= LARGEST_WEIGHT
        if inside and len(fields) in self.fields and _is_plain(text):
            return i, j, w
        return self._checked_entry(text, fields)

    def _checked_entry(self, text: str, fields: list[str]) -> tuple[int, int, float]:
        """The entry of an unusual line, field by field, to find what is wrong with it."""
        if len(fields) not in self.fields:
            self._fail(f"expected {self.wanted}, got {len(fields)} field(s): {_shown(text)}")
        i, j = (self._index(field) for field in fields[:2])
        return i, j, self._weight(fields[2]) if len(fields) == 3 else 1.0

    def _index(self, field: str) -> int:
        i = self._integer(field, "expected 'i j w' with whole numbers i and j")
        if not 1 <= i <= self.n:
            self._fail(f"index {_shown(field)} is outside 1..{self.n}")
        return i

    def _integer(self, field: str, wanted: str) -> int:
        if not _INTEGER.fullmatch(field):
            self._fail(f"{wanted}, got {_shown(field)}")
        return int(field)

    def _weight(self, field: str) -> float:
        try:
            w = float(field) if _is_plain(field) else math.nan
        except ValueError:
            w = math.nan
        if not math.isfinite(w):
            self._fail(f"expected 'i j w' with a finite number w, got {_shown(field)}")
        if abs(w) > LARGEST_WEIGHT:
            self._fail(f"weight {_shown(field)} is larger than {LARGEST_WEIGHT:g}; scale the weights first")
        return w

    def _fail(self, message: str) -> NoReturn:
        raise ProblemFileError(f"{self.path}, line {max(self.line, 1)}: {message}") from None


def _is_plain(text: str) -> bool:
    """Python also reads "1_000" and digits of other scripts as numbers. These formats do not."""
    return text.isascii() and "_" not in text


def _shown(text: str) -> str:
    """A part of the file for a message: short and printable."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")
