"""ITQ: its steps lower one error, and the projection keeps what PCA keeps."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from hashlearn.hashers.baselines.itq import ITQ

X, _ = load_digits(return_X_y=True)


def quantization_error(hasher, rows):
    """Mean ‖B − VR‖²."""
    margins = hasher.decision_function(rows) / rows.max()
    return np.mean(np.sum((np.where(margins >= 0, 1, -1) - margins) ** 2, axis=1))


@pytest.mark.parametrize("n_bits", [1, 8, 32, 100])
def test_the_quantization_error_never_rises(n_bits):
    errors = [quantization_error(ITQ(n_bits, n_iter=n, random_state=0).fit(X), X) for n in (0, 1, 2, 5, 50)]
    assert (np.diff(errors) <= 1e-9 * errors[0]).all()


def test_margins_are_a_rotation_of_the_principal_components():
    margins = ITQ(6, random_state=0).fit(X).decision_function(X)
    scores = PCA(6).fit_transform(X)
    np.testing.assert_allclose(margins @ margins.T, scores @ scores.T, atol=1e-6 * np.abs(scores).max() ** 2)


def test_more_bits_than_features_keep_all_distances():
    narrow = X[:200, 18:22]
    margins = ITQ(10, random_state=0).fit(narrow).decision_function(narrow)
    centered = narrow - narrow.mean(axis=0)
    np.testing.assert_allclose(margins @ margins.T, centered @ centered.T, atol=1e-8 * np.abs(centered).max() ** 2)


def test_a_rotated_cube_is_found():
    rng = np.random.default_rng(0)
    corners = np.where(rng.random((400, 4)) < 0.5, -1.0, 1.0)
    turned = (corners + 0.05 * rng.standard_normal(corners.shape)) @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    hashers = [ITQ(4, random_state=seed).fit(turned) for seed in range(5)]
    best = min(hashers, key=lambda hasher: quantization_error(hasher, turned))
    codes, cells = best.encode(turned).ravel(), (corners > 0) @ [8, 4, 2, 1]
    assert len(set(zip(codes, cells, strict=True))) == 16  # one code for each corner


def test_as_many_samples_as_bits_are_enough_and_one_less_is_not():
    assert ITQ(20, random_state=0).fit(X[:20]).transform(X[:3]).shape == (3, 20)
    with pytest.raises(ValueError, match="n_bits=20 needs at least as many samples to learn from, got n_samples=19"):
        ITQ(20, random_state=0).fit(X[:19])


def test_unknown_number_of_steps():
    with pytest.raises(ValueError, match="n_iter must be an integer of at least 0"):
        ITQ(4, n_iter=-1).fit(X)
