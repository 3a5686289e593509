"""`max_cut`: every form of a graph gives the same cut in its own words, and bad graphs are refused by name."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp

nx = pytest.importorskip("networkx")
EDGES = [("a", "b", 3.0), ("b", 7, 2.0), (7, "a", 1.0), (("x", 1), "a", 4.0)]
LABELS = ("a", "b", 7, ("x", 1))


def matrix() -> np.ndarray:
    W = np.zeros((4, 4))
    for u, v, w in EDGES:
        i, j = LABELS.index(u), LABELS.index(v)
        W[i, j] = W[j, i] = w
    return W


def graph() -> Any:
    made = nx.Graph()
    made.add_weighted_edges_from(EDGES)
    return made


FORMS = {
    "networkx": graph,
    "edge list": lambda: iter(EDGES),
    "array": matrix,
    "integers": lambda: matrix().astype(np.int32),
    "csr": lambda: sp.csr_array(matrix()),
    "coo matrix": lambda: sp.coo_matrix(matrix()),
    "dia": lambda: sp.dia_array(matrix()),
    "lil": lambda: sp.lil_array(matrix()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answer_in_its_own_labels(form: str) -> None:
    answer = bqp.max_cut(FORMS[form](), method="exact")
    assert (answer.cut, answer.upper_bound, answer.gap, answer.status) == (9.0, 9.0, 0.0, bqp.Status.OPTIMAL)
    labeled = form in ("networkx", "edge list")
    assert isinstance(answer.sides, dict if labeled else np.ndarray)
    sides = answer.sides if labeled else dict(zip(LABELS, answer.sides, strict=True))
    assert set(sides) == set(LABELS)
    assert sum(w for u, v, w in EDGES if sides[u] != sides[v]) == answer.cut
    first, second = answer.partition
    names = LABELS if labeled else range(4)
    assert {*first, *second} == set(names)
    assert repr(answer).startswith("Answer(cut=9, upper_bound=9, gap=0, status='optimal', n=4, method='exact'")


def test_default_method_and_options_of_solve() -> None:
    seen = []
    answer = bqp.max_cut(graph(), random_state=0, time_limit=20.0, progress=seen.append)
    assert (answer.cut, answer.status.value) == (9.0, "optimal")
    assert all(0.0 <= state.value <= 9.0 <= state.bound for state in seen if math.isfinite(state.value))
    with pytest.raises(TypeError, match="seed"):
        bqp.max_cut(graph(), seed=0)


def test_start_is_given_in_the_words_of_the_graph() -> None:
    start = {"a": 1, "b": -1, 7: 1, ("x", 1): -1}
    answer = bqp.max_cut(graph(), method="spectral", x0=start, random_state=0)
    assert answer.cut >= 9.0
    with pytest.raises(ValueError, match=r"x0 must have a value for every variable, and has none for 7"):
        bqp.max_cut(graph(), x0={"a": 1, "b": 1})
    with pytest.raises(ValueError, match=r"x0\[1\] must be -1 or \+1, got 0"):
        bqp.max_cut(matrix(), x0=[1, 0, 1, 1])


def test_integer_bound_closes_the_gap_of_the_relaxation() -> None:
    triangle = bqp.max_cut([(0, 1), (1, 2), (2, 0)], method="sdr", random_state=0)  # relaxation: 9/4
    assert (triangle.cut, triangle.upper_bound, triangle.gap) == (2.0, 2.0, 0.0)
    assert triangle.status == bqp.Status.OPTIMAL
    tenths = bqp.max_cut([(0, 1, 0.1), (1, 2, 0.1), (2, 0, 0.1)], method="sdr", random_state=0)
    assert tenths.upper_bound == pytest.approx(0.225, rel=1e-3)
    assert tenths.status != bqp.Status.OPTIMAL


def test_parallel_edges_are_summed_and_said() -> None:
    multi = nx.MultiGraph([("a", "b", {"weight": 2}), ("b", "a", {"weight": 3}), ("b", "c", {})])
    with pytest.warns(UserWarning, match=r"1 parallel edge\(s\), such as \('a', 'b'\); their weights are summed"):
        answer = bqp.max_cut(multi, method="exact")
    assert answer.cut == 6.0
    assert "their weights are summed" in answer.problem.notes[0]
    with pytest.warns(UserWarning, match="parallel"):
        assert bqp.max_cut([(0, 1), (1, 0)], method="exact").cut == 2.0


def test_self_loops_and_isolated_nodes() -> None:
    loops = graph()
    loops.add_edge("a", "a", weight=100.0)
    loops.add_node("alone")
    answer = bqp.max_cut(loops, method="exact")
    assert (answer.cut, answer.upper_bound) == (9.0, 9.0)
    assert answer.sides["alone"] in (-1, 1)
    assert answer.problem.notes == ("1 self-loop(s) are in no cut and were left out",)
    diagonal = bqp.max_cut(matrix() + 5.0 * np.eye(4), method="exact")
    assert (diagonal.cut, diagonal.problem.notes) == (9.0, ("4 self-loop(s) are in no cut and were left out",))
    listed = bqp.max_cut([*EDGES, (None, None, 0.0)], method="exact")
    assert listed.sides.keys() == {*LABELS, None}


def test_weights_of_networkx() -> None:
    named = nx.Graph([(0, 1, {"length": 5}), (1, 2, {})])
    assert bqp.max_cut(named, weight="length", method="exact").cut == 6.0
    assert bqp.max_cut(named, method="exact").cut == 2.0


def test_no_edges_and_no_nodes() -> None:
    for answer in (
        bqp.max_cut([(k, k, 0) for k in "abc"]),
        bqp.max_cut(np.zeros((3, 3))),
        bqp.max_cut(sp.csr_array((3, 3))),
    ):
        assert (answer.cut, answer.upper_bound, answer.gap, answer.status.value) == (0.0, 0.0, 0.0, "optimal")
        assert len(answer.sides) == 3
    for empty in ([], nx.Graph(), np.zeros((0, 0))):
        answer = bqp.max_cut(empty)
        assert (answer.cut, answer.upper_bound, len(answer.sides)) == (0.0, 0.0, 0)
        assert answer.partition == ([], [])


@pytest.mark.parametrize("method", ["exact", "sdr", "local_search", "auto"])
@pytest.mark.parametrize("weights", [(1e300, 3e299, -1e300), (1e-300, 3e-310, 5e-324), (1e300, 1e-300, 1.0)])
def test_huge_and_tiny_weights_have_valid_bounds(weights: tuple[float, ...], method: str) -> None:
    edges = [(0, 1, weights[0]), (1, 2, weights[1]), (2, 0, weights[2])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = bqp.max_cut(edges, method=method, random_state=0)
    cuts = [sum(Fraction(w) for u, v, w in edges if x[u] != x[v]) for x in itertools.product((-1, 1), repeat=3)]
    assert answer.upper_bound >= max(cuts)
    assert answer.cut == pytest.approx(float(max(cuts)), rel=1e-9)


def test_weights_that_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="add up to more than float64 holds; divide"):
        bqp.max_cut([(0, 1, 1.7e308), (1, 2, 1.7e308)])


def test_fixed_sides() -> None:
    answer = bqp.max_cut(graph(), fixed={"a": 1, "b": 1}, method="exact")
    assert (answer.cut, answer.upper_bound, answer.sides["a"], answer.sides["b"]) == (7.0, 7.0, 1, 1)


BAD = [
    (lambda: {"graph": nx.DiGraph([(0, 1)])}, ValueError, r"directed.*graph\.to_undirected\(\)"),
    (
        lambda: {"graph": np.array([[0.0, 1.0], [2.0, 0.0]])},
        ValueError,
        r"\[0, 1\] = 1 and graph\[1, 0\] = 2; pass",
    ),
    (
        lambda: {"graph": sp.triu(sp.coo_array(np.ones((3, 3))), 1)},
        ValueError,
        r"graph\[1, 0\] = 0; pass graph \+ graph\.T",
    ),
    (lambda: {"graph": np.ones((2, 3))}, ValueError, r"graph must be square, got shape \(2, 3\)"),
    (lambda: {"graph": np.ones(3)}, ValueError, "graph must be square"),
    (
        lambda: {"graph": np.array([[0, np.nan], [np.nan, 0]])},
        ValueError,
        r"the weight of \(0, 1\) must be finite in float64, got",
    ),
    (lambda: {"graph": sp.csr_array([[0, np.inf], [np.inf, 0]])}, ValueError, r"the weight of \(0, 1\) must be finite"),
    (lambda: {"graph": np.array([[0, 1j], [1j, 0]])}, TypeError, "graph must be real"),
    (lambda: {"graph": np.array([["0", "1"], ["1", "0"]])}, TypeError, "graph must hold numbers"),
    (lambda: {"graph": [("a", "b", 10**400)]}, ValueError, "must be finite in float64"),
    (
        lambda: {"graph": [("a", "b", math.nan)]},
        ValueError,
        r"the weight of \('a', 'b'\) must be finite in float64, got nan",
    ),
    (lambda: {"graph": [("a", "b", math.inf)]}, ValueError, r"the weight of \('a', 'b'\) must be finite"),
    (lambda: {"graph": [("a", "b", "3")]}, TypeError, r"weight of \('a', 'b'\) must be a real number, got '3' \(str\)"),
    (lambda: {"graph": [("a", "b", None)]}, TypeError, r"must be a real number, got None"),
    (lambda: {"graph": [("a", "b", 1 + 2j)]}, TypeError, r"must be a real number, got \(1\+2j\)"),
    (
        lambda: {"graph": nx.Graph([(0, 1, {"weight": "x"})])},
        TypeError,
        r"of \(0, 1\) must be a real number",
    ),
    (lambda: {"graph": [("a",)]}, ValueError, r"edge 0 of graph must be a tuple \(u, v\)"),
    (lambda: {"graph": [("a", "b"), "bc"]}, ValueError, "edge 1 of graph must be a tuple"),
    (lambda: {"graph": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, ValueError, "pass np.array.graph."),
    (lambda: {"graph": [({}, 1)]}, TypeError, "unhashable"),
    (lambda: {"graph": "graph.txt"}, TypeError, "got str"),
    (lambda: {"graph": 5}, TypeError, "got int"),
    (lambda: {"graph": [(0, 1)], "time_limit": 0}, ValueError, "time_limit must be a positive number of seconds"),
    (lambda: {"graph": [(0, 1)], "method": "sdp"}, ValueError, "method must be one of"),
    (lambda: {"graph": [(0, 1)], "fixed": {2: 1}}, ValueError, "there is no variable 2"),
    (lambda: {"graph": [("anna", 1)], "fixed": {"ana": 1}}, ValueError, "did you mean 'anna'"),
    (lambda: {"graph": [(0, 1)], "fixed": {0: 0}}, ValueError, r"fixed\[0\] must be -1 or \+1, got 0"),
    (lambda: {"graph": [(0, 1)], "fixed": [(0, 1)]}, TypeError, "fixed must be a dict"),
]


@pytest.mark.parametrize(("arguments", "error", "said"), BAD, ids=[said for _, _, said in BAD])
def test_bad_input_is_refused_by_name(arguments: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        bqp.max_cut(**arguments())


def test_bool_weights_count_as_0_and_1() -> None:
    assert bqp.max_cut(matrix() > 0.0, method="exact").cut == 3.0
    assert bqp.max_cut([(0, 1, True), (1, 2, False)], method="exact").cut == 1.0


def test_asymmetry_of_rounding_is_accepted() -> None:
    W = matrix() * 0.1
    W[0, 1] = np.nextafter(W[0, 1], 1.0)
    answer = bqp.max_cut(W, method="exact")
    assert answer.cut == pytest.approx(0.9)
    assert answer.upper_bound >= answer.cut


@dataclass(frozen=True)
class SecondBest(bqp.Solver):
    """Offers signs that are worse than the best by one small edge, and the bound of the best."""

    name: ClassVar[str] = "second_best"

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        state.propose(np.array([1.0, -1.0, -1.0]))
        state.propose_bound(A.value(np.array([1.0, -1.0, 1.0])))
        return bqp.Status.CONVERGED


def test_optimal_means_that_no_cut_of_integer_weights_is_larger() -> None:
    """`solve` calls values within 1e-9 of the bound optimal. Integers that differ by 1 are told apart here."""
    answer = bqp.max_cut([(0, 1, 1e12), (1, 2, 1)], method=SecondBest())
    assert answer.solution.status == bqp.Status.OPTIMAL
    assert (answer.cut, answer.upper_bound, answer.status) == (1e12, 1e12 + 1.0, bqp.Status.CONVERGED)
