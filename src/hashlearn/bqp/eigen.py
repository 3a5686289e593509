"""The smallest eigenpair of A, eq. (19), and its largest eigenvalue, Prop. 1, for every kind of operator.

Low rank: the non-zero eigenvalues of A = P diag(w) Pᵀ are those of a rank × rank matrix. So the Gram matrix PᵀP,
O(n · rank²), and a small dense problem give the pair up to rounding. Small problems, and dense ones with n ≤ 1000, go
to LAPACK. Everything else goes to restarted Lanczos: about a hundred products A @ v and a basis of 25 vectors.

SciPy's ARPACK is not used: its tolerance has an absolute floor, it returns nothing when it does not converge, and
before SciPy 1.17 its restarts used a hidden random state. SciPy's GMRES orthogonalizes and rotates in Python loops,
which for the systems of the semidefinite relaxation take three times as long as a product (some fifty microseconds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from hashlearn.bqp.operators import Operator, as_operator, diagonal_operator
from hashlearn.core.arrays import FloatArray, is_tensor, to_numpy
from hashlearn.core.checks import generator
from hashlearn.core.thresholds import DENSIFY_UP_TO, LAPACK_UP_TO
from hashlearn.linalg.gram import gram

BASIS, RESTARTED = 24, 8  # Lanczos vectors, and how many of them a restart begins with
MAX_PRODUCTS = 3000
RESIDUAL = 1e-7  # ‖Au − λu‖ / ‖A‖ at which Lanczos stops; the error of λ is of the order of its square
RESIDUAL_EVERY = 4  # steps of GMRES

CheckTime = Callable[[], Any]


def no_check() -> None:
    """Do nothing between two pieces of work."""


def smallest_eigenpair(
    A: Operator, rng: np.random.Generator, check_time: CheckTime = no_check
) -> tuple[float, FloatArray]:
    """λ_min(A) and a unit eigenvector, whose entry of largest magnitude is positive.

    The value is the Rayleigh quotient uᵀAu, so up to rounding it is never below λ_min. If Lanczos reaches its limit on
    products (a spectrum with almost no gap), the best pair so far is returned. ``check_time`` is called between pieces
    of work and may raise to stop.

    >>> from hashlearn.bqp import as_operator
    >>> value, u = smallest_eigenpair(as_operator([[0.0, 2.0], [2.0, 0.0]]), np.random.default_rng(0))
    >>> round(value, 12), u.round(3)
    (-2.0, array([ 0.707, -0.707]))
    """
    check_time()
    if A.is_low_rank and A.rank < A.n and A.rank <= LAPACK_UP_TO:
        value, u = _from_gram(A, rng, check_time)
    elif A.n <= (LAPACK_UP_TO if A.sparse is None else DENSIFY_UP_TO):
        value, u = _lapack(A)
    else:
        value, u = lanczos_eigenpair(A, rng, check_time)
    return value, (-u if u[np.argmax(np.abs(u))] < 0.0 else u)


def smallest_weighted_eigenpair(
    A: Operator, weights: FloatArray, rng: np.random.Generator, check_time: CheckTime = no_check
) -> tuple[float, FloatArray]:
    """The smallest λ of A x = λ Diag(weights) x, and its x scaled to xᵀ Diag(weights) x = Σ weights.

    λ is the largest number with A − λ Diag(weights) ⪰ 0; the weights must be positive.

    >>> from hashlearn.bqp import as_operator
    >>> A = as_operator([[0.0, 2.0], [2.0, 0.0]])
    >>> value, x = smallest_weighted_eigenpair(A, np.array([1.0, 4.0]), np.random.default_rng(0))
    >>> round(value, 12), x.round(3)
    (-1.0, array([ 1.581, -0.791]))
    """
    root = np.sqrt(weights)
    value, u = smallest_eigenpair(A.congruent(1.0 / root), rng, check_time)
    return value, np.sqrt(weights.sum()) * u / root


def largest_eigenvalue(A: Operator, rng: np.random.Generator, check_time: CheckTime = no_check) -> float:
    """λ₁ of Prop. 1, as −λ_min(−A).

    >>> from hashlearn.bqp import LowRank
    >>> round(largest_eigenvalue(LowRank([[3.0], [4.0]], [2.0]), np.random.default_rng(0)), 9)
    50.0
    """
    return 0.0 - smallest_eigenpair(A.scaled(-1.0), rng, check_time)[0]


def shift_to_negative_semidefinite(A: Any, random_state: Any = 0) -> tuple[Operator, float]:
    """Prop. 1: B = A − λ₁ I ⪯ 0, and λ₁, the largest eigenvalue; xᵀBx = xᵀAx − n λ₁ for all signs x.

    The λ₁ that is used and returned is larger than the computed one by 1e-7 · ‖A‖, the possible error of the iterative
    eigensolver. So B is negative semidefinite in floating point too.

    >>> B, top_eigenvalue = shift_to_negative_semidefinite([[0.0, 1.0], [1.0, 0.0]])
    >>> B.toarray().round(6), round(top_eigenvalue, 6)
    (array([[-1.,  1.],
           [ 1., -1.]]), 1.0)
    """
    A = as_operator(A)
    rng = generator(random_state)
    top = largest_eigenvalue(A, rng)
    norm = max(abs(top), abs(smallest_eigenpair(A, rng)[0]))
    top += RESIDUAL * norm
    return A + diagonal_operator(np.full(A.n, -top)), top


def _from_gram(A: Operator, rng: np.random.Generator, check_time: CheckTime) -> tuple[float, FloatArray]:
    """With PᵀP = RᵀR, the eigenvalues of R diag(w) Rᵀ are those of A but for n − rank zeros."""
    G = gram(A.P, check_time=check_time)
    norms = np.sqrt(G.diagonal())
    if not (norms > 0.0).any():  # rank 0, or columns so small that their squares vanish
        return 0.0, _unit(rng.standard_normal(A.n))
    # Columns of unit length, so that a large column with a small weight does not hide the others in rounding.
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0.0)
    weights = A.weights * norms * norms
    S, Q = scipy.linalg.eigh(G * inverse[:, None] * inverse)
    positive = 1e-13 * S[-1] < S
    S, Q = S[positive], Q[:, positive]
    R = np.sqrt(S)[:, None] * Q.T
    small = (R * weights) @ R.T
    value, y = scipy.linalg.eigh(0.5 * (small + small.T), subset_by_index=[0, 0])
    if value[0] < -1e-13 * np.abs(weights).max() * S[-1]:
        # u ∝ A u rather than u = P … S^(−1/2) y: no division by a small S.
        u = _unit(A.P @ (inverse * (weights * (R.T @ y[:, 0]))))
        return A.value(u), u
    # A has no negative eigenvalue. As n > rank, 0 is one: its eigenvectors are orthogonal to the columns of P.
    u = _unit(rng.standard_normal(A.n))
    for _ in range(3):
        u = _unit(u - A.P @ (inverse * (Q @ ((Q.T @ (inverse * (A.P.T @ u))) / S))))
    return A.value(u), u


def _lapack(A: Operator) -> tuple[float, FloatArray]:
    value, u = scipy.linalg.eigh(A.toarray(), subset_by_index=[0, 0])
    return float(value[0]), u[:, 0]


def lanczos_eigenpair(
    A: Operator, rng: np.random.Generator, check_time: CheckTime = no_check
) -> tuple[float, FloatArray]:
    """`smallest_eigenpair` by products alone, with restarts; ends when no more products are allowed, too."""
    space = Krylov(A.__matmul__, _unit(rng.standard_normal(A.n)), min(BASIS, A.n - 1))
    while True:
        space.extend(BASIS, check_time)
        _, vectors, residuals = space.ritz()
        if residuals[0] <= RESIDUAL * space.norm or space.products >= MAX_PRODUCTS:
            u = _unit(vectors[:, 0] @ space.basis)
            return A.value(u), u
        space.restart(RESTARTED)


class Krylov:
    """Lanczos with full reorthogonalization for a product with a symmetric matrix, of NumPy vectors or tensors.

    The rows of ``basis`` are orthonormal, and H is the matrix in that basis.
    """

    def __init__(self, product: Callable[[Any], Any], start: Any, most: int) -> None:
        self._product = product
        self._V: Any = (start.new_empty if is_tensor(start) else np.empty)((most + 1, len(start)))
        self._V[0] = start
        self._H = np.zeros((most, most))
        self.size, self.products, self.norm, self._beta = 0, 0, 0.0, np.inf

    @property
    def basis(self) -> Any:
        """The rows that were multiplied; one more is there for the next product."""
        return self._V[: self.size]

    @property
    def is_complete(self) -> bool:
        """Whether the basis is invariant, or as large as it may become."""
        return self.size == len(self._H) or self._beta <= 1e-13 * self.norm

    def extend(self, count: int, check_time: CheckTime = no_check) -> None:
        """At most ``count`` products, as many as the basis needs to be complete."""
        for _ in range(count):
            if self.is_complete:
                break
            check_time()
            j = self.size
            r = self._product(self._V[j])
            column = to_numpy(orthogonalize(r, self._V[: j + 1]))
            self._H[: j + 1, j] = self._H[j, : j + 1] = column
            self._beta = float(r @ r) ** 0.5
            self.norm = max(self.norm, float(np.linalg.norm(column)), self._beta)
            self.size, self.products = j + 1, self.products + 1
            self._V[j + 1] = r / max(self._beta, 1e-300)

    def ritz(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Ritz values in ascending order, their vectors in the basis (columns), and the norms of their residuals."""
        values, vectors = scipy.linalg.eigh(self._H[: self.size, : self.size])
        return values, vectors, self._beta * np.abs(vectors[-1])

    def restart(self, count: int) -> None:
        """Go on from the first ``count`` Ritz vectors (Wu and Simon 2000)."""
        values, vectors, _ = self.ritz()
        count = min(count, self.size - 1)
        self._V[count], self._V[:count] = self._V[self.size].copy(), vectors[:, :count].T @ self.basis
        self._H[:] = 0.0
        self._H[range(count), range(count)] = values[:count]
        self.size = count


def _unit(v: FloatArray) -> FloatArray:
    v = v / np.abs(v).max()  # the squares of very large or small entries stay in float64's range
    return v / np.linalg.norm(v)


def orthogonalize(v: Any, basis: Any) -> Any:
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
    basis, H = np.empty((max_steps + 1, right.size)), np.zeros((max_steps + 1, max_steps))
    basis[0] = right / size
    target = size * np.eye(1, max_steps + 1)[0]
    for step in range(1, max_steps + 1):
        new = product(basis[step - 1] if precondition is None else precondition(basis[step - 1]))
        H[:step, step - 1] = orthogonalize(new, basis[:step])
        H[step, step - 1] = length = float(np.linalg.norm(new))
        exhausted = length <= 1e-14 * float(np.linalg.norm(H[: step + 1, step - 1]))
        if step % RESIDUAL_EVERY == 0 or step == max_steps or exhausted:
            small = H[: step + 1, :step]
            weights = np.asarray(np.linalg.lstsq(small, target[: step + 1], rcond=None)[0], dtype=np.float64)
            if exhausted or float(np.linalg.norm(small @ weights - target[: step + 1])) <= accuracy * size:
                break
        basis[step] = new / length
    x = weights @ basis[: len(weights)]
    return x if precondition is None else precondition(x)
