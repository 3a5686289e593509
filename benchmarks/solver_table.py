"""Writes the table of solvers in docs/solvers.md: one row for each entry of `bqp.METHODS`, from its class docstring.

python -m benchmarks.solver_table
"""

from __future__ import annotations

from pathlib import Path

from hashlearn import bqp

DOCUMENT = Path(__file__).parents[1] / "docs" / "solvers.md"
BEGIN, END = "<!-- solvers: written by python -m benchmarks.solver_table -->", "<!-- end of solvers -->"


def solver_table() -> str:
    """The rows as Markdown: name, class, and the first line of the docstring."""
    rows = ["| name | class | what it does |", "|---|---|---|"]
    for name, solver in bqp.METHODS.items():
        first_line = (solver.__doc__ or "").partition("\n")[0]
        rows.append(f'| `"{name}"` | `{solver.__name__}` | {first_line} |')
    return "\n".join(rows)


def with_table(document: str) -> str:
    """The document with its table replaced."""
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{solver_table()}\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(with_table(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
