"""Fixed variables, against enumeration that shares no code with the solvers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp.proof.check import check_proof
from hashlearn.bqp.state import AtMost, OutOfTime, lattice_of
from tests.bqp.problems import random_symmetric, signed_graph

N = 9


def best(A, fixed):
    """The smallest xᵀAx among all signs with the fixed ones."""
    X = np.array(list(itertools.product((1.0, -1.0), repeat=len(A))))
    for i, sign in fixed.items():
        X = X[X[:, i] == sign]
    return np.einsum("ki,ij,kj->k", X, A, X).min()


def forms(seed):
    """One problem of each kind of operator, with its dense array."""
    rng = np.random.default_rng(seed)
    dense = random_symmetric(N, seed, integers=seed % 2 == 0)
    P, weights = rng.standard_normal((N, 3)), rng.standard_normal(3)
    sparse = sp.csr_array(np.where(np.abs(dense) > np.median(np.abs(dense)), dense, 0.0))
    low_rank = (P * weights) @ P.T
    return [
        (dense, dense),
        (sparse, sparse.toarray()),
        (bqp.LowRank(P, weights), low_rank),
        (bqp.as_operator(sparse) + bqp.LowRank(P, weights), sparse.toarray() + low_rank),
    ]


@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", bqp.METHODS)
def test_fixed_variables_in_every_method(method, seed, form):
    A, array = forms(seed)[form]
    fixed = {1: -1, 4: 1, 8: -1}
    solution = bqp.solve(A, method, random_state=0, fixed=fixed)
    assert [solution.x[i] for i in fixed] == list(fixed.values())
    assert solution.value == pytest.approx(solution.x @ array @ solution.x)
    optimum = best(array, fixed)
    slack = 1e-9 * np.abs(array).sum()
    assert solution.bound <= optimum + slack
    assert solution.value >= optimum - slack
    if method in ("exact", "local_search", "auto"):
        assert solution.value == pytest.approx(optimum)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"fixed": [1, -1]}, TypeError, "fixed must map variables to [+]1 or -1, such as .*, got list"),
        ({"fixed": {4: 1}}, ValueError, "fixed must map variables 0 to 3 to [+]1 or -1, got the variable 4"),
        ({"fixed": {0: 0}}, ValueError, "got 0 for variable 0"),
        ({"fixed": {True: 1}}, ValueError, "got the variable True"),
        ({"fixed": {0: 1, 1: 1}, "x0": [1, -1, 1, 1]}, ValueError, "x0 must have the signs of the fixed variables"),
    ],
)
def test_bad_constraints_are_named(arguments, kind, message):
    with pytest.raises(kind, match=message):
        bqp.solve(np.ones((4, 4)), "exact", **arguments)


def test_all_variables_fixed():
    A = random_symmetric(4, 0)
    solution = bqp.solve(A, fixed={0: 1, 1: -1, 2: -1, 3: 1})
    assert solution.x.tolist() == [1, -1, -1, 1]
    assert solution.bound <= solution.value == pytest.approx(solution.x @ A @ solution.x)


@pytest.mark.parametrize("seed", range(20))
def test_values_of_integers_lie_on_the_lattice(seed):
    rng = np.random.default_rng(seed)
    A = random_symmetric(6, seed, integers=True) * int(rng.integers(1, 4))
    lattice = lattice_of(bqp.as_operator(A))
    assert lattice is not None
    values = {int(x @ A @ x) for x in (np.where(rng.random((40, 6)) < 0.5, -1.0, 1.0))}
    assert {(value - lattice.one) % lattice.step for value in values} == {0}
    smallest = min(values)
    assert lattice.ceiling(Fraction(smallest - lattice.step + 0.5)) == smallest
    assert lattice.ceiling(smallest) == smallest


def test_the_lattice_of_fractions_is_none():
    assert lattice_of(bqp.as_operator(0.5 * np.ones((3, 3)))) is None
    assert lattice_of(bqp.as_operator(np.eye(3))) is None


def test_auto_gives_the_same_answer_for_any_number_of_threads(monkeypatch):
    A = random_symmetric(60, 3)
    answers = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(bqp.solve(A, "auto", random_state=1))
    assert answers[0].x.tolist() == answers[1].x.tolist()
    assert answers[0].bound == answers[1].bound


def test_auto_stops_when_the_bound_proves_the_point():
    ring = np.roll(np.eye(30), 1, axis=1)
    solution = bqp.solve(ring + ring.T, "auto", random_state=0, time_limit=60.0)
    assert (solution.value, solution.bound, solution.status.value) == (-60.0, -60.0, "optimal")
    assert solution.seconds < 30.0
    assert solution.trace[-1].bound == -60.0


@pytest.mark.parametrize(("n", "kind"), [(25, "signs"), (60, "signs"), (25, "reals"), (40, "reals"), (30, "low rank")])
def test_auto_proves_small_problems_without_a_time_limit(n, kind):
    A = signed_graph(n, 0) if kind == "signs" else random_symmetric(n, 1)
    if kind == "low rank":
        A = bqp.LowRank(np.random.default_rng(0).standard_normal((n, 4)), [1.0, -1.0, 2.0, 0.5])
    solution = bqp.solve(A, random_state=0)
    assert solution.status.value == "optimal"
    assert solution.value == pytest.approx(solution.bound, rel=1e-9)
    assert check_proof(A, solution.details["proof"]).accepted


def test_the_answer_is_that_of_max_cut_too():
    answer = bqp.max_cut(-signed_graph(40, 1), random_state=0)
    assert (answer.cut, answer.gap, answer.status.value) == (answer.upper_bound, 0.0, "optimal")


def test_auto_proves_no_longer_than_its_nodes_allow(monkeypatch):
    monkeypatch.setattr("hashlearn.bqp.proof.bound.MOST_ROUNDS", 2)  # too few to close the root
    A = random_symmetric(40, 0)
    none, two = (bqp.solve(A, bqp.Auto(max_nodes=k), random_state=0) for k in (0, 2))
    monkeypatch.setattr("hashlearn.bqp.methods.auto.PROVING_WORK", 2 * 40)
    default = bqp.solve(A, random_state=0)
    assert "nodes" not in none.details
    assert two.details["nodes"] == 3  # the children of the root are computed together
    assert {none.status.value, two.status.value, default.status.value} == {"converged"}
    assert none.bound < two.bound == default.bound
    assert none.x.tolist() == two.x.tolist() == default.x.tolist()
    with pytest.raises(ValueError, match="max_nodes must be an integer of at least 0, got -1"):
        bqp.Auto(max_nodes=-1)


def test_auto_proves_nothing_beyond_its_size(monkeypatch):
    monkeypatch.setattr("hashlearn.bqp.methods.auto.LARGEST_PROVEN", 40)
    assert "nodes" in bqp.solve(signed_graph(40, 0), random_state=0).details
    assert "nodes" not in bqp.solve(signed_graph(41, 0), random_state=0).details


def test_auto_stops_when_a_tree_of_real_numbers_is_closed():
    solution = bqp.solve(random_symmetric(30, 0), random_state=0, time_limit=60.0)
    assert solution.status.value == "optimal"
    assert solution.value > solution.bound
    assert solution.seconds < 60.0


def test_a_proof_of_auto_that_the_time_ends_is_no_end_by_its_own_rule(monkeypatch):
    def too_late(*arguments):
        raise OutOfTime

    monkeypatch.setattr(bqp.BranchAndBound, "solve", too_late)
    assert bqp.solve(random_symmetric(40, 0), random_state=0, time_limit=AtMost(60.0)).status == "time_limit"


def test_auto_names_no_time_limit_where_its_bound_ended_a_part():
    """The bound is the value, and the rounding of the value keeps it from being called optimal."""
    A = bqp.LowRank([[-0.4], [-0.4]], [0.2])
    assert {bqp.solve(A, random_state=seed).status.value for seed in range(20)} == {"converged"}


def test_a_low_rank_problem_without_entries_may_have_fixed_variables():
    solution = bqp.solve(bqp.LowRank([[1.0], [2.0], [3.0]], [0.0]), fixed={0: -1, 1: 1})
    assert (solution.x[:2].tolist(), solution.value, solution.status) == ([-1, 1], 0.0, "optimal")
