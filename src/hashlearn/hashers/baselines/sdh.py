"""SDH, supervised discrete hashing (Shen et al. 2015): discrete codes from which labels are regressed.

O(n · n_anchors) memory; a round costs O(n · n_anchors · n_bits) for the hash functions and O(n · n_bits²) for a pass
over the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.labels import label_indicators
from hashlearn.core.threads import map_row_blocks, one_blas_thread
from hashlearn.hash_functions.kernels import AnchorKernel, anchor_kernel
from hashlearn.hashers.base import BaseHasher

PASSES = 10
ROUNDING = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class SDH(BaseHasher):
    """Learns codes B, a classifier W of labels from codes, and kernel hash functions F, in turn. It minimizes

        ‖Y − BW‖² + regularization · ‖W‖² + fidelity · (‖B − F(X)‖² + smoothness · ‖P‖²),   F(x) = Pᵀk(x) + c.

    W and F are least squares. B is solved bit by bit, each bit exactly given the others (discrete cyclic coordinate
    descent). No step can raise the objective.

    Parameters
    ----------
    n_bits : code length
    n_anchors : rows drawn as anchors of the kernel
    gamma : of the kernel exp(−γ‖x − a‖²): "neighbors" (see `hash_functions.kernels`), "mean", "scale" or
        a positive number
    regularization, fidelity, smoothness : λ and ν of the paper, and a ridge on the hash functions
    max_iter : rounds over B, W and F; fewer if a round changes no code
    random_state : seed or Generator, for anchors and start codes

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the codes B of the training samples
    objectives_ : the objective at the start and after every step of every round, in the order B, W, F
    n_iter_ : rounds done
    hash_functions_ : the fitted functions

    Deviations
    ----------
    The paper's hash functions are plain least squares; the ridge keeps them finite if anchors nearly coincide.

    References
    ----------
    F. Shen, C. Shen, W. Liu, H. T. Shen: Supervised discrete hashing. CVPR 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from hashlearn.hashers.baselines.sdh import SDH
    >>> X, y = load_digits(return_X_y=True)
    >>> hasher = SDH(n_bits=16, random_state=0).fit(X[:500], y[:500])
    >>> hasher.objectives_[-1] < hasher.objectives_[0]
    True
    """

    _needs_labels = True

    n_anchors: int = 1000
    gamma: float | str = "neighbors"
    regularization: float = 1.0
    fidelity: float = 1e-5
    smoothness: float = 1e-2
    max_iter: int = 5

    def fit(self, X: Any, y: Any = None) -> SDH:
        """Learn from labels (n,) or 0/1 indicators (n, n_labels)."""
        X, labels = self._training(X, y)
        self._require_whole("n_anchors", "max_iter")
        self._require_positive("regularization", "fidelity", "smoothness")
        rng = generator(self.random_state)
        with one_blas_thread():
            kernel = anchor_kernel(X, self.n_anchors, self.gamma, rng)
            codes, P, c = self._alternate(kernel, label_indicators(labels), rng)
        self.codes_ = codes.astype(np.int8)
        self.hash_functions_ = kernel.functions(P, c, "SDH")
        return self

    def _alternate(
        self, kernel: AnchorKernel, Y: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        factor = cho_factor(kernel.gram(ridge=self.smoothness), lower=True, overwrite_a=True)

        def functions(B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            P, c = cho_solve(factor, kernel.moment(B)), B.mean(axis=0)  # k(x) has mean 0, so c is the mean of B
            return P, c, kernel.project(P) + c

        def objective(B: FloatArray, W: FloatArray, P: FloatArray, F: FloatArray) -> float:
            labels = np.square(Y - B @ W).sum() + self.regularization * np.square(W).sum()
            return float(labels + self.fidelity * (np.square(B - F).sum() + self.smoothness * np.square(P).sum()))

        B = np.where(rng.random((kernel.n, self.n_bits)) < 0.5, -1.0, 1.0)
        W = _ridge(B, Y, self.regularization)
        P, c, F = functions(B)
        self.objectives_ = [objective(B, W, P, F)]
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            changed = cyclic_descent(B, W @ W.T, Y @ W.T + self.fidelity * F)
            self.objectives_.append(objective(B, W, P, F))
            W = _ridge(B, Y, self.regularization)
            self.objectives_.append(objective(B, W, P, F))
            P, c, F = functions(B)
            self.objectives_.append(objective(B, W, P, F))
            if not changed:
                break
        return B, P, c


def cyclic_descent(B: FloatArray, G: FloatArray, Q: FloatArray, passes: int = PASSES) -> bool:
    """Lower trace(BGBᵀ) − 2 trace(BQᵀ) over signs, one column of B at a time and in place; whether anything changed.

    Column b is exact given the others: sgn(q_b − Σ_{a ≠ b} G_ab B_a); a sign stays if this is 0 up to rounding. Rows
    do not depend on each other, so blocks of rows are solved on all cores.

    >>> B = np.array([[1.0, 1.0]])
    >>> cyclic_descent(B, np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([[0.5, 0.1]])), B
    (True, array([[-1.,  1.]]))
    """

    def descend(first: int, last: int) -> bool:
        signs = B[first:last]
        rest = Q[first:last] - signs @ G
        changed = False
        for _ in range(passes):
            n_flips = 0
            for b in range(B.shape[1]):
                flips = np.flatnonzero(rest[:, b] * signs[:, b] < -(1.0 + ROUNDING) * G[b, b])
                signs[flips, b] *= -1.0
                rest[flips] -= 2.0 * np.outer(signs[flips, b], G[b])
                n_flips += len(flips)
            if n_flips == 0:
                break
            changed = True
        return changed

    return any(map_row_blocks(descend, *B.shape))


def _ridge(B: FloatArray, Y: FloatArray, regularization: float) -> FloatArray:
    """W that minimizes ‖Y − BW‖² + regularization · ‖W‖²."""
    gram = B.T @ B + regularization * np.eye(B.shape[1])
    return cho_solve(cho_factor(gram, lower=True), B.T @ Y)
