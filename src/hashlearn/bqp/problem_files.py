"""Readers for max-cut (Gset, rudy) and QUBO (BiqMac, Beasley) files: their problem as min xᵀAx, eq. (5).

A cut is maximised over sides x ∈ {−1, +1}ⁿ, a QUBO energy yᵀQy is minimised over y ∈ {0, 1}ⁿ. Both become
eq. (5): the cut with A = W, the QUBO with y = (1 + s·x) / 2, where s is one extra variable that carries the
linear term exactly. `Problem` translates values, bounds and assignments back into the file's own sense.

Reading is one pass over the lines in blocks, O(lines) time and memory, whatever n the header claims.
"""

from __future__ import annotations

import gzip
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn, TextIO, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hashlearn.bqp.operators import Sparse
from hashlearn.core.checks import signs

Sense: TypeAlias = Literal["max-cut", "qubo"]

SENSES: tuple[Sense, ...] = ("max-cut", "qubo")
QUBO_SUFFIXES = (".sparse", ".qubo")
# More variables than this is taken for a damaged header; nothing is allocated before the check.
MAX_VARIABLES = 10_000_000
# Longer than any line of these formats: what exceeds it is not such a file.
MAX_LINE = 10_000
# Sums of squares of such weights stay finite in float64.
LARGEST_WEIGHT = 1e100
_LINES_PER_BLOCK = 65_536
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)
_EPS = float(np.finfo(np.float64).eps)


class ProblemFileError(ValueError):
    """A file that cannot be read as a problem: which file, which line, and what was expected there."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem as its file states it, and the operator of eq. (5) that stands for it.

    Attributes
    ----------
    path : where it was read from
    sense : "max-cut" (the cut is maximised) or "qubo" (the energy is minimised)
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
        own = self.objective_bound(bound)
        if not math.isfinite(own):
            return math.inf
        sign = -1.0 if self.sense == "max-cut" else 1.0
        difference = max(sign * (self.objective(value) - own), 0.0)
        if difference == 0.0:
            return 0.0
        return difference / abs(own) if own else math.inf

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
    - qubo: minimise yᵀQy; w stands at (i, j) and at (j, i), on the diagonal once.

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
    sense = sense or _sense_of_name(path)
    with _opened(path) as file:
        n, i, j, w = _Reader(path, sense).read(file)
    return _max_cut(path, n, i, j, w) if sense == "max-cut" else _qubo(path, n, i, j, w)


def _sense_of_name(path: Path) -> Sense:
    name = path.name.lower().removesuffix(".gz")
    return "qubo" if name.endswith(QUBO_SUFFIXES) else "max-cut"


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
    return 4.0 * _EPS * (terms + 4) * total


def _float_at_least(exact: Fraction) -> float:
    """The smallest float that is not below ``exact``."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file as text; what goes wrong with the file as a whole becomes a `ProblemFileError`."""
    try:
        if path.is_dir():
            raise ProblemFileError(f"{path}: is a directory, expected a max-cut or QUBO file")
        if path.exists() and not path.is_file():  # to open a named pipe is to wait for its writer
            raise ProblemFileError(f"{path}: is not a regular file, expected a max-cut or QUBO file")
        opener = gzip.open if path.name.lower().endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8-sig") as file:
            yield file
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror or error}") from None


@dataclass
class _Reader:
    """One pass over the lines; knows the line number for every complaint."""

    path: Path
    sense: Sense
    line: int = 0
    n: int = 0

    def read(self, file: TextIO) -> Entries:
        lines = self._lines(file)
        expected = self._header(lines)
        blocks = [np.empty((0, 2), np.int64)]
        weights = [np.empty(0)]
        count = 0
        while block := list(islice(lines, min(expected - count + 1, _LINES_PER_BLOCK))):
            block, surplus = block[: expected - count], block[expected - count :]
            if block:
                index, w = self._entries(block)
                blocks.append(index)
                weights.append(w)
                count += len(block)
            if surplus:
                self._fail(f"more lines than the {expected} that the header announces", surplus[0][0])
        if count < expected:
            self._fail(f"the file ends after {count} of {expected} lines 'i j w'; is it truncated?")
        index = np.concatenate(blocks)
        return self.n, index[:, 0] - 1, index[:, 1] - 1, np.concatenate(weights)

    def _lines(self, file: TextIO) -> Iterator[tuple[int, str]]:
        """Lines that are not blank, with their numbers."""
        try:
            while text := file.readline(MAX_LINE + 1):
                self.line += 1
                if len(text) > MAX_LINE:
                    self._fail(f"more than {MAX_LINE:,} characters in a line, expected 'i j w'")
                if not text.isspace():
                    yield self.line, text
        except UnicodeDecodeError:
            self._fail("not text from here on, expected 'n m' and then lines 'i j w'", self.line + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self._fail(f"the gzip file is damaged from here on: {error}", self.line + 1)

    def _header(self, lines: Iterable[tuple[int, str]]) -> int:
        text = next((text for _, text in lines if not text.lstrip().startswith(("#", "c"))), None)
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

    def _entries(self, block: list[tuple[int, str]]) -> tuple[IntArray, NDArray[np.float64]]:
        """Indices and weights of a block: all at once, and line by line only to find what is wrong."""
        fields = [text.split() for _, text in block]
        try:
            i = np.array([int(f[0]) for f in fields], np.int64)
            j = np.array([int(f[1]) for f in fields], np.int64)
            w = np.array([float(f[2]) if len(f) > 2 else 1.0 for f in fields])
        except (ValueError, IndexError, OverflowError):
            return self._entries_one_by_one(block)
        lengths = set(map(len, fields))
        clean = (
            lengths <= ({2, 3} if self.sense == "max-cut" else {3})
            and min(i.min(), j.min()) >= 1
            and max(i.max(), j.max()) <= self.n
            and bool(np.all(np.abs(w) <= LARGEST_WEIGHT))
            and all(_is_plain(text) for _, text in block)
        )
        return (np.column_stack([i, j]), w) if clean else self._entries_one_by_one(block)

    def _entries_one_by_one(self, block: list[tuple[int, str]]) -> tuple[IntArray, NDArray[np.float64]]:
        index, weights = [], []
        for number, text in block:
            fields = text.split()
            if len(fields) not in ((2, 3) if self.sense == "max-cut" else (3,)):
                wanted = "'i j w' or 'i j'" if self.sense == "max-cut" else "'i j w'"
                self._fail(f"expected {wanted}, got {len(fields)} field(s): {_shown(text)}", number)
            index.append([self._index(field, number) for field in fields[:2]])
            weights.append(self._weight(fields[2], number) if len(fields) == 3 else 1.0)
        return np.array(index, np.int64), np.array(weights)

    def _index(self, field: str, number: int) -> int:
        i = self._integer(field, "expected 'i j w' with whole numbers i and j", number)
        if not 1 <= i <= self.n:
            self._fail(f"index {_shown(field)} is outside 1..{self.n}", number)
        return i

    def _integer(self, field: str, wanted: str, number: int | None = None) -> int:
        if not _INTEGER.fullmatch(field):
            self._fail(f"{wanted}, got {_shown(field)}", number)
        return int(field)

    def _weight(self, field: str, number: int) -> float:
        try:
            w = float(field) if _is_plain(field) else math.nan
        except ValueError:
            w = math.nan
        if not math.isfinite(w):
            self._fail(f"expected 'i j w' with a finite number w, got {_shown(field)}", number)
        if abs(w) > LARGEST_WEIGHT:
            self._fail(f"weight {_shown(field)} is larger than {LARGEST_WEIGHT:g}; scale the weights first", number)
        return w

    def _fail(self, message: str, number: int | None = None) -> NoReturn:
        raise ProblemFileError(f"{self.path}, line {number or max(self.line, 1)}: {message}") from None


def _is_plain(text: str) -> bool:
    """Python's own number syntax takes "1_000" and digits of other scripts as well; these formats do not."""
    return text.isascii() and "_" not in text


def _shown(text: str) -> str:
    """What was found, short enough and printable enough for a message."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")
