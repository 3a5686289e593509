"""TwoStepHasher as its users meet it: what it returns, refuses, promises, and how well it retrieves."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from hashlearn import TwoStepHasher, bits, bqp, load, metrics, targets
from hashlearn.core import thresholds
from hashlearn.hash_functions import KernelRidge, LinearRidge

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 400), slice(400, 700)


def fitted(n_bits=12, y=Y[TRAIN], **parameters):
    return TwoStepHasher(n_bits, random_state=0, **parameters).fit(X[TRAIN], y)


@pytest.fixture(scope="module")
def supervised():
    return fitted()


@pytest.fixture(scope="module")
def unsupervised():
    return fitted(y=None, target="distance")


def mean_average_precision(hasher):
    return metrics.mean_average_precision(hasher.encode(X[TEST]), hasher.encode(X[TRAIN]), Y[TEST], Y[TRAIN])


def test_attributes(supervised):
    assert supervised.codes_.shape == (400, 12)
    assert supervised.codes_.dtype == np.int8
    assert supervised.target_.name == "labels"
    assert "above what any codes can reach" in str(supervised.inference_report_)


def test_labels_give_better_codes_than_signs_and_hash_functions_predict_them(supervised):
    signs = bits.pack_bits((PCA(12).fit(X[TRAIN]).transform(X) >= 0).astype(np.uint8))
    plain = metrics.mean_average_precision(signs[TEST], signs[TRAIN], Y[TEST], Y[TRAIN])
    assert mean_average_precision(supervised) > 0.85 > plain + 0.2
    agreement = np.mean(bits.bits_to_signs(supervised.transform(X[TRAIN])) == supervised.codes_)
    assert agreement > 0.99


def test_unlabelled_codes_keep_neighbors(unsupervised):
    assert unsupervised.target_.name == "distance"
    assert mean_average_precision(unsupervised) > 0.45
    default = fitted(y=None)
    assert default.target_.name == "neighbors"
    assert mean_average_precision(default) > 0.5


@pytest.mark.parametrize("labels", [True, False])
def test_threads_memory_order_and_batches_never_change_codes(labels, monkeypatch):
    answers = []
    for threads, order in (("1", "C"), ("2", "F"), ("3", "C")):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        data = np.asarray(X, order=order)
        hasher = TwoStepHasher(16, random_state=3, n_jobs=int(threads))
        hasher.fit(np.asarray(data[TRAIN], order=order), Y[TRAIN] if labels else None)
        answers.append((hasher.codes_, hasher.encode(data)))
    for codes, packed in answers[1:]:
        np.testing.assert_array_equal(codes, answers[0][0])
        np.testing.assert_array_equal(packed, answers[0][1])
    whole = hasher.encode(X)
    for size in (1, 7, 192, 333, 1000):
        pieces = [hasher.encode(X[a : a + size]) for a in range(0, len(X), size)]
        np.testing.assert_array_equal(np.concatenate(pieces), whole)


def test_float16_integers_and_lists_are_welcome(supervised):
    for data in (X[TEST].astype(np.float16), X[TEST].astype(int), X[TEST].tolist()):
        np.testing.assert_array_equal(supervised.encode(data), supervised.encode(X[TEST]))


def test_strings_objects_and_columns_as_labels(supervised):
    names = np.array([f"digit {y}" for y in Y[TRAIN]])
    for y in (names, names.astype(object), list(names), Y[TRAIN].reshape(-1, 1)):
        np.testing.assert_array_equal(fitted(y=y, hash_function="linear_svm").codes_, supervised.codes_)


def test_multi_label_indicators():
    indicators = np.zeros((400, 12), dtype=int)
    indicators[np.arange(400), Y[TRAIN]] = 1
    indicators[:, 10] = Y[TRAIN] % 2
    hasher = fitted(y=indicators, hash_function="linear_svm")
    assert hasher.target_.name == "shared_labels"
    codes = hasher.codes_.astype(int)
    odd = (Y[TRAIN][:, None] % 2 == 1) & (Y[TRAIN] % 2 == 1)
    same = Y[TRAIN][:, None] == Y[TRAIN]
    products = codes @ codes.T
    assert products[odd & ~same].mean() > products[~odd & ~same].mean() + 4


def test_own_similarity_solver_object_start_and_classifier():
    similarity = np.where(Y[TRAIN][:, None] == Y[TRAIN], 1.0, -1.0)
    start = fitted(8, n_sweeps=1).codes_
    hasher = TwoStepHasher(
        8,
        target=similarity,
        solver=bqp.AugmentedLagrangian.literal(),
        hash_function=RidgeClassifier(),
        init=start,
        monotone=False,
        spread=False,
        random_state=0,
    ).fit(X[TRAIN])
    assert hasher.target_.name == "similarity"
    assert hasher.encode(X[TEST]).shape == (300, 1)


@pytest.mark.parametrize("solver", [name for name in bqp.METHODS if name not in ("exact", "branch_and_bound")])
def test_every_solver_learns_digits(solver):
    hasher = fitted(8, solver=solver, hash_function="linear_svm")
    assert mean_average_precision(hasher) > 0.5
    objectives = [hasher.inference_report_.start_objective, *hasher.inference_report_.objectives]
    assert objectives == sorted(objectives, reverse=True)


def test_a_solver_of_all_rows_starts_from_the_features_and_classes_agree_in_the_end():
    automatic, from_pca = fitted(6, solver="spectral"), fitted(6, solver="spectral", init="pca")
    np.testing.assert_array_equal(automatic.codes_, from_pca.codes_)
    report = automatic.inference_report_
    assert report.final_objective < report.objectives[-1]  # of rows of a class that differed
    assert all(np.ptp(automatic.codes_[Y[TRAIN] == label], axis=0).max() == 0 for label in range(10))


def test_thresholded_target_object_and_pairs():
    assert fitted(8, y=None, target=targets.ThresholdedDistance(0.05), hash_function="linear_svm").codes_.any()
    pairs = targets.Pairs(similar=[(0, 1), (2, 3)], dissimilar=[(0, 2)])
    codes = fitted(8, y=None, target=pairs, hash_function="linear_svm").codes_
    assert np.count_nonzero(codes[0] != codes[1]) < np.count_nonzero(codes[0] != codes[2])


def test_clone_pipeline_grid_search_and_set_output(supervised):
    assert clone(supervised).get_params() == supervised.get_params()
    pipeline = make_pipeline(PCA(20, random_state=0), TwoStepHasher(8, hash_function="linear_svm", random_state=0))
    assert pipeline.fit(X[TRAIN], Y[TRAIN]).transform(X[TEST]).shape == (300, 8)
    search = GridSearchCV(TwoStepHasher(hash_function="linear_svm", random_state=0), {"n_bits": [2, 12]}, cv=2)
    assert search.fit(X[TRAIN], Y[TRAIN]).best_params_ == {"n_bits": 12}
    pandas = pytest.importorskip("pandas")
    frame = clone(supervised).set_params(n_bits=3).set_output(transform="pandas")
    table = frame.fit(pandas.DataFrame(X[TRAIN], columns=[f"p{i}" for i in range(64)]), Y[TRAIN])
    assert list(table.feature_names_in_[:2]) == ["p0", "p1"]
    out = table.transform(pandas.DataFrame(X[TEST], columns=[f"p{i}" for i in range(64)]))
    assert list(out.columns) == ["twostephasher0", "twostephasher1", "twostephasher2"]


def test_score_prefers_better_codes(unsupervised):
    assert unsupervised.score(X[TEST]) > fitted(2, y=None, target="distance").score(X[TEST])
    assert 0.0 < unsupervised.score(X[TEST], Y[TEST]) <= 1.0


def test_progress_names_both_stages():
    heard = []
    fitted(4, hash_function="linear_svm", progress=lambda p: heard.append((p.stage, p.done, p.total)))
    assert {stage for stage, _, _ in heard} == {"target", "inference", "hash functions"}
    assert all(done <= total for _, done, total in heard)


@pytest.mark.parametrize(
    ("parameters", "rows", "y", "message"),
    [
        ({}, X[TRAIN], [None] * 400, "missing labels"),
        ({}, X[TRAIN], np.full((400, 2), 3), "0/1 indicators"),
        ({"n_bits": 2.5}, X[TRAIN], Y[TRAIN], "n_bits must be an integer from 1 to 4096"),
        ({"n_bits": 64}, X[:20], Y[:20], "n_bits=64 needs at least as many samples"),
        ({"n_sweeps": 0}, X[TRAIN], Y[TRAIN], "n_sweeps must be an integer of at least 1"),
        ({"target": "labels"}, X[TRAIN], None, "target 'labels' needs labels"),
        ({"target": "label"}, X[TRAIN], Y[TRAIN], "did you mean 'labels'"),
        ({"solver": "sdrr"}, X[TRAIN], Y[TRAIN], "did you mean 'sdr'"),
        ({"hash_function": "rbf-svm"}, X[TRAIN], Y[TRAIN], "did you mean 'rbf_svm'"),
        ({"init": "pac"}, X[TRAIN], Y[TRAIN], "did you mean 'pca'"),
    ],
)
def test_bad_input_is_told_what_is_wrong(parameters, rows, y, message):
    with pytest.raises(ValueError, match=message):
        TwoStepHasher(**{"n_bits": 8, "random_state": 0, **parameters}).fit(rows, y)


def test_non_finite_after_float16():
    with np.errstate(over="ignore"):
        halves = (X[TRAIN] * 1e5).astype(np.float16)
    with pytest.raises(ValueError, match="infinity"):
        TwoStepHasher(8).fit(halves, Y[TRAIN])


def test_auto_hash_function_is_recorded(monkeypatch, tmp_path):
    y = Y
    hasher = TwoStepHasher(4, n_sweeps=1, random_state=0).fit(X[:150], y[:150])
    assert hasher.hash_function == "auto"
    assert hasher.hash_function_ == KernelRidge()
    named = TwoStepHasher(4, n_sweeps=1, hash_function="kernel_ridge", random_state=0).fit(X[:150], y[:150])
    np.testing.assert_array_equal(hasher.encode(X), named.encode(X))
    monkeypatch.setattr(thresholds, "UNLABELED_GRAM_ROWS", 100)
    hasher.fit(X[:150])
    assert hasher.hash_function_ == KernelRidge(max_gram_rows=100, n_landmarks=1000)
    assert "150 Nyström landmarks because 150 rows are more than 100" in hasher.hash_functions_.description
    hasher.save(tmp_path / "model")
    assert load(tmp_path / "model").hash_function_ == hasher.hash_function_
    monkeypatch.setattr(thresholds, "LARGEST_KERNEL_ROWS", 149)
    assert hasher.fit(X[:150], y[:150]).hash_function_ == LinearRidge()
