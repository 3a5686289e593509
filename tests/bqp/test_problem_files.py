"""Readers of counted files: the file's own objective, safe bounds, and errors that name the line."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hashlearn.bqp import problem_files as files
from hashlearn.bqp.problem_files import MAX_VARIABLES, Problem, ProblemFileError, read_problem


def write(folder: Path, text: str, name: str = "problem.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def text_of(n: int, entries: list[tuple[int, int, float]]) -> str:
    return "".join([f"{n} {len(entries)}\n", *(f"{i} {j} {w!r}\n" for i, j, w in entries)])


def cut(entries: list[tuple[int, int, float]], sides: np.ndarray) -> Fraction:
    return sum((Fraction(w) for i, j, w in entries if sides[i - 1] != sides[j - 1]), Fraction(0))


def energy(entries: list[tuple[int, int, float]], y: np.ndarray) -> Fraction:
    terms = (Fraction(w) * (1 if i == j else 2) for i, j, w in entries if y[i - 1] and y[j - 1])
    return sum(terms, Fraction(0))


def all_signs(n: int) -> list[np.ndarray]:
    return [np.array(x, dtype=float) for x in itertools.product((-1, 1), repeat=n)]


def random_entries(n: int, count: int, seed: int, integers: bool) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    weights = rng.integers(-9, 10, count).astype(float) if integers else rng.normal(size=count) * 10.0
    pairs = rng.integers(1, n + 1, (count, 2)).tolist()  # loops, repeats and both orders occur
    return [(i, j, float(w)) for (i, j), w in zip(pairs, weights, strict=True)]


OBJECTIVES = {"max-cut": cut, "qubo": energy}


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("sense", ["max-cut", "qubo"])
@pytest.mark.parametrize("seed", range(3))
def test_objective_is_the_files_own_for_every_assignment(
    tmp_path: Path, sense: files.Sense, seed: int, integers: bool
) -> None:
    n = 5
    entries = random_entries(n, 14, seed, integers)
    problem = read_problem(write(tmp_path, text_of(n, entries)), sense)
    assert (problem.n, problem.sense) == (n, sense)
    assert problem.operator.n == n + (sense == "qubo")
    assert problem.anchor == (n if sense == "qubo" else None)
    assert not problem.operator.diagonal().any()
    seen = set()
    for x in all_signs(problem.operator.n):
        own = problem.assignment(x)
        seen.add(tuple(own.tolist()))
        found = problem.objective(problem.operator.value(x))
        if integers:
            assert found == OBJECTIVES[sense](entries, own)
        else:
            assert found == pytest.approx(float(OBJECTIVES[sense](entries, own)), rel=1e-12, abs=1e-11)
    assert len(seen) == 2**n
    assert set(itertools.chain(*seen)) == ({-1, 1} if sense == "max-cut" else {0, 1})


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("sense", ["max-cut", "qubo"])
@pytest.mark.parametrize("seed", range(10))
def test_bound_is_never_on_the_wrong_side(tmp_path: Path, sense: files.Sense, seed: int, integers: bool) -> None:
    """The exact optimum in rational arithmetic against the bound made from the operator's own minimum."""
    entries = random_entries(4, 30, seed, integers)
    problem = read_problem(write(tmp_path, text_of(4, entries)), sense)
    lowest = min(problem.operator.value(x) for x in all_signs(problem.operator.n))
    bound = problem.objective_bound(lowest)
    own = [OBJECTIVES[sense](entries, problem.assignment(x)) for x in all_signs(problem.operator.n)]
    optimum = max(own) if sense == "max-cut" else min(own)
    assert bound >= optimum if sense == "max-cut" else bound <= optimum
    assert bound == optimum if integers else bound == pytest.approx(float(optimum), rel=1e-12, abs=1e-11)


def test_bound_is_rounded_outwards(tmp_path: Path) -> None:
    text = "3 2\n1 2 1\n2 3 0.1\n"  # 0.1 is no multiple of a coarse power of two
    cut_problem = read_problem(write(tmp_path, text))
    qubo_problem = read_problem(write(tmp_path, text), "qubo")
    half = (1 + Fraction(0.1)) / 2
    for bound in (-0.1, -1e-17, -1 / 3, -2.0):
        assert half - Fraction(bound) / 4 <= Fraction(cut_problem.objective_bound(bound))
        assert Fraction(qubo_problem.objective_bound(bound)) <= half + Fraction(bound) / 8
        assert cut_problem.objective_bound(bound) == pytest.approx(float(half) - bound / 4, rel=1e-12)
        assert qubo_problem.objective_bound(bound) == pytest.approx(float(half) + bound / 8, rel=1e-12)


def test_bound_of_integer_weights_is_a_possible_value(tmp_path: Path) -> None:
    triangle = read_problem(write(tmp_path, "3 3\n1 2\n2 3\n1 3\n"))  # cut 2, SDP bound 9/4
    assert triangle.objective_bound(-3.0) == 2.0
    assert triangle.objective_gap(-2.0, -3.0) == 0.0
    square = read_problem(write(tmp_path, "4 4\n1 2\n2 3\n3 4\n4 1\n"))  # even degrees, so cuts are even
    assert [square.objective_bound(bound) for bound in (-8.0, -7.9, 0.1, 8.0)] == [4.0, 2.0, 0.0, 0.0]
    quarters = read_problem(write(tmp_path, "3 2\n1 2 0.75\n2 3 0.5\n"))
    assert quarters.operator.toarray().max() == 3.0  # whole numbers of quarters
    values = {quarters.objective_bound(bound) for bound in np.linspace(-10.0, 10.0, 101)}
    assert values == {k / 4 for k in range(6)}


def test_no_bound_stays_no_bound(tmp_path: Path) -> None:
    path = write(tmp_path, "2 1\n1 2 1\n")
    assert read_problem(path).objective_bound(-math.inf) == math.inf
    assert read_problem(path, "qubo").objective_bound(-math.inf) == -math.inf
    assert read_problem(path).objective_gap(0.0, -math.inf) == math.inf


def test_gap_is_in_the_files_units(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, "3 3\n1 2 0.1\n2 3 0.1\n1 3 0.1\n"))  # cut 0.2, SDP bound 0.225
    assert problem.objective_gap(-0.2, -0.3) == pytest.approx((2.25 - 2.0) / 2.25)
    assert problem.objective_gap(-0.2, -0.2) == pytest.approx(0.0, abs=1e-14)


def same(left: Problem, right: Problem) -> bool:
    return (left.n, left.sense, left.offset) == (right.n, right.sense, right.offset) and np.array_equal(
        left.operator.toarray(), right.operator.toarray()
    )


TRIANGLE = "3 3\n1 2 1\n2 3 1\n1 3 1\n"


@pytest.mark.parametrize(
    "text",
    [
        "3 3 \n1 2\n2 3\n1 3\n",
        "3 3\n1 2\n2 3 1.0\n1 3 1e0",
        "# a comment\nc another\n\n3 3\n\n1 2 1\n\t2   3 1\r\n3 1 +1\n\n\n",
        "\ufeff3 3\n1 2 1\n2 3 1\n1 3 1\n",
        "3 5\n1 2 1\n2 3 1\n1 3 1\n2 2 7\n1 1\n",
        "3 5\n1 2 0.25\n2 1 0.5\n1 2 0.25\n2 3 1\n1 3 1\n",
    ],
    ids=[
        "weights left out",
        "some left out",
        "comments and blanks",
        "byte order mark",
        "self-loops",
        "duplicates",
    ],
)
def test_ways_to_write_a_triangle(tmp_path: Path, text: str) -> None:
    assert same(read_problem(write(tmp_path, text)), read_problem(write(tmp_path, TRIANGLE, "plain.txt")))


def test_blanks_of_other_scripts_separate_fields_too(tmp_path: Path) -> None:
    plain, other = (read_problem(write(tmp_path, text)) for text in ("3 1\n1 2 5\n", "3 1\n1\u00a02\u00a05\n"))
    np.testing.assert_array_equal(other.operator.toarray(), plain.operator.toarray())


@pytest.mark.parametrize(
    ("name", "sense"),
    [
        ("a.txt", "max-cut"),
        ("a.rud", "max-cut"),
        ("a", "max-cut"),
        ("a.sparse", "qubo"),
        ("a.QUBO", "qubo"),
        ("a.sparse.gz", "qubo"),
        ("a.mc.gz", "max-cut"),
    ],
)
def test_sense_goes_by_the_name(tmp_path: Path, name: str, sense: files.Sense) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TRIANGLE.encode()) if name.endswith(".gz") else TRIANGLE.encode())
    other: files.Sense = "qubo" if sense == "max-cut" else "max-cut"
    assert read_problem(path).sense == sense
    assert read_problem(str(path), other).sense == other
    assert read_problem(path).name == name


def test_unknown_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max-cut, qubo, ising"):
        read_problem(write(tmp_path, TRIANGLE), "min-cut")  # type: ignore[arg-type]


def test_no_edges_at_all(tmp_path: Path) -> None:
    problem = read_problem(write(tmp_path, "4 0\n"))
    assert problem.objective(problem.operator.value(np.ones(4))) == 0.0


MALFORMED = [
    ("empty", "", 1, "empty"),
    ("only blanks and comments", "\n# nothing\n\n", 3, "no header"),
    ("one number in the header", "3\n1 2\n", 1, "'n m'"),
    ("three numbers in the header", "1 2 1\n2 3 1\n", 1, "got 3 fields"),
    ("words in the header", "nodes edges\n", 1, "'n m'"),
    ("fraction in the header", "3.0 3\n", 1, "'3.0'"),
    ("underscore in the header", "1_0 1\n1 2\n", 1, "'1_0'"),
    ("no variables", "# c\n0 0\n", 2, "at least 1, got 0"),
    ("negative n", "-3 3\n", 1, "at least 1, got -3"),
    ("negative m", "3 -1\n", 1, "negative"),
    ("absurd n", "1000000000000 1\n1 2 1\n", 1, f"{MAX_VARIABLES:,}"),
    ("n beyond any integer", "1" + "0" * 200 + " 1\n1 2 1\n", 1, f"{MAX_VARIABLES:,}"),
    ("absurd m", "3 1000000000000\n1 2 1\n", 2, "1 of 1000000000000"),
    ("truncated", "3 3\n1 2 1\n2 3 1\n", 3, "2 of 3"),
    ("truncated after blanks", "3 3\n1 2 1\n\n2 3 1\n\n", 5, "2 of 3"),
    ("truncated inside a line", "3 3\n1 2 1\n2 3 1\n1", 4, "1 field"),
    ("header only", "3 3\n", 1, "0 of 3"),
    ("too many lines", "3 2\n1 2 1\n2 3 1\n\n1 3 1\n", 5, "more lines than the 2"),
    ("four fields", "3 1\n1 2 1 9\n", 2, "got 4 field"),
    ("one field", "3 1\n1\n", 2, "got 1 field"),
    ("word as an index", "3 2\n1 2 1\none 3 1\n", 3, "'one'"),
    ("fraction as an index", "3 1\n1.5 2 1\n", 2, "'1.5'"),
    ("infinite index", "3 1\ninf 2 1\n", 2, "'inf'"),
    ("huge index", "3 1\n99999999999999999999 2 1\n", 2, "outside 1..3"),
    ("index 0", "3 2\n1 2 1\n0 2 1\n", 3, "'0' is outside 1..3"),
    ("index n + 1", "3 2\n1 2 1\n1 4 1\n", 3, "'4' is outside 1..3"),
    ("negative index", "3 1\n-1 2 1\n", 2, "outside 1..3"),
    ("word as a weight", "3 1\n1 2 heavy\n", 2, "'heavy'"),
    ("NaN weight", "3 2\n1 2 1\n1 3 nan\n", 3, "'nan'"),
    ("infinite weight", "3 1\n1 2 -inf\n", 2, "'-inf'"),
    ("overflowing weight", "3 1\n1 2 1e999\n", 2, "'1e999'"),
    ("weight too large to add up", "3 1\n1 2 1e301\n", 2, "scale"),
    ("underscore in a weight", "3 1\n1 2 1_0\n", 2, "'1_0'"),
    ("digits of another script", "3 1\n1 ٢ 1\n", 2, "whole numbers"),
    ("comma instead of blanks", "3 1\n1,2,1\n", 2, "got 1 field"),
    ("comment after the header", "3 1\n# edges\n1 2 1\n", 2, "'#'"),
    ("endless line", "3 1\n" + "1" * 20_000, 2, "characters in a line"),
]


@pytest.mark.parametrize(("text", "line", "said"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_malformed_file_names_file_line_and_what_was_expected(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ProblemFileError) as caught:
        read_problem(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert said in str(caught.value)


def test_qubo_needs_its_weights(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError, match="line 3: expected 'i j w', got 2"):
        read_problem(write(tmp_path, "3 2\n1 2 5\n1 3\n", "q.sparse"))


def test_what_is_not_a_text_file(tmp_path: Path) -> None:
    with pytest.raises(ProblemFileError, match=r"nowhere\.txt: no such file"):
        read_problem(tmp_path / "nowhere.txt")
    with pytest.raises(ProblemFileError, match="is a directory"):
        read_problem(tmp_path)
    binary = tmp_path / "image.txt"
    binary.write_bytes(bytes(range(256)) * 8)
    with pytest.raises(ProblemFileError, match=r"image\.txt, line 1: "):
        read_problem(binary)
    zeros = tmp_path / "zeros.txt"
    zeros.write_bytes(bytes(50_000))
    with pytest.raises(ProblemFileError, match=r"zeros\.txt, line 1: "):
        read_problem(zeros)


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(TRIANGLE.encode())
    with pytest.raises(ProblemFileError, match=r"a\.txt\.gz, line 1: the gzip file is damaged"):
        read_problem(path)
    path.write_bytes(gzip.compress(TRIANGLE.encode() * 50)[:-12])
    with pytest.raises(ProblemFileError, match=r"a\.txt\.gz, line \d+: "):
        read_problem(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission(tmp_path: Path) -> None:
    path = write(tmp_path, TRIANGLE)
    path.chmod(0)
    with pytest.raises(ProblemFileError, match="cannot be read: "):
        read_problem(path)


# Real files, where they are.

DATA = Path(os.environ.get("HASHLEARN_DATA", "")) / "bqp"
HAVE_DATA = "HASHLEARN_DATA" in os.environ and (DATA / "reference.csv").is_file()
needs_data = pytest.mark.skipif(not HAVE_DATA, reason="needs $HASHLEARN_DATA/bqp/reference.csv")


def reference() -> list[dict[str, str]]:
    if not HAVE_DATA:
        return []
    with open(DATA / "reference.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


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
    rows = reference()
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
