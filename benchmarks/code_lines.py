"""Code lines by folder: lines that hold at least one token that is no comment and no docstring.

python -m benchmarks.code_lines [FOLDER ...]       # default: src/hashlearn tests benchmarks
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

IGNORED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Code lines of one Python file.

    >>> code_lines('"Docstring."  # with a comment\\n\\nx = [  # one\\n    1,\\n]\\n')
    3
    """
    docstrings = {line for first, last in _docstrings(ast.parse(text)) for line in range(first, last + 1)}
    used: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in IGNORED:
            used.update(range(token.start[0], token.end[0] + 1))
    return len(used - docstrings)


def _docstrings(tree: ast.Module) -> list[tuple[int, int]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.append((first.lineno, first.end_lineno or first.lineno))
    return found


def by_folder(root: Path) -> Counter[str]:
    """Code lines of every folder directly under ``root``; files of ``root`` itself count as ``.``."""
    lines: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        lines[parts[0] if len(parts) > 1 else "."] += code_lines(path.read_text(encoding="utf-8"))
    return lines


def main(folders: list[str]) -> None:
    for folder in folders or ["src/hashlearn", "tests", "benchmarks"]:
        lines = by_folder(Path(folder))
        for name, count in lines.most_common():
            print(f"{count:7,}  {folder}/{name}")
        print(f"{lines.total():7,}  {folder}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
