"""The table of mutants fits the code as it is: otherwise ``make mutants`` would try nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("benchmarks.mutants", reason="benchmarks/ is not importable: run pytest from the repository root")

from benchmarks.mutants.mutant import Mutant, NotApplicable
from benchmarks.mutants.table import AREAS

ROOT = Path(__file__).parents[2]
MUTANTS = [mutant for mutants in AREAS.values() for mutant in mutants]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_every_mutant_fits_the_code_and_names_tests_that_exist(mutant: Mutant) -> None:
    mutant.mutated((ROOT / mutant.path).read_text("utf-8"))
    assert mutant.tests
    assert mutant.missing_tests(ROOT) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("three", "four", "0 times"),
        ("one", "four", "2 times"),
        ("two = 2", "two = 2", "the same"),
        ("two = 2", "two = (", "not Python"),
    ],
)
def test_a_mutant_that_does_not_fit_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(NotApplicable, match=message):
        Mutant("", "a.py", old, new, ("tests",)).mutated("one = one\ntwo = 2\n")
