"""Krylov methods: orthogonalization against a basis, and GMRES for small systems.

SciPy's `gmres` orthogonalizes and rotates in Python loops. For the systems of the semidefinite relaxation, these take
three times as long as a product, which costs some fifty microseconds. Here both are matrix products, and every few
steps one small least-squares problem is solved. There are no restarts: the systems need a few dozen steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hashlearn.core.arrays import FloatArray

RESIDUAL_EVERY = 4  # steps


def orthogonalize(v: FloatArray, basis: FloatArray) -> FloatArray:
    """Make v orthogonal to the rows of ``basis`` (orthonormal), in place; returns its coefficients in them.

    The projection is subtracted twice, which makes v orthogonal up to rounding.

    >>> v = np.array([3.0, 4.0])
    >>> orthogonalize(v, np.array([[1.0, 0.0]])), v
    (array([3.]), array([0., 4.]))
    """
    first = basis @ v
    v -= first @ basis
    second = basis @ v
    v -= second @ basis
    return first + second


def gmres(
    product: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    accuracy: float,
    max_steps: int,
    precondition: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """x with ‖product(x) − right‖ ≤ accuracy · ‖right‖, or the best of ``max_steps`` steps from 0.

    >>> A = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> gmres(A.__matmul__, np.array([3.0, 3.0]), 1e-12, 2).round(9)
    array([1., 1.])
    """
    size = float(np.linalg.norm(right))
    if size == 0.0:
        return np.zeros_like(right)
    basis = np.empty((max_steps + 1, right.size))
    H = np.zeros((max_steps + 1, max_steps))
    basis[0] = right / size
    target = np.zeros(max_steps + 1)
    target[0] = size
    weights: FloatArray = np.zeros(0)
    for step in range(1, max_steps + 1):
        direction = basis[step - 1] if precondition is None else precondition(basis[step - 1])
        new = product(direction)
        H[:step, step - 1] = orthogonalize(new, basis[:step])
        length = float(np.linalg.norm(new))
        H[step, step - 1] = length
        exhausted = length <= 1e-14 * float(np.linalg.norm(H[: step + 1, step - 1]))
        if step % RESIDUAL_EVERY == 0 or step == max_steps or exhausted:
            small = H[: step + 1, :step]
            weights = np.asarray(np.linalg.lstsq(small, target[: step + 1], rcond=None)[0], dtype=np.float64)
            if exhausted or float(np.linalg.norm(small @ weights - target[: step + 1])) <= accuracy * size:
                break
        basis[step] = new / length
    x = weights @ basis[: len(weights)]
    return x if precondition is None else precondition(x)
