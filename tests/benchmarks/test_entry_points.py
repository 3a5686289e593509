"""Every entry point agrees with enumeration, and a wrong answer would be noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("networkx")
pytest.importorskip("dimod")
from benchmarks.bqp.entry_points import ENDINGS, check
from benchmarks.bqp.small_problems import Claim, Instance, violations


def test_sixty_problems_have_no_violation(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    assert [line for seed in range(60) for line in check(seed, tmp_path, counts)] == []
    named = {name for name in counts if not name.startswith("method")}
    assert {f"file {ending.removesuffix('.gz')} {sense}" for sense in ENDINGS for ending in ENDINGS[sense]} <= named
    assert len([name for name in named if not name.startswith("file")]) >= 14


INSTANCE = Instance("qubo", "integers", ("a", "b"), (("a", "b", 3.0), ("a", "a", -2.0)), 1.0)
RIGHT = Claim({"a": 1, "b": 0}, -1.0, -1.0, 0.0, "optimal")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"assignment": {"a": 1}}, "no assignment"),
        ({"assignment": {"a": 1, "b": -1}}, "no assignment"),
        ({"objective": -1.5}, "its assignment has -1.0"),
        ({"bound": -0.5}, "cuts off the optimum"),
        ({"bound": float("nan")}, "cuts off"),
        ({"bound": float("inf")}, "wrong sign"),
        ({"status": "converged"}, "gap 0"),
        ({"assignment": {"a": 0, "b": 0}, "objective": 1.0}, "optimal, but 1.0"),
    ],
)
def test_wrong_answers_are_noticed(changes: dict[str, object], said: str | None) -> None:
    found = violations(INSTANCE, RIGHT._replace(**changes))
    assert found == [] if said is None else any(said in text for text in found)


def test_broken_constraints_are_noticed() -> None:
    assert "a fixed variable has another value" in violations(replace(INSTANCE, fixed={"b": 1}), RIGHT)
