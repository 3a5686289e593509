"""What every hasher of the registry promises: scikit-learn's contract, and codes that depend on data and seed alone.

A new hasher is tested with its defaults. `SETTINGS` makes slow ones faster.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from hashlearn import TwoStepHasher, bits, bqp, hashers, metrics
from hashlearn.core import threads
from hashlearn.hash_functions import HASH_FUNCTIONS, Trees
from hashlearn.hashers import HASHERS
from tests.hashers.supervised_laws import TEST, X, Y, indicators

TRAIN = slice(0, 300)
SETTINGS: dict[str, dict[str, Any]] = {
    "two_step": {"solver": "spectral", "n_sweeps": 1},
    "ranking": {"n_steps": 5, "hidden": 16, "batch_size": 64},
    "tsh": {"n_sweeps": 1, "hash_function": "kernel_ridge"},
    "fasthash": {"n_trees": 5},
    "ksh": {"n_anchors": 40, "max_iter": 50},
    "bre": {"n_anchors": 10, "n_pairs": 20, "n_sweeps": 1},
    "sdh": {"n_anchors": 100},
    "alm_hashing": {"max_iter": 3},
    "nmf_hashing": {"max_iter": 20},
}
SUPERVISED = [name for name, kind in HASHERS.items() if kind._learns_from_labels]
LEARNERS = [name for name in HASHERS if name != "sign_codes"]  # sign_codes has at most one bit for each feature
every_hasher = pytest.mark.parametrize("name", HASHERS)
every_learner = pytest.mark.parametrize("name", LEARNERS)


def make(name: str, n_bits: int = 12, **parameters: Any) -> Any:
    return HASHERS[name](n_bits, **{"random_state": 0, **SETTINGS.get(name, {}), **parameters})


def configurations() -> list[Any]:
    """Few bits and cheap settings; scikit-learn's data have as few as one feature."""
    few = {"sign_codes": 1, "fasthash": 2}
    cheap = {"fasthash": {"n_trees": 2}, "bre": {"n_anchors": 5}, "ksh": {"n_anchors": 20}}
    two_step, quick = {"n_bits": 3, "n_sweeps": 1}, {"trees": Trees(n_trees=5)}
    return [
        *(make(name, few.get(name, 3), random_state=None, **cheap.get(name, {})) for name in HASHERS),
        hashers.SignCodes(1, features="pca", threshold="median"),
        *(
            TwoStepHasher(solver=solver, hash_function="kernel_ridge", **two_step)
            for solver in bqp.METHODS
            if solver not in ("exact", "branch_and_bound")  # made for few variables
        ),
        *(
            TwoStepHasher(solver="local_search", hash_function=quick.get(name, name), **two_step)
            for name in HASH_FUNCTIONS
        ),
    ]


@parametrize_with_checks(configurations())
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every_hasher
def test_bits_packed_codes_and_margins_agree(name):
    hasher = make(name).fit(X[TRAIN], Y[TRAIN])
    margins, found = hasher.decision_function(X[TEST]), hasher.transform(X[TEST])
    assert margins.shape == found.shape == (300, 12)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, margins >= 0.0)
    np.testing.assert_array_equal(bits.unpack_bits(hasher.encode(X[TEST]), 12), found)
    if not hasher._learns_from_labels:
        np.testing.assert_array_equal(make(name).fit(X[TRAIN]).transform(X[TEST]), found)


@every_hasher
def test_threads_memory_order_and_batches_never_change_codes(name, monkeypatch):
    monkeypatch.setattr(threads, "ROWS_PER_BLOCK", 256)  # several blocks, and so several threads, for few rows
    answers = []
    count = 600 if name in SUPERVISED else 1000
    for n_threads, order in (("1", "C"), ("2", "F"), ("3", "C")):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", n_threads)
        data = np.asarray(X[:count], order=order)
        hasher = make(name).fit(data, Y[:count])
        answers.append(hasher.encode(data))
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])
    for dtype in (np.float64, np.float32):
        rows = X[:500].astype(dtype)
        whole = hasher.encode(rows)
        for size in (7, 192, 333):
            pieces = [hasher.encode(rows[a : a + size]) for a in range(0, 500, size)]
            np.testing.assert_array_equal(np.concatenate(pieces), whole)
        pieces = [hasher.encode(rows[a : a + 1]) for a in range(150, 250)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole[150:250])


@every_hasher
def test_float32_stays_float32_and_agrees(name):
    single = make(name).fit(X[TRAIN].astype(np.float32), Y[TRAIN])
    assert single.decision_function(X[TEST].astype(np.float32)).dtype == np.float32
    double = make(name).fit(X[TRAIN], Y[TRAIN])
    assert np.mean(single.transform(X[TEST].astype(np.float32)) == double.transform(X[TEST])) > 0.97


@every_hasher
def test_same_seed_same_codes_clone_and_pickle(name):
    first = make(name).fit(X[TRAIN], Y[TRAIN])
    again = clone(first).fit(X[TRAIN], Y[TRAIN])
    copy = pickle.loads(pickle.dumps(first))
    for other in (again, copy):
        np.testing.assert_array_equal(other.encode(X[TEST]), first.encode(X[TEST]))


@every_hasher
def test_sparse_features_give_the_same_codes_or_are_refused(name):
    hasher, rows = make(name), sp.csr_array(X[TRAIN])
    if not hasher._takes_sparse():
        with pytest.raises(TypeError, match="dense data is required"):
            hasher.fit(rows, Y[TRAIN])
        return
    dense, sparse = make(name).fit(X[TRAIN], Y[TRAIN]), hasher.fit(rows, Y[TRAIN])
    least = 0.98 if name in SUPERVISED else 0.99
    assert np.mean(sparse.transform(sp.csr_array(X[TEST])) == dense.transform(X[TEST])) > least


@pytest.mark.parametrize(
    "name", ["itq", "binary_autoencoder", "spherical_hashing", "kmeans_hashing", "lsh", "spectral_hashing"]
)
def test_codes_do_not_depend_on_the_origin(name):
    here = make(name).fit(X[TRAIN]).transform(X[TEST])
    there = make(name).fit(X[TRAIN] + 9.0).transform(X[TEST] + 9.0)
    assert np.mean(here == there) > 0.99


@every_learner
def test_codes_find_digits_better_than_chance(name):
    hasher = make(name, 16).fit(X[TRAIN], Y[TRAIN])
    database, queries = hasher.encode(X[TRAIN]), hasher.encode(X[TEST])
    assert metrics.mean_average_precision(queries, database, Y[TEST], Y[TRAIN]) > 0.27  # chance: 0.1


@every_learner
@pytest.mark.parametrize("n_bits", [1, 9, 20])
def test_any_number_of_bits_even_more_than_features(name, n_bits):
    few = X[TRAIN][:, 18:22]
    found = make(name, n_bits).fit(few, Y[TRAIN]).transform(few)
    assert found.shape == (300, n_bits)
    assert 0 < found[:, 0].mean() < 1


@every_hasher
@pytest.mark.parametrize(
    ("n_bits", "data", "message"),
    [
        (0, X[TRAIN], "n_bits must be an integer from 1 to 4096, got 0"),
        (10**6, X[TRAIN], "n_bits must be an integer from 1 to 4096"),
        (8, X[:1], "1 sample"),
    ],
)
def test_bad_features_are_told_what_is_wrong(name, n_bits, data, message):
    with pytest.raises(ValueError, match=message):
        make(name, n_bits).fit(data, Y[: len(data)])


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(300), "y holds only one class"),
        (np.full(300, np.nan), "y contains NaN"),
        (Y[:299], "inconsistent numbers of samples"),
        (np.arange(300), "a class needs two rows"),
    ],
)
def test_bad_labels_are_told_what_is_wrong(name, y, message):
    with pytest.raises(ValueError, match=message):
        make(name).fit(X[TRAIN], y)


@pytest.mark.parametrize("name", [name for name, kind in HASHERS.items() if kind._needs_labels])
def test_labels_are_asked_for(name):
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        make(name).fit(X[TRAIN])


@pytest.mark.parametrize("name", SUPERVISED)
def test_names_are_labels_too(name):
    names = np.array([f"digit {label}" for label in Y[TRAIN]], dtype=object)
    expected = make(name).fit(X[TRAIN], Y[TRAIN]).encode(X[TEST])
    np.testing.assert_array_equal(make(name).fit(X[TRAIN], names).encode(X[TEST]), expected)


@pytest.mark.parametrize("name", SUPERVISED)
def test_indicators_are_labels_too_or_are_refused(name):
    if name == "ranking":
        with pytest.raises(ValueError, match="one class for each sample"):
            make(name).fit(X[TRAIN], indicators())
        return
    hasher = make(name).fit(X[TRAIN], indicators())
    assert len(np.unique(hasher.encode(X[TEST]), axis=0)) > 1
