"""Operators: each kind is the dense matrix it stands for, and bad input is refused in words."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn import bqp
from hashlearn.bqp import (
    Dense,
    LowRank,
    Operator,
    Sparse,
    as_operator,
    diagonal_operator,
)
from tests.bqp.problems import random_sparse, random_symmetric, some_signs

KINDS = ("dense", "sparse", "low rank", "sparse plus low rank")
PAIRS = list(itertools.product(KINDS, KINDS))


def make(kind: str, n: int, seed: int) -> Operator:
    rng = np.random.default_rng(seed)
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    sparse = Sparse(random_sparse(n, seed))
    return {
        "dense": Dense(random_symmetric(n, seed)),
        "sparse": sparse,
        "low rank": low_rank,
        "sparse plus low rank": sparse + low_rank,
    }[kind]


def close(left: object, right: object) -> None:
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


any_operator = st.builds(make, st.sampled_from(KINDS), st.integers(1, 12), st.integers(0, 2**32 - 1))
seeds = st.integers(0, 2**32 - 1)
laws = settings(max_examples=40, deadline=None)


@laws
@given(A=any_operator, seed=seeds)
def test_operator_is_its_dense_matrix(A, seed):
    array = A.toarray()
    rng = np.random.default_rng(seed)
    v, V = rng.standard_normal(A.n), rng.standard_normal((A.n, 4))
    assert A.shape == array.shape == (A.n, A.n)
    np.testing.assert_array_equal(array, array.T)
    close(A @ v, array @ v)
    close(A @ V, array @ V)
    close(A.diagonal(), np.diag(array))
    x = some_signs(A.n, seed)
    close(A.value(x), x @ array @ x)


@laws
@given(A=any_operator, seed=seeds)
def test_flip_gains_are_differences_of_values(A, seed):
    x = some_signs(A.n, seed)
    flipped = [A.value(np.where(np.arange(A.n) == i, -x, x)) for i in range(A.n)]
    close(A.flip_gains(x), np.array(flipped) - A.value(x))


@laws
@given(A=any_operator, seed=seeds, shift=st.floats(-5, 5))
def test_laws_of_the_value(A, seed, shift):
    x = some_signs(A.n, seed)
    close(A.value(-x), A.value(x))
    entries = shift * np.arange(A.n)
    close((A + diagonal_operator(entries)).value(x), A.value(x) + entries.sum())
    order = np.random.default_rng(seed).permutation(A.n)
    close(A.restricted(order).value(x[order]), A.value(x))


@laws
@given(A=any_operator, seed=seeds, factor=st.floats(-3, 3))
def test_scaled_and_restricted_keep_the_kind(A, seed, factor):
    index = np.random.default_rng(seed).permutation(A.n)[: max(1, A.n // 2)]
    assert type(A.scaled(factor)) is type(A)
    assert type(A.restricted(index)) is type(A)
    close(A.scaled(factor).toarray(), factor * A.toarray())
    close(A.restricted(index).toarray(), A.toarray()[np.ix_(index, index)])
    close(A.restricted(index) @ np.ones(len(index)), A.toarray()[np.ix_(index, index)].sum(axis=1))


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_sums_of_all_kinds(left, right):
    A, B = make(left, 9, 1), make(right, 9, 2)
    total = A + B
    close(total.toarray(), A.toarray() + B.toarray())
    close(total @ np.arange(9.0), (A.toarray() + B.toarray()) @ np.arange(9.0))
    parts = frozenset(part for kind in (left, right) for part in kind.split(" plus "))
    assert total.is_dense == ("dense" in parts)
    assert total.is_sparse == (parts == {"sparse"})
    assert total.is_low_rank == (parts == {"low rank"})
    close((total + A).toarray(), 2 * A.toarray() + B.toarray())


@pytest.mark.parametrize("kind", KINDS)
def test_sums_with_plain_matrices_on_either_side(kind):
    A, array = make(kind, 6, 0), random_symmetric(6, 1)
    for total in (A + array, array + A, A + sp.csr_array(array), A + array.tolist()):
        assert isinstance(total, Operator)
        close(total.toarray(), A.toarray() + array)


def test_sums_of_zero_low_rank():
    zero = LowRank(np.zeros((4, 2)), [1.0, 1.0])
    assert zero.rank == 0
    close((zero + zero).toarray(), np.zeros((4, 4)))
    close((zero + Sparse(sp.eye_array(4))).toarray(), np.eye(4))
    close(zero @ np.ones(4), np.zeros(4))
    assert zero.value(np.ones(4)) == 0.0


def test_low_rank_drops_columns_that_say_nothing():
    A = LowRank([[1.0, 0.0, 3.0], [2.0, 0.0, 4.0]], [1.0, 5.0, 0.0])
    assert A.rank == 1
    close(A.toarray(), [[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize("kind", KINDS)
def test_scale_is_zero_only_for_zero(kind):
    A = make(kind, 8, 3)
    assert A.scale() > 0.0
    assert A.scaled(0.0).scale() == 0.0
    assert A.scaled(1e-200).scale() > 0.0


def test_what_as_operator_makes():
    array = random_symmetric(4, 0)
    assert as_operator(array).is_dense
    assert as_operator(array.tolist()).is_dense
    for made in (
        sp.csr_array(array),
        sp.coo_matrix(array),
        sp.csc_array(array),
        sp.lil_array(array),
        sp.dia_array(array),
    ):
        assert as_operator(made).is_sparse
        close(as_operator(made).toarray(), array)
    A = Dense(array)
    assert as_operator(A) is A


def test_a_sparse_matrix_that_points_outside_itself_is_refused():
    for convert in (sp.csr_array, sp.csc_array):
        matrix = convert(np.ones((3, 3)))
        matrix.indices[0] = 99
        with pytest.raises(ValueError, match="A is a damaged sparse matrix: its indices must lie from 0 to 2"):
            as_operator(matrix)


def test_sparse_is_made_canonical():
    """Unsorted, with an entry in two pieces: what a hand-made CSR may look like."""
    matrix = sp.csr_array((2, 2))
    matrix.data, matrix.indices, matrix.indptr = (
        np.array([1.0, 5.0, 2.0, 3.0]),
        np.array([1, 0, 1, 0]),
        np.array([0, 3, 4]),
    )
    matrix.has_canonical_format = matrix.has_sorted_indices = False
    A = as_operator(matrix)
    assert A.sparse.nnz == 3
    np.testing.assert_array_equal(A.sparse.indices, [0, 1, 0])
    close(A.toarray(), [[5.0, 3.0], [3.0, 0.0]])
    assert matrix.nnz == 4


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.bool_, np.float16, np.float32, np.longdouble])
def test_any_real_dtype_is_taken_as_float64(dtype):
    array = np.array([[0, 1], [1, 1]], dtype=dtype)
    assert as_operator(array).array.dtype == np.float64
    close(as_operator(array).toarray(), [[0.0, 1.0], [1.0, 1.0]])
    if dtype is not np.float16:  # SciPy has no float16 matrices
        assert as_operator(sp.csr_array(array)).sparse.dtype == np.float64
    assert LowRank(array, array[0]).P.dtype == np.float64


def test_layouts_and_read_only_input_are_taken_and_left_untouched():
    array = random_symmetric(6, 0)
    P, weights = np.asfortranarray(array[:, :3]), np.arange(1.0, 4.0)
    matrix = sp.csr_array(array)
    kept = [array.copy(), P.copy(), weights.copy(), matrix.toarray()]
    for fixed in (array, P, weights, matrix.data, matrix.indices, matrix.indptr):
        fixed.flags.writeable = False
    operators = [
        Dense(np.asfortranarray(array)),
        Dense(array[::-1, ::-1]),
        Dense(array),
        Sparse(matrix),
        LowRank(P, weights),
    ]
    for A in operators:
        A.flip_gains(np.ones(6))
        (A + A).scaled(2.0).restricted(np.arange(3)).toarray()[:] = 0.0
        A.diagonal()[:] = 0.0
    assert operators[0].array.flags.c_contiguous
    assert operators[4].P.flags.c_contiguous
    for before, now in zip(kept, [array, P, weights, matrix.toarray()], strict=True):
        np.testing.assert_array_equal(before, now)


def test_rounding_asymmetry_is_averaged_away():
    array = random_symmetric(5, 0)
    array[0, 1] += 1e-14
    A = as_operator(array)
    np.testing.assert_array_equal(A.toarray(), A.toarray().T)
    B = as_operator(sp.csr_array(array))
    np.testing.assert_array_equal(B.toarray(), B.toarray().T)


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ([[0.0, 1.0], [2.0, 0.0]], ValueError, ["A must be symmetric", "A[0, 1] = 1", "A[1, 0] = 2", "(A + A.T) / 2"]),
        (sp.csr_array([[0.0, 1.0], [2.0, 0.0]]), ValueError, ["A must be symmetric"]),
        ([[0.0, np.nan], [np.nan, 0.0]], ValueError, ["A must be finite", "nan", "(0, 1)"]),
        ([[np.inf, 0.0], [0.0, 0.0]], ValueError, ["A must be finite", "inf", "(0, 0)"]),
        (sp.csr_array([[np.inf, 0.0], [0.0, 0.0]]), ValueError, ["A must be finite"]),
        ([[0.0, 1e200], [1e200, 0.0]], ValueError, ["A has an entry of size 1e+200", "scale"]),
        ([[0.0, 1j], [-1j, 0.0]], TypeError, ["A must be real", "complex"]),
        (np.zeros((2, 3)), ValueError, ["A must be square", "(2, 3)"]),
        (sp.csr_array((2, 3)), ValueError, ["A must be square", "(2, 3)"]),
        (np.zeros(4), ValueError, ["A must have 2 dimension(s)", "(4,)"]),
        (np.zeros((2, 2, 2)), ValueError, ["A must have 2 dimension(s)", "(2, 2, 2)"]),
        (3.0, ValueError, ["A must have 2 dimension(s)", "()"]),
        (np.zeros((0, 0)), ValueError, ["A is empty", "(0, 0)"]),
        ([[0.0, 1.0], [1.0]], ValueError, ["A must be a rectangular array of numbers"]),
        ([["0", "1"], ["1", "0"]], TypeError, ["A must hold numbers", "dtype"]),
        ("adjacency", TypeError, ["A must hold numbers"]),
        (None, TypeError, ["A must hold numbers"]),
        ([[object(), 1], [1, object()]], TypeError, ["A must hold numbers"]),
    ],
)
def test_bad_matrices_are_refused_in_words(bad, error, words):
    with pytest.raises(error) as refusal:
        as_operator(bad)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("P", "weights", "words"),
    [
        (np.ones((3, 2)), [1.0], ["weights", "(3, 2)", "2 were expected", "1 came"]),
        (np.ones((3, 2)), np.ones((2, 1)), ["weights must have 1 dimension(s)", "(2, 1)"]),
        (np.ones(3), [1.0], ["P must have 2 dimension(s)", "(3,)"]),
        (np.ones((3, 0)), [], ["P is empty"]),
        ([[1.0], [np.nan]], [1.0], ["P must be finite", "(1, 0)"]),
        ([[1.0]], [-np.inf], ["weights must be finite", "index 0"]),
    ],
)
def test_bad_factors_are_refused_in_words(P, weights, words):
    with pytest.raises(ValueError, match=words[0].split()[0]) as refusal:
        LowRank(P, weights)
    for word in words:
        assert word in str(refusal.value)


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_sizes_in_a_sum_must_agree(left, right):
    with pytest.raises(ValueError, match=r"equal size: got \(4, 4\) and \(5, 5\)"):
        make(left, 4, 0) + make(right, 5, 0)


def test_diagonal_operator():
    close(diagonal_operator([1, -2]).toarray(), [[1.0, 0.0], [0.0, -2.0]])
    with pytest.raises(ValueError, match="entries must have 1 dimension"):
        diagonal_operator(np.eye(2))


def test_a_negative_factor_keeps_errors_positive():
    P, w = np.array([[0.1], [0.2]]), np.array([0.3])
    for operator in (bqp.as_operator(P @ P.T), Sparse(sp.csr_array(P @ P.T)), LowRank(P, w)):
        assert operator.value_error() > 0.0
        assert operator.scaled(-1.0).value_error() == operator.value_error()
    assert LowRank(P, -w).entry_error() == LowRank(P, w).entry_error() > 0.0


@laws
@given(A=any_operator, seed=seeds)
def test_congruent_operators(A, seed):
    array, rng = A.toarray(), np.random.default_rng(seed)
    q = rng.standard_normal(A.n)
    close(A.congruent(q).toarray(), q[:, None] * array * q)
    C = sp.csr_array(rng.integers(-1, 2, (A.n, 3)).astype(float))
    close(A.congruent(C).toarray(), C.T @ array @ C)


@laws
@given(A=any_operator, seed=seeds)
def test_norms_magnitudes_and_the_stored_diagonal(A, seed):
    array, u = A.toarray(), np.random.default_rng(seed).random(A.n)
    hollow, dropped = A.without_diagonal()
    close(hollow.toarray() + np.diag(dropped), array)
    if not A.rank:
        close(hollow.diagonal(), np.zeros(A.n))
    parts = [array] if A.is_dense else [LowRank(A.P, A.weights).toarray() if A.rank else np.zeros_like(array)]
    parts += [] if A.sparse is None else [A.sparse.toarray()]
    close(A.row_norms() ** 2, sum((part * part).sum(axis=1) for part in parts))
    absolute = np.abs(A.P) @ (np.abs(A.weights)[:, None] * np.abs(A.P).T)
    absolute = absolute + sum(np.abs(part) for part in (parts if A.is_dense else parts[1:]))
    close(A.absolute_product(u), absolute @ u)
    close(A.magnitudes(), absolute.sum(axis=1))
    close(A.total_magnitude(), absolute.sum())
