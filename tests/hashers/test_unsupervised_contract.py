"""What every unsupervised hasher promises alike: scikit-learn's contract, and codes that depend on X and seed alone."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from hashlearn import bits, metrics
from hashlearn.core import threads
from hashlearn.hashers.baselines.alm_hashing import ALMHashing
from hashlearn.hashers.baselines.binary_autoencoder import BinaryAutoencoder
from hashlearn.hashers.baselines.itq import ITQ
from hashlearn.hashers.baselines.kmeans_hashing import KMeansHashing
from hashlearn.hashers.baselines.lsh import LSH
from hashlearn.hashers.baselines.nmf_hashing import NMFHashing
from hashlearn.hashers.baselines.sign_codes import SignCodes
from hashlearn.hashers.baselines.spectral_hashing import SpectralHashing
from hashlearn.hashers.baselines.spherical_hashing import SphericalHashing

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 400), slice(400, 700)

QUICK = {ALMHashing: {"max_iter": 3}, NMFHashing: {"max_iter": 20}}
LEARNERS = [ITQ, BinaryAutoencoder, SphericalHashing, KMeansHashing, NMFHashing, ALMHashing, LSH, SpectralHashing]
TAKE_SPARSE = [ITQ, NMFHashing, ALMHashing, LSH, SpectralHashing, SignCodes]
every_learner = pytest.mark.parametrize("kind", [*LEARNERS, SignCodes], ids=lambda kind: kind.__name__)


def make(kind, n_bits=12, **parameters):
    return kind(n_bits, **QUICK.get(kind, {}), **{"random_state": 0, **parameters})


def configurations():
    for kind in LEARNERS:
        yield kind(n_bits=3, **QUICK.get(kind, {}))
    yield SignCodes(n_bits=1)  # the checks' data have as few as one feature
    yield SignCodes(n_bits=1, features="pca", threshold="median")


@parametrize_with_checks(list(configurations()))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every_learner
def test_bits_packed_codes_and_margins_agree(kind):
    hasher = make(kind).fit(X[TRAIN], Y[TRAIN])
    margins, found = hasher.decision_function(X[TEST]), hasher.transform(X[TEST])
    assert margins.shape == found.shape == (300, 12)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, margins >= 0.0)
    np.testing.assert_array_equal(bits.unpack_bits(hasher.encode(X[TEST]), 12), found)
    np.testing.assert_array_equal(make(kind).fit(X[TRAIN]).transform(X[TEST]), found)  # labels are not looked at


@every_learner
def test_threads_memory_order_and_batches_never_change_codes(kind, monkeypatch):
    monkeypatch.setattr(threads, "ROWS_PER_BLOCK", 256)  # several blocks, and so several threads, for few rows
    answers = []
    for count, order in (("1", "C"), ("2", "F"), ("3", "C")):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", count)
        data = np.asarray(X[:1000], order=order)
        hasher = make(kind).fit(data)
        answers.append(hasher.encode(data))
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])
    for dtype in (np.float64, np.float32):
        rows = X[:500].astype(dtype)
        whole = hasher.encode(rows)
        for size in (1, 7, 192, 333):
            pieces = [hasher.encode(rows[a : a + size]) for a in range(0, 500, size)]
            np.testing.assert_array_equal(np.concatenate(pieces), whole)


@every_learner
def test_float32_stays_float32_and_agrees(kind):
    single = make(kind).fit(X[TRAIN].astype(np.float32))
    assert single.decision_function(X[TEST].astype(np.float32)).dtype == np.float32
    double = make(kind).fit(X[TRAIN])
    assert np.mean(single.transform(X[TEST].astype(np.float32)) == double.transform(X[TEST])) > 0.97


@every_learner
def test_same_seed_same_codes_clone_and_pickle(kind):
    first = make(kind).fit(X[TRAIN])
    again = clone(first).fit(X[TRAIN])
    copy = pickle.loads(pickle.dumps(first))
    for other in (again, copy):
        np.testing.assert_array_equal(other.encode(X[TEST]), first.encode(X[TEST]))


@pytest.mark.parametrize(
    "kind",
    [ITQ, BinaryAutoencoder, SphericalHashing, KMeansHashing, LSH, SpectralHashing],
    ids=lambda kind: kind.__name__,
)
def test_codes_do_not_mind_where_the_origin_is(kind):
    here, there = make(kind).fit(X[TRAIN]).transform(X[TEST]), make(kind).fit(X[TRAIN] + 9.0).transform(X[TEST] + 9.0)
    assert np.mean(here == there) > 0.99


@every_learner
def test_hash_functions_can_be_rebuilt_from_plain_arrays(kind):
    functions = make(kind).fit(X[TRAIN]).hash_functions_
    state = functions.state()
    assert all(isinstance(value, np.ndarray | str | int | float) for value in state.values())
    again = type(functions).from_state(state)
    np.testing.assert_array_equal(again.decision_function(X[TEST]), functions.decision_function(X[TEST]))


@pytest.mark.parametrize("kind", TAKE_SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_features_give_the_same_codes(kind):
    dense, sparse = make(kind).fit(X[TRAIN]), make(kind).fit(sp.csr_array(X[TRAIN]))
    assert np.mean(sparse.transform(sp.csr_array(X[TEST])) == dense.transform(X[TEST])) > 0.99


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_codes_find_digits_better_than_chance(kind):
    hasher = make(kind, 16).fit(X[TRAIN])
    database, queries = hasher.encode(X[TRAIN]), hasher.encode(X[TEST])
    assert metrics.mean_average_precision(queries, database, Y[TEST], Y[TRAIN]) > 0.27  # chance: 0.1


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("n_bits", [1, 9, 20])
def test_any_number_of_bits_even_more_than_features(kind, n_bits):
    few = X[TRAIN][:, 18:22]
    found = make(kind, n_bits).fit(few).transform(few)
    assert found.shape == (400, n_bits)
    assert 0 < found[:, 0].mean() < 1


@pytest.mark.filterwarnings("ignore:Liblinear failed")
@every_learner
@pytest.mark.parametrize("data", [np.ones((40, 5)), np.tile(X[:2], (20, 1)), np.eye(40) * 1e15, np.eye(40) * 1e-150])
def test_degenerate_features_do_not_crash(kind, data):
    hasher = make(kind, 4).fit(data)
    assert np.isfinite(hasher.decision_function(data)).all()


@every_learner
@pytest.mark.parametrize(
    ("n_bits", "data", "message"),
    [
        (0, X[TRAIN], "n_bits must be a positive integer, got 0"),
        (10**6, X[TRAIN], "n_bits must be at most 4096"),
        (8, np.where(X[TRAIN] > 15, np.nan, X[TRAIN]), "NaN"),
        (8, np.eye(40) * 1e200, "whose square overflows"),
        (8, X[:1], "1 sample"),
    ],
)
def test_bad_input_is_told_what_is_wrong(kind, n_bits, data, message):
    with pytest.raises(ValueError, match=message):
        make(kind, n_bits).fit(data)
