"""Figures in the pages are those of the stored results, and a figure that was altered by hand is found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks.claims", reason="benchmarks/ is not importable: run pytest from the repository root")

from benchmarks.claims import recording
from benchmarks.claims.__main__ import ROOT, main
from benchmarks.claims.pages import claims_of
from benchmarks.claims.stored import ClaimError, Stored, read, read_all

ABOUT = {
    "command": "python -m benchmarks.made_up",
    "commit": "0123456789",
    "machine": "two cores",
    "date": "2026-01-02",
}
TABLE = {
    "columns": ["bytes", "kind", "found"],
    "rows": [["8", "a", "59.1 / 70.2"], ["8", "b", "1,044"]],
    "align": "lrr",
}
VALUES = {"seconds": 57.25, "rows": 18000, "all": [93.1, 95.0], "word": "5–10"}
PAGE = """# Page

It takes <!-- result made.seconds .1f -->?<!-- end --> s for <!-- result made.rows , -->?<!-- end --> rows and
finds <!-- result made[8][a][found]#2 -->?<!-- end --> of <!-- result made[8][b][found] .1f -->?<!-- end -->, in all
| <!-- result made.all -->?<!-- end --> | <!-- result made.word -->?<!-- end --> |

<!-- table made -->
<!-- end -->

```markdown
<!-- table unknown -->
```
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one page and one stored result."""
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text(PAGE, "utf-8")
    store(tmp_path, "made", **ABOUT, **TABLE, values=VALUES)
    return tmp_path


def store(root: Path, name: str, **content: Any) -> None:
    (root / "docs" / "results" / f"{name}.json").write_text(recording.dumped(content), "utf-8")


def test_pages_equal_their_stored_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err


def test_a_figure_altered_by_hand_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "README.md", tmp_path)
    assert main(["--check", "--root", str(tmp_path)]) == 0
    page = tmp_path / "docs" / "ranking.md"
    claim = next(claim for claim in claims_of(page, tmp_path, read_all(tmp_path)) if claim.is_table)
    lines = page.read_text("utf-8").splitlines()
    row = claim.line + 2  # counted from 0: the first row below the mark, the head and the rule
    lines[row] = lines[row].replace("2", "3", 1)
    page.write_text("\n".join(lines) + "\n", "utf-8")
    capsys.readouterr()
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert f"docs/ranking.md:{row + 1}: shows " in capsys.readouterr().err


def test_write_renders_values_and_tables(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--root", str(root)]
    assert main(["--check", *arguments]) == 1
    assert "docs/page.md:3: shows '?', made.seconds has '57.2'" in capsys.readouterr().err
    assert main(["--write", *arguments]) == 0
    assert main(["--check", *arguments]) == 0
    text = (root / "docs" / "page.md").read_text("utf-8")
    for shown in (">57.2<", ">18,000<", ">70.2<", ">1044.0<", ">93.1 / 95.0<", ">5–10<"):
        assert shown in text
    assert "| bytes | kind | found |\n|---|---:|---:|\n| 8 | a | 59.1 / 70.2 |\n" in text
    assert "```markdown\n<!-- table unknown -->\n```" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x <!-- result other.seconds -->1<!-- end -->", "page.md:1: there is no docs/results/other.json"),
        ("\nx <!-- result made.minutes -->1<!-- end -->", "page.md:2: made has no value 'minutes'; it has 'seconds'"),
        ("x <!-- result made[8][c][found] -->1<!-- end -->", "0 rows begin with ['8', 'c']"),
        ("x <!-- result made[8][found] -->1<!-- end -->", "2 rows begin with ['8'], one is needed; name more cells"),
        ("x <!-- result made[8][a][lost] -->1<!-- end -->", "needs one column 'lost'; it has 'bytes', 'kind', 'found'"),
        ("x <!-- result made[8][a][found]#3 -->1<!-- end -->", "the cell '59.1 / 70.2' has 2 numbers"),
        ("x <!-- result made.word .1f -->1<!-- end -->", "the format '.1f' does not fit '5–10'"),
        ("x <!-- result made.seconds -->1", "page.md:1: cannot read the mark <!-- result made.seconds -->"),
        ("x\n<!-- result made.seconds -->1<!-- end --> s", "page.md:2: a mark must not begin a line"),
        ("<!-- table made -->\ntext\n<!-- end -->", "page.md:1: cannot read the mark <!-- table made -->"),
    ],
)
def test_wrong_marks_are_named(root: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    (root / "docs" / "page.md").write_text(text + "\n", "utf-8")
    assert main(["--check", "--root", str(root)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"command": ', "bad.json is not valid JSON"),
        ("[]", "bad.json must hold a JSON object"),
        (
            json.dumps({"command": "x", "figures": 1}),
            "missing keys ['commit', 'machine', 'date'], unknown keys ['figures']",
        ),
        (json.dumps({**ABOUT, "command": None, "values": {"a": 1}}), "names no command; say why in a note"),
        (json.dumps(ABOUT), "needs values, or columns and rows"),
        (json.dumps({**ABOUT, "columns": ["a", "b"], "rows": [["1"]]}), "rows and align must fit its 2 columns"),
        (json.dumps({**ABOUT, **TABLE, "align": "lxr"}), "rows and align must fit its 3 columns"),
    ],
)
def test_damaged_results_are_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ClaimError) as raised:
        read(path)
    assert message in str(raised.value)


def test_results_and_values_that_no_page_shows_are_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--write", "--root", str(root)])
    store(root, "lonely", **ABOUT, values={"a": 1})
    store(root, "made", **ABOUT, **TABLE, values={**VALUES, "more": 2})
    capsys.readouterr()
    assert main(["--check", "--root", str(root)]) == 1
    error = capsys.readouterr().err
    assert "docs/results/lonely.json is used by no page" in error
    assert "docs/results/made.json: the value 'more' is used by no page" in error


def test_a_benchmark_records_where_its_figures_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made.json"
    monkeypatch.setattr(
        "sys.argv",
        ["x", "--bytes", "4", "8", "--json", str(path), "--ranks", str(tmp_path / "ranks"), "--name", "two words"],
    )
    recording.record(path, ["a", "b"], [["1", "x"]], {"seconds": 1.5}, note="once")
    found = read(path)
    assert isinstance(found, Stored)
    assert (found.columns, found.rows, found.values) == (["a", "b"], [["1", "x"]], {"seconds": 1.5})
    assert found.command is not None
    assert found.command.endswith("--bytes 4 8 --ranks ranks --name 'two words'")
    assert "cores" in found.machine
    assert found.commit
    recording.record(None, ["a"], [["1"]])  # without the option nothing is written
    assert list(tmp_path.iterdir()) == [path]
