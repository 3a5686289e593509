"""LSH: the collision law."""

import numpy as np
import pytest

from hashlearn.hashers.baselines.lsh import LSH

N_BITS = 4096


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.0, np.pi / 2, 3.0])
def test_bits_agree_with_probability_one_minus_angle_over_pi(angle):
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.standard_normal((20, 2)))[0].T
    pair = np.stack([3.0 * u, 0.5 * (np.cos(angle) * u + np.sin(angle) * v)])
    found = LSH(N_BITS, center=False, random_state=1).fit(pair).transform(pair)
    expected = 1.0 - angle / np.pi
    deviation = np.sqrt(expected * (1.0 - expected) / N_BITS)
    assert abs(np.mean(found[0] == found[1]) - expected) < 4.0 * deviation


def test_angles_are_seen_from_the_mean():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 5))
    near = LSH(64, random_state=0).fit(X).transform(X)
    far = LSH(64, random_state=0).fit(X + 1000.0).transform(X + 1000.0)
    np.testing.assert_array_equal(far, near)
    assert 0.4 < near.mean() < 0.6
    assert set(LSH(64, center=False, random_state=0).fit(X + 1000.0).transform(X + 1000.0).mean(axis=0)) <= {0.0, 1.0}
