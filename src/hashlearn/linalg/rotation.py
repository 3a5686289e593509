"""Signs of rotated rows, and the rotation of iterative quantization (Gong and Lazebnik, CVPR 2011).

Rows are NumPy arrays or PyTorch tensors; the rotation is a float64 NumPy array. O(n · n_bits²) for each iteration.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray, is_tensor, tensor_like, to_float64

ITERATIONS = 50


def signs_of_product(V: Any, R: FloatArray) -> Any:
    """sgn(V R) as ±1 in the dtype of V; sgn(0) = +1.

    >>> signs_of_product(np.array([[2.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]]))
    array([[ 1., -1.]])
    """
    if not is_tensor(V):
        return np.where(V @ R < 0.0, -1.0, 1.0)
    import torch

    return torch.where(V @ tensor_like(R, V) < 0.0, -1.0, 1.0).to(V.dtype)


def random_rotation(n_bits: int, rng: np.random.Generator) -> FloatArray:
    """An orthogonal matrix, where `itq_rotation` begins."""
    return np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0]


def itq_rotation(V: Any, R: FloatArray, n_iter: int = ITERATIONS) -> tuple[FloatArray, list[float]]:
    """An orthogonal R that makes the quantization error ‖sgn(VR) − VR‖² small, and that error after each iteration.

    It begins from the R given, whose error is the first. Each iteration takes the signs B = sgn(VR) and then the R
    nearest to them (orthogonal Procrustes: VᵀB = UΣWᵀ, R = UWᵀ); neither step can raise the error.

    >>> start = random_rotation(2, np.random.default_rng(0))
    >>> R, errors = itq_rotation(np.array([[2.0, 0.0], [0.0, 2.0]]), start)
    >>> round(errors[-1], 6)
    0.686292
    """
    n, n_bits = V.shape
    squares = (V * V).sum()
    constant = n * n_bits + float(squares)
    products, size = _quantized(V, R)
    errors = [constant - 2.0 * size]
    for _ in range(n_iter):
        U, _, Wt = np.linalg.svd(products)
        R = U @ Wt
        products, size = _quantized(V, R)
        errors.append(constant - 2.0 * size)
    return R, errors


def _quantized(V: Any, R: FloatArray) -> tuple[FloatArray, float]:
    """Vᵀ sgn(V R) and the sum of |V R|."""
    if not is_tensor(V):
        rotated = V @ R
        products = V.T @ np.where(rotated < 0.0, -1.0, 1.0)
        return products, float(np.vdot(R, products))
    import torch

    from hashlearn.linalg.tensors import block_products

    rotated = V @ tensor_like(R, V)
    signs = torch.where(rotated < 0.0, -1.0, 1.0).to(V.dtype)
    return to_float64(block_products(V, signs)), float(rotated.abs().sum(dtype=torch.float64))
