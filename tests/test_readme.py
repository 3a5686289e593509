"""What the Markdown files show is true: Python blocks run, and the commands they name exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from textwrap import dedent

import click
import pytest

from hashlearn.cli import main

ROOT = Path(__file__).parents[1]
MARKDOWN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def blocks(path: Path, *languages: str) -> list[str]:
    return [dedent(text) for language, text in BLOCK.findall(path.read_text("utf-8")) if language in languages]


def commands(path: Path) -> list[str]:
    """Every line of a shell block, and every inline piece of code, that starts with one of our commands."""
    prose = BLOCK.sub("", path.read_text("utf-8"))
    lines = [line for block in blocks(path, "sh", "console") for line in block.splitlines()]
    shown = [line.partition("#")[0].strip() for line in [*lines, *re.findall(r"`([^`\n]+)`", prose)]]
    return [line for line in shown if line.startswith(("make ", "hashlearn "))]


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where examples may write
    texts = blocks(path, "python")
    for text in texts:
        if ">>>" not in text:
            compile(text, str(path), "exec")
    session = "\n".join(text for text in texts if ">>>" in text)  # one page, one session
    if not session:
        return
    test = doctest.DocTestParser().get_doctest(session, {}, path.name, str(path), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert result.attempted
    assert not result.failed, "".join(report)


def test_the_page_of_the_command_line_names_every_command() -> None:
    shown = set(re.findall(r"^\| `hashlearn ([a-z-]+)`", (ROOT / "docs" / "cli.md").read_text("utf-8"), re.MULTILINE))
    assert shown == set(main.commands)


def test_examples_of_readme_run_without_extras() -> None:
    text = "\n".join(blocks(ROOT / "README.md", "python"))
    imported = set(re.findall(r"^>>> (?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= {"hashlearn", "numpy", "random", "scipy", "sklearn"}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_commands_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for line in commands(path):
        program, name, *arguments = line.split()
        if program == "make":
            assert name in targets, line
            continue
        if name.startswith("-"):
            continue
        command = main.commands.get(name)
        assert command is not None, line
        options = {flag for p in command.params if isinstance(p, click.Option) for flag in p.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, line
