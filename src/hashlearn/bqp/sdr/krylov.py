"""Right-preconditioned GMRES for the small systems of `compressed`, where a product costs some fifty microseconds.

SciPy's `gmres` orthogonalises and rotates in Python loops that take three times as long as such a product; here both
are matrix products and one small least-squares problem now and then. No restarts: the systems need a few dozen steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hashlearn.core.arrays import FloatArray

LOOK_EVERY = 4  # steps between two looks at the residual


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
        known = basis[:step]
        for _ in range(2):  # orthogonal to all before, twice is enough
            shares = known @ new
            new -= shares @ known
            H[:step, step - 1] += shares
        length = float(np.linalg.norm(new))
        H[step, step - 1] = length
        exhausted = length <= 1e-14 * float(np.linalg.norm(H[: step + 1, step - 1]))
        if step % LOOK_EVERY == 0 or step == max_steps or exhausted:
            small = H[: step + 1, :step]
            weights = np.asarray(np.linalg.lstsq(small, target[: step + 1], rcond=None)[0], dtype=np.float64)
            if exhausted or float(np.linalg.norm(small @ weights - target[: step + 1])) <= accuracy * size:
                break
        basis[step] = new / length
    x = weights @ basis[: len(weights)]
    return x if precondition is None else precondition(x)
