"""Names, specifications, classifiers, and what is none of these."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from hashlearn.hash_functions import (
    HASH_FUNCTIONS,
    RBFSVM,
    KernelRidge,
    LinearSVM,
    SklearnHashFunctions,
    Trees,
    accepts_sparse,
    as_hash_function,
)
from tests.hash_functions.digits import learn_and_new


def test_a_name_gives_the_defaults():
    for name, make in HASH_FUNCTIONS.items():
        spec = as_hash_function(name)
        assert (spec, spec.name) == (make(), name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            spec.name = "other"


def test_sparse_rows_are_a_matter_of_the_class():
    for name, kind in HASH_FUNCTIONS.items():
        assert accepts_sparse(name) is accepts_sparse(kind()) is kind.accepts_sparse
    assert not accepts_sparse(DecisionTreeClassifier())
    with pytest.raises(ValueError, match="did you mean 'trees'"):
        accepts_sparse("tree")


def test_a_specification_stays_itself():
    spec = RBFSVM(C=3.0)
    assert as_hash_function(spec) is spec


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'rbf_svm'"):
        as_hash_function("rbfsvm")
    with pytest.raises(ValueError, match="'rbf_svm', 'linear_svm', 'trees', 'kernel_ridge', 'linear_ridge'"):
        as_hash_function("zzz")


@pytest.mark.parametrize("value", [3, None, RBFSVM, DecisionTreeClassifier, object()])
def test_other_things_are_refused(value):
    with pytest.raises(TypeError, match="hash_function must be"):
        as_hash_function(value)


def test_a_classifier_is_wrapped_and_never_fitted_itself():
    X, codes, _, _ = learn_and_new()
    forest = RandomForestClassifier(5)
    spec = as_hash_function(forest)
    assert isinstance(spec, SklearnHashFunctions)
    first = spec.fit(X, codes, np.random.default_rng(1)).decision_function(X)
    again = spec.fit(X, codes, np.random.default_rng(1)).decision_function(X)
    np.testing.assert_array_equal(first, again)
    assert not hasattr(forest, "estimators_")
    assert "RandomForestClassifier" in spec.fit(X[:20], codes[:20], np.random.default_rng(1)).description


def test_processes_give_what_one_gives():
    X, codes, _, _ = learn_and_new()
    spec = as_hash_function(DecisionTreeClassifier())
    one, two = (spec.fit(X, codes, np.random.default_rng(1), n_jobs=k).decision_function(X) for k in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_classifier_class_is_told_to_be_called():
    with pytest.raises(TypeError, match="call it"):
        SklearnHashFunctions(DecisionTreeClassifier)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBFSVM(C=0), "C must be a positive number"),
        (lambda: RBFSVM(C="best"), "C must be a positive number"),
        (lambda: RBFSVM(gamma="auto"), "gamma must be a positive number or one of 'neighbors'"),
        (lambda: RBFSVM(gamma=-1.0), "gamma must be a positive number"),
        (lambda: RBFSVM(gamma=float("nan")), "gamma must be a positive number"),
        (lambda: RBFSVM(tol=0.0), "tol must be a positive number"),
        (lambda: RBFSVM(max_gram_rows=0), "max_gram_rows must be an integer of at least 1"),
        (lambda: RBFSVM(n_landmarks=2.5), "n_landmarks must be an integer of at least 1"),
        (lambda: KernelRidge(alpha=-1), "alpha must be a positive number"),
        (lambda: KernelRidge(alpha="auto"), "alpha must be a positive number or 'loo'"),
        (lambda: LinearSVM(C=None), "C must be a positive number"),
        (lambda: LinearSVM(C=True), "C must be a positive number"),
        (lambda: LinearSVM(max_iter=0), "max_iter must be an integer of at least 1"),
        (lambda: Trees(n_trees=0), "n_trees must be an integer of at least 1"),
        (lambda: Trees(max_depth=13), "max_depth must be an integer"),
    ],
)
def test_bad_hyper_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_no_threads_are_refused():
    X, codes, _, _ = learn_and_new()
    with pytest.raises(ValueError, match="n_jobs"):
        RBFSVM().fit(X, codes, np.random.default_rng(0), n_jobs=0)
