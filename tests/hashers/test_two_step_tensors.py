"""TwoStepHasher, packing, search and metrics on tensors give what they give on arrays."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher, bits, load, metrics
from hashlearn.hash_functions import DistinctBits, KernelExpansion, LinearMargins
from hashlearn.search import HammingIndex, nearest_codes

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

X, y = load_digits(return_X_y=True)
X = X[:1200].astype(np.float32)
y = y[:1200]
T = torch.from_numpy(X)


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({"target": "distance"}, None),
        ({"target": "distance", "hash_function": "linear_svm"}, None),
        ({"target": "neighbors"}, None),
        ({"hash_function": "trees"}, y),
    ],
)
def test_fit_encode_save_load(options, labels, tmp_path):
    hasher = TwoStepHasher(11, n_sweeps=1, random_state=0, **options).fit(T, labels)
    packed = hasher.encode(T)
    assert packed.dtype == torch.uint8
    assert packed.shape == (1200, 2)
    np.testing.assert_array_equal(packed.numpy(), hasher.encode(X))
    np.testing.assert_array_equal(hasher.transform(T).numpy(), hasher.transform(X))
    assert hasher.decision_function(T).dtype == torch.float32
    assert hasher.decision_function(T.double()).dtype == torch.float64
    hasher.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").encode(T).numpy(), packed.numpy())


def test_fit_agrees_with_numpy():
    ours = TwoStepHasher(8, target="distance", n_sweeps=2, random_state=0).fit(T).inference_report_
    theirs = TwoStepHasher(8, target="distance", n_sweeps=2, random_state=0).fit(X).inference_report_
    assert ours.final_objective == pytest.approx(theirs.final_objective, rel=1e-4)


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (T.int(), TypeError, "float32 or float64"),
        (T.clone().requires_grad_(), ValueError, "must not require a gradient"),
        (T * float("nan"), ValueError, "must be finite"),
        (T[:, :5], ValueError, "expecting 64 features"),
    ],
)
def test_bad_tensors_are_named(bad, error, message):
    hasher = TwoStepHasher(4, target="distance", hash_function="linear_svm", n_sweeps=1, random_state=0).fit(T[:300])
    with pytest.raises(error, match=message):
        hasher.encode(bad)


@pytest.mark.parametrize("n_bits", [1, 7, 8, 13, 64])
def test_packed_bytes_are_numpys(n_bits):
    some = (torch.rand((40, n_bits), generator=torch.Generator().manual_seed(n_bits)) < 0.5).byte()
    np.testing.assert_array_equal(bits.pack_bits(some).numpy(), bits.pack_bits(some.numpy()))
    with pytest.raises(ValueError, match="only 0 and 1"):
        bits.pack_bits(2 * some + 3)


@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_repeated_and_constant_bits(kind):
    three = DistinctBits(np.array([0, 1]), np.array([0, 1, -1, 0]), np.array([1, 1, -1, -1], np.int8))
    rng = np.random.default_rng(0)
    if kind == "linear":
        functions = LinearMargins(rng.standard_normal((64, 2)), rng.standard_normal(2), three, "made up")
    else:
        functions = KernelExpansion(X[:20], 1e-3, rng.standard_normal((20, 2)), rng.standard_normal(2), three, "")
    margins = functions.decision_function(T)
    np.testing.assert_allclose(margins.numpy(), functions.decision_function(X), rtol=1e-3, atol=1e-3)


def test_search_and_metrics():
    codes = bits.pack_bits((T[:, ::3] > 4.0).byte())
    found, expected = nearest_codes(codes[:30], codes, 25), HammingIndex(22)
    expected.add(codes.numpy())
    wanted = expected.search(codes[:30].numpy(), 25)
    np.testing.assert_array_equal(found.indices.numpy(), wanted.indices)
    np.testing.assert_array_equal(found.distances.numpy(), wanted.distances)
    for metric, options in (
        (metrics.mean_average_precision, {}),
        (metrics.mean_average_precision, {"ties": "stable"}),
        (metrics.precision_within_radius, {"radius": 3}),
        (metrics.knn_accuracy, {"neighbors": 4}),
    ):
        arrays = metric(codes[:30].numpy(), codes.numpy(), y[:30], y, **options)
        assert metric(codes[:30], codes, torch.from_numpy(y[:30]), torch.from_numpy(y), **options) == arrays
    with pytest.raises(ValueError, match="equal width"):
        nearest_codes(codes[:, :1], codes, 3)
