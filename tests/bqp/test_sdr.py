"""The relaxation against known SDP values, brute force, and the laws it must obey."""

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp.flips import Descent
from hashlearn.bqp.operators import LowRank, Operator, Structured, as_operator
from hashlearn.bqp.sdr.general import GeneralRelaxation
from hashlearn.bqp.sdr.interior_point import relax_small
from hashlearn.bqp.sdr.low_rank import relax_low_rank
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance, column_values
from hashlearn.bqp.state import SolveState
from tests.bqp.problems import brute_force

KINDS = ("dense", "sparse", "low rank", "repeated rows", "sparse plus low rank")


def random_problem(kind: str, rng: np.random.Generator, n: int) -> Operator:
    def sparse() -> Operator:
        half = sp.random_array((n, n), density=0.3, rng=rng)
        return as_operator(sp.csr_array(half + half.T))

    def low_rank() -> Structured:
        rank = int(rng.integers(1, 5))
        whole = rng.random() < 0.5
        P = rng.integers(-2, 3, (n, rank)).astype(float) if whole else rng.standard_normal((n, rank))
        return LowRank(P, rng.standard_normal(rank))

    if kind == "dense":
        M = rng.standard_normal((n, n))
        return as_operator(M + M.T)
    if kind == "sparse":
        return sparse()
    if kind == "low rank":
        return low_rank()
    if kind == "repeated rows":
        A = low_rank()
        return LowRank(A.P[rng.integers(0, max(1, n // 3), n)], A.weights) if A.rank else A
    return sparse() + low_rank()


def hashing_bit(n: int, supervised: bool, rng: np.random.Generator, n_bits: int = 8) -> Structured:
    """One bit of a code, the two forms of A in the paper, on a mixture of five Gaussians."""
    y = rng.integers(0, 5, n)
    X = rng.standard_normal((5, 12))[y] + 0.7 * rng.standard_normal((n, 12))
    X -= X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    others = np.where(X @ rng.standard_normal((12, n_bits - 1)) > 0, 1.0, -1.0)
    if supervised:
        P = np.hstack([others, np.ones((n, 1)), np.eye(5)[y]])
        return LowRank(P, np.r_[np.ones(n_bits - 1), n_bits, np.full(5, -2.0 * n_bits)])
    return LowRank(np.hstack([others, X]), np.r_[np.ones(n_bits - 1), np.full(12, -float(n_bits))])


@pytest.mark.parametrize("kind", KINDS)
def test_bound_optimum_value_in_order(kind):
    for seed in range(40):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        A = random_problem(kind, rng, int(rng.integers(2, 13))).scaled(10.0 ** rng.integers(-3, 4))
        optimum = brute_force(A)
        solution = bqp.solve(A, "sdr", random_state=seed)
        slack = 1e-12 * np.abs(A.toarray()).sum()
        assert solution.bound <= optimum + slack
        assert optimum <= solution.value + slack
        assert solution.status in (bqp.Status.CONVERGED, bqp.Status.OPTIMAL)


def test_ring_of_five_has_the_known_sdp_value():
    ring = np.roll(np.eye(5), 1, axis=0) + np.roll(np.eye(5), -1, axis=0)
    solution = bqp.solve(0.1 * ring, "sdr", random_state=0)
    # The relaxation puts neighbors at 144 degrees (Goemans and Williamson 1995): 10 cos(144°).
    assert solution.bound == pytest.approx(np.cos(np.deg2rad(144)), rel=1e-6)
    assert solution.value == pytest.approx(-0.6)
    assert bqp.solve(ring, "sdr", random_state=0).bound == -6.0  # the next value that integers can have


def test_complete_graph_has_bound_minus_n():
    n = 30
    solution = bqp.solve(np.ones((n, n)) - np.eye(n), "sdr", random_state=0)
    assert solution.bound == pytest.approx(-n, rel=1e-6)
    assert solution.value == -n  # 15 against 15


def test_bipartite_graph_is_solved_and_proven_optimal():
    rng = np.random.default_rng(0)
    W = np.zeros((40, 40))
    W[:20, 20:] = rng.random((20, 20)) < 0.3
    W += W.T
    solution = bqp.solve(sp.csr_array(W), "sdr", random_state=0)
    assert solution.value == -W.sum()
    assert solution.gap < 1e-6


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("n", [300, 9000])
def test_low_rank_and_general_method_agree(n, supervised):
    """Both at full size and from a sample of rows; the general method is the independent oracle for n = 300."""
    A = hashing_bit(n, supervised, np.random.default_rng(1))
    tolerance = Tolerance(1e-7, A.scale(), 10)
    low_rank = relax_low_rank(A, tolerance, 8, np.random.default_rng(0), SolveState(A))
    assert low_rank.gap <= 1e-7
    assert low_rank.bound <= low_rank.value * (1 - 1e-15)
    rows = low_rank.rows()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    assert np.sum(rows * (A @ rows)) == pytest.approx(low_rank.value, rel=1e-9)
    if n == 300:
        general = GeneralRelaxation(A, tolerance, np.random.default_rng(0), SolveState(A)).solve(16)
        assert general.value == pytest.approx(low_rank.value, rel=3e-7)
        assert general.gap <= 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_interior_point_agrees_with_the_general_method(kind):
    A = random_problem(kind, np.random.default_rng(KINDS.index(kind)), 40)
    tolerance = Tolerance(1e-6, A.scale(), 30)
    interior = relax_small(A, tolerance)
    general = GeneralRelaxation(A, tolerance, np.random.default_rng(0), SolveState(A)).solve(16)
    slack = 2e-6 * max(abs(general.value), 1e-3 * A.scale())
    assert abs(interior.value - general.value) <= slack
    assert general.bound - slack <= interior.bound <= interior.value
    rows = interior.rows()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-12)
    assert abs(np.sum(rows * (A @ rows)) - interior.value) <= slack


def test_rank_is_raised_when_the_certificate_fails():
    A = hashing_bit(400, False, np.random.default_rng(2), n_bits=16)
    relaxation = relax_low_rank(A, Tolerance(1e-6, A.scale(), 30), 2, np.random.default_rng(0), SolveState(A))
    assert relaxation.gap <= 1e-6
    assert relaxation.rank == 3  # two columns end at a saddle here


def test_rows_that_nothing_pulls_at_are_unit_rows_too():
    A = hashing_bit(300, False, np.random.default_rng(9))
    P = A.P.copy()
    P[7] = 0.0
    solution = bqp.solve(LowRank(P, A.weights), "sdr", random_state=0)
    assert solution.details["relaxation_gap"] <= 1e-6
    assert np.isfinite(solution.details["expected_value"])


def test_paper_mode_only_rounds_and_details_tell():
    A = hashing_bit(400, False, np.random.default_rng(2))
    plain = bqp.solve(A, bqp.SemidefiniteRelaxation(polish=0, n_draws=50), random_state=0)
    polished = bqp.solve(A, bqp.SemidefiniteRelaxation(n_draws=50), random_state=0)
    assert plain.value == pytest.approx(plain.details["best_draw"], rel=1e-12)
    assert polished.value < plain.value
    assert polished.value <= polished.details["best_draw"]
    assert A.flip_gains(polished.x).min() >= -1e-9 * abs(polished.value)
    assert plain.details["relaxation_gap"] <= 1e-6
    # The mean of 50 draws estimates the closed form (13).
    assert plain.details["mean_draw"] == pytest.approx(plain.details["expected_value"], rel=0.15)


def all_values(relaxation: Relaxation, normals: np.ndarray) -> np.ndarray:
    return np.concatenate([values for _, values in relaxation.draws(normals)])


def test_draws_are_the_signs_that_are_valued():
    A = hashing_bit(200, True, np.random.default_rng(4))
    relaxation = relax_low_rank(A, Tolerance(1e-4, A.scale(), 5), 6, np.random.default_rng(0), SolveState(A))
    normals = np.random.default_rng(5).standard_normal((relaxation.rank, 7))
    X = relaxation.draw(normals)
    assert set(np.unique(X)) == {-1.0, 1.0}
    np.testing.assert_array_equal(X, np.where(relaxation.rows() @ normals < 0, -1.0, 1.0))
    np.testing.assert_allclose(all_values(relaxation, normals), [A.value(x) for x in X.T])
    np.testing.assert_allclose(column_values(as_operator(A.toarray()), X), column_values(A, X))


@pytest.mark.parametrize("kind", KINDS)
def test_draws_in_several_blocks_of_rows(kind, monkeypatch):
    monkeypatch.setattr("hashlearn.core.threads.ROWS_PER_BLOCK", 256)
    rng = np.random.default_rng(8)
    A = random_problem(kind, rng, 600)
    V = rng.standard_normal((A.n, 5))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    relaxation = Relaxation(A, 0.0, -np.inf, rank=5, certificate="", unit_rows=V)
    normals = rng.standard_normal((5, 9))
    X = relaxation.draw(normals)
    np.testing.assert_array_equal(X, np.where(V @ normals < 0.0, -1.0, 1.0))
    np.testing.assert_allclose(all_values(relaxation, normals), [A.value(x) for x in X.T])
    np.testing.assert_allclose(column_values(A, X), [A.value(x) for x in X.T])


@pytest.mark.parametrize("kind", KINDS)
def test_polish_ends_where_no_flip_helps(kind):
    rng = np.random.default_rng(6)
    A = random_problem(kind, rng, 150)
    X = np.where(rng.random((150, 6)) < 0.5, -1.0, 1.0)
    before = column_values(A, X)
    polished = Descent(A).descend_columns(X)
    assert np.all(column_values(A, polished) <= before)
    for x in polished.T:
        assert A.flip_gains(x).min() >= -1e-9 * np.abs(A.diagonal() + A @ x).max()


@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_of_flips_is_one_flip_after_the_other(kind):
    """Rows of very different sizes, so that the diagonal decides."""
    rng = np.random.default_rng(9)
    A = random_problem(kind, rng, 150)
    if A.is_low_rank:
        A = LowRank(rng.standard_normal((150, 20)) * rng.uniform(0.1, 3.0, (150, 1)), rng.standard_normal(20))
    X = np.where(rng.random((150, 4)) < 0.5, -1.0, 1.0)
    found = Descent(A).descend_columns(X, max_passes=1)
    for x in X.T:
        for i in range(A.n):
            if A.flip_gains(x)[i] < 0.0:
                x[i] = -x[i]
    np.testing.assert_array_equal(found, X)


def test_thread_count_does_not_change_the_answer(monkeypatch):
    A = hashing_bit(20_000, False, np.random.default_rng(7))
    answers = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(bqp.solve(A, "sdr", random_state=0))
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0].x, other.x)
        assert answers[0].bound == other.bound


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_draws": 0}, "n_draws must be an integer of at least 1, got 0"),
        ({"polish": -1}, "polish must be an integer of at least 0"),
        ({"polish": True}, "polish must be an integer"),
        ({"tol": 0.0}, "tol must be a positive number, got 0.0"),
        ({"tol": float("nan")}, "tol must be a positive number"),
        ({"rank": 1}, "rank must be an integer of at least 2"),
    ],
)
def test_wrong_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        bqp.SemidefiniteRelaxation(**arguments)
