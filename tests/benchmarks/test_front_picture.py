"""README's picture shows the stored results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("benchmarks.front_picture", reason="benchmarks/ is not importable: run pytest from the root")

from benchmarks.claims.stored import read_all
from benchmarks.front_picture import picture

ROOT = Path(__file__).parents[2]


def test_the_picture_is_drawn_from_the_stored_results() -> None:
    results = read_all(ROOT)
    shown = (ROOT / "docs" / "front.svg").read_text("utf-8")
    assert picture(results) == shown, "python -m benchmarks.front_picture draws it again"


def test_another_result_is_another_picture() -> None:
    results = read_all(ROOT)
    stored = results["embeddings_clinc150"]
    rows = [[*row[:2], "12.34", *row[3:]] if row[:2] == ["64", "ITQ"] else row for row in stored.rows]
    assert ">12.3<" in picture(results | {"embeddings_clinc150": replace(stored, rows=rows)})
