"""Prop. 1 and eq. (13), against their dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.bqp import (
    Dense,
    LowRank,
    Operator,
    as_operator,
    diagonal_operator,
    expected_rounding_value,
    shift_to_negative_semidefinite,
)
from hashlearn.bqp.sdr import rounding


def operators(n: int, seed: int) -> list[Operator]:
    """Dense, sparse, low rank, sparse plus low rank; all with a diagonal."""
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    S = np.triu(np.where(rng.random((n, n)) < 0.4, rng.standard_normal((n, n)), 0.0))
    sparse = as_operator(sp.csr_array(S + S.T))
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    return [as_operator(M + M.T), sparse, low_rank, sparse + low_rank]


def unit_rows(n: int, k: int, seed: int) -> np.ndarray:
    V = np.random.default_rng(seed).standard_normal((n, k))
    return V / np.linalg.norm(V, axis=1)[:, None]


# -- Proposition 1 ------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("n", [2, 8, 90])
def test_shift_makes_it_negative_semidefinite_and_moves_values_by_a_constant(kind: int, n: int) -> None:
    A = operators(n, seed=n)[kind]
    B, top = shift_to_negative_semidefinite(A)
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    norm = np.abs(eigenvalues).max()
    assert np.linalg.eigvalsh(B.toarray())[-1] <= 0.0
    assert top == pytest.approx(eigenvalues[-1], abs=1e-6 * norm)
    x = np.where(np.random.default_rng(0).random(n) < 0.5, -1.0, 1.0)
    assert B.value(x) == pytest.approx(A.value(x) - n * top)
    assert B.value(x) <= 1e-9 * norm


def test_shift_of_an_already_negative_matrix_is_upward() -> None:
    B, top = shift_to_negative_semidefinite(-3.0 * np.eye(4))
    assert top == pytest.approx(-3.0, abs=1e-6)
    np.testing.assert_allclose(B.toarray(), np.zeros((4, 4)), atol=1e-6)
    assert np.linalg.eigvalsh(B.toarray())[-1] <= 0.0


@pytest.mark.parametrize("A", [[[0.0]], [[5.0]], np.zeros((3, 3)), sp.csr_array((70, 70)), np.ones((3, 3)) * 1e100])
def test_shift_of_degenerate_matrices(A: object) -> None:
    B, _ = shift_to_negative_semidefinite(A)
    assert np.linalg.eigvalsh(B.toarray())[-1] <= 1e-14 * np.abs(B.toarray()).max()


# -- equation (13) ------------------------------------------------------------------


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("entries", [7, 2_000_000])
def test_equation_13_is_the_dense_formula(kind: int, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "ENTRIES_PER_BLOCK", entries)  # many blocks, or one
    A = operators(23, 1)[kind]
    V = unit_rows(23, 4, 2)
    lifted = np.clip(V @ V.T, -1.0, 1.0)
    np.fill_diagonal(lifted, 1.0)
    expected = 2.0 / np.pi * np.sum(A.toarray() * np.arcsin(lifted))
    assert expected_rounding_value(A, V) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", range(4))
def test_equation_13_is_the_mean_over_roundings(kind: int) -> None:
    A = operators(12, 3)[kind]
    V = unit_rows(12, 3, 4)
    draws = V @ np.random.default_rng(5).standard_normal((3, 100_000))
    X = np.where(draws < 0.0, -1.0, 1.0)
    values = np.einsum("ij,ij->j", X, A.toarray() @ X)
    error = values.std() / np.sqrt(len(values))
    assert abs(expected_rounding_value(A, V) - values.mean()) < 4.0 * error


@pytest.mark.parametrize("kind", range(4))
def test_equation_13_at_signs_is_the_value_itself(kind: int) -> None:
    A = operators(15, 6)[kind]
    x = np.where(np.random.default_rng(7).random(15) < 0.5, -1.0, 1.0)
    assert expected_rounding_value(A, x[:, None]) == pytest.approx(A.value(x), rel=1e-12)
    w = unit_rows(1, 5, 8)  # the same signs along an oblique axis: products are 1 only up to rounding
    assert expected_rounding_value(A, x[:, None] * w) == pytest.approx(A.value(x), abs=1e-5)


def test_equation_13_counts_the_diagonal_in_full() -> None:
    diagonal = np.array([1.0, -2.0, 5.0])
    V = unit_rows(3, 3, 9) * (1.0 + 1e-8)  # unit to within rounding only
    assert expected_rounding_value(diagonal_operator(diagonal), V) == 4.0
    assert expected_rounding_value(Dense(np.diag(diagonal)), V) == 4.0


def test_wrong_vectors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"V must have 3 rows"):
        expected_rounding_value(np.eye(3), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"unit length, but row 1 has length 2"):
        expected_rounding_value(np.eye(2), [[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match=r"V must be finite"):
        expected_rounding_value(np.eye(1), [[np.nan]])


# -- Theorem 1 ----------------------------------------------------------------------


def test_the_triangle_by_hand() -> None:
    """Unit vectors at 120°: f_SDR = −3, every rounding cuts two edges, λ₁ = 2."""
    triangle = np.ones((3, 3)) - np.eye(3)
    angles = 2.0 * np.pi * np.arange(3) / 3.0
    V = np.column_stack([np.cos(angles), np.sin(angles)])
    assert expected_rounding_value(triangle, V) == pytest.approx(-2.0)
    B, top = shift_to_negative_semidefinite(triangle)
    assert top == pytest.approx(2.0, abs=1e-5)
    assert expected_rounding_value(B, V) == pytest.approx(-8.0, abs=1e-5)
