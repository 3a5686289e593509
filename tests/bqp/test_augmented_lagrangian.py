"""Algorithm 2: eqs. (17) and (18), the literal version that stands still, and the default that descends."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import AugmentedLagrangian, Dense, LowRank, Operator, Spectral, as_operator, diagonal_operator
from hashlearn.bqp.merging import merge_identical_rows
from hashlearn.bqp.methods import augmented_lagrangian
from hashlearn.bqp.methods.augmented_lagrangian import dual_feasible_start, lagrangian, row_norms
from hashlearn.bqp.methods.spectral import sign
from hashlearn.bqp.solution import OutOfTime, Run
from hashlearn.core.threads import one_blas_thread

LITERAL = AugmentedLagrangian.literal()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As inside `solve`: two pools of threads would fight over the cores."""
    with one_blas_thread():
        yield


def operators(n: int, seed: int) -> list[Operator]:
    """Dense, sparse, low rank, low rank with repeated rows and a negative diagonal, sparse plus low rank."""
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    S = np.triu(np.where(rng.random((n, n)) < 0.4, rng.standard_normal((n, n)), 0.0), 1)
    sparse = as_operator(sp.csr_array(S + S.T))
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    distinct = rng.standard_normal((max(n // 3, 1), 3))
    repeated = LowRank(distinct[rng.integers(0, len(distinct), n)], -rng.random(3))
    return [as_operator(M + M.T), sparse, low_rank, repeated, sparse + low_rank]


def brute_force(A: Operator) -> float:
    X = np.array(list(itertools.product([-1.0, 1.0], repeat=A.n)))
    return float(np.einsum("ij,ij->i", X @ A.toarray(), X).min())


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
    start, end = Run(A), Run(A)
    Spectral("sequential").run(A, start, np.random.default_rng(seed), None)
    status = LITERAL.run(A, end, np.random.default_rng(seed), None)
    assert start.value < A.value(np.ones(30))  # so that the comparison is not one of untouched runs
    np.testing.assert_array_equal(end.x, start.x)
    assert status == "converged"
    assert end.details["outer_iterations"] == 3  # line 3 may end it for t > 1 only


def test_gradient_is_exactly_zero_at_the_papers_start() -> None:
    A = operators(20, 6)[0]
    x = np.where(np.random.default_rng(0).random(20) < 0.5, -1.0, 1.0)
    _, gradient = lagrangian(x, A, multipliers=(A @ x) / x, mu=0.1)
    np.testing.assert_array_equal(gradient, np.zeros(20))


# -- the default ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("seed", range(8))
def test_default_lies_between_the_optimum_and_its_start(kind: int, seed: int) -> None:
    A = operators(11, seed)[kind]
    solution = bqp.solve(A, method="al", random_state=seed)
    merged = merge_identical_rows(A)
    start = dual_feasible_start(merged.operator, Run(merged.operator), np.random.default_rng(seed))
    slack = 1e-9 * abs(solution.value)
    assert brute_force(A) - slack <= solution.value
    assert solution.value <= A.value(merged.expand(sign(start.x))) + slack
    assert solution.value == pytest.approx(A.value(solution.x))
    assert A.flip_gains(solution.x).min() >= -1e-9 * np.abs(A.toarray()).sum()
    assert set(np.unique(solution.x)) <= {-1, 1}


def _out_of_time(*_: Any) -> Any:
    raise OutOfTime


def test_when_time_runs_out_the_start_is_already_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AugmentedLagrangian, "_algorithm_2", _out_of_time)
    for A in operators(30, 4):
        solution = bqp.solve(A, method="al", random_state=0)
        merged = merge_identical_rows(A)
        start = dual_feasible_start(merged.operator, Run(merged.operator), np.random.default_rng(0))
        assert solution.status == "time_limit"
        assert solution.value <= A.value(merged.expand(sign(start.x)))
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
        start = dual_feasible_start(A, Run(A), np.random.default_rng(0))
        solver = AugmentedLagrangian(max_iter=80, penalty=4.0, penalty_growth=1.0, tol=0.0, inner_iter=200)
        iterates: list[np.ndarray] = []
        solver._algorithm_2(A, start, Run(A), iterates.append)
        assert np.abs(iterates[-1] ** 2 - 1.0).max() < 1e-3


def test_the_answer_is_flipped_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmented_lagrangian, "PASSES_PER_ITERATE", 0)
    for seed in range(4):
        A = operators(60, seed)[0]
        solution = bqp.solve(A, method="al", random_state=0)
        assert A.flip_gains(solution.x).min() >= -1e-9


@pytest.mark.parametrize("kind", range(5))
def test_default_beats_the_literal_version_on_average(kind: int) -> None:
    def deficit(method: AugmentedLagrangian) -> float:
        return float(
            np.mean([bqp.solve(operators(50, s)[kind], method=method, random_state=s).value for s in range(5)])
        )

    assert deficit(AugmentedLagrangian()) <= deficit(LITERAL)


def test_it_is_the_lagrangian_that_gains_and_not_the_flips_alone() -> None:
    def cut_short(A: Operator, run: Run, rng: np.random.Generator) -> float:
        AugmentedLagrangian(max_iter=1, inner_iter=1).run(A, run, rng, None)
        return run.value

    gains = []
    for seed in range(4):
        A = as_operator(random_graph(150, 8.0, seed))
        short = cut_short(A, Run(A), np.random.default_rng(seed))
        gains.append(short - bqp.solve(A, method="al", random_state=seed).value)
    assert np.mean(gains) > 0.0


def test_a_problem_whose_optimum_is_known() -> None:
    side = np.where(np.random.default_rng(1).random(300) < 0.5, -1.0, 1.0)
    M = np.triu(np.random.default_rng(2).random((300, 300)) < 0.05, 1) * (side[:, None] != side)
    bipartite = sp.csr_array((M + M.T).astype(float))
    solution = bqp.solve(bipartite, method="al", random_state=0)
    assert solution.value == -bipartite.sum()


def test_start_is_dual_feasible_and_ignores_the_stored_diagonal() -> None:
    for A in operators(20, 9):
        run = Run(A)
        start = dual_feasible_start(A, run, np.random.default_rng(0))
        slack = np.linalg.eigvalsh(A.toarray() / start.scale - np.diag(start.multipliers))
        assert slack[0] == pytest.approx(0.0, abs=1e-8)
        shift = diagonal_operator(np.random.default_rng(1).uniform(-50.0, 50.0, 20))
        if not isinstance(A, LowRank):
            shifted = dual_feasible_start(A + shift, Run(A + shift), np.random.default_rng(0))
            np.testing.assert_allclose(shifted.x, start.x, atol=1e-6)


@pytest.mark.parametrize("kind", range(5))
def testrow_norms(kind: int) -> None:
    A = operators(15, 2)[kind]
    if kind == 4:  # of a sum: as if its parts were orthogonal
        parts = [np.linalg.norm(p.toarray(), axis=1) for p in (A.sparse, A.low_rank)]  # type: ignore[attr-defined]
        expected = np.hypot(*parts)
    else:
        expected = np.linalg.norm(A.toarray(), axis=1)
    np.testing.assert_allclose(row_norms(A), expected, rtol=1e-9)


@pytest.mark.parametrize("method", [AugmentedLagrangian(), LITERAL])
def test_never_worse_than_a_given_start(method: AugmentedLagrangian) -> None:
    for seed in range(3):
        for A in operators(10, seed):
            X = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
            best = X[np.argmin([A.value(x) for x in X])]
            run = Run(A)
            method.run(A, run, np.random.default_rng(0), best)
            assert run.value == pytest.approx(brute_force(A))


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


@pytest.mark.parametrize("method", [AugmentedLagrangian(), LITERAL])
@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
@pytest.mark.parametrize("kind", range(5))
def test_the_scale_of_the_matrix_does_not_matter(kind: int, scale: float, method: AugmentedLagrangian) -> None:
    A = operators(9, 3)[kind]
    plain = bqp.solve(A, method=method, random_state=0)
    scaled = bqp.solve(A.scaled(scale), method=method, random_state=0)
    assert scaled.value == pytest.approx(scale * plain.value, rel=1e-9)


def test_factors_of_extreme_size_do_no_harm() -> None:
    P = np.random.default_rng(0).standard_normal((8, 2))
    expected = bqp.solve(LowRank(P, [1.0, -2.0]), method="al", random_state=0).value
    for size in (1e-90, 1e90, 1e110):
        solution = bqp.solve(LowRank(size * P, [1.0, -2.0]), method="al", random_state=0)
        assert solution.value / size / size == pytest.approx(expected, rel=1e-9)


def test_a_dominant_diagonal_hides_nothing() -> None:
    graph = random_graph(60, 6.0, 0)
    plain = bqp.solve(graph, method="al", random_state=0).value
    diagonal = np.random.default_rng(0).integers(-1000, 1000, 60).astype(float)
    shifted = bqp.solve(graph + sp.diags_array(diagonal), method="al", random_state=0).value
    assert shifted - diagonal.sum() == pytest.approx(plain, abs=0.02 * abs(plain))


# -- conduct -------------------------------------------------------------------------


@pytest.mark.parametrize("method", [AugmentedLagrangian(), LITERAL])
def test_same_seed_same_answer_and_inputs_untouched(method: AugmentedLagrangian) -> None:
    for A, copy in zip(operators(30, 5), operators(30, 5), strict=True):
        first, second = (bqp.solve(A, method=method, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(first.x, second.x)
        np.testing.assert_array_equal(A.toarray(), copy.toarray())


def test_progress_is_told_and_time_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hashlearn.bqp.solution.SECONDS_BETWEEN_REPORTS", 0.0)
    A = operators(40, 0)[0]
    told: list[bqp.SolverProgress] = []
    bqp.solve(A, method="al", random_state=0, progress=told.append)
    assert {"smallest eigenvector", "augmented Lagrangian", "1-flip"} <= {p.stage for p in told}
    fractions = [p.fraction for p in told if p.stage == "augmented Lagrangian"]
    assert fractions == sorted(fractions)
    assert 0.0 <= min(fractions) <= max(fractions) <= 1.0
    assert bqp.solve(A, method="al", random_state=0, time_limit=1e-9).status == "time_limit"


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
