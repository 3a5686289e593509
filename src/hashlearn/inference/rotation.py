"""The rotation of iterative quantisation (Gong and Lazebnik, CVPR 2011): O(n · n_bits² ) for each iteration."""

from __future__ import annotations

import numpy as np

from hashlearn.bqp.operators import FloatArray
from hashlearn.bqp.spectral import sign

ITERATIONS = 50


def itq_rotation(V: FloatArray, rng: np.random.Generator, n_iter: int = ITERATIONS) -> tuple[FloatArray, list[float]]:
    """R orthogonal that makes the quantisation error ‖sgn(VR) − VR‖² small, and that error before each iteration and
    after the last.

    From a random rotation, signs B = sgn(VR) and then the R nearest to them (orthogonal Procrustes: VᵀB = UΣWᵀ,
    R = UWᵀ); neither step can raise ‖B − VR‖².

    >>> R, errors = itq_rotation(np.array([[2.0, 0.0], [0.0, 2.0]]), np.random.default_rng(0))
    >>> round(errors[-1], 6)
    0.686292
    """
    n_bits = V.shape[1]
    R = np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0]
    constant = V.size + float(np.square(V).sum())
    rotated = V @ R
    errors = [constant - 2.0 * float(np.abs(rotated).sum())]
    for _ in range(n_iter):
        U, _, Wt = np.linalg.svd(V.T @ sign(rotated))
        R = U @ Wt
        rotated = V @ R
        errors.append(constant - 2.0 * float(np.abs(rotated).sum()))
    return R, errors
