"""A scratch copy of the repository, in which mutants are applied and taken back.

The copy brings the compiled Numba kernels along, so that unchanged ones need no compiler. Numba checks a kernel's own
file, and nothing else: a kernel that calls a function of another file, or uses a constant of it, keeps the old version
of that when the other file changes. So the kernels of all files that import the changed one are set aside for the time
of the mutant, as well as the changed file's own. Kernels that are compiled meanwhile are deleted afterwards.
"""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from benchmarks.mutants.mutant import SOURCE, Mutant

COPIED = ("src", "tests", "benchmarks", "docs", "examples", "conftest.py", "pyproject.toml", "README.md", "Makefile")
ALSO_COPIED = ("CHANGELOG.md", "CONTRIBUTING.md", "requirements")


class Scratch:
    """A copy of the repository at ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def copied(cls, origin: Path, root: Path) -> Scratch:
        """Copy what tests need from ``origin``; times of files stay, so that compiled files fit them."""
        root.mkdir(parents=True)
        for name in (*COPIED, *ALSO_COPIED):
            source = origin / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("results"))
            elif source.exists():
                shutil.copy2(source, root / name)
        return cls(root)

    def environment(self) -> dict[str, str]:
        """Variables with which Python imports the package from here, and keeps compiled kernels here."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        return {**kept, "PYTHONPATH": str(self.root / "src")}

    @contextmanager
    def applied(self, mutant: Mutant) -> Iterator[None]:
        """The mutant is in the code inside the block, and no trace of it is left afterwards."""
        path = self.root / mutant.path
        text, times = path.read_text("utf-8"), path.stat()
        changed = mutant.mutated(text)
        compiled = [path, *self._importers(path)]
        with tempfile.TemporaryDirectory(dir=self.root) as aside:
            moved = []
            for number, file in enumerate(_compiled_files(compiled)):
                place = Path(aside) / str(number)
                moved.append((file, place))
                file.rename(place)
            path.write_text(changed, "utf-8")
            try:
                yield
            finally:
                path.write_text(text, "utf-8")
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
                for file in _compiled_files(compiled):
                    file.unlink()
                for file, place in moved:
                    place.rename(file)

    def _importers(self, changed: Path) -> set[Path]:
        """Files with kernels, and ``__init__`` files, that import the changed file directly or through one another."""
        found = {changed}
        while True:
            names = {_module_name(self.root, path) for path in found}
            more = {path for path, imported in self._imports.items() if imported & names} - found
            if not more:
                return found - {changed}
            found |= more

    @cached_property
    def _imports(self) -> dict[Path, set[str]]:
        """What each file with kernels, and each ``__init__`` file, imports."""
        imports = {}
        for path in (self.root / SOURCE).rglob("*.py"):
            text = path.read_text("utf-8")
            if "njit" in text or path.name == "__init__.py":
                imports[path] = _imported(text)
        return imports


def _imported(text: str) -> set[str]:
    """Names of modules that a file imports; ``from a import b`` counts as a and as a.b, for b may be a module."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root / SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _compiled_files(paths: list[Path]) -> list[Path]:
    """Bytecode and kernels that were compiled from these files."""
    return [file for path in paths for file in (path.parent / "__pycache__").glob(f"{path.stem}.*")]
