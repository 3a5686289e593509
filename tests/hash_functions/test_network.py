"""Networks: the formula, the same bits in every batch, extreme rows and weights, and states that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.hash_functions import NetworkMargins
from hashlearn.hash_functions.network import MOST_HIDDEN
from tests.hash_functions.network import direct_margins, made_up

SHAPES = {"n_features": st.integers(1, 40), "n_bits": st.integers(1, 17), "n_hidden": st.integers(0, 20)}
CHOICES = {"unit_rows": st.booleans(), "dtype": st.sampled_from([np.float32, np.float64]), "seed": st.integers(0, 99)}


def random_rows(n: int, n_features: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, n_features)) * 10.0 ** rng.integers(-2, 3, (n, 1))


@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("n_hidden", [0, 1, 7, 300])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_margins_are_those_of_the_formula(dtype, n_hidden, unit_rows):
    functions, X = made_up(n_hidden=n_hidden, unit_rows=unit_rows), random_rows(500, 20).astype(dtype)
    before = X.copy()
    margins, wanted = functions.decision_function(X), direct_margins(functions, X)
    assert (margins.dtype, functions.n_hidden) == (dtype, n_hidden)
    close = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(margins, wanted, rtol=close, atol=close * np.abs(wanted).max())
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(functions.decision_function(sp.csr_array(X)), margins, atol=close * np.abs(wanted).max())


@settings(max_examples=40, deadline=None)
@given(**SHAPES, **CHOICES, n=st.integers(1, 400), data=st.data())
def test_a_row_alone_has_the_margins_it_has_in_a_batch(n_features, n_bits, n_hidden, unit_rows, dtype, seed, n, data):
    functions = made_up(n_features, n_bits, n_hidden, unit_rows=unit_rows)
    X = random_rows(n, n_features, seed).astype(dtype)
    X[data.draw(st.integers(0, n - 1))] *= data.draw(st.sampled_from([0.0, 1e-30, 1e15]))
    margins = functions.decision_function(X)
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(first + 1, n))
    np.testing.assert_array_equal(functions.decision_function(X[first:last]), margins[first:last])
    np.testing.assert_array_equal(functions.decision_function(X[first : first + 1]), margins[first : first + 1])
    np.testing.assert_array_equal(functions.decision_function(np.asfortranarray(X[::-1])), margins[::-1])
    moved = np.empty(X.size + 1, dtype)[1:].reshape(X.shape)  # another alignment in memory
    moved[:] = X
    np.testing.assert_array_equal(functions.decision_function(moved), margins)
    np.testing.assert_array_equal(functions.decision_function(sp.csr_array(X)), margins)


@settings(max_examples=40, deadline=None)
@given(**SHAPES, unit_rows=st.booleans(), seed=st.integers(0, 99))
def test_float32_is_near_float64_and_tensors_are_near_arrays(n_features, n_bits, n_hidden, unit_rows, seed):
    torch = pytest.importorskip("torch")
    functions = made_up(n_features, n_bits, n_hidden, unit_rows=unit_rows)
    X = random_rows(30, n_features, seed).astype(np.float32)
    X[0] = 0.0
    narrow, wide = functions.decision_function(X), functions.decision_function(X.astype(np.float64))
    size = np.abs(X).max() * n_features * (1 + n_hidden)
    np.testing.assert_allclose(narrow, wide, atol=1e-5 * size)
    for rows, margins, close in ((X, narrow, 1e-5), (X.astype(np.float64), wide, 1e-13)):
        tensor = functions.decision_function(torch.from_numpy(rows))
        assert tensor.dtype == torch.from_numpy(rows).dtype
        np.testing.assert_allclose(tensor.numpy(), margins, atol=close * size)


@pytest.mark.parametrize("n_hidden", [0, 7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_norm_of_a_trillionth_of_the_scale_counts_as_zero(dtype, n_hidden):
    torch = pytest.importorskip("torch")
    functions = made_up(n_hidden=n_hidden, scale=1e-3)
    direction = random_rows(1, 20)
    direction /= np.linalg.norm(direction)
    X = (direction * [[0.0], [0.9e-15], [1.1e-15], [-1.1e-15], [1.0]]).astype(dtype)
    at_zero = direct_margins(functions, np.zeros((1, 20)))
    for margins in (functions.decision_function(X), functions.decision_function(torch.from_numpy(X)).numpy()):
        np.testing.assert_allclose(margins[:2], np.repeat(at_zero, 2, axis=0), rtol=1e-5)
        np.testing.assert_allclose(margins[[2, 4]], direct_margins(functions, X[[2, 4]]), atol=1e-5)
        assert np.abs(margins[3] - at_zero).max() > 0.1


@pytest.mark.parametrize("n_hidden", [0, 7])
@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(np.float32, 1e-19), (np.float32, 1e-30), (np.float32, 1e18), (np.float64, 1e-200), (np.float64, 1e18)],
)
def test_units_do_not_change_unit_rows(dtype, factor, n_hidden):
    """Squares of these rows overflow, or are 0."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = (rng.choice([-1.0, 1.0], (5, 400)) * rng.uniform(0.95, 1.0, (5, 400))).astype(dtype)
    margins = made_up(400, n_hidden=n_hidden).decision_function(X)
    functions = made_up(400, n_hidden=n_hidden, scale=factor)
    scaled = X * dtype(factor)
    close = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(functions.decision_function(scaled), margins, atol=close)
    tensor = torch.from_numpy(scaled) if factor < 1.0 else torch.from_numpy(scaled).double()  # as a hasher widens it
    np.testing.assert_allclose(functions.decision_function(tensor).numpy(), margins, atol=close)
    mixed = np.vstack([scaled[:2], X[2:]])
    np.testing.assert_array_equal(functions.decision_function(mixed)[:2], functions.decision_function(scaled[:2]))


def test_products_that_overflow_in_float32_are_computed_in_float64():
    """Sums that pass −infinity on the way to a positive number: max(0, −inf) = 0 must not hide it."""
    column = np.array([[-3e38], [-3e38], [3e38], [3.3e38]] * 4)
    for weights in (column, column[::-1]):
        functions = made_up(
            16, 1, 1, weights=np.zeros((16, 1)), hidden_weights=weights, output_weights=np.full((1, 1), 1e-38)
        )
        X = np.ones((3, 16), dtype=np.float32)
        wanted = direct_margins(functions, X)
        assert (wanted > 0.2).all()
        np.testing.assert_allclose(functions.decision_function(X), wanted, rtol=1e-5)
    huge = made_up(output_weights=np.full((7, 11), 3e38), hidden_weights=np.full((20, 7), 3e38))
    margins = huge.decision_function(np.abs(random_rows(4, 20)).astype(np.float32))
    np.testing.assert_array_equal(margins, np.full((4, 11), np.finfo(np.float32).max))


SINGLE = np.float32


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("weights", np.ones((21, 11), SINGLE), r"weights must have shape \(20, 11\), got \(21, 11\)"),
        ("weights", np.ones((20, 10), SINGLE), r"weights must have shape \(20, 11\)"),
        ("weights", np.ones((20, 11)), "weights must be an array of float32, got ndarray float64"),
        ("weights", np.ones((20, 11), np.float16), "weights must be an array of float32, got ndarray float16"),
        ("weights", np.ones((20, 11), np.int32), "weights must be an array of float32, got ndarray int32"),
        ("weights", None, "weights must be an array of float32, got missing"),
        ("intercepts", np.ones(12, SINGLE), r"intercepts must have shape \(11\)"),
        ("intercepts", np.full(11, np.nan, SINGLE), "intercepts must be finite"),
        ("hidden_weights", np.ones((19, 7), SINGLE), r"hidden_weights must have shape \(20, any\)"),
        ("hidden_weights", np.ones((20, 8), SINGLE), r"hidden_intercepts must have shape \(8\)"),
        ("hidden_weights", np.full((20, 7), -np.inf, SINGLE), "hidden_weights must be finite"),
        ("hidden_intercepts", np.ones(6, SINGLE), r"hidden_intercepts must have shape \(7\)"),
        ("hidden_intercepts", np.ones((7, 1), SINGLE), r"hidden_intercepts must have shape \(7\)"),
        ("output_weights", np.ones((6, 11), SINGLE), r"output_weights must have shape \(7, 11\)"),
        ("output_weights", np.ones((7, 12), SINGLE), r"output_weights must have shape \(7, 11\)"),
        ("output_weights", np.ones((7, 11)), "output_weights must be an array of float32"),
        ("unit_rows", 1, "unit_rows must be true or false, got 1"),
        ("unit_rows", None, "unit_rows must be true or false, got None"),
        ("scale", 0.0, "scale must be a number from"),
        ("scale", -1.0, "scale must be a number from"),
        ("scale", 1e300, r"scale must be a number from .* to 1e\+30"),
        ("scale", True, "scale must be a number from"),
        ("scale", np.nan, "scale must be a number from"),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(name, value, match):
    with pytest.raises(ValueError, match=match):
        NetworkMargins.from_state({**made_up().state(), name: value})


def test_more_hidden_units_than_a_panel_can_hold_are_refused():
    with pytest.raises(ValueError, match="hidden_weights must have at most 65536 columns"):
        made_up(1, 1, MOST_HIDDEN + 1)


def test_bits_of_another_number_are_refused():
    bits_of_12 = {"bit_columns": np.arange(12), "bit_source": np.arange(12), "bit_signs": np.ones(12, np.int8)}
    with pytest.raises(ValueError, match=r"weights must have shape \(20, 12\)"):
        NetworkMargins.from_state({**made_up().state(), **bits_of_12})
