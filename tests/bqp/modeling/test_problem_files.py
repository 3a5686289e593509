"""Problem files: the file's own objective, what is written is read back exactly, and errors that name the file."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.bqp import Problem, ProblemFileError, read_problem
from hashlearn.bqp.modeling.problem_files import FORMATS, MAX_VARIABLES, WRITTEN

TRIANGLE = "3 3\n1 2 1\n2 3 1\n1 3 1\n"
WEIGHTS = [0.1, 1 / 3, -1e-300, 1e300, 7.0, -2.5, 2.0**60, 123456789.123]


def write(folder: Path, text: str, name: str = "problem.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def cut(entries: list[tuple[int, int, float]], sides: np.ndarray) -> Fraction:
    return sum((Fraction(w) for i, j, w in entries if sides[i - 1] != sides[j - 1]), Fraction(0))


def energy(entries: list[tuple[int, int, float]], y: np.ndarray) -> Fraction:
    terms = (Fraction(w) * (1 if i == j else 2) for i, j, w in entries if y[i - 1] and y[j - 1])
    return sum(terms, Fraction(0))


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize(("sense", "objective"), [("max-cut", cut), ("qubo", energy)])
def test_objective_is_the_files_own_for_every_assignment(
    tmp_path: Path, sense: Any, objective: Any, integers: bool
) -> None:
    n, rng = 5, np.random.default_rng(0)
    weights = rng.integers(-9, 10, 14).astype(float) if integers else rng.normal(size=14) * 10.0
    pairs = rng.integers(1, n + 1, (14, 2)).tolist()  # loops, repeats and both orders occur
    entries = [(i, j, float(w)) for (i, j), w in zip(pairs, weights, strict=True)]
    text = "".join([f"{n} {len(entries)}\n", *(f"{i} {j} {w!r}\n" for i, j, w in entries)])
    problem = read_problem(write(tmp_path, text), sense)
    assert (problem.n, problem.sense) == (n, sense)
    for x in itertools.product((-1.0, 1.0), repeat=problem.operator.n):
        found = problem.objective(problem.operator.value(x))
        own = float(objective(entries, problem.assignment(x)))
        assert found == own if integers else found == pytest.approx(own, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize(
    "text",
    [
        "3 3 \n1 2\n2 3\n1 3\n",
        "# a comment\n\n3 3\n\n# edges\n1 2 1\n\t2   3 1\r\n3 1 +1\n\n\n",
        "\ufeff3 3\n1 2 1\n2 3 1\n1 3 1e0",
        "3 5\n1 2 1\n2 3 1\n1 3 1\n2 2 7\n1 1 3\n",
        "3 5\n1 2 0.25\n2 1 0.5\n1 2 0.25\n2 3 1\n1 3 1\n",
    ],
    ids=["weights left out", "comments and blanks", "byte order mark", "self-loops", "duplicates"],
)
def test_ways_to_write_a_triangle(tmp_path: Path, text: str) -> None:
    problem = read_problem(write(tmp_path, text))
    np.testing.assert_array_equal(problem.operator.toarray(), np.ones((3, 3)) - np.eye(3))


@pytest.mark.parametrize(
    ("name", "sense"),
    [("a.rud", "max-cut"), ("a", "max-cut"), ("a.SPARSE", "qubo"), ("a.sparse.gz", "qubo"), ("a.mc.gz", "max-cut")],
)
def test_sense_goes_by_the_name_unless_it_is_given(tmp_path: Path, name: str, sense: Any) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TRIANGLE.encode()) if name.endswith(".gz") else TRIANGLE.encode())
    other: Any = "qubo" if sense == "max-cut" else "max-cut"
    assert read_problem(path).sense == sense
    assert read_problem(str(path), other).sense == other
    assert read_problem(path).name == name


def test_no_edges_at_all(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, "4 0\n"))
    assert problem.objective(problem.operator.value(np.ones(4))) == 0.0


def test_parallel_edges_and_self_loops_are_noted(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, "2 3\n1 2 2\n2 1 3\n1 1 9\n"))
    assert "1 parallel edge(s), such as (1, 2); their weights are summed" in problem.notes[0]
    assert "1 self-loop(s)" in problem.notes[1]
    assert bqp.solve_problem(problem, method="exact").cut == 5.0


def problem_for(sense: Any) -> Problem:
    """With duplicates, both orders, and a variable 6 that has no term."""
    rng = np.random.default_rng(0)
    terms = [(*rng.choice(6, 2, replace=False), w) for w in WEIGHTS] + ([(2, 2, 5.0)] if sense != "max-cut" else [])
    i, j, w = (np.array(column) for column in zip(*terms, strict=True))
    return Problem(sense, 7, i, j, w.astype(float), maximize=sense == "max-cut")


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(("sense", "name"), [(sense, name) for name, senses in WRITTEN.items() for sense in senses])
def test_what_is_written_is_read_back_exactly(sense: Any, name: str, packed: str, tmp_path: Path) -> None:
    problem, path = problem_for(sense), tmp_path / f"problem{FORMATS[name][0]}{packed}"
    for _ in range(2):
        bqp.write_problem(problem, path)
        read = read_problem(path)
        assert (read.sense, read.n, read.maximize, read.offset) == (sense, 7, problem.maximize, 0.0)
        terms = [sorted((*sorted(ij), w) for *ij, w in zip(p.i, p.j, p.w, strict=True)) for p in (problem, read)]
        assert terms[0] == terms[1]
        assert (read.path, read.name) == (path, path.name)
        assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(packed)
        problem = read


def test_numbers_as_labels_may_come_in_any_order(tmp_path: Path) -> None:
    for terms in ({(0, 2): 1.0, (0, 1): -3.0}, {(3, 1): 1.0, (2, 2): -3.0}):
        problem, path = bqp.qubo_problem(terms), tmp_path / "q.sparse"
        bqp.write_problem(problem, path)
        read = read_problem(path)
        first = min(problem.labels)
        weights = {frozenset((i + first, j + first)): w for i, j, w in zip(read.i, read.j, read.w, strict=True)}
        assert weights == {frozenset(pair): w for pair, w in terms.items()}


def test_coo_files_are_those_of_dimod(tmp_path: Path) -> None:
    coo = pytest.importorskip("dimod.serialization.coo")
    dimod = pytest.importorskip("dimod")
    path = tmp_path / "model.coo"
    model = dimod.BinaryQuadraticModel({0: 1e-7, 5: -2.0}, {(0, 5): 1e20, (5, 9): 0.1}, "BINARY")
    bqp.write_problem(bqp.qubo_problem(model), path)
    with open(path) as file:
        assert coo.load(file) == model
    path.write_text(coo.dumps(dimod.BinaryQuadraticModel({5: 1.0}, {(0, 5): 2.0}, "SPIN"), vartype_header=True))
    answer = bqp.solve_problem(read_problem(path), method="exact")
    assert (answer.energy, answer.problem.sense, answer.problem.labels) == (-3.0, "ising", (0, 5))


def test_format_overrides_the_ending(tmp_path: Path) -> None:
    path = write(tmp_path, "0 1 1\n", "graph.data")
    assert read_problem(path, "qubo", "coo").sense == "qubo"
    with pytest.raises(ValueError, match=r"format must be one of 'rudy', .* got 'cool'; did you mean 'coo'"):
        read_problem(path, format="cool")
    with pytest.raises(ValueError, match="sense must be one of 'max-cut', 'qubo', 'ising', got 'min-cut'"):
        read_problem(path, "min-cut")  # type: ignore[arg-type]


SPINS = "# vartype=SPIN\n"
MALFORMED = [
    ("a.txt", "", "its first line must be 'n m'"),
    ("a.txt", "# nothing\n\n", "its first line must be 'n m'"),
    ("a.txt", "1 2 1\n2 3 1\n", "'n m'"),
    ("a.txt", "nodes edges\n", "'n m'"),
    ("a.txt", "3.0 3\n", "'n m'"),
    ("a.txt", "-3 3\n", "'n m'"),
    ("a.txt", "0 0\n", "from 1 to .* got 0"),
    ("a.txt", "1000000000000 1\n1 2 1\n", f"from 1 to {MAX_VARIABLES:,}"),
    ("a.txt", "3 3\n1 2 1\n2 3 1\n", "it has 2 of 3 rows"),
    ("a.txt", "3 1\n1 2 1\n2 3 1\n", "it has 2 of 1 rows"),
    ("a.txt", "3 2\n1 2 1\n1 3\n", "row 2"),
    ("a.txt", "3 1\n1\n", "row 1"),
    ("a.txt", "3 1\n1 2 1 9\n", "row 1"),
    ("a.txt", "3 2\n1 2 1\none 3 1\n", "'one' .* row 1"),
    ("a.txt", "3 1\n1.5 2 1\n", "'1.5' .* row 0"),
    ("a.txt", "3 1\n99999999999999999999 2 1\n", "'99999999999999999999' .* row 0"),
    ("a.txt", "3 2\n1 2 1\n0 2 1\n", "from 1 to 3, and are not at row 1: '0 2 1'"),
    ("a.txt", "3 2\n1 2 1\n1 4 1\n", "from 1 to 3, and are not at row 1: '1 4 1'"),
    ("a.txt", "3 1\n1 2 heavy\n", "'heavy' .* row 0"),
    ("a.txt", "3 2\n1 2 1\n1 3 nan\n", r"the weight of \(1, 3\) must be finite in float64, got nan"),
    ("a.txt", "3 1\n1 2 1e999\n", r"the weight of \(1, 2\) must be finite"),
    ("a.txt", "3 2\n1 2 1e308\n1 3 1e308\n", "add up to more than float64 holds"),
    ("a.txt", "3 1\n1 2 1_0\n", "'1_0'"),
    ("a.txt", "3 1\n1,2,1\n", "row 1"),
    ("a.sparse", "3 2\n1 2\n1 3\n", "row 1"),
    ("a.coo", "0 1 1\n", "expected '# vartype=BINARY' or '# vartype=SPIN', or a sense"),
    ("a.coo", "# vartype=ODD\n0 1 1\n", "expected '# vartype=BINARY'"),
    ("a.coo", SPINS, "no rows 'i j w'"),
    ("a.coo", SPINS + "0 1\n", "row 1"),
    ("a.coo", SPINS + "0 -1 2\n", "from 0 to .* row 0"),
    ("a.coo", SPINS + "a 1 2\n", "'a' .* row 0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "said"), MALFORMED, ids=[f"{m[0]} {m[1]!r}" for m in MALFORMED])
def test_malformed_files_name_the_file_and_the_row(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, text, name)
    with pytest.raises(ProblemFileError, match=said) as caught:
        read_problem(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_sense_that_contradicts_the_file(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError, match="expected '# vartype"):
        read_problem(write(tmp_path, SPINS + "0 1 1\n", "a.coo"), "qubo")


def test_what_is_not_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "image.txt").write_bytes(bytes(range(256)) * 8)
    (tmp_path / "zeros.txt").write_bytes(bytes(50_000))
    (tmp_path / "plain.txt.gz").write_text(TRIANGLE)
    (tmp_path / "cut.coo.gz").write_bytes(gzip.compress(b"0 1 1\n" * 999)[:-20])
    for name in ("nowhere.txt", ".", "image.txt", "zeros.txt", "plain.txt.gz", "cut.coo.gz"):
        with pytest.raises(ProblemFileError) as caught:
            read_problem(tmp_path / name, "qubo")
        assert str(caught.value).startswith(f"{tmp_path / name}: ")


QUBO = bqp.qubo_problem({("a", "b"): 1.0})
UNSAYABLE = [
    (bqp.qubo_problem(np.eye(2), offset=1.5), "a.coo", "no offset"),
    (bqp.qubo_problem(np.eye(2), sense="max"), "a.coo", "no maximized energy"),
    (QUBO, "a.mc", "format 'rudy' holds max-cut problems, not qubo"),
    (bqp.ising_problem([1.0]), "a.sparse", "format 'biqmac' holds qubo problems, not ising"),
    (bqp.max_cut_problem([(0, 1)]), "a.coo", "format 'coo' holds qubo or ising problems, not max-cut"),
    (QUBO, "a.sparse", "the label 'a' cannot be written; rename labels to 0 to 1"),
    (bqp.max_cut_problem([(0, 2)]), "a.mc", "the label 0 cannot be written"),
    (bqp.max_cut_problem([(1, 3)]), "a.mc", "the label 3 cannot be written"),
    (QUBO, "a.coo", "the label 'a' cannot be written"),
    (bqp.max_cut_problem([]), "a.mc", "no problem without variables"),
    (bqp.qubo_problem([[0.0, 5e-324], [0.0, 0.0]]), "a.sparse", "too small for float64"),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "name", "said"), UNSAYABLE, ids=[u[2] for u in UNSAYABLE])
def test_what_a_format_cannot_say_is_refused(problem: Problem, name: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, "old", name)
    with pytest.raises(ValueError, match=said):
        bqp.write_problem(problem, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_only_a_problem_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="problem must be a Problem, as of qubo_problem, got dict"):
        bqp.write_problem({("a", "b"): 1.0}, tmp_path / "q.coo")  # type: ignore[arg-type]


# Real files, where they are.

DATA = Path(os.environ.get("HASHLEARN_DATA", "")) / "bqp"
HAVE_DATA = "HASHLEARN_DATA" in os.environ and (DATA / "reference.csv").is_file()
needs_data = pytest.mark.skipif(not HAVE_DATA, reason="needs $HASHLEARN_DATA/bqp/reference.csv")


def one_flip_search(problem: Problem, n_starts: int) -> float:
    """The best value of steepest single flips from random starts."""
    rng = np.random.default_rng(0)
    best = math.inf
    for _ in range(n_starts):
        x = rng.choice([-1.0, 1.0], problem.operator.n)
        while (gains := problem.operator.flip_gains(x)).min() < 0.0:
            x[gains.argmin()] *= -1.0
        best = min(best, problem.operator.value(x))
    return best


@needs_data
def test_every_reference_file_in_its_own_sense() -> None:
    with open(DATA / "reference.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        problem = read_problem(DATA / row["file"])
        assert (problem.sense, problem.n) == (row["format"], int(row["n"])), row["file"]
        if problem.n > 1000:
            continue
        found = problem.objective(one_flip_search(problem, 1 if problem.n > 100 else 20))
        best = float(row["best_known"])
        nearly = 0.9 * best  # far from what a wrong factor or sign would give
        assert nearly <= found <= best if problem.sense == "max-cut" else best <= found <= nearly, row["file"]


@needs_data
def test_known_optimum_of_a_beasley_problem() -> None:
    problem = read_problem(DATA / "bqp50-1.sparse")
    assert problem.objective(one_flip_search(problem, 200)) == -2098.0
