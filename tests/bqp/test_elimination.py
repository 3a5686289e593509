"""Elimination keeps the optimum: exactly for integers, up to its slack for other numbers."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp import graphs

from hashlearn import bqp
from hashlearn.bqp import Sparse, Structured, elimination
from hashlearn.bqp.elimination import eliminate
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import lattice_of


def some_problem(seed: int, whole: bool) -> Structured:
    """A sparse problem of 2 to 11 variables with a diagonal, parallel entries and components of their own."""
    rng = np.random.default_rng([seed, whole])
    n = int(rng.integers(2, 12))
    i, j = rng.integers(0, n, (2, int(rng.integers(0, 2 * n))))
    w = (
        rng.integers(-4, 5, len(i)).astype(float)
        if whole
        else rng.standard_normal(len(i)) * 10.0 ** rng.integers(-9, 9)
    )
    half = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    return Sparse(sp.csr_array(half + half.T))


def all_values(A: bqp.Operator) -> tuple[np.ndarray, np.ndarray]:
    X = np.array(list(itertools.product([1.0, -1.0], repeat=A.n)))
    return X, np.einsum("ij,ij->i", X @ A.toarray(), X)


@pytest.mark.parametrize("whole", [True, False])
def test_the_smaller_problem_has_the_same_optimum(whole):
    for seed in range(150):
        A = some_problem(seed, whole)
        found = eliminate(A)
        assert found is not None
        Z, values = all_values(found.problem)
        translated = found.unit * (values + found.constant)
        slack = found.slack + (0.0 if whole else 1e-14 * np.abs(A.toarray()).sum())
        assert abs(translated.min() - all_values(A)[1].min()) <= slack
        for z, value in zip(Z, translated, strict=True):
            assert abs(A.value(found.expand(z)) - value) <= slack
        assert found.problem.is_exact() or not whole


def test_the_others_have_the_best_signs_and_the_kept_ones_stay():
    A = Sparse(graphs.random_graph(400, 3.0, 0))
    found = eliminate(A)
    z = np.where(np.random.default_rng(0).random(found.problem.n) < 0.5, -1.0, 1.0)
    x = found.expand(z)
    np.testing.assert_array_equal(found.collapse(x), z)
    gone = np.setdiff1d(np.arange(A.n), found.collapse(np.arange(A.n)))
    assert A.flip_gains(x)[gone].min() >= 0.0
    worse = x.copy()
    worse[gone[:7]] *= -1.0
    assert A.value(worse) >= A.value(x)


@pytest.mark.parametrize("weight", [1.0, 3.0, 2.0**40, 0.3])
def test_forests_and_rings_are_solved_by_it(weight):
    n = 300
    parents = (np.arange(1, n) * np.random.default_rng(0).random(n - 1)).astype(int)
    forest = sp.coo_array((np.full(n - 1, weight), (np.arange(1, n), parents)), shape=(n, n)).tocsr()
    ring = sp.coo_array((np.full(101, weight), (np.arange(101), (np.arange(101) + 1) % 101)), shape=(101, 101)).tocsr()
    for half, optimum in ((forest, -2.0 * weight * (n - 1)), (ring, -2.0 * weight * 99)):
        for method in ("auto", "local_search"):
            solution = bqp.solve(half + half.T, method, random_state=0)
            assert solution.status is Status.OPTIMAL
            assert solution.value == pytest.approx(optimum, rel=1e-12)
            assert solution.details["eliminated"] == half.shape[0] - 1


def test_edges_do_not_grow_and_nothing_of_few_neighbors_is_left():
    A = Sparse(graphs.regular_graph(2000, 0))
    found = eliminate(A)
    assert found.problem.n < 0.6 * A.n
    assert found.problem.sparse.nnz <= A.sparse.nnz
    assert np.diff(found.problem.sparse.indptr).min() > elimination.MOST_NEIGHBORS
    assert found.problem.sparse.has_canonical_format
    assert (found.problem.sparse != found.problem.sparse.T).nnz == 0


def test_nothing_to_eliminate():
    assert eliminate(Sparse(graphs.square_torus(100, 0))) is None
    dense = sp.csr_array(np.ones((6, 6)))
    assert eliminate(Sparse(dense)) is None


@pytest.mark.parametrize("weight", [2.0**47 + 1.0, 2.0**49 - 1.0])
def test_integers_without_spare_digits_stay_exact(weight):
    """Three neighbors of odd weights would need halves, for which sums near 2⁵³ have no digit. The leaf goes anyway."""
    prism = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]
    half = np.zeros((7, 7))
    for i, j in prism:
        half[i, j] = 2.0**47 + 1.0
    half[0, 6] = weight
    A = Sparse(sp.csr_array(half + half.T))
    assert A.is_exact()
    found = eliminate(A)
    assert found.problem.is_exact()
    assert found.problem.n == 6
    least = min(Fraction(float(value)) for value in all_values(found.problem)[1])
    assert Fraction(found.unit) * (least + Fraction(found.constant)) == Fraction(float(all_values(A)[1].min()))


def test_common_neighbors_of_two_hubs_are_eliminated():
    half = sp.lil_array((42, 42))
    half[0, 2:], half[1, 2:] = 1.0, 1.0
    assert eliminate(Sparse(sp.csr_array(half + half.T))).problem.n == 1


def test_bounds_traces_and_details_are_those_of_the_whole_problem():
    W = graphs.regular_graph(60, 1)
    A = bqp.as_operator(W)
    solution = bqp.solve(W, "auto", random_state=0)
    exact = bqp.solve(W, "branch_and_bound", random_state=0)
    assert exact.status is Status.OPTIMAL
    assert solution.bound <= exact.value <= solution.value == A.value(solution.x)
    for entry in solution.trace:
        assert entry.bound <= exact.value <= entry.value
    assert solution.trace[-1].value == solution.value
    assert solution.details["relaxation_value"] <= exact.value
    assert solution.details["eliminated"] > 0
    lattice = lattice_of(A)
    assert (solution.bound - lattice.one) % lattice.step == 0


def test_a_proof_about_the_smaller_problem_is_not_given():
    """About 60 of 100 variables are left, and branch and bound proves their optimum."""
    W = graphs.regular_graph(100, 3)
    solution = bqp.solve(W, "auto", random_state=0, time_limit=20.0)
    assert solution.status is Status.OPTIMAL
    assert "proof" not in solution.details


def test_fixed_variables_and_starts():
    W = graphs.random_graph(200, 3.0, 4)
    A = bqp.as_operator(W)
    x0 = bqp.solve(W, "spectral", random_state=0).x
    solution = bqp.solve(W, "local_search", random_state=0, x0=x0, fixed={7: int(x0[7]), 9: int(x0[9])})
    assert (solution.x[7], solution.x[9]) == (x0[7], x0[9])
    assert solution.value == A.value(solution.x) <= A.value(x0)


def test_short_limits_leave_the_problem_whole():
    W = graphs.random_graph(2000, 3.0, 4)
    assert "eliminated" not in bqp.solve(W, "auto", random_state=0, time_limit=0.1).details


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1e110])
def test_huge_and_tiny_weights_have_valid_bounds(size):
    for seed in range(30):
        A = some_problem(seed, whole=False)
        scaled = sp.csr_array(A.sparse * (size / max(np.abs(A.sparse.data).max(initial=0.0), 1e-300)))
        X = np.array(list(itertools.product([1, -1], repeat=A.n)))
        entries = [(i, j, Fraction(v)) for (i, j), v in sp.dok_array(scaled).items()]
        optimum = min(sum(v * int(x[i]) * int(x[j]) for i, j, v in entries) for x in X[: 2 ** (A.n - 1)])
        solution = bqp.solve(scaled, "auto", random_state=0)
        assert Fraction(solution.bound) <= optimum


def test_the_start_value_is_that_of_the_callers_problem():
    """Elimination sets a variable that is gone to its best sign, which must not flatter the start."""
    path = sp.csr_array(np.eye(6, k=1) + np.eye(6, k=-1))
    solution = bqp.solve(path, "local_search", x0=np.ones(6), random_state=0)
    assert solution.details["start_value"] == 10.0
    assert solution.value == -10.0


@pytest.mark.parametrize("penalty", [1e3, 1e9, 1e15])
@pytest.mark.parametrize("method", ["auto", "local_search"])
def test_a_tree_with_penalties_is_proven_exactly(method, penalty):
    """Float64 rounds the eliminations; they are repeated in fractions."""
    rng = np.random.default_rng(0)
    edges = [
        (int(rng.integers(k)), k, float(rng.integers(-30, 31)) / 10.0 + penalty * (k % 3 == 0)) for k in range(1, 40)
    ]
    problem = bqp.ising_problem({k: 0.1 * (k % 7) - 0.3 for k in range(40)}, {(i, j): w for i, j, w in edges})
    answer = bqp.solve_problem(problem, method=method, random_state=0)
    least = [[Fraction(0)] * 2 for _ in range(40)]  # of the subtree, for the spins −1 and +1
    fields = dict(
        zip(problem.i[problem.i == problem.j].tolist(), problem.w[problem.i == problem.j].tolist(), strict=True)
    )
    for k in range(39, -1, -1):
        for side, spin in enumerate((-1, 1)):
            least[k][side] += spin * Fraction(fields.get(k, 0.0))
            for i, j, w in edges:
                if i == k:
                    least[k][side] += min(least[j][t] + spin * s * Fraction(w) for t, s in enumerate((-1, 1)))
    assert problem.evaluate(problem.assignment(answer.solution.x)) == min(least[0])
    assert (answer.status, answer.gap) == (bqp.Status.OPTIMAL, 0.0)
