"""Files that begin with counts: rudy and Gset for max-cut, BiqMac for max-cut and QUBO, qbsolv for QUBO.

rudy, Gset and BiqMac: ``n m``, then m lines ``i j w`` with i and j from 1 to n. In a cut w is the weight of an edge, 1
where it is left out. In a QUBO w stands at (i, j) and at (j, i), on the diagonal once.

qbsolv: ``p qubo 0 maxNodes nNodes nCouplers``, then nNodes lines ``i i w`` and nCouplers lines ``i j w`` with i and j
from 0 to maxNodes − 1. Here w counts once. Lines that begin with ``c`` are comments.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

import numpy as np

from hashlearn.bqp.modeling.labels import parallel_note
from hashlearn.bqp.modeling.problem import Problem, Sense
from hashlearn.bqp.problem_files.lines import LARGEST_WEIGHT, Lines, is_plain, shown, written

COMMENTS = ("#", "c")


def read_counted(lines: Lines, sense: Sense) -> Problem:
    """The problem of a rudy, Gset or BiqMac file."""
    wanted = "expected 'n m', the numbers of variables and of lines to follow"
    text = lines.peek(COMMENTS)
    if not text:
        lines.fail(f"the file is empty, {wanted}" if lines.number == 0 else f"no header, {wanted}")
    n, count = lines.header(text, wanted, text.split(), 2)
    if n < 1:
        lines.fail(f"the number of variables must be at least 1, got {n}")
    if count < 0:
        lines.fail(f"the number of lines to follow must not be negative, got {count}")
    entries = _Entries(lines, 1, n, optional_weight=sense == "max-cut")
    rest = iter(lines)
    next(rest)
    for text in rest:
        if len(entries.w) == count:
            lines.fail(f"more lines than the {count} that the header announces")
        entries.add(text)
    if len(entries.w) < count:
        lines.fail(f"the file ends after {len(entries.w)} of {count} lines 'i j w'; is it truncated?")
    i, j, w = entries.arrays()
    if sense == "qubo":
        w = np.where(i == j, w, 2.0 * w)
    notes = parallel_note(i, j, n, lambda k: k + 1, lines.path.name) if sense == "max-cut" else ()
    return Problem(sense, n, i, j, w, 0.0, sense == "max-cut", range(1, n + 1), lines.path, notes)


def write_counted(problem: Problem) -> Iterator[str]:
    """The lines of a rudy, Gset or BiqMac file."""
    w = problem.w
    if problem.sense == "qubo":
        w = np.where(problem.i == problem.j, w, w / 2.0)
        if np.any((w == 0.0) | (np.abs(w) < 1e-307)):
            raise ValueError("half of a coefficient is too small for float64; write a .coo file, or scale the problem")
    yield f"{problem.n} {len(w)}\n"
    yield from _written(problem, w, 1)


def read_qbsolv(lines: Lines, sense: Sense) -> Problem:
    """The problem of a qbsolv file; without a line ``p qubo`` that of a BiqMac file."""
    text = lines.peek(COMMENTS)
    if not text.lstrip().startswith("p"):
        return read_counted(lines, sense)
    wanted = "expected 'p qubo 0 maxNodes nNodes nCouplers'"
    fields = text.split()
    if fields[:2] != ["p", "qubo"] or len(fields) != 6:
        lines.fail(f"{wanted}, got {shown(text)}")
    n, nodes, couplers = lines.header(text, wanted, fields[3:], 3)
    if min(n, nodes, couplers) < 0:
        lines.fail(f"{wanted} with numbers of at least 0, got {shown(text)}")
    entries = _Entries(lines, 0, n - 1, optional_weight=False)
    rest = iter(lines)
    next(rest)
    for text in rest:
        if not text.lstrip().startswith("c"):
            entries.add(text)
    i, j, w = entries.arrays()
    found = int((i == j).sum())
    if (found, len(w) - found) != (nodes, couplers):
        lines.fail(
            f"the file has {found} line(s) 'i i w' and {len(w) - found} line(s) 'i j w', but announces {nodes} and "
            f"{couplers}; is it truncated?"
        )
    return Problem(sense, n, i, j, w, 0.0, sense == "max-cut", None, lines.path)


def write_qbsolv(problem: Problem) -> Iterator[str]:
    """The lines of a qbsolv file."""
    linear = problem.i == problem.j
    yield f"p qubo 0 {problem.n} {int(linear.sum())} {int((~linear).sum())}\n"
    for part in (linear, ~linear):
        low, high = np.minimum(problem.i, problem.j)[part], np.maximum(problem.i, problem.j)[part]
        for i, j, w in zip(low.tolist(), high.tolist(), problem.w[part].tolist(), strict=True):
            yield f"{i} {j} {written(w)}\n"


def _written(problem: Problem, w: Iterable[float], first: int) -> Iterator[str]:
    for i, j, weight in zip((problem.i + first).tolist(), (problem.j + first).tolist(), w, strict=True):
        yield f"{i} {j} {written(weight)}\n"


class _Entries:
    """Lines ``i j w``, with indices from ``first`` to ``last``."""

    def __init__(self, lines: Lines, first: int, last: int, optional_weight: bool) -> None:
        self.lines, self.first, self.last = lines, first, last
        self.fields = (2, 3) if optional_weight else (3,)
        self.i, self.j, self.w = array("q"), array("q"), array("d")
        lines.expected = "'i j w'"

    def add(self, text: str) -> None:
        """Parse a line; one that is unusual is looked at field by field, to find what is wrong with it."""
        fields = text.split()
        try:
            i, j, w = int(fields[0]), int(fields[1]), float(fields[2]) if len(fields) > 2 else 1.0
        except (ValueError, IndexError):
            i, j, w = self._checked(text, fields)
        inside = self.first <= i <= self.last and self.first <= j <= self.last and abs(w) <= LARGEST_WEIGHT
        if not (inside and len(fields) in self.fields and is_plain(text)):
            i, j, w = self._checked(text, fields)
        self.i.append(i)
        self.j.append(j)
        self.w.append(w)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """i and j from 0, and w."""
        i, j = np.array(self.i, np.int64) - self.first, np.array(self.j, np.int64) - self.first
        return i, j, np.array(self.w, np.float64)

    def _checked(self, text: str, fields: list[str]) -> tuple[int, int, float]:
        if len(fields) not in self.fields:
            wanted = "'i j w' or 'i j'" if 2 in self.fields else "'i j w'"
            self.lines.fail(f"expected {wanted}, got {len(fields)} field(s): {shown(text)}")
        i, j = (self.lines.index(field, self.first, self.last) for field in fields[:2])
        return i, j, self.lines.weight(fields[2]) if len(fields) == 3 else 1.0
