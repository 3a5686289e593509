"""README's picture shows the stored results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.front_picture", reason="benchmarks/ is not importable: run pytest from the root")

from benchmarks.claims.stored import read_all
from benchmarks.embedding_codes import _class_bytes
from benchmarks.front_picture import WITH_LABELS, WITHOUT_LABELS, picture

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


def test_codes_without_labels_are_compared_at_one_size_and_by_one_search() -> None:
    stored = read_all(ROOT)["frontier_clinc150"]
    for row in ("`Ranking`", "`PQ`"):
        changed = [row, "1 / 2 / 3", "4 / 5.67 / 6", "7 / 8 / 9"]
        rows = [changed if cells[0] == row else cells for cells in stored.rows]
        assert ">5.7<" in picture(read_all(ROOT) | {"frontier_clinc150": replace(stored, rows=rows)})


def test_our_bars_name_their_settings() -> None:
    ours = [name for bars in (WITH_LABELS, WITHOUT_LABELS) for name in bars if name.startswith("hashlearn")]
    assert len(ours) == 3
    for name in ours:
        assert "defaults" in name or "full settings, GPU" in name


def test_the_bar_of_a_linear_classifier_ranks_by_equal_classes() -> None:
    database, labels = np.repeat(np.eye(2), 2, axis=0), np.array([0, 0, 1, 1])
    queries = np.eye(2)  # the second looks like class 1 and is of class 0: two wrong rows, then two right ones
    rows = _class_bytes(database, queries, labels, np.array([0, 0])).rows
    expected = f"{100 * (1.0 + (1 / 3 + 2 / 4) / 2) / 2:.2f}"
    assert rows == [["its predicted class", expected], ["its known label", expected]]
