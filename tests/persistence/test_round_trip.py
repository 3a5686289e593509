"""What is saved comes back: the same codes bit for bit, the same parameters, the same fitted attributes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import hashlearn
from hashlearn import TwoStepHasher, bqp, hash_functions, inference, targets
from hashlearn.hash_functions import EstimatorMargins, FittedHashFunctions
from hashlearn.hashers import HASHERS
from hashlearn.persistence import PersistenceError, describe, load, save
from hashlearn.persistence.values import FUNCTIONS, RECORDS
from tests.persistence.models import TEST, TRAIN, X, Y, assert_same, assert_same_codes, fitted, unfitted


def two_step(**parameters):
    parameters = {"n_bits": 5, "solver": "sweeps", "n_sweeps": 1, "random_state": 0, **parameters}
    return TwoStepHasher(**parameters)


def again(hasher, tmp_path, **options):
    hasher.save(tmp_path / "model.hashlearn", **options)
    return hashlearn.load(tmp_path / "model.hashlearn")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", HASHERS)
def test_every_hasher_comes_back_the_same(name, dtype, tmp_path):
    hasher = fitted(name, dtype)
    copy = again(hasher, tmp_path)
    assert type(copy) is type(hasher)
    assert_same_codes(copy, hasher, X[TEST].astype(dtype))
    assert_same_codes(copy, hasher, X[TEST])
    assert copy.get_params() == hasher.get_params()
    assert vars(copy).keys() == vars(hasher).keys()
    for attribute in vars(hasher):
        if attribute != "inference_report_":
            assert_same(getattr(copy, attribute), getattr(hasher, attribute))
    np.testing.assert_array_equal(clone(copy).fit(X[TRAIN], Y[TRAIN]).encode(X[:9]), fitted(name).encode(X[:9]))


@pytest.mark.parametrize("name", ["two_step", "tsh"])
def test_reports_of_inference_come_back(name, tmp_path):
    report, copy = fitted(name).inference_report_, again(fitted(name), tmp_path).inference_report_
    assert str(copy) == str(report)
    assert len(copy.bits) > 1
    for one, other in zip(copy.bits, report.bits, strict=True):
        assert type(one) is type(other)
        np.testing.assert_equal(tuple(one), tuple(other))


@pytest.mark.parametrize("name", hash_functions.HASH_FUNCTIONS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_hash_function_comes_back(name, sparse, tmp_path):
    if sparse and not hash_functions.accepts_sparse(name):
        pytest.skip("it takes dense rows only")
    rows = sp.csr_array(X[TRAIN]) if sparse else X[TRAIN]
    choice = hash_functions.Trees(n_trees=7) if name == "trees" else name
    hasher = two_step(hash_function=choice).fit(rows, Y[TRAIN])
    copy = again(hasher, tmp_path)
    assert_same_codes(copy, hasher)
    assert_same_codes(copy, hasher, X[TEST].astype(np.float32))
    if sparse:
        assert_same_codes(copy, hasher, sp.csr_array(X[TEST]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": bqp.AugmentedLagrangian(penalty=0.1), "hash_function": hash_functions.KernelRidge(alpha=2.0)},
        {"solver": inference.Passes("al"), "target": "distance"},
        {"solver": inference.Passes(bqp.AugmentedLagrangian(max_iter=3)), "target": "distance"},
        {"solver": bqp.SemidefiniteRelaxation(tol=1e-2), "target": targets.ThresholdedDistance(fraction=0.1)},
        {"target": targets.Similarity(np.eye(120), background=0.0)},
        {"target": targets.Similarity(sp.eye_array(120, format="csr"), background=-1.0)},
        {"target": targets.Pairs(similar=[(0, 1), (2, 3)], dissimilar=np.array([[0, 2]]))},
        {"target": np.where(Y[TRAIN, None] == Y[TRAIN], 1.0, -1.0), "init": (X[TRAIN, 20:25] > 7).astype(np.int8)},
        {"n_bits": np.int64(5), "init": "itq", "n_jobs": 1},
    ],
)
def test_objects_as_parameters_come_back(parameters, tmp_path):
    hasher = two_step(**parameters).fit(X[TRAIN], Y[TRAIN])
    copy = again(hasher, tmp_path)
    assert_same_codes(copy, hasher)
    for name, value in hasher.get_params().items():
        other = getattr(copy, name)
        assert type(other) is (int if name == "n_bits" else type(value))
        assert repr(other) == repr(value) or name == "n_bits"
    np.testing.assert_array_equal(copy.fit(X[TRAIN], Y[TRAIN]).encode(X[TEST]), hasher.encode(X[TEST]))


def test_a_generator_and_a_callback_are_left_out_and_named(tmp_path):
    hasher = two_step(random_state=np.random.default_rng(3), progress=lambda *a: None).fit(X[TRAIN], Y[TRAIN])
    copy = again(hasher, tmp_path)
    assert (copy.random_state, copy.progress) == (None, None)
    assert sorted(describe(tmp_path / "model.hashlearn")["left_out"]) == ["progress", "random_state"]
    assert_same_codes(copy, hasher)


def test_feature_names_and_labels_of_words_come_back(tmp_path):
    frame = pd.DataFrame(X[TRAIN], columns=[f"pixel {i} <é>" for i in range(64)])
    words = np.array([f"digit {label}" for label in Y[TRAIN]])
    hasher = unfitted("two_step").fit(frame, words)
    copy = again(hasher, tmp_path)
    assert_same(copy.feature_names_in_, hasher.feature_names_in_)
    assert_same_codes(copy, hasher, frame)
    with pytest.raises(ValueError, match="feature names"):
        copy.encode(frame.rename(columns={"pixel 0 <é>": "other"}))


def test_codes_of_the_training_samples_can_stay_out(tmp_path):
    copy = again(fitted("two_step"), tmp_path, codes=False)
    assert not hasattr(copy, "codes_")
    assert describe(tmp_path / "model.hashlearn")["left_out"] == ["codes_"]
    assert_same_codes(copy, fitted("two_step"))


def test_non_contiguous_arrays_are_stored_right(tmp_path):
    hasher = unfitted("lsh").fit(X[TRAIN])
    hasher.wide_ = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    hasher.thin_ = np.arange(40, dtype=">i4")[::3]
    hasher.number_, hasher.truth_, hasher.nothing_ = np.array(2.5), np.array([True, False]), np.zeros((0, 3))
    copy = again(hasher, tmp_path)
    for name in ("wide_", "thin_", "number_", "truth_", "nothing_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(hasher, name))
    assert copy.thin_.dtype == np.int32


def test_description_tells_what_is_there_without_the_arrays(tmp_path, monkeypatch):
    save(fitted("two_step"), tmp_path / "model", notes="first 120 digits")
    monkeypatch.setattr("hashlearn.core.container._read_arrays", None)
    found = describe(tmp_path / "model")
    assert (found["method"], found["class"], found["n_bits"], found["n_features"]) == (
        "two_step",
        "TwoStepHasher",
        11,
        64,
    )
    assert found["provenance"]["n_samples"] == 120
    assert found["provenance"]["notes"] == "first 120 digits"
    assert found["provenance"]["versions"]["hashlearn"] == hashlearn.__version__
    assert found["arrays"]["codes_"] == {
        "dtype": "int8",
        "shape": [120, 11],
        "sha256": found["arrays"]["codes_"]["sha256"],
    }
    assert len(found["arrays"]["codes_"]["sha256"]) == 64
    assert found["bytes"] == (tmp_path / "model").stat().st_size


def test_what_cannot_be_stored_is_refused_with_what_to_do(tmp_path):
    tree = two_step(hash_function=DecisionTreeClassifier()).fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(PersistenceError, match="DecisionTreeClassifier, which cannot be stored without pickle"):
        tree.save(tmp_path / "model")
    with pytest.raises(PersistenceError, match=f"use one of {', '.join(hash_functions.HASH_FUNCTIONS)}"):
        tree.set_params(hash_function="trees").save(tmp_path / "model")
    given = two_step(target=bqp.LowRank(np.ones((120, 1)), np.ones(1))).fit(X[TRAIN])
    with pytest.raises(PersistenceError, match=r"set_params\(target=...\)"):
        given.save(tmp_path / "model")
    assert_same_codes(again(given.set_params(target="distance"), tmp_path), given)
    assert describe(tmp_path / "model.hashlearn")["left_out"] == ["target_"]
    with pytest.raises(NotFittedError):
        unfitted("lsh").save(tmp_path / "other")
    with pytest.raises(PersistenceError, match="only hashers of"):
        save(DecisionTreeClassifier(), tmp_path / "other")
    with pytest.raises(PersistenceError, match="notes must be a string"):
        fitted("lsh").save(tmp_path / "other", notes="x" * 100_000)
    with pytest.raises(FileNotFoundError, match="its folder does not exist"):
        fitted("lsh").save(tmp_path / "nowhere" / "model")
    with pytest.raises(IsADirectoryError):
        fitted("lsh").save(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["model.hashlearn"]


def test_every_kind_of_fitted_function_can_be_stored():
    def below(kind):
        return {kind, *(deep for sub in kind.__subclasses__() for deep in below(sub))}

    ours = {kind for kind in below(FittedHashFunctions) if kind.__module__.startswith("hashlearn.")}
    assert ours - set(FUNCTIONS.values()) - below(EstimatorMargins) == {FittedHashFunctions}
    assert all(isinstance(kind, type) for kind in RECORDS.values())
