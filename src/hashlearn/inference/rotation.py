"""The rotation of iterative quantisation (Gong and Lazebnik, CVPR 2011): O(n · n_bits² ) for each iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.bqp.operators import FloatArray
from hashlearn.bqp.passes import rows_of

ITERATIONS = 50


def itq_rotation(V: Any, rng: np.random.Generator, n_iter: int = ITERATIONS) -> tuple[FloatArray, list[float]]:
    """R orthogonal that makes the quantisation error ‖sgn(VR) − VR‖² small, and that error before each iteration and
    after the last.

    From a random rotation, signs B = sgn(VR) and then the R nearest to them (orthogonal Procrustes: VᵀB = UΣWᵀ,
    R = UWᵀ); neither step can raise ‖B − VR‖².

    >>> R, errors = itq_rotation(np.array([[2.0, 0.0], [0.0, 2.0]]), np.random.default_rng(0))
    >>> round(errors[-1], 6)
    0.686292
    """
    rows = rows_of(V)
    n_bits = rows.rank
    R = np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0]
    constant = rows.n * n_bits + float(np.trace(rows.gram()))
    pull, size = rows.quantised(R)
    errors = [constant - 2.0 * size]
    for _ in range(n_iter):
        U, _, Wt = np.linalg.svd(pull)
        R = U @ Wt
        pull, size = rows.quantised(R)
        errors.append(constant - 2.0 * size)
    return R, errors
