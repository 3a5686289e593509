"""Branch and bound: the optimum of small problems with an accepted proof, bounds under limits, and its parts."""

import itertools
import json
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import BranchAndBound, Status
from hashlearn.bqp.proof import bound, cuts, solver
from hashlearn.bqp.proof.check import Groups, check_proof
from hashlearn.bqp.proof.tree import ExactProblem, Node
from tests.bqp.problems import PROBLEMS, all_signs, brute_force, random_low_rank, random_symmetric, signed_graph

SMALL = [p for p in PROBLEMS if p.make().n <= 30]


def symmetric(half: np.ndarray) -> np.ndarray:
    return np.tril(half) + np.tril(half, -1).T


KINDS = {
    "integers": lambda rng, n: rng.integers(-9, 10, (n, n)).astype(float),
    "normal": lambda rng, n: rng.standard_normal((n, n)),
    "ties": lambda rng, n: rng.choice([-1.0, 0.0, 1.0], (n, n)),
    "constant": lambda rng, n: np.full((n, n), rng.choice([1.0, -1.0, 0.1])),
    "wide range": lambda rng, n: rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-8, 8, (n, n)),
    "long integers": lambda rng, n: rng.integers(-(2**40), 2**40, (n, n)).astype(float),
    "few multiples": lambda rng, n: 6.0 * (rng.random((n, n)) < 0.3),
}


def random_problem(kind: str, seed: int) -> np.ndarray:
    """With a zero row now and then; never without any entry off the diagonal."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 13))
    A = symmetric(KINDS[kind](rng, n))
    if rng.random() < 0.3:
        A[0] = A[:, 0] = 0.0
    A[0, 1] = A[1, 0] = A[0, 1] or 1.0
    return A


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hasty", [False, True])
def test_random_problems_are_proven(kind, hasty, monkeypatch):
    """7 kinds × 2 × 25 problems. In haste, nodes branch after one round, so that trees are deep."""
    if hasty:
        monkeypatch.setattr(bound, "MOST_ROUNDS", 1)
    for seed in range(25):
        A = random_problem(kind, seed)
        given = sp.csr_array(A) if seed % 2 else A
        solution = bqp.solve(given, "branch_and_bound", random_state=seed)
        close = 1e-9 * max(abs(solution.value), 1e-3 * np.abs(A).sum())
        assert abs(solution.value - brute_force(A)) <= close
        assert solution.status is Status.OPTIMAL
        verdict = check_proof(given, solution.details["proof"])
        assert verdict.accepted, verdict.reason
        assert float(verdict.value) == pytest.approx(solution.value, rel=1e-12, abs=1e-12 * np.abs(A).sum())
        assert verdict.value - verdict.bound <= close
        if np.array_equal(A, np.rint(A)) and kind != "long integers":
            assert verdict.value == verdict.bound == solution.bound


@pytest.mark.parametrize("problem", SMALL, ids=lambda p: p.name)
def test_the_table_is_proven(problem):
    A = problem.make()
    solution = bqp.solve(A, "branch_and_bound", random_state=0)
    assert solution.value == pytest.approx(problem.optimum, rel=1e-9, abs=1e-9)
    assert solution.status is Status.OPTIMAL
    assert solution.bound <= solution.value
    if "proof" in solution.details:  # `solve` answers problems with equal values itself
        assert check_proof(A, solution.details["proof"]).accepted


@pytest.mark.parametrize("exponent", [-400, 300])
def test_problems_that_solve_scales_are_proven_as_given(exponent):
    A = np.ldexp(random_symmetric(9, 4), exponent)
    solution = bqp.solve(A, "branch_and_bound", random_state=0)
    verdict = check_proof(A, solution.details["proof"])
    assert verdict.accepted, verdict.reason
    assert float(verdict.value) == pytest.approx(solution.value, rel=1e-12)


def test_low_rank_is_written_out():
    A = random_low_rank(20, 3, 0)
    solution = bqp.solve(A, "branch_and_bound", random_state=0)
    assert solution.value == pytest.approx(bqp.solve(A, "exact").value)
    assert solution.status is Status.OPTIMAL
    assert check_proof(A.toarray(), solution.details["proof"]).accepted


@pytest.mark.parametrize("seed", range(4))
def test_a_bad_incumbent_is_replaced(seed, monkeypatch):
    """Without a tabu search the tree finds the optimum itself."""
    monkeypatch.setattr(solver, "MOVES_PER_VARIABLE", 1)
    monkeypatch.setattr(bound, "MOST_ROUNDS", 1)
    A = signed_graph(18, seed)
    solution = bqp.solve(A, "branch_and_bound", random_state=0, x0=np.ones(18))
    assert solution.value == bqp.solve(A, "exact").value == solution.bound
    assert check_proof(A, solution.details["proof"]).accepted


@pytest.mark.parametrize("threads", ["1", "4"])
def test_the_tree_is_the_same_for_any_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr(bound, "MOST_ROUNDS", 1)
    A = signed_graph(30, 1)
    expected = bqp.solve(A, "branch_and_bound", random_state=0)
    monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
    again = bqp.solve(A, "branch_and_bound", random_state=0)
    assert expected.details["nodes"] > 3
    assert json.dumps(again.details["proof"].content) == json.dumps(expected.details["proof"].content)


def hard_problem(n: int) -> np.ndarray:
    return random_symmetric(n, 7)


@pytest.mark.parametrize(("n", "limit"), [(90, 0.5), (200, 1.0)])
def test_time_limit_gives_the_bound_so_far(n, limit):
    A = hard_problem(n)
    bqp.solve(A[:30, :30], "branch_and_bound", random_state=0)  # compiles
    started = time.perf_counter()
    solution = bqp.solve(A, "branch_and_bound", random_state=0, time_limit=limit)
    assert time.perf_counter() - started < limit + 2.0
    assert solution.status is Status.TIME_LIMIT
    assert "proof" not in solution.details
    assert -np.inf < solution.bound < solution.value
    assert solution.bound > 1.5 * solution.value  # values are negative: the bound means something
    assert threading.active_count() < 20


def test_node_limit(monkeypatch):
    monkeypatch.setattr(bound, "MOST_ROUNDS", 1)
    A = hard_problem(60)
    solution = bqp.solve(A, "branch_and_bound", max_iter=1, random_state=0)
    assert solution.details["nodes"] == 1
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.bound < solution.value
    with pytest.raises(ValueError, match="max_iter"):
        BranchAndBound(max_iter=0)


def test_large_problems_get_the_relaxation(monkeypatch):
    monkeypatch.setattr(solver, "LARGEST_TREE", 20)
    A = signed_graph(30, 0)
    solution = bqp.solve(A, "branch_and_bound", random_state=0)
    assert "proof" not in solution.details
    assert solution.bound == pytest.approx(bqp.solve(A, "sdr", random_state=0).bound)


# ---- the parts ----


def random_factor(m: int, rank: int, seed: int) -> np.ndarray:
    V = np.random.default_rng(seed).standard_normal((m, rank))
    return V / np.linalg.norm(V, axis=1)[:, None]


def vector(cut: np.ndarray, m: int) -> np.ndarray:
    b = np.zeros(m)
    for v in cut[cut != 0]:
        b[abs(v) - 1] = np.sign(v)
    return b


def test_every_violated_triangle_is_found():
    m, V = 9, random_factor(9, 2, 0)
    X = V @ V.T
    found = cuts.separate(X, cuts.Cuts.none(), 3, 0.1, 10_000)
    expected = set()
    for i, j, k in itertools.combinations(range(1, m + 1), 3):
        for s, t in itertools.product((1, -1), repeat=2):
            b = vector(np.array([i, s * j, t * k]), m)
            if 1.0 - b @ X @ b > 0.1:
                expected.add((i, s * j, t * k))
    assert {tuple(cut[:3]) for cut in found} == expected
    assert expected


@pytest.mark.parametrize("seed", range(5))
def test_larger_cuts_are_violated_and_valid(seed):
    m, V = 12, random_factor(12, 3, seed)
    X = V @ V.T
    known = cuts.Cuts.none()
    for widest in (3, 5, 7):
        known = known.extended(cuts.separate(X, known, widest, 0.05, 50))
        known = cuts.Cuts(known.members, np.ones(len(known.members)))
    assert set(known.sizes) >= {3, 5}
    signs = all_signs(m)
    for cut, size, violation in zip(known.members, known.sizes, known.violations(X), strict=True):
        b = vector(cut, m)
        assert np.abs(b).sum() == size
        assert 1.0 - b @ X @ b > 0.05
        assert violation == pytest.approx(1.0 - b @ X @ b)
        assert ((signs @ b) ** 2).min() >= 1.0
    assert len({cut.tobytes() for cut in known.members}) == len(known.members)


def root(A: np.ndarray, rank: int = 6) -> Node:
    n = len(A)
    C = A - np.diag(np.diag(A))
    return Node(Groups.all_apart(n), C, random_factor(n, rank, 0), cuts.Cuts.none(), float(np.trace(A)))


@pytest.mark.parametrize("seed", range(5))
def test_children_have_the_values_of_their_parent(seed):
    """Through several contractions: values of z, of the exact matrix, and of cuts agree."""
    rng = np.random.default_rng(seed)
    n = 9
    A = random_symmetric(n, seed, integers=True)
    node = root(A)
    node.cuts = node.cuts.extended(cuts.separate(node.V @ node.V.T, node.cuts, 3, 0.0, 30))
    for _ in range(4):
        i, j = sorted(rng.choice(node.m, 2, replace=False))
        node = node.child(int(i), int(j), int(rng.choice([-1, 1])))
        z = rng.choice([-1.0, 1.0], node.m)
        x = node.expanded(z)
        assert z @ node.C @ z + node.offset == x @ A @ x
        assert not np.diag(node.C).any()
        exact = node.groups.contracted(ExactProblem(bqp.as_operator(A)).N).astype(float)
        np.testing.assert_array_equal(
            exact - np.diag(np.diag(exact)), node.C * 2.0 ** -ExactProblem(bqp.as_operator(A)).exponent
        )
        np.testing.assert_allclose(np.linalg.norm(node.V, axis=1), 1.0)
        assert (np.abs(node.cuts.members) <= node.m).all()
        assert all(len(set(abs(cut[cut != 0]))) == np.count_nonzero(cut) for cut in node.cuts.members)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_bound_of_a_node_is_that_of_its_dual_point(seed):
    """Also after contractions, where positions in the node are not the original variables."""
    A = signed_graph(20, seed)
    problem = ExactProblem(bqp.as_operator(A))
    node = problem.with_exact_entries(root(A).child(2, 7, -1).child(0, 5, 1).child(1, 2, 1))
    *_, last = bound.rounds(node, 1e9, lambda: None)
    dual, proven = problem.certify(node, last.point)
    assert dual.cuts
    assert problem.real(proven - node.constant) == pytest.approx(last.point.bound, abs=1e-3)


def test_a_pentagonal_cut_closes_the_complete_graph_of_5():
    """The complete graph of 5: the relaxation gives −5 and violates no triangle. The pentagonal cut gives −4."""
    A = np.ones((5, 5)) - np.eye(5)
    bounds = []
    for last in bound.rounds(root(A), -4.0 - 1e-6, lambda: None):
        bounds.append(last.point.bound)
        if last.may_prune:
            break
    assert bounds[0] == pytest.approx(-5.0, abs=0.1)
    assert last.may_prune
    assert bounds[-1] == pytest.approx(-4.0, abs=1e-5)


@pytest.mark.parametrize(("n", "penalty"), [(14, 1e3), (14, 1e9), (16, 1e13)])
def test_penalties_beside_small_terms_are_proven_to_the_end(n, penalty):
    """The tolerance is relative to the caller's objective, and the proof is about the caller's coefficients."""
    problem = bqp.qubo_problem(penalized(n, penalty, n))
    for method in ("branch_and_bound", "exact"):
        answer = bqp.solve_problem(problem, method=method, random_state=0)
        assert answer.status is Status.OPTIMAL
        assert answer.gap <= 1e-9
        assert Fraction(answer.energy) == pytest.approx(least_energy(problem), rel=1e-15)
        assert Fraction(answer.lower_bound) <= least_energy(problem)
        if method == "branch_and_bound":
            verdict = check_proof(problem, answer.solution.details["proof"])
            assert verdict.accepted, verdict.reason
            assert problem.is_optimal(*(problem.exact_objective(v) for v in (verdict.value, verdict.bound)))


def penalized(n: int, penalty: float, seed: int) -> np.ndarray:
    """A QUBO of tenths, with a penalty on some pairs of ones."""
    rng = np.random.default_rng(seed)
    Q = np.triu(np.round(rng.standard_normal((n, n)), 1))
    Q[np.triu(rng.random((n, n)) < 0.15, 1)] = penalty
    return Q


def least_energy(problem: bqp.Problem) -> Fraction:
    """By fractions, of all assignments."""
    scale = 2**60  # a multiple of all denominators
    w = [int(Fraction(weight) * scale) for weight in problem.w.tolist()]
    Z = ((np.arange(2**problem.n)[:, None] >> np.arange(problem.n)) & 1).astype(bool)
    total = sum((Z[:, i] & Z[:, j]).astype(object) * k for i, j, k in zip(problem.i, problem.j, w, strict=True))
    return Fraction(int(total.min()), scale)
