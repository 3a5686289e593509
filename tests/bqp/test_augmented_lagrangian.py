"""Algorithm 2: eqs. (17) and (18), the literal version that stands still, and the default that descends."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import AugmentedLagrangian, Dense, LowRank, Operator, Spectral, as_operator, diagonal_operator
from hashlearn.bqp.methods import augmented_lagrangian
from hashlearn.bqp.methods.augmented_lagrangian import dual_feasible_start, lagrangian
from hashlearn.bqp.methods.spectral import sign
from hashlearn.bqp.presolve import merge
from hashlearn.bqp.state import OutOfTime, SolveState
from tests.bqp.problems import brute_force, operators

LITERAL = AugmentedLagrangian.literal()


def random_graph(n: int, degree: float, seed: int) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    M = np.triu(rng.random((n, n)) < degree / n, 1).astype(float)
    return sp.csr_array(M + M.T)


# -- equations (17) and (18) ---------------------------------------------------------


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("per_variable", [False, True])
def test_gradient_18_against_finite_differences_of_17(kind: int, per_variable: bool) -> None:
    A = operators(7, 1)[kind]
    rng = np.random.default_rng(2)
    x, multipliers = rng.standard_normal(7), rng.standard_normal(7)
    mu = rng.random(7) if per_variable else 0.7
    _, gradient = lagrangian(x, A, multipliers, mu, scale=1.7)
    h = 1e-6
    numeric = [
        (lagrangian(x + h * e, A, multipliers, mu, 1.7)[0] - lagrangian(x - h * e, A, multipliers, mu, 1.7)[0])
        / (2 * h)
        for e in np.eye(7)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_value_17_as_written() -> None:
    rng = np.random.default_rng(3)
    A = operators(6, 4)[0]
    x, multipliers, mu = rng.standard_normal(6), rng.standard_normal(6), 0.3
    phi = x**2 - 1
    expected = x @ A.toarray() @ x - multipliers @ phi + mu / 2 * np.linalg.norm(phi) ** 2
    assert lagrangian(x, A, multipliers, mu)[0] == pytest.approx(expected)
    scaled, by_operator = lagrangian(x, A, multipliers, mu, 8.0), lagrangian(x, A.scaled(0.125), multipliers, mu)
    assert scaled[0] == pytest.approx(by_operator[0])
    np.testing.assert_allclose(scaled[1], by_operator[1])


# -- the paper's version -------------------------------------------------------------


def test_literal_has_the_papers_parameters() -> None:
    assert (LITERAL.max_iter, LITERAL.penalty, LITERAL.penalty_growth, LITERAL.tol) == (10, 0.1, 10.0, 1e-6)
    assert LITERAL.inner_iter <= 50


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("seed", range(5))
def test_literal_returns_exactly_its_own_start(kind: int, seed: int) -> None:
    A = operators(30, seed)[kind]
    start, end = SolveState(A), SolveState(A)
    Spectral("sequential").solve(A, start, np.random.default_rng(seed), None)
    status = LITERAL.solve(A, end, np.random.default_rng(seed), None)
    assert start.value < A.value(np.ones(30))  # so that the comparison is not one of untouched runs
    np.testing.assert_array_equal(end.x, start.x)
    assert status == "converged"
    assert end.details["outer_iterations"] == 3  # line 3 may end it for t > 1 only


# -- the default ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("seed", range(8))
def test_default_lies_between_the_optimum_and_its_start(kind: int, seed: int) -> None:
    A = operators(11, seed)[kind]
    solution = bqp.solve(A, method="al", random_state=seed)
    step = merge(A)
    small, expand = (A, np.asarray) if step is None else (step.problem, step.expand)
    start = dual_feasible_start(small, SolveState(small), np.random.default_rng(seed))
    slack = 1e-9 * abs(solution.value)
    assert brute_force(A) - slack <= solution.value
    assert solution.value <= A.value(expand(sign(start.x))) + slack
    assert solution.value == pytest.approx(A.value(solution.x))
    assert A.flip_gains(solution.x).min() >= -1e-9 * np.abs(A.toarray()).sum()
    assert set(np.unique(solution.x)) <= {-1, 1}


def _out_of_time(*_: Any) -> Any:
    raise OutOfTime


def test_when_time_runs_out_the_start_is_already_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AugmentedLagrangian, "_algorithm_2", _out_of_time)
    for A in operators(30, 4):
        solution = bqp.solve(A, method="al", random_state=0)
        step = merge(A)
        small, expand = (A, np.asarray) if step is None else (step.problem, step.expand)
        start = dual_feasible_start(small, SolveState(small), np.random.default_rng(0))
        assert solution.status == "time_limit"
        assert solution.value <= A.value(expand(sign(start.x)))
        assert solution.value < A.value(np.ones(30))


def test_a_given_start_is_flipped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmented_lagrangian, "dual_feasible_start", _out_of_time)
    for A in operators(30, 4):
        solution = bqp.solve(A, method="al", random_state=0, x0=-np.ones(30))
        assert solution.value < A.value(np.ones(30))
        assert A.flip_gains(solution.x).min() >= -1e-9


def test_multipliers_reach_feasibility_without_growing_the_penalty() -> None:
    """The method of multipliers proper: line 6 must push Λ the way that shrinks Φ(x)."""
    for A in operators(12, 5):
        start = dual_feasible_start(A, SolveState(A), np.random.default_rng(0))
        solver = AugmentedLagrangian(max_iter=80, penalty=4.0, penalty_growth=1.0, tol=0.0, inner_iter=200)
        iterates: list[np.ndarray] = []
        solver._algorithm_2(A, start, SolveState(A), iterates.append)
        assert np.abs(iterates[-1] ** 2 - 1.0).max() < 1e-3


@pytest.mark.parametrize("kind", range(5))
def test_default_beats_the_literal_version_on_average(kind: int) -> None:
    def deficit(method: AugmentedLagrangian) -> float:
        return float(
            np.mean([bqp.solve(operators(50, s)[kind], method=method, random_state=s).value for s in range(5)])
        )

    assert deficit(AugmentedLagrangian()) <= deficit(LITERAL)


def test_it_is_the_lagrangian_that_gains_and_not_the_flips_alone() -> None:
    def cut_short(A: Operator, state: SolveState, rng: np.random.Generator) -> float:
        AugmentedLagrangian(max_iter=1, inner_iter=1).solve(A, state, rng, None)
        return state.value

    gains = []
    for seed in range(4):
        A = as_operator(random_graph(150, 8.0, seed))
        short = cut_short(A, SolveState(A), np.random.default_rng(seed))
        gains.append(short - bqp.solve(A, method="al", random_state=seed).value)
    assert np.mean(gains) > 0.0


def test_start_is_dual_feasible_and_ignores_the_stored_diagonal() -> None:
    for A in operators(20, 9):
        state = SolveState(A)
        start = dual_feasible_start(A, state, np.random.default_rng(0))
        slack = np.linalg.eigvalsh(A.toarray() / start.scale - np.diag(start.multipliers))
        assert slack[0] == pytest.approx(0.0, abs=1e-8)
        shift = diagonal_operator(np.random.default_rng(1).uniform(-50.0, 50.0, 20))
        if not A.is_low_rank:
            shifted = dual_feasible_start(A + shift, SolveState(A + shift), np.random.default_rng(0))
            np.testing.assert_allclose(shifted.x, start.x, atol=1e-6)


def test_identical_rows_are_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    find = augmented_lagrangian.smallest_weighted_eigenpair

    def spy(A: Operator, *rest: Any) -> Any:
        sizes.append(A.n)
        return find(A, *rest)

    monkeypatch.setattr(augmented_lagrangian, "smallest_weighted_eigenpair", spy)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 9, 400)
    distinct = rng.standard_normal((9, 4))
    A = LowRank(distinct[groups], [-1.0, -0.5, -2.0, -0.1])
    solution = bqp.solve(A, method="al", random_state=0)
    assert sizes == [9]
    by_group = [np.unique(solution.x[groups == g]).size for g in range(9)]
    assert by_group == [1] * 9
    counts = np.bincount(groups)
    small = LowRank(distinct * counts[:, None], A.weights)
    assert solution.value >= brute_force(small) - 1e-6
    assert solution.value <= 0.97 * brute_force(small)


# -- edges ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", [AugmentedLagrangian(), LITERAL])
@pytest.mark.parametrize(
    "A",
    [
        np.array([[0.0]]),
        np.array([[0.0, 1.0], [1.0, 0.0]]),
        np.array([[5.0, -1.0], [-1.0, -5.0]]),
        np.ones((3, 3)) - np.eye(3),
        np.zeros((6, 6)),
        np.eye(6),
        -np.eye(6),
        np.kron(np.eye(3), np.ones((2, 2))),
        sp.csr_array((8, 8)),
        sp.csr_array(np.kron(np.diag([1.0, 0.0, 1e-9]), np.ones((2, 2)) - np.eye(2))),
        LowRank(np.zeros((5, 1)), [1.0]),
        LowRank(np.ones((5, 1)), [-1.0]),
        LowRank(np.ones((6, 1)), [1.0]),
        LowRank(np.ones((4, 1)), [1.0]) + diagonal_operator([1.0, 2.0, 3.0, -4.0]),
    ],
    ids=str,
)
def test_degenerate_problems_are_solved(A: object, method: AugmentedLagrangian) -> None:
    solution = bqp.solve(A, method=method, random_state=0)
    assert set(np.unique(solution.x)) <= {-1, 1}
    assert solution.value == pytest.approx(brute_force(as_operator(A)), abs=1e-12)


def test_a_dominant_diagonal_hides_nothing() -> None:
    graph = random_graph(60, 6.0, 0)
    plain = bqp.solve(graph, method="al", random_state=0).value
    diagonal = np.random.default_rng(0).integers(-1000, 1000, 60).astype(float)
    shifted = bqp.solve(graph + sp.diags_array(diagonal), method="al", random_state=0).value
    assert shifted - diagonal.sum() == pytest.approx(plain, abs=0.02 * abs(plain))


# -- conduct -------------------------------------------------------------------------


def test_status_says_when_the_iterations_ran_out() -> None:
    A = as_operator(random_graph(100, 8.0, 1))
    assert bqp.solve(A, method="al", random_state=0).status == "converged"
    assert bqp.solve(A, method="al", random_state=0, max_iter=1).status == "iteration_limit"


def test_a_penalty_that_grows_without_end_stays_finite() -> None:
    solver = AugmentedLagrangian(max_iter=400, penalty_growth=10.0, tol=0.0, inner_iter=2)
    A = Dense(operators(10, 1)[0].toarray())
    solution = bqp.solve(A, method=solver, random_state=0)
    assert solution.status == "iteration_limit"
    assert solution.value < 0.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("inner_iter", True),
        ("penalty", 0.0),
        ("penalty", np.nan),
        ("penalty", "0.1"),
        ("penalty_growth", 0.9),
        ("penalty_growth", np.inf),
        ("tol", -1e-9),
        ("as_printed", "yes"),
    ],
)
def test_wrong_parameters_are_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        dataclasses.replace(AugmentedLagrangian(), **{field: value})
