"""The documents are complete: every extra is named, every link leads somewhere, every equation is listed."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from hashlearn.search.stores import STORES

ROOT = Path(__file__).parents[1]
MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (path.parent / target.partition("#")[0]).exists(), target


def test_notation_lists_every_equation_once() -> None:
    text = (ROOT / "docs" / "notation.md").read_text("utf-8")
    assert re.findall(r"^\| \((\d+)\) \|", text, re.MULTILINE) == [str(k) for k in range(1, 25)]


def test_readme_names_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    section = (ROOT / "README.md").read_text("utf-8").partition("## Install")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    of_stores = {store.extra for store in STORES.values()}  # named in docs/registry.md
    assert named | of_stores == set(extras) - {"dev", "bench", "docs"}
    assert "docs/registry.md" in section


def test_every_picture_is_shown_by_a_page() -> None:
    pages = "".join(path.read_text("utf-8") for path in MARKDOWN)
    assert [path.name for path in (ROOT / "docs").glob("*.svg") if f"{path.name})" not in pages] == []


def test_pictures_are_well_formed_and_describe_themselves() -> None:
    for path in (ROOT / "docs").glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
