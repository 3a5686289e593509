"""NMF and ALM hashing: their updates equal those with n × n matrices, and their objectives fall."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_digits

from hashlearn import targets
from hashlearn.hashers.baselines.nmf_hashing import ALMHashing, AuxiliaryMatrix, NMFHashing, update_log_ratio
from hashlearn.inference import start_codes
from hashlearn.inference.objective import objective

X, Y = load_digits(return_X_y=True)
SMALL = X[:60]


@pytest.fixture(scope="module")
def similarity():
    return targets.Distance().build(SMALL, None, np.random.default_rng(0))


@pytest.fixture(scope="module")
def signs():
    return np.random.default_rng(1).uniform(-0.9, 0.9, (60, 5))


def hamming(Z):
    """Eq. (23)'s Z1ᵀ + 1Zᵀ − 2ZZᵀ, summed over bits."""
    return Z.sum(axis=1)[:, None] + Z.sum(axis=1) - 2.0 * Z @ Z.T


def log_ratio(similarity, signs):
    return update_log_ratio(signs, similarity @ signs, similarity @ np.ones(60))


def test_multiplicative_update_is_that_of_the_factorisation(similarity, signs):
    S, Z = 5 * (1.0 - similarity.toarray()) / 2.0, (1.0 + signs) / 2.0
    D, W = hamming(Z), 1.0 - Z
    np.testing.assert_allclose(D, Z @ W.T + W @ Z.T, atol=1e-12)
    P, Q = S @ W + D @ Z, D @ W + S @ Z
    np.testing.assert_allclose(log_ratio(similarity, signs), np.log(P / Q), atol=1e-9)


def test_update_follows_the_gradient(similarity, signs):
    S = 5 * (1.0 - similarity.toarray()) / 2.0

    def loss(flat):
        return np.sum((S - hamming(flat.reshape(60, 5))) ** 2)

    slope = approx_fprime(((1.0 + signs) / 2.0).ravel(), loss, 1e-6).reshape(60, 5)
    ratio = log_ratio(similarity, signs)
    clear = np.abs(slope) > 1e-2 * np.abs(slope).max()
    np.testing.assert_array_equal(np.sign(ratio[clear]), -np.sign(slope[clear]))


def test_auxiliary_matrix_is_that_of_the_augmented_lagrangian(similarity, signs):
    """Eq. (23) with its n × n matrices, distances in place of inner products, against the coefficients."""
    n_bits, state = 5, AuxiliaryMatrix(similarity, 5)
    S = n_bits * (1.0 - similarity.toarray()) / 2.0
    multipliers, penalty = np.zeros((60, 60)), 0.5
    for turn in range(4):
        D = (n_bits - np.roll(signs, turn, axis=0) @ np.roll(signs, turn, axis=0).T) / 2.0
        state.meet(np.roll(signs, turn, axis=0), penalty)
        auxiliary = (2.0 * S - multipliers + penalty * D) / (2.0 + penalty)
        multipliers = multipliers + penalty * (auxiliary - D)
        penalty *= 3.0
        attractor = n_bits - 2.0 * (auxiliary + multipliers / penalty)
        np.testing.assert_allclose(state.attractor(penalty, np.eye(60)), attractor, atol=1e-9)


def test_nmf_falls_to_what_a_bounded_minimiser_finds():
    values = NMFHashing(8, random_state=0).fit(X[:80]).objectives_
    assert (np.diff(values) <= 0.0).all()
    wanted = targets.Distance().build(X[:80], None, np.random.default_rng(0)).toarray()

    def value_and_slope(flat):
        s = flat.reshape(80, 8)
        residual = s @ s.T / 8 - wanted
        return np.mean(residual**2), (4.0 * residual @ s / 8 / residual.size).ravel()

    start = 0.9 * start_codes("pca", X[:80], 8, np.random.default_rng(0))
    options = {"maxiter": 100, "ftol": 1e-10, "gtol": 1e-10}
    bounds = [(-1.0, 1.0)] * start.size
    found = minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert value_and_slope(start.ravel())[0] == pytest.approx(values[0])
    assert values[-1] < found.fun + 0.05 * (values[0] - found.fun)


@pytest.mark.parametrize("kind", [NMFHashing, ALMHashing])
def test_rounded_codes_are_better_than_their_start_and_predicted(kind):
    hasher = kind(16, random_state=0).fit(X[:500])
    Y = targets.Distance().build(X[:500], None, np.random.default_rng(0))
    start = start_codes("pca", X[:500], 16, np.random.default_rng(0))
    assert objective(Y, hasher.codes_.astype(float)) < 0.9 * objective(Y, start)
    assert np.mean((hasher.transform(X[:500]) > 0) == (hasher.codes_ > 0)) > 0.9


@pytest.mark.parametrize("kind", [NMFHashing, ALMHashing])
def test_other_targets_and_hash_functions(kind):
    hasher = kind(8, target="thresholded_distance", hash_function="rbf_svm", init="itq", random_state=0).fit(X[:300])
    assert hasher.encode(X[:10]).shape == (10, 1)
    similarity = np.where(Y[:300, None] == Y[:300], 1.0, -1.0)
    codes = kind(8, target=similarity, random_state=0).fit(X[:300]).codes_.astype(int)
    products = codes @ codes.T
    assert products[similarity > 0].mean() > products[similarity < 0].mean() + 4


@pytest.mark.parametrize("kind", [NMFHashing, ALMHashing])
def test_labels_are_refused_as_a_target(kind):
    with pytest.raises(ValueError, match=r"needs labels, and .* is unsupervised"):
        kind(8, target="labels").fit(X[:100], Y[:100])
