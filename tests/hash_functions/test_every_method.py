"""Laws that hold for every hash function in the registry, and for a wrapped classifier."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from hashlearn.hash_functions import (
    HASH_FUNCTIONS,
    RBFSVM,
    KernelRidge,
    Trees,
    as_hash_function,
)
from tests.hash_functions.digits import ALWAYS, COMPLEMENTARY, NEVER, REPEATED, bit_accuracy, learn_and_new

SPECS = {name: make() for name, make in HASH_FUNCTIONS.items()} | {
    "trees": Trees(n_trees=20),
    "rbf_svm, landmarks": RBFSVM(max_gram_rows=100, n_landmarks=80),
    "kernel_ridge, landmarks": KernelRidge(max_gram_rows=100, n_landmarks=80),
    "a tree": as_hash_function(DecisionTreeClassifier(max_depth=8)),
    "naive Bayes": as_hash_function(GaussianNB(var_smoothing=1e-3)),
}
WRAPPED = ("a tree", "naive Bayes")  # classifiers of scikit-learn, which cannot be stored
SPARSE = [name for name, spec in SPECS.items() if spec.accepts_sparse]


@pytest.fixture(params=SPECS, scope="module")
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    X, codes, _, _ = learn_and_new()
    return SPECS[name].fit(X, codes, np.random.default_rng(0))


@pytest.fixture(scope="module")
def fitted32(name):
    X, codes, _, _ = learn_and_new()
    return SPECS[name].fit(X.astype(np.float32), codes, np.random.default_rng(0))


def test_it_learns_and_generalises(fitted):
    X, codes, X_new, codes_new = learn_and_new()
    assert (fitted.n_features, fitted.n_bits) == (64, 8)
    assert bit_accuracy(fitted.decision_function(X), codes) > 0.86
    assert bit_accuracy(fitted.decision_function(X_new), codes_new) > 0.8


def test_repeated_complementary_and_constant_bits(fitted):
    margins = fitted.decision_function(learn_and_new()[2])
    np.testing.assert_array_equal(margins[:, REPEATED], margins[:, 1])
    np.testing.assert_array_equal(margins[:, COMPLEMENTARY], -margins[:, 2])
    assert (margins[:, ALWAYS] > 0).all()
    assert (margins[:, NEVER] < 0).all()
    assert "4 of 8 bits fitted (2 repeated or complementary, 2 constant)" in fitted.description


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_margins_in_every_batch(fitted, fitted32, dtype, monkeypatch):
    functions = fitted32 if dtype == np.float32 else fitted
    X = learn_and_new()[2].astype(dtype)
    margins = functions.decision_function(X)
    assert margins.dtype == dtype
    for size, first, last in ((1, 160, 200), (7, 0, 700), (500, 0, 700)):
        parts = [functions.decision_function(X[a : a + size]) for a in range(first, last, size)]
        np.testing.assert_array_equal(np.vstack(parts), margins[first:last])
    shifted = np.vstack([X[:3], X])
    np.testing.assert_array_equal(functions.decision_function(shifted)[3:], margins)
    np.testing.assert_array_equal(functions.decision_function(np.asfortranarray(X)), margins)
    np.testing.assert_array_equal(functions.decision_function(np.repeat(X, 2, axis=1)[:, ::2]), margins)
    monkeypatch.setenv("HASHLEARN_NUM_THREADS", "1")
    np.testing.assert_array_equal(functions.decision_function(X), margins)


def test_fit_does_not_depend_on_threads_or_memory_order(name, fitted, monkeypatch):
    X, codes, X_new, _ = learn_and_new()
    margins = fitted.decision_function(X_new)
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        again = SPECS[name].fit(np.asfortranarray(X), np.asfortranarray(codes), np.random.default_rng(0))
        np.testing.assert_array_equal(again.decision_function(X_new), margins)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fit_does_not_depend_on_n_jobs(name, fitted, n_jobs):
    X, codes, X_new, _ = learn_and_new()
    if name in WRAPPED and n_jobs > 1:
        pytest.skip("starts processes; tested once in test_registry")
    again = SPECS[name].fit(X, codes, np.random.default_rng(0), n_jobs=n_jobs)
    np.testing.assert_array_equal(again.decision_function(X_new), fitted.decision_function(X_new))


def test_the_inputs_are_left_alone(name):
    X, codes, _, _ = learn_and_new()
    X_before, codes_before = X.copy(), codes.copy()
    SPECS[name].fit(X, codes, np.random.default_rng(0)).decision_function(X)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(codes, codes_before)


def test_float32_in_float32_out_and_near_float64(fitted, fitted32):
    X_new = learn_and_new()[2]
    narrow, wide = fitted32.decision_function(X_new.astype(np.float32)), fitted.decision_function(X_new)
    assert (narrow.dtype, wide.dtype) == (np.float32, np.float64)
    assert np.mean((narrow >= 0) == (wide >= 0)) > 0.998
    assert fitted32.decision_function(X_new).dtype == np.float64


def test_progress_ends_with_all_distinct_bits(name):
    X, codes, _, _ = learn_and_new()
    heard: list[tuple[int, int]] = []
    SPECS[name].fit(X, codes, np.random.default_rng(0), progress=lambda p: heard.append((p.done, p.total)))
    assert heard[-1] == (4, 4)
    assert heard == sorted(heard)


def test_constant_bits_only(name):
    X, codes, _, _ = learn_and_new()
    only = SPECS[name].fit(X, codes[:, [ALWAYS, NEVER]], np.random.default_rng(0))
    np.testing.assert_array_equal(only.decision_function(X), np.tile([1.0, -1.0], (len(X), 1)))


@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_rows(name, n):
    X = np.array([[0.0, 1.0], [1.0, 0.0]])[:n]
    codes = np.array([[1, -1, 1], [-1, -1, 1]], dtype=np.int8)[:n]
    margins = SPECS[name].fit(X, codes, np.random.default_rng(0)).decision_function(X)
    assert margins.shape == (n, 3)
    np.testing.assert_array_equal(margins[:, 1:] >= 0, codes[:, 1:] > 0)


def test_codes_that_are_not_signs_are_refused(name):
    X, codes, _, _ = learn_and_new()
    with pytest.raises(ValueError, match="only -1 and \\+1"):
        SPECS[name].fit(X, (codes + 1) // 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="shape"):
        SPECS[name].fit(X, codes[:-1], np.random.default_rng(0))


def test_state_round_trip(name, fitted):
    X_new = learn_and_new()[2]
    if name in WRAPPED:
        with pytest.raises(TypeError, match="without pickle"):
            fitted.state()
        return
    state = fitted.state()
    assert all(isinstance(value, np.ndarray | int | float | str) for value in state.values())
    again = type(fitted).from_state(state)
    np.testing.assert_array_equal(again.decision_function(X_new), fitted.decision_function(X_new))
    assert (again.description, again.n_features, again.n_bits) == (fitted.description, 64, 8)


@pytest.mark.parametrize("sparse_name", SPARSE)
def test_sparse_equals_dense(sparse_name):
    X, codes, X_new, _ = learn_and_new()
    dense = SPECS[sparse_name].fit(X, codes, np.random.default_rng(0))
    sparse = SPECS[sparse_name].fit(sp.csr_array(X), codes, np.random.default_rng(0))
    margins = dense.decision_function(X_new)
    for functions in (dense, sparse):
        for rows in (X_new, sp.csr_array(X_new), sp.csr_matrix(X_new)):
            np.testing.assert_allclose(functions.decision_function(rows), margins, atol=1e-4)
    whole = sparse.decision_function(sp.csr_array(X_new))
    for size, last in ((1, 200), (7, len(X_new))):
        parts = [sparse.decision_function(sp.csr_array(X_new[a : a + size])) for a in range(0, last, size)]
        np.testing.assert_array_equal(np.vstack(parts), whole[:last])
    again = type(sparse).from_state(sparse.state())
    np.testing.assert_array_equal(again.decision_function(sp.csr_array(X_new)), whole)


@pytest.mark.parametrize("dense_name", [name for name in HASH_FUNCTIONS if name not in SPARSE])
def test_sparse_rows_are_refused(dense_name):
    X, codes, _, _ = learn_and_new()
    with pytest.raises(TypeError, match="dense"):
        SPECS[dense_name].fit(sp.csr_array(X), codes, np.random.default_rng(0))


def test_sparse_rows_before_do_not_change_the_margins_of_dense_ones(monkeypatch):
    """What is prepared for sparse rows goes row by row and needs no float64; dense rows may need it."""
    X, codes, X_new, _ = learn_and_new()
    X, narrow = X.astype(np.float32), X_new.astype(np.float32)
    monkeypatch.setattr("hashlearn.hash_functions.fitted.place_matters", lambda B: B.dtype == np.float32)
    fitted, fresh = (SPECS["linear_svm"].fit(X, codes, np.random.default_rng(0)) for _ in range(2))
    fitted.decision_function(sp.csr_array(narrow))
    np.testing.assert_array_equal(fitted.decision_function(narrow), fresh.decision_function(narrow))


@pytest.mark.parametrize("name", ["rbf_svm", "linear_svm"])
def test_float64_steps_in_where_the_place_in_a_panel_matters(name, monkeypatch):
    X, codes, X_new, _ = learn_and_new()
    narrow = X_new.astype(np.float32)
    monkeypatch.setattr("hashlearn.hash_functions.fitted.place_matters", lambda B: B.dtype == np.float32)
    fitted = SPECS[name].fit(X.astype(np.float32), codes, np.random.default_rng(0))
    margins = fitted.decision_function(narrow)
    assert margins.dtype == np.float32
    np.testing.assert_array_equal(margins, fitted.decision_function(narrow.astype(np.float64)).astype(np.float32))
