"""One mutant: a piece of source text, what takes its place, and the tests that should notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path("src/hashlearn")


class NotApplicable(Exception):
    """The mutant does not fit the code as it is now; the message says why."""


@dataclass(frozen=True)
class Mutant:
    """A change of one file of the package, and the tests that must fail with it.

    ``breaks``: what goes wrong for a user, in plain words.
    ``file``: relative to ``src/hashlearn``. ``old`` must occur in it exactly once; ``new`` takes its place.
    ``tests``: test files or single tests (``tests/a/test_b.py::test_c``), relative to the repository.
    ``hangs``: why the change can make the code run forever. Only then does running into the time limit count as killed.
    ``equivalent``: why no test can notice the change. The code has a comment that says the same.
    """

    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    hangs: str = ""
    equivalent: str = ""

    @property
    def path(self) -> Path:
        """The file to change, relative to the repository."""
        return SOURCE / self.file

    def mutated(self, text: str) -> str:
        """The text of the file with the change; `NotApplicable` unless ``old`` occurs once and the result is Python."""
        count = text.count(self.old)
        if count != 1:
            raise NotApplicable(f"the old text occurs {count} times in {self.path}, must be once: {self.old!r}")
        if self.old == self.new:
            raise NotApplicable(f"old and new text are the same: {self.old!r}")
        changed = text.replace(self.old, self.new)
        try:
            ast.parse(changed)
        except SyntaxError as error:
            raise NotApplicable(f"{self.path} is not Python after the change: {error}") from None
        return changed

    def missing_tests(self, root: Path) -> list[str]:
        """Names in ``tests`` that do not exist in the repository at ``root``."""
        return [name for name in self.tests if not _exists(root, name)]


def _exists(root: Path, name: str) -> bool:
    file, _, function = name.partition("::")
    path = root / file
    if not function:
        return path.exists()
    return path.is_file() and f"def {function}(" in path.read_text("utf-8")
