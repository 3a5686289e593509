"""Rounding is allowed for, piece by piece and as a whole, against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg as la
import scipy.sparse as sp
from benchmarks.bqp.exact_bounds import FAMILIES, ExactProblem, given, wrong_claims

from hashlearn import bqp
from hashlearn.bqp import LowRank, Status, as_operator
from hashlearn.bqp.exact_numbers import sum_below
from hashlearn.bqp.presolve import merge, standardize
from hashlearn.bqp.rows import Rows
from hashlearn.bqp.sdr.certificate import (
    Inertia,
    _margin,
    _scaled_bound,
    dual_bound,
    factored_bound,
    is_positive_definite,
    low_rank_bound,
)
from hashlearn.bqp.sdr.chebyshev import chebyshev_test, growth_bound, shifted_sum


def exact(array: np.ndarray) -> np.ndarray:
    """The same numbers as Fractions."""
    return np.array([Fraction(float(a)) for a in array.ravel()], dtype=object).reshape(array.shape)


def problems(count: int) -> list[ExactProblem]:
    return [family(np.random.default_rng(k), 3 + k % 6) for family in FAMILIES for k in range(count)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_no_bound_is_refuted_by_exact_arithmetic(family):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        checked, wrong = wrong_claims(family(rng, int(rng.integers(2, 10))), seed)
        assert wrong == []
        assert checked >= 3


def test_the_oracle_counts_in_integers():
    """xᵀAx of factors that cancel to 1 in 10³², and of an optimum known by hand."""
    a = 2.0**53 + np.array([0.0, 2.0])
    problem = given("by hand", (np.column_stack([a, a + 2.0]), np.array([1.0, -1.0])))
    sums = [int(a[0]) + s * int(a[1]) for s in (1, -1)]
    values = [q**2 - (q + (4 if q > 10 else 0)) ** 2 for q in sums]
    assert problem.optimum() == min(values)
    assert problem.value(np.array([1, 1])) == values[0]


@pytest.mark.parametrize("problem", problems(4), ids=lambda p: p.family)
def test_errors_of_entries_and_values_are_covered(problem):
    A, n = problem.operator, problem.operator.n
    half = (problem.matrix + problem.matrix.T) * Fraction(1, 2) * Fraction(2) ** problem.exponent
    off = np.abs(exact(A.toarray()) - half).sum(axis=1)
    assert off.sum() <= A.entry_error()
    allowed = Fraction(A.value_error())
    for x in np.random.default_rng(0).choice([-1.0, 1.0], (20, n)):
        assert abs(Fraction(A.value(x)) - problem.value(x)) <= allowed


def test_integers_have_no_error():
    P, w = np.array([[1.0, 2.0], [3.0, -1.0]]), [2.0, -5.0]
    for A in (LowRank(P, w), as_operator(sp.eye_array(2)) + LowRank(P, w), as_operator(np.eye(2)) + LowRank(P, w)):
        assert A.value_error() == 0.0
        assert A.entry_error() == 0.0
        assert bqp.solve(A, "exact").bound == bqp.solve(A, "exact").value
    assert LowRank(1e9 * P, w).value_error() > 0.0
    assert LowRank(P + 0.1, w).value_error() > 0.0


def test_sums_are_rounded_down():
    rng = np.random.default_rng(0)
    for n in range(1, 60):
        y = rng.standard_normal(n) * 10.0 ** rng.uniform(-5, 5, n)
        assert Fraction(sum_below(y)) <= exact(y).sum()
        assert sum_below(y) == pytest.approx(math.fsum(y), rel=1e-12)


def test_the_gram_matrix_of_a_proof_is_as_accurate_as_it_says():
    rng = np.random.default_rng(1)
    for _ in range(10):
        P, d = rng.standard_normal((60, 3)) * 10.0 ** rng.uniform(-3, 3, (60, 1)), rng.random(60) + 0.1
        proof = Rows(P).proof_gram(d)
        true = (exact(P) / exact(d)[:, None]).T @ exact(P)
        off = (exact(proof.gram) - true).ravel()
        allowed = Fraction(proof.rounding) * Fraction(float(np.trace(proof.gram)))
        assert 0 < off @ off <= allowed**2
        assert Fraction(proof.total) >= exact(d).sum()


def test_the_margin_of_a_low_rank_certificate_covers_the_error_of_its_matrix():
    """Weights are squares of integers, so that H itself is rational."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        P, d, roots = rng.standard_normal((60, 3)), rng.random(60) + 0.1, np.array([1.0, 3.0, 5.0])
        proof = Rows(P).proof_gram(d)
        inertia = Inertia(proof.gram, roots**2 * np.array([1.0, -1.0, 1.0]))
        true = ((exact(P) / exact(d)[:, None]).T @ exact(P)) * np.outer(exact(roots), exact(roots))
        off = (exact(inertia.matrix()) - true).ravel()
        margin = Fraction(_margin(inertia, 3, 1.0, proof.rounding * inertia.trace))
        assert 0 < off @ off <= margin**2


def test_bounds_are_rounded_down():
    rng = np.random.default_rng(3)
    for c, total, n in zip(rng.random(50), 1e3 * rng.random(50), rng.integers(1, 100, 50), strict=True):
        low = -float(c)
        assert Fraction(_scaled_bound(c, total)) < -Fraction(c) * Fraction(total)
        A, y, scale = as_operator(np.eye(int(n))), rng.standard_normal(int(n)), 1.0 + rng.random(int(n))
        reached = exact(y).sum() + Fraction(low) * (1 / exact(scale) ** 2).sum()
        assert Fraction(shifted_sum(A, y, scale, -low)) < reached
        assert _scaled_bound(c, total) == pytest.approx(-c * total, rel=1e-12)
        assert shifted_sum(A, y, scale, -low) == pytest.approx(float(reached), rel=1e-12, abs=1e-12)


def test_a_short_recurrence_allows_for_what_it_has_not_seen():
    """With 2,000 evenly spread eigenvalues from −0.001 on, 40 steps cannot tell −0.001 from 0."""
    entries = np.linspace(-0.001, 1.0, 2000)
    for seed in range(20):
        tested = chebyshev_test(
            as_operator(sp.diags_array(entries).tocsr()), np.zeros(2000), np.random.default_rng(seed), loss=30.0
        )
        # d is |entries|, raised to a thousandth of its mean: −0.001 / 0.0005 is the smallest quotient.
        assert tested.shift >= 0.001 / (np.abs(entries).mean() * 1e-3 + 0.001)
        assert tested.bound <= -0.001 * 2000


def is_semidefinite(S: np.ndarray) -> bool:
    """By elimination in Fractions."""
    M = exact(S)
    for k in range(len(M)):
        if M[k, k] < 0 or (M[k, k] == 0 and M[k, k:].any()):
            return False
        if M[k, k] > 0:
            M[k + 1 :, k + 1 :] -= np.outer(M[k + 1 :, k], M[k, k + 1 :]) / M[k, k]
    return True


def test_a_factorization_that_runs_to_its_end_is_not_believed_at_once():
    """Of matrices that are singular but for rounding, many are indefinite and factored all the same."""
    fooled = 0
    for seed in range(200):
        B = np.random.default_rng(seed).standard_normal((5, 3))
        S = B @ B.T + 1e-16 * np.eye(5)
        if is_semidefinite(S):
            continue
        assert not is_positive_definite(S.copy(), 0.0)
        try:
            la.cholesky(S, lower=True)
            fooled += 1
        except la.LinAlgError:
            pass
    assert fooled >= 5


def test_slack_counts_against_definiteness():
    assert is_positive_definite(np.eye(3), 0.999)
    assert not is_positive_definite(np.eye(3), 1.0)
    assert not is_positive_definite(np.array([[1.0, 0.0], [np.nan, 1.0]]), 0.0)


@pytest.mark.parametrize(("weights", "threshold"), [([-1.0], 9.0), ([1.0, -1.0], None)])
def test_margins_count_against_the_inertia(weights, threshold):
    """cI + QWQᵀ ⪰ 0 from c = threshold on; an H that is off by ``margin`` moves that by as much, and not for us."""
    H = np.array([[9.0]]) if threshold else np.array([[4.0, 2.0], [2.0, 9.0]])
    inertia = Inertia(H, np.array(weights))
    if threshold is None:  # det [[4 + c, 2], [2, 9 − c]] = 0
        threshold = 0.5 * (5.0 + math.sqrt(25.0 + 4.0 * 32.0))
    assert inertia.holds(threshold + 1e-9, 0.0)
    assert not inertia.holds(threshold - 1e-12, 0.0)
    assert not inertia.holds(threshold + 1e-9, 1e-3)
    # With a margin m the first block is (4 + c + m), the second (9 − c + m).
    m = 1e-3
    moved = threshold + m if len(weights) == 1 else max(np.roots([1.0, -5.0, -(36.0 + 13.0 * m + m * m - 4.0)]))
    assert inertia.holds(moved + 1e-9, m)
    assert not inertia.holds(moved - 1e-9, m)


def test_a_first_block_that_cannot_be_factored_proves_nothing():
    """In exact arithmetic H ⪰ 0; here rounding is taken to have spoiled that."""
    assert not Inertia(np.array([[-10.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])).holds(2.0, 0.0)


def test_an_ill_conditioned_first_block_weakens_the_bound_and_never_breaks_it():
    """Large columns of positive weight nearly undo one of negative weight: M⁻¹B is mostly rounding."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, s = 9, rng.choice([-1.0, 1.0], 9)
        P = rng.standard_normal((n, 3)) * 10.0 ** rng.uniform(3, 8)
        P[:, 2] = P[:, 0] * (1.0 + 10.0 ** rng.uniform(-12, -6)) + s
        problem = given("ill-conditioned", (P, np.array([1.0, 0.5, -1.0])))
        A = problem.operator
        bound = low_rank_bound(A.rows.proof_gram(np.abs(A @ s) + 1.0), A.weights).bound
        assert Fraction(bound) <= problem.optimum()


def test_tight_duals_of_planted_problems():
    """A bound just above the optimum is refused, one far enough below it is verified by one factorization."""
    rng = np.random.default_rng(3)
    n = 420
    half = np.triu(rng.random((n, n)), 1)
    A = -(half + half.T)
    y = A.sum(axis=1)
    optimum = Fraction(2) * -exact(half[np.triu_indices(n, 1)]).sum()
    for above in (0.0, 1e-15, 1e-13):
        assert factored_bound(as_operator(A), y, rng, enough=float(optimum) * (1.0 - above)).bound <= optimum
    bound = factored_bound(as_operator(A), y, rng).bound
    assert Fraction(bound) <= optimum
    assert bound == pytest.approx(float(optimum), rel=1e-7)
    enough = float(optimum) * (1.0 + 1e-6)
    assert factored_bound(as_operator(A), y, rng, enough=enough).bound == pytest.approx(enough, rel=1e-12)


def test_problems_are_scaled_exactly():
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((6, 6))
    dense += dense.T
    P, w = rng.standard_normal((6, 2)), np.array([1.0, -2.0])
    for size in (1e-250, 1e-160, 1e-90, 1e90, 1e119):
        kinds = [
            dense * size,
            sp.csr_array(dense * size),
            (P * math.sqrt(size), w),
            [sp.csr_array(dense * size), (P, w)],
        ]
        for kind in kinds:
            A = given("scaled", kind).operator
            step = standardize(A)
            assert 1e-60 < step.problem.scale() < 1e60
            assert math.frexp(step.unit)[0] == 0.5
            np.testing.assert_allclose(step.unit * step.problem.toarray(), A.toarray(), rtol=1e-14)
            for method in bqp.METHODS:
                solution = bqp.solve(A, method, random_state=0)
                assert np.isfinite(solution.value)
                assert solution.bound <= solution.value
                assert A.value(solution.x.astype(float)) == pytest.approx(solution.value, rel=1e-12)


def test_details_and_progress_are_in_the_units_of_the_problem():
    A = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    seen = []
    plain = bqp.solve(A, "sdr", random_state=0, x0=np.ones(5))
    small = bqp.solve(A * 2.0**-400, "sdr", random_state=0, x0=np.ones(5), progress=lambda p: seen.append(p.value))
    for name in ("relaxation_value", "expected_value", "mean_draw", "best_draw", "start_value"):
        assert small.details[name] == pytest.approx(plain.details[name] * 2.0**-400)
    assert small.trace[-1].value == small.value
    assert seen[-1] == small.value


@pytest.mark.parametrize(
    "A",
    [np.eye(3)[::-1] * 1e-300, LowRank(np.full((3, 1), 1e-160), [1.0]), LowRank(np.full((3, 1), 1e119), [1e119])],
    ids=["dense, tiny", "low rank, tiny", "low rank, huge"],
)
def test_sizes_whose_values_would_lose_digits_are_refused_by_name(A):
    with pytest.raises(
        ValueError, match=r"A has entries of size 1e[+-]\d+, .* from 1e-289 to 1e\+120, and to 1e\+2.. for"
    ):
        bqp.solve(A, "exact")


def test_optimal_means_that_the_value_is_proven_with_its_rounding():
    """Enumeration of factors that cancel: the best point is returned, but nothing is called optimal."""
    rng = np.random.default_rng(0)
    a = 2.0**53 + 2.0 * rng.integers(0, 2**40, 5)
    A = LowRank(np.column_stack([a, a + 2.0 * rng.integers(1, 2**12, 5)]), [1.0, -1.0])
    for method in ("exact", "local_search", "sdr"):
        assert bqp.solve(A, method, random_state=0).status is not Status.OPTIMAL
    assert bqp.solve(A.toarray(), "exact").status is Status.OPTIMAL


def test_a_matrix_that_cancels_to_nothing():
    P = np.array([[0.1], [0.2], [0.3]])
    nothing = bqp.solve(LowRank(np.hstack([P, P]), [1.0, -1.0]))
    assert nothing.value == pytest.approx(0.0, abs=1e-15)
    assert -1e-9 < nothing.bound < 0.0
    zero = bqp.solve(np.zeros((3, 3)))
    assert zero.bound == zero.value == 0.0
    assert zero.status is Status.OPTIMAL


def test_rows_are_merged_only_where_that_is_exact():
    """pᵀWp is 0 in floating point and positive in truth: such rows repel each other."""
    w = np.array([1.0, 1.0, -1.0])
    rows = ((p, q, math.hypot(p, q)) for p, q in np.random.default_rng(0).random((1000, 2)))
    row = next(p for p in map(np.array, rows) if (p * p) @ w <= 0.0 < (exact(p) ** 2) @ exact(w))
    assert merge(LowRank([row, row, row], w)) is None
    assert merge(LowRank([[1.0, 1.0]] * 3, [1.0, -1.0])).problem.n == 1
    assert merge(LowRank([[0.1, 3.0]] * 3, [1.0, -1.0])).problem.n == 1


@pytest.mark.parametrize("n", [60, 1000])
def test_spectra_of_few_values_have_a_bound(n):
    """A perfect matching has the eigenvalues ±1 alone; y = −1 is its tight dual."""
    i = np.arange(0, n, 2)
    ones = np.ones(len(i))
    half = sp.coo_array((ones, (i, i + 1)), shape=(n, n))
    A = as_operator(sp.csr_array(half + half.T))
    certificate = dual_bound(A, -np.ones(n), np.random.default_rng(0), proof_limit=0)
    assert certificate.kind == "chebyshev"
    assert -1.02 * n <= certificate.bound <= -n


def test_a_factor_that_cancels_is_no_proof_for_products():
    """What is left of the parts is their rounding: the bound allows for all of it."""
    rng = np.random.default_rng(5)
    P = rng.standard_normal((50, 1)) * 1e8
    near = P * (1.0 + 1e-15)
    A = as_operator(sp.csr_array((50, 50))) + LowRank(np.hstack([P, near]), [1.0, -1.0])
    bound = dual_bound(A, np.zeros(50), rng, proof_limit=0).bound
    x = np.sign(P[:, 0])
    reached = (exact(P[:, 0]) @ exact(x)) ** 2 - (exact(near[:, 0]) @ exact(x)) ** 2
    assert Fraction(bound) <= reached


def test_rounding_in_a_recurrence_can_hide_more_growth() -> None:
    bounds = [growth_bound(1.0, np.full(100, error)) for error in (0.0, 1e-4, 1e-3)]
    assert bounds[2] > 5.0 * bounds[1] > 5.0 * bounds[0] > 0.0
