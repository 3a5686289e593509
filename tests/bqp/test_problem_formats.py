"""Every format: what is written is read back exactly, what it cannot say is refused, bad lines are named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp.problem_files import FORMATS, ProblemFileError

ISING = {(0, 3): 1.5, (3, 7): -2.0}
WEIGHTS = [0.1, 1 / 3, -1e-300, 1e300, 7.0, -2.5, 2.0**60, 123456789.123]


def edges(n: int = 6) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(0)
    return [(int(i), int(j), w) for w in WEIGHTS for i, j in [rng.choice(n, 2, replace=False)]]


def problem_for(sense: str) -> bqp.Problem:
    """With duplicates, both orders, and a variable 6 that has no term."""
    terms = [*edges(), *([(2, 2, 5.0)] if sense != "max-cut" else [])]
    i, j, w = (np.array(column) for column in zip(*terms, strict=True))
    return bqp.Problem(sense, 7, i, j, w.astype(float), maximize=sense == "max-cut")  # type: ignore[arg-type]


def same(left: bqp.Problem, right: bqp.Problem) -> None:
    assert (left.sense, left.n, left.maximize, left.offset) == (right.sense, right.n, right.maximize, right.offset)
    pairs = [sorted((*sorted(pair), w) for *pair, w in zip(p.i, p.j, p.w, strict=True)) for p in (left, right)]
    assert pairs[0] == pairs[1]
    np.testing.assert_array_equal(left.operator.toarray(), right.operator.toarray())


ROUND_TRIPS = [
    (sense, ending)
    for sense in ("max-cut", "qubo", "ising")
    for known in FORMATS.values()
    for ending in known.endings
    if sense in known.senses
]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(("sense", "ending"), ROUND_TRIPS)
def test_what_is_written_is_read_back_exactly(sense: Any, ending: str, packed: str, tmp_path: Path) -> None:
    problem, path = problem_for(sense), tmp_path / f"problem{ending}{packed}"
    bqp.write_problem(problem, path)
    read = bqp.read_problem(path)
    same(problem, read)
    assert (read.path, read.name) == (path, path.name)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(packed)
    again = tmp_path / f"again{ending}{packed}"
    bqp.write_problem(read, again)
    same(problem, bqp.read_problem(again))


def test_numbers_as_labels_may_come_in_any_order(tmp_path: Path) -> None:
    for terms in ({(0, 2): 1.0, (0, 1): -3.0}, {(3, 1): 1.0, (2, 2): -3.0}):
        problem = bqp.qubo_problem(terms)
        for ending in (".qubo", ".sparse"):
            path = tmp_path / f"q{ending}"
            bqp.write_problem(problem, path)
            read = bqp.read_problem(path)
            first = min(problem.labels)
            weights = {frozenset((i + first, j + first)): w for i, j, w in zip(read.i, read.j, read.w, strict=True)}
            assert weights == {frozenset(pair): w for pair, w in terms.items()}


def test_only_a_problem_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="problem must be a Problem, got dict; make one with qubo_problem"):
        bqp.write_problem({("a", "b"): 1.0}, tmp_path / "q.qubo")  # type: ignore[arg-type]


def test_labels_are_kept(tmp_path: Path) -> None:
    graph = [("north pole".replace(" ", "-"), "b", 2.0), ("b", "ü", 0.5)]
    for ending in (".edges", ".csv"):
        path = tmp_path / f"graph{ending}"
        bqp.write_problem(bqp.max_cut_problem(graph, nodes=["alone", "ü", "b", "north-pole"]), path)
        read = bqp.read_problem(path)
        assert read.labels == ("alone", "ü", "b", "north-pole")
        assert bqp.solve_problem(read, method="exact").cut == 2.5
    path = tmp_path / "spins.coo"
    bqp.write_problem(bqp.ising_problem({7: 0.5}, ISING), path)
    assert path.read_text() == "# vartype=SPIN\n7 7 0.5\n0 3 1.5\n3 7 -2\n"
    assert bqp.read_problem(path).labels == (7, 0, 3)


def test_coo_files_are_those_of_dimod(tmp_path: Path) -> None:
    coo = pytest.importorskip("dimod.serialization.coo")
    dimod = pytest.importorskip("dimod")
    path = tmp_path / "model.coo"
    model = dimod.BinaryQuadraticModel({0: 1e-7, 5: -2.0}, {(0, 5): 1e20, (5, 9): 0.1}, "BINARY")
    bqp.write_problem(bqp.qubo_problem(model), path)
    with open(path) as file:
        assert coo.load(file) == model
    path.write_text(coo.dumps(dimod.BinaryQuadraticModel({0: 1.0}, {(0, 5): 2.0}, "SPIN"), vartype_header=True))
    answer = bqp.solve_problem(bqp.read_problem(path), method="exact")
    assert (answer.energy, answer.problem.sense) == (-3.0, "ising")


def test_qbsolv_files(tmp_path: Path) -> None:
    path = tmp_path / "small.qubo"
    path.write_text("c a comment\np qubo 0 4 2 2\nc nodes\n0 0 -3\n1 1 2\nc couplers\n0 2 -4\n1 2 1\n")
    problem = bqp.read_problem(path)
    assert (problem.sense, problem.n) == ("qubo", 4)
    answer = bqp.solve_problem(problem, method="exact")
    assert (answer.energy, answer.assignment[:3].tolist()) == (-7.0, [1, 0, 1])
    path.write_text("3 4\n1 1 -3\n2 2 2\n1 3 -2\n2 3 1\n")  # BiqMac under the same ending
    assert bqp.solve_problem(bqp.read_problem(path), method="exact").energy == -7.0


@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
def test_matrix_market_files_of_scipy(symmetry: str, tmp_path: Path) -> None:
    W = np.array([[0.0, 2.0, 0.5], [2.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
    path = tmp_path / "w.mtx"
    scipy.io.mmwrite(path, sp.coo_array(W), symmetry=symmetry)
    assert bqp.solve_problem(bqp.read_problem(path), method="exact").cut == 2.5
    energy = bqp.solve_problem(bqp.read_problem(path, "qubo"), method="exact", fixed={0: 1, 1: 1}).energy
    assert energy == 4.0  # zᵀQz counts both entries
    scipy.io.mmwrite(path, W, symmetry=symmetry)  # a dense array
    assert bqp.solve_problem(bqp.read_problem(path), method="exact").cut == 2.5
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n% a graph\n3 3 2\n2 1\n3 1\n")
    assert bqp.solve_problem(bqp.read_problem(path, format="mtx"), method="exact").cut == 2.0


def test_format_overrides_the_ending(tmp_path: Path) -> None:
    path = tmp_path / "graph.data"
    bqp.write_problem(bqp.max_cut_problem([("x", "y", 2.0)]), path, format="csv")
    assert path.read_text() == "x,y,2\n"
    assert bqp.read_problem(path, format="csv").labels == ("x", "y")
    with pytest.raises(ValueError, match=r"format must be one of rudy, .* got 'cvs'; did you mean 'csv'"):
        bqp.read_problem(path, format="cvs")


def test_parallel_edges_and_self_loops_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "graph.edges"
    path.write_text("# comment\na b 2\nb a 3\na a 9\n\n% comment\n")
    problem = bqp.read_problem(path)
    assert "1 parallel edge(s), such as ('a', 'b'); their weights are summed" in problem.notes[0]
    assert "1 self-loop(s)" in problem.notes[1]
    assert bqp.solve_problem(problem, method="exact").cut == 5.0


MATRIX = "%%MatrixMarket matrix coordinate real symmetric\n"
MALFORMED = [
    ("a.edges", "a b 1\na\n", "line 2: expected 'u v' or 'u v w', got 1 field"),
    ("a.edges", "a b c d\n", "line 1: expected 'u v' or 'u v w', got 4 field"),
    ("a.edges", "source target weight\n", "line 1: expected .*without a header line.* got 'weight'"),
    ("a.edges", "a b nan\n", "line 1: .*w a finite number, got 'nan'"),
    ("a.edges", "# nothing\n", "line 1: the file names no variables, expected 'u v' or 'u v w'"),
    ("a.csv", "", "line 1: the file names no variables"),
    ("a.csv", "a,b,1\na;b;2\n", "line 2: expected 'u,v' or 'u,v,w', got 1 field"),
    ("a.csv", "a,,1\n", "line 1: expected 'u,v'"),
    ("a.coo", "0 1 1\n", "expected a line '# vartype=BINARY' or '# vartype=SPIN', or a sense"),
    ("a.coo", "# vartype=ODD\n0 1 1\n", "line 1: expected '# vartype=BINARY'"),
    ("a.coo", "# vartype=SPIN\n0 1\n", "line 2: expected 'i j w', got 2 field"),
    ("a.coo", "# vartype=SPIN\n0 -1 2\n", "line 2: index '-1' is outside"),
    ("a.coo", "# vartype=SPIN\na 1 2\n", "line 2: expected 'i j w', i and j whole numbers, got 'a'"),
    ("a.qubo", "p qubo 0 4 1\n", "line 1: expected 'p qubo 0 maxNodes nNodes nCouplers', got"),
    ("a.qubo", "p cnf 0 4 1 2\n", "line 1: expected 'p qubo"),
    ("a.qubo", "p qubo 0 99999999999 1 1\n", "variables are announced"),
    ("a.qubo", "p qubo 0 2 1 1\n0 0 1\n", "has 1 line.* and 0 line.* but announces 1 and 1; is it truncated"),
    ("a.qubo", "p qubo 0 2 1 0\n2 2 1\n", "line 2: index '2' is outside 0..1"),
    ("a.mtx", "3 3 1\n1 2 1\n", "line 1: expected '%%MatrixMarket"),
    ("a.mtx", "", "line 1: expected '%%MatrixMarket"),
    ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n", "line 1: expected"),
    ("a.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n", "line 1: expected"),
    ("a.mtx", MATRIX, "line 1: expected 'rows columns entries'"),
    ("a.mtx", MATRIX + "2 3 1\n1 2 1\n", "line 2: .* of a square matrix"),
    ("a.mtx", MATRIX + "99999999999 99999999999 1\n2 1 1\n", "line 2: .* variables are announced"),
    ("a.mtx", MATRIX + "2 2 1\n2 1 x\n", r"a\.mtx: .*[Ll]ine 3"),
    ("a.mtx", MATRIX + "2 2 2\n2 1 1\n", r"a\.mtx: "),
    ("a.mtx", MATRIX + "2 2 1\n3 1 1\n", r"a\.mtx: .*[Ll]ine 3"),
    ("a.mtx", MATRIX + "2 2 1\n2 1 nan\n", r"a\.mtx: the matrix\[1, 0\] must be finite"),
    ("a.mtx", MATRIX.replace("symmetric", "general") + "2 2 1\n2 1 1\n", "the matrix must be symmetric"),
    ("a.mtx", "%%MatrixMarket matrix array real general\n999999 999999\n", "larger than the"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "said"), MALFORMED, ids=[f"{m[0]} {m[2]}" for m in MALFORMED])
def test_malformed_files_name_the_line(name: str, text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ProblemFileError, match=said) as caught:
        bqp.read_problem(path)
    assert str(caught.value).startswith(str(path))


def test_sense_that_contradicts_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.coo"
    path.write_text("# vartype=SPIN\n0 1 1\n")
    with pytest.raises(ProblemFileError, match="line 1: the file says SPIN, which means sense 'ising'"):
        bqp.read_problem(path, "qubo")
    path.write_text("0 1 1\n")
    assert bqp.read_problem(path, "qubo").sense == "qubo"
    matrix = tmp_path / "a.mtx"
    matrix.write_text(MATRIX + "1 1 1\n1 1 1\n")
    with pytest.raises(ProblemFileError, match="zero diagonal"):
        bqp.read_problem(matrix, "ising")


@pytest.mark.parametrize("name", ["a.mtx.gz", "a.edges.gz", "a.coo.gz"])
def test_damaged_gzip_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"0 1 1\n" * 999)[:-20])
    with pytest.raises(ProblemFileError, match=r"a\..*line \d+: "):
        bqp.read_problem(path, "qubo")


QUBO = bqp.qubo_problem({("a", "b"): 1.0})
UNSAYABLE = [
    (bqp.qubo_problem(np.eye(2), offset=1.5), "a.coo", "the offset 1.5, which no file can say"),
    (bqp.qubo_problem(np.eye(2), sense="max"), "a.coo", "maximized, and files are minimized"),
    (QUBO, "a.mc", "'rudy' is read as a max-cut problem, and this is a qubo problem; use the ending .sparse or"),
    (QUBO, "a.csv", "read as a max-cut problem"),
    (QUBO, "a.edges", "read as a max-cut problem, and this is a qubo"),
    (QUBO, "a.mtx", "'mtx' is read as a max-cut problem"),
    (bqp.ising_problem([1.0]), "a.csv", "this is a ising problem; use the ending .coo"),
    (bqp.max_cut_problem([(0, 1)]), "a.coo", "read as a qubo or ising problem, and this is a max-cut problem"),
    (QUBO, "a.sparse", "numbers its variables and has no labels"),
    (QUBO, "a.qubo", "rename them to 0 to 1$"),
    (bqp.max_cut_problem([("a", "b")]), "a.mc", "rename them to 0 to 1, or use the ending .edges or .csv"),
    (QUBO, "a.coo", "the label 'a' cannot be written: labels of a COO file are integers"),
    (bqp.max_cut_problem([("a b", "c")]), "a.edges", "the label 'a b' cannot be written"),
    (bqp.max_cut_problem([("a,b", "c")]), "a.csv", "the label 'a,b' cannot be written"),
    (bqp.max_cut_problem([("#a", "c")]), "a.edges", "the label '#a' cannot be written"),
    (bqp.max_cut_problem([(1, "1")]), "a.edges", "two labels have the same text"),
    (bqp.max_cut_problem([]), "a.edges", "no variables"),
    (bqp.qubo_problem([[0.0, 5e-324], [0.0, 0.0]]), "a.sparse", "too small for float64"),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "name", "said"), UNSAYABLE, ids=[u[2] for u in UNSAYABLE])
def test_what_a_format_cannot_say_is_refused(problem: bqp.Problem, name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(ValueError, match=said):
        bqp.write_problem(problem, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
