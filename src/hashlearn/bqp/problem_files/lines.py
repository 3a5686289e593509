"""Lines of a text file, plain or gzipped, and the errors that name the file, the line and what was expected there."""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, TextIO

# A header with more variables counts as damaged. Nothing is allocated before this check.
MAX_VARIABLES = 10_000_000
# No line of these formats is longer.
MAX_LINE = 10_000
# Sums of weights up to this size stay finite in float64.
LARGEST_WEIGHT = 1e300
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}", re.ASCII)


class ProblemFileError(ValueError):
    """A file that cannot be read as a problem. The message names the file, the line and what was expected there."""


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """The file as text. An error with the file as a whole becomes a `ProblemFileError`."""
    try:
        if path.is_dir():
            raise ProblemFileError(f"{path}: is a directory, expected a file with a problem")
        if path.exists() and not path.is_file():  # opening a named pipe would wait for its writer
            raise ProblemFileError(f"{path}: is not a regular file, expected a file with a problem")
        opener = gzip.open if path.name.lower().endswith(".gz") else open
        with opener(path, "rt", encoding="utf-8-sig") as file:
            yield file
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read: {error.strerror or error}") from None


class Lines:
    """One pass over the lines that are not blank. ``number`` is that of the line just read, for error messages."""

    def __init__(self, path: Path, file: TextIO, expected: str) -> None:
        self.path, self.number, self.expected = path, 0, expected
        self._lines, self._first = self._read(file), ""

    def __iter__(self) -> Iterator[str]:
        if self._first:
            first, self._first = self._first, ""
            yield first
        yield from self._lines

    def peek(self, comments: tuple[str, ...]) -> str:
        """The first line that is no comment, which the iteration then begins with; empty at the end of the file."""
        if not self._first:
            self._first = next((text for text in self._lines if not text.lstrip().startswith(comments)), "")
        return self._first

    def _read(self, file: TextIO) -> Iterator[str]:
        try:
            while text := file.readline(MAX_LINE + 1):
                self.number += 1
                if len(text) > MAX_LINE:
                    self.fail(f"more than {MAX_LINE:,} characters in a line, expected {self.expected}")
                if not text.isspace():
                    yield text
        except UnicodeDecodeError:
            self.number += 1
            self.fail(f"not text from here on, expected {self.expected}")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self.number += 1
            self.fail(f"the gzip file is damaged from here on: {error}")

    def header(self, text: str, wanted: str, fields: list[str], count: int) -> list[int]:
        """The ``count`` whole numbers of a header, of which the first is the number of variables."""
        if len(fields) != count:
            self.fail(f"{wanted}, got {len(fields)} fields: {shown(text)}")
        numbers = [self.integer(field, wanted) for field in fields]
        if numbers[0] > MAX_VARIABLES:
            self.fail(f"{shown(fields[0])} variables are announced, more than the {MAX_VARIABLES:,} that are read")
        return numbers

    def integer(self, field: str, wanted: str) -> int:
        """A whole number; ``wanted`` says what was expected."""
        if not _INTEGER.fullmatch(field):
            self.fail(f"{wanted}, got {shown(field)}")
        return int(field)

    def index(self, field: str, first: int, last: int) -> int:
        """A whole number from ``first`` to ``last``."""
        i = self.integer(field, f"expected {self.expected}, i and j whole numbers")
        if not first <= i <= last:
            self.fail(f"index {shown(field)} is outside {first}..{last}")
        return i

    def weight(self, field: str) -> float:
        """A finite number that is not too large."""
        try:
            w = float(field) if is_plain(field) else math.nan
        except ValueError:
            w = math.nan
        if not math.isfinite(w):
            self.fail(f"expected {self.expected}, w a finite number, got {shown(field)}")
        if abs(w) > LARGEST_WEIGHT:
            self.fail(f"weight {shown(field)} is larger than {LARGEST_WEIGHT:g}; scale the weights first")
        return w

    def fail(self, message: str) -> NoReturn:
        """Raise an error that names the file and the line just read."""
        raise ProblemFileError(f"{self.path}, line {max(self.number, 1)}: {message}") from None


def is_plain(text: str) -> bool:
    """Python also reads "1_000" and digits of other scripts as numbers. These formats do not."""
    return text.isascii() and "_" not in text


def shown(text: str) -> str:
    """A part of the file for a message: short and printable."""
    text = text.strip()
    return repr(text if len(text) <= 40 else text[:37] + "...")


def written(w: float) -> str:
    """A weight as text that is read back as the same float."""
    return str(int(w)) if w == int(w) and abs(w) < 2.0**53 else repr(float(w))
