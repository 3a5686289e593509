"""KSH, supervised hashing with kernels (Liu et al. 2012): bits one by one, each fitted to the residual of earlier bits.

O(n · n_anchors) memory; a bit costs O(n_anchors³) for its start and O(n · n_anchors) for each gradient step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from hashlearn import bqp
from hashlearn.bqp.methods.spectral import sign
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.kernels import AnchorKernel, anchor_kernel
from hashlearn.hashers.base import BaseHasher
from hashlearn.targets import as_target

JITTER = 1e-10
STEP_HALVINGS = 60


@dataclass(eq=False, repr=False, kw_only=True)
class KSH(BaseHasher):
    """Kernel hash functions h(x) = sgn(aᵀk(x)) on anchors, greedily fitted so that Σ_b h_b h_bᵀ ≈ n_bits · Y.

    With R the residual n_bits · Y − Σ_{earlier bits} hhᵀ, bit b maximizes hᵀRh: first without the signs (the largest
    generalized eigenvector of KᵀRK and KᵀK), then with a sigmoid in their place, by accelerated gradient steps. The
    second is used if its signs are better.

    Parameters
    ----------
    n_bits : code length
    n_anchors : rows drawn as anchors
    gamma : of the kernel exp(−γ‖x − a‖²): "mean" (1 / (2 · mean squared distance), the authors'), "neighbors",
        "scale", or a positive number
    max_iter : gradient steps for a bit, at most
    tol : relative change of the smoothed objective that ends them
    random_state : seed or Generator, for the anchors

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), codes of the training samples
    n_iter_ : gradient steps of the bit that took most
    hash_functions_ : the fitted functions

    Deviations
    ----------
    Y is used through its low-rank factor, so that all training samples can have labels and no n × n matrix exists. The
    results are the same.

    References
    ----------
    W. Liu, J. Wang, R. Ji, Y.-G. Jiang, S.-F. Chang: Supervised hashing with kernels. CVPR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.ksh import KSH
    >>> X, y = load_digits(return_X_y=True)
    >>> KSH(n_bits=8, random_state=0).fit(X[:500], y[:500]).encode(X[:2]).shape
    (2, 1)
    """

    _needs_labels = True

    n_anchors: int = 300
    gamma: float | str = "mean"
    max_iter: int = 500
    tol: float = 3e-4

    def fit(self, X: Any, y: Any = None) -> KSH:
        """Learn from labels (n,) or 0/1 indicators (n, n_labels)."""
        X, labels = self._training(X, y)
        self._require_whole("n_anchors", "max_iter")
        self._require_positive("tol")
        rng = generator(self.random_state)
        with one_blas_thread():
            target = as_target("auto", labels).build(X, labels, rng)
            kernel = anchor_kernel(X, self.n_anchors, self.gamma, rng)
            coefficients, codes = self._greedy(kernel, target)
        self.codes_ = codes.astype(np.int8)
        self.hash_functions_ = kernel.functions(coefficients, 0.0, "KSH")
        return self

    def _greedy(self, kernel: AnchorKernel, target: bqp.Operator) -> tuple[FloatArray, FloatArray]:
        n, n_bits = kernel.n, self.n_bits
        coefficients, codes, self.n_iter_ = np.empty((kernel.m, n_bits)), np.zeros((n, n_bits)), 0
        gram = kernel.gram()
        gram[np.diag_indices_from(gram)] += JITTER * max(float(gram.diagonal().max()), 1e-300)
        between = n_bits * kernel.moment(target @ kernel.values)
        for b in range(n_bits):
            earlier = codes[:, :b]

            def residual(v: FloatArray, earlier: FloatArray = earlier) -> FloatArray:
                return n_bits * (target @ v) - earlier @ (earlier.T @ v)

            start = _spectral(between, gram, n)
            smooth, steps = _ascend(kernel, residual, start, self.max_iter, self.tol)
            self.n_iter_ = max(self.n_iter_, steps)
            candidates = [(a, sign(kernel.project(a))) for a in (start, smooth)]
            coefficients[:, b], codes[:, b] = max(candidates, key=lambda pair: float(pair[1] @ residual(pair[1])))
            moment = kernel.moment(codes[:, b])
            between -= np.outer(moment, moment)
        return coefficients, codes


def _spectral(between: FloatArray, gram: FloatArray, n: int) -> FloatArray:
    """a that maximizes aᵀ(KᵀRK)a over ‖Ka‖² = n; its largest entry is positive."""
    m = len(gram)
    if not gram.any():
        return np.zeros(m)
    a = eigh(0.5 * (between + between.T), gram, subset_by_index=[m - 1, m - 1])[1][:, 0]
    a *= np.sqrt(n / (a @ gram @ a))
    return a if a[np.abs(a).argmax()] > 0.0 else -a


def _ascend(
    kernel: AnchorKernel, residual: Callable[[FloatArray], FloatArray], start: FloatArray, max_iter: int, tol: float
) -> tuple[FloatArray, int]:
    """Nesterov's accelerated steps, with backtracking, on −φᵀRφ for φ = tanh(Ka / 2), a smooth sgn(Ka).

    Every point a is stored with Ka, which is linear in a: a step costs two passes over K, even if it is shortened.
    """

    def value_and_slope(Ka: FloatArray) -> tuple[float, FloatArray]:
        phi = np.tanh(0.5 * Ka)
        R_phi = residual(phi)
        return -float(phi @ R_phi), R_phi * (1.0 - phi * phi)

    now = previous = (start, kernel.project(start))
    last = value_and_slope(now[1])[0]
    momentum, next_momentum, curvature, n_iter = 1.0, 1.0, 1.0, 0
    while n_iter < max_iter:
        n_iter += 1
        inertia = (momentum - 1.0) / next_momentum
        a, Ka = (new + inertia * (new - old) for new, old in zip(now, previous, strict=True))
        value, slope = value_and_slope(Ka)
        direction = kernel.moment(slope)  # minus the gradient
        K_direction, square = kernel.project(direction), float(direction @ direction)
        for _ in range(STEP_HALVINGS):
            K_new = Ka + K_direction / curvature
            new_value = value_and_slope(K_new)[0]
            if new_value <= value - 0.5 * square / curvature:
                break
            curvature *= 2.0
        else:
            break
        previous, now = now, (a + direction / curvature, K_new)
        if abs(new_value - last) <= tol * abs(new_value):
            break
        last = new_value
        momentum, next_momentum = next_momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * next_momentum**2))
    return now[0], n_iter
