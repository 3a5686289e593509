"""The table of mutants fits the code as it is: otherwise ``make mutants`` would try nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("benchmarks.mutants", reason="benchmarks/ is not importable: run pytest from the repository root")

from benchmarks.mutants.mutant import Mutant, NotApplicable
from benchmarks.mutants.scratch import Scratch
from benchmarks.mutants.table import AREAS

ROOT = Path(__file__).parents[2]
MUTANTS = [mutant for mutants in AREAS.values() for mutant in mutants]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_every_mutant_fits_the_code_and_names_tests_that_exist(mutant: Mutant) -> None:
    mutant.mutated((ROOT / mutant.path).read_text("utf-8"))
    assert mutant.tests
    assert mutant.missing_tests(ROOT) == []


def test_every_mutant_is_described_once() -> None:
    assert len({mutant.breaks for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.path, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


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


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    """A package of three kernels, each of which calls that of the file before, and a file without kernels."""
    package = tmp_path / "src" / "hashlearn"
    (package / "__pycache__").mkdir(parents=True)
    sources = {
        "low": "from numba import njit\n",
        "middle": "from numba import njit\nfrom hashlearn.low import kernel\n",
        "high": "from numba import njit\nfrom hashlearn import middle\n",
        "apart": "from numba import njit\n",
        "plain": "from hashlearn.low import kernel\n",
    }
    for name, text in sources.items():
        (package / f"{name}.py").write_text(text + "value = 1\n")
        (package / "__pycache__" / f"{name}.kernel-1.nbi").write_text("before")
    return Scratch(tmp_path)


@pytest.mark.parametrize(
    ("changed", "set_aside"),
    [("low", {"low", "middle", "high"}), ("high", {"high"}), ("plain", {"plain"}), ("apart", {"apart"})],
)
def test_kernels_that_may_hold_the_old_code_are_set_aside_and_come_back(scratch, changed, set_aside) -> None:
    compiled = scratch.root / "src" / "hashlearn" / "__pycache__"
    source = compiled.parent / f"{changed}.py"
    text, times = source.read_text(), source.stat()
    with scratch.applied(Mutant("", f"{changed}.py", "value = 1", "value = 2", ("tests",))):
        assert "value = 2" in source.read_text()
        kept = {file.name.partition(".")[0] for file in compiled.iterdir()}
        assert kept == {"low", "middle", "high", "apart", "plain"} - set_aside
        (compiled / f"{changed}.kernel-1.nbi").write_text("compiled from the mutant")
        (compiled / f"{changed}.another-9.nbi").write_text("compiled from the mutant")
    assert source.read_text() == text
    assert source.stat().st_mtime_ns == times.st_mtime_ns
    assert {file.name: file.read_text() for file in compiled.iterdir()} == {
        f"{name}.kernel-1.nbi": "before" for name in ("low", "middle", "high", "apart", "plain")
    }
