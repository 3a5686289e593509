"""Local search under a cardinality: the sum holds, brute force agrees, planted halves are found."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp import graphs

import hashlearn.bqp.methods.local_search as local_search
from hashlearn import bqp
from hashlearn.bqp import Dense, LocalSearch, LowRank, Sparse
from hashlearn.bqp.constraints import Cardinality
from hashlearn.bqp.methods.annealing import Annealer
from hashlearn.bqp.methods.swaps import PairedSwaps, SwapWalks, feasible
from tests.bqp.problems import random_low_rank, random_sparse, random_symmetric

SHORT = LocalSearch(n_starts=3, max_iter=3000)


def kinds(n: int) -> dict[str, bqp.Operator]:
    return {
        "dense": Dense(random_symmetric(n, 0)),
        "sparse": Sparse(random_sparse(n, 1, density=0.4)),
        "low rank": random_low_rank(n, 3, 2),
        "mixed": bqp.as_operator(random_sparse(n, 3, density=0.3)) + random_low_rank(n, 2, 4),
    }


def least(A: bqp.Operator, total: int, fixed: dict[int, int]) -> float:
    points = (np.array(x, float) for x in itertools.product([-1, 1], repeat=A.n) if sum(x) == total)
    return min(A.value(x) for x in points if all(x[i] == sign for i, sign in fixed.items()))


@pytest.mark.parametrize("kind", kinds(12))
@pytest.mark.parametrize("total", [0, 4, -6, 10, 12])
@pytest.mark.parametrize("fixed", [{}, {0: 1, 3: 1}], ids=["free", "two fixed"])
def test_the_best_of_all_signs_with_this_sum(kind, total, fixed):
    A = kinds(12)[kind]
    for method in (SHORT, LocalSearch()):
        solution = bqp.solve(A, method, cardinality=total, fixed=fixed, random_state=0)
        assert solution.x.sum() == total
        assert solution.value == pytest.approx(least(A, total, fixed), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "low rank", "mixed"])
@pytest.mark.parametrize("total", [0, 100])
def test_large_problems_keep_the_sum_and_improve(kind, total, monkeypatch):
    monkeypatch.setattr(local_search, "LARGEST_DENSIFIED", 100)
    A = kinds(300)[kind]
    # Swaps of sparse and low-rank problems count passes.
    method = SHORT if kind == "dense" else LocalSearch(n_starts=3, max_iter=400)
    solutions = [bqp.solve(A, method, cardinality=total, random_state=5) for _ in range(2)]
    np.testing.assert_array_equal(solutions[0].x, solutions[1].x)
    assert solutions[0].x.sum() == total
    assert solutions[0].value == A.value(solutions[0].x)
    random = [A.value(feasible(np.ones(300), Cardinality(total), np.random.default_rng(k))) for k in range(20)]
    assert solutions[0].value < min(random)
    assert "swaps" in solutions[0].details["engine"]
    again = bqp.solve(A, method, cardinality=total, x0=solutions[0].x, random_state=6)
    assert again.value <= solutions[0].value


def halves(n: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """A graph with many edges within each of two hidden halves and few between them."""
    x = np.random.default_rng(seed).permutation(np.repeat([-1.0, 1.0], n // 2))
    W = sp.coo_array(graphs.random_graph(n, 40.0, seed))
    i, j = W.coords
    kept = (x[i] == x[j]) | ((i + j) % 8 == 0)
    return sp.csr_array((W.data[kept], (i[kept], j[kept])), shape=W.shape), x


@pytest.mark.parametrize("n", [400, 3000])
def test_planted_halves_are_found(n):
    W, x = halves(n, 0)
    solution = bqp.solve(-W, LocalSearch(n_starts=2), cardinality=0, time_limit=2.0, random_state=0)
    assert solution.x.sum() == 0
    assert solution.value <= -x @ (W @ x)


@pytest.mark.parametrize("limit", [1e-3, 0.3])
@pytest.mark.parametrize("n", [300, 5000])
def test_time_limits(n, limit):
    W = graphs.random_graph(n, 6.0, 0)
    solution = bqp.solve(W, "local_search", cardinality=2, time_limit=limit, random_state=0)
    assert solution.x.sum() == 2


@pytest.mark.parametrize("anchor", [None, 7])
@pytest.mark.parametrize("total", [-20, 0, 12])
def test_feasible_changes_as_little_as_possible(anchor, total):
    rng = np.random.default_rng(0)
    constraint = Cardinality(total, anchor)
    n = 40 if anchor is None else 41
    x = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y = feasible(x, constraint, rng)
    assert constraint.holds(y)
    movable = np.arange(n) != anchor
    assert np.sum(x[movable] != y[movable]) == abs(x[movable].sum() - total) / 2


@pytest.mark.parametrize("anchor", [None, 3])
def test_walks_report_the_value_of_their_signs(anchor):
    A = Dense(random_symmetric(60, 1))
    x = Cardinality(10 if anchor is None else 9, anchor).some_signs(60)
    seen = []
    walk = SwapWalks(A, anchor).walk(
        x, np.random.default_rng(0), tenure=5, patience=500, max_moves=2000, between=lambda w: seen.append(w.value)
    )
    assert walk.value == pytest.approx(A.value(walk.x), rel=1e-9)
    assert walk.x.sum() == x.sum()
    assert anchor is None or walk.x[anchor] == 1.0
    assert A.value(walk.x) < A.value(x)
    for i, j in itertools.product(np.flatnonzero(walk.x == 1.0), np.flatnonzero(walk.x == -1.0)):
        if i != anchor:
            swapped = walk.x.copy()
            swapped[[i, j]] = swapped[[j, i]]
            assert A.value(swapped) >= walk.value - 1e-9  # no swap helps


@pytest.mark.parametrize("kind", ["sparse", "low rank", "mixed"])
def test_descents_never_rise(kind):
    A = kinds(80)[kind]
    x = Cardinality(6).some_signs(80)
    values = [A.value(x)]
    PairedSwaps(A, None).descend(x, 100, lambda w: values.append(A.value(w.x)))
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


@pytest.mark.parametrize("anchor", [None, 11])
def test_balanced_anneals_keep_the_sum(anchor):
    W = graphs.random_graph(500, 6.0, 0)
    constraint = Cardinality(8 if anchor is None else 9, anchor)
    x = constraint.some_signs(500)
    y = Annealer(W).anneal_balanced(x, constraint, np.random.default_rng(0), 50, 1.0, lambda: None)
    assert constraint.holds(y)
    assert y @ (W @ y) < x @ (W @ x) - 500


def test_identical_rows_are_not_merged():
    """Merged rows share a sign, which can make the sum impossible."""
    A = LowRank(np.ones((30, 1)), [-1.0])
    assert bqp.solve(A, SHORT, cardinality=0, random_state=0).value == 0.0
