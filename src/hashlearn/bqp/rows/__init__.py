"""Passes over the rows of P (n × rank): everything that solvers of low-rank problems compute with n rows.

`Rows` are those of a C-contiguous float64 NumPy array: BLAS on blocks of rows in several threads, and a compiled pass.
``torch_rows`` has what differs for tensors.

Small matrices (B, T, normals, Gram matrices) are float64 NumPy arrays in every call, so each algorithm is written once.
Arrays with n entries or n rows (norms, signs, unit rows) have the type of P and stay on its device. Solvers hand them
on without reading them. Every method is one pass over blocks of rows: a sum in a fixed order, or one result for each
row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import EPS, FloatArray, is_tensor, to_float64
from hashlearn.core.checks import finite_float64, signs
from hashlearn.core.threads import block_rows, iter_row_blocks
from hashlearn.core.thresholds import THREADED_PRODUCT
from hashlearn.linalg.gram import gram

Array: TypeAlias = Any  # an n-vector or n × k array of the type that P has

TINY = 1e-300
# Rows that one coordinate step takes together. The step is exact: it uses the 16 × 16 block of A between them.
STEP_ROWS = 16


def rows_of(P: Any) -> Rows:
    """`Rows` of a NumPy array or a tensor; a `Rows` object is returned as it is."""
    if isinstance(P, Rows):
        return P
    if not is_tensor(P):
        return Rows(P)
    from hashlearn.bqp.rows.torch_rows import TorchRows

    return TorchRows(P)


def checked_matrix(P: Any, name: str) -> Any:
    """P as `rows_of` needs it: a `Rows` object, a finite float tensor, or a finite C-contiguous float64 array."""
    if isinstance(P, Rows):
        return P
    if is_tensor(P):
        from hashlearn.linalg.tensors import checked_tensor

        return checked_tensor(P, name, ndim=2)
    return np.ascontiguousarray(finite_float64(P, name, ndim=2))


class ProofGram(NamedTuple):
    """PᵀD⁻¹P for a proof, on the host or on a device, and what is known about its rounding."""

    gram: Any  # rank × rank
    total: float  # ≥ Σd
    rounding: float  # the spectral norm of the error of ``gram`` is at most this · its trace


class Rows:
    """The rows p_i of P (n × rank). With B = W T, row i has the gradient g_i = p_iᵀB and the unit row −g_i/‖g_i‖.

    P is a NumPy array, which is not copied. Tensors override what they compute in another way.
    """

    xp: Any = np  # the module of P: NumPy or PyTorch
    on_host = True  # whether P is a NumPy array
    start_rows: int = 4_000  # sample size for the start of the relaxation when n is more than twice that
    jacobian_rows: int = 20_000  # sample size that stands for all rows in the derivative
    swept_rows: int | None = None  # largest sample that `mixing` gets; None: all rows

    def __init__(self, P: Any) -> None:
        self.P = P
        self.n, self.rank = P.shape
        rows = block_rows(self.rank)
        # An entry of `transposed` of signs is off by at most this · its `absolute_sums`.
        self.sum_rounding = self.n * EPS
        # An entry of `gram` is off by at most this · the product of the columns' norms: a sum of n products,
        # added within blocks and then over blocks.
        self.gram_rounding = (rows + self.n / rows + 16) * EPS

    # What tensors override.

    def blocks(self, function: Callable[[slice, Any], Any]) -> Iterator[Any]:
        """``function(rows, P[rows])`` of all blocks of rows, in order."""
        return iter_row_blocks(lambda a, b: function(slice(a, b), self.P[a:b]), self.n, self.rank)

    def thin_product(self, P: Any, B: Any) -> Array:
        """P B for a block of rows and a B with few columns, for searching."""
        return P @ B

    def transposed_product(self, P: Any, V: Array) -> Any:
        """PᵀV for a block of rows and a V with few columns, added in float64."""
        return P.T @ V

    def dots(self, U: Array, V: Array) -> Array:
        """The inner products of the rows of U with those of V."""
        return np.einsum("ij,ij->i", U, V)

    def norms(self, V: Array) -> Array:
        """The norms of the rows of V."""
        return np.sqrt(self.dots(V, V))

    def divided_gram(self, divisor: Array | None) -> Any:
        """Pᵀ Diag(divisor)⁻¹ P of exactly this P in float64, where P is; None divides by 1."""
        return gram(self.P, divisor, width=self.rank)

    def transposed(self, X: Array) -> FloatArray:
        """PᵀX for X of shape (n,) or (n, c), with the accuracy of float64."""
        if is_small(self.P.size, X):
            return self.P.T @ X
        return self.total(lambda rows, P: P.T @ X[rows])

    def product(self, B: FloatArray) -> Array:
        """P B for small B, (rank,) or (rank, c)."""
        if is_small(self.P.size, B):
            return self.P @ B
        return np.concatenate(list(self.blocks(lambda _, P: P @ B)))

    def mixing(self, weights: FloatArray, V: Array) -> Any:
        """Coordinate steps from the unit rows V, which may be overwritten, as a `Mixing`; see ``swept_rows``."""
        return Mixing(self.P, weights, V)

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """``count`` random rows in order, without replacement; ``self`` when that would be half of them or more."""
        if 2 * count >= self.n:
            return self
        return Rows(self.P[np.sort(rng.choice(self.n, count, replace=False))])

    # Conversions and signs.

    def to_numpy(self, x: Array) -> FloatArray:
        """x as a float64 NumPy array, for small n."""
        return x if self.on_host else to_float64(x)

    def from_numpy(self, x: FloatArray) -> Array:
        """The inverse of `to_numpy`."""
        return self.xp.asarray(x, dtype=self.P.dtype, device=self.P.device)

    def copy(self, x: Array) -> Array:
        """A copy of the signs x in the dtype that solvers use; also the inverse of `as_int8`."""
        return self.xp.asarray(x, dtype=self.P.dtype, copy=True)

    def as_int8(self, x: Array) -> Array:
        """Signs as the user gets them."""
        return self.xp.asarray(x, dtype=self.xp.int8)

    def signs(self, x: Any, n: int) -> Array:
        """A copy of the n signs that the user gave as a start, checked."""
        if self.on_host:
            return signs(x, n, "x0")
        from hashlearn.linalg.tensors import checked_signs

        return checked_signs(x, (n,), self.P, "x0")

    # The passes of the relaxation, its certificate and its rounding.

    def unit_rows(self, P: Any, B: Any) -> tuple[Array, Array]:
        """``(V, norms)`` of a block of rows: −g/‖g‖ for the rows g of P B, and all ‖g‖. A row with g = 0 stays 0."""
        G = self.thin_product(P, B)
        norms = self.norms(G)
        G /= -norms.clip(float(self.xp.finfo(G.dtype).tiny))[:, None]
        return G, norms

    def all_unit_rows(self, B: FloatArray) -> tuple[Array, Array]:
        """``(V, norms)`` of all rows, stored."""
        small = self.from_numpy(B)
        V, norms = zip(*self.blocks(lambda _, P: self.unit_rows(P, small)), strict=True)
        return self.xp.concatenate(V), self.xp.concatenate(norms)

    def image(self, B: FloatArray) -> tuple[FloatArray, Array]:
        """``(T, norms)``: T = PᵀV for the unit rows V of B, and all ‖g_i‖."""
        small, lengths = self.from_numpy(B), self.xp.empty_like(self.P[:, 0])

        def block(rows: slice, P: Any) -> Any:
            V, lengths[rows] = self.unit_rows(P, small)
            return self.transposed_product(P, V)

        return self.total(block), lengths

    def proof_gram(self, d: Array) -> ProofGram:
        """PᵀD⁻¹P of exactly this P in float64, for a proof. Entries of d are raised to at least 1e-9 of their mean."""
        d = self.xp.asarray(d, dtype=self.xp.float64)
        mean = float(d.mean())
        d = d.clip(1e-9 * mean) if mean > 0.0 else self.xp.ones_like(d)
        total = float(d.sum()) * (1.0 + self.n * EPS)
        return ProofGram(self.divided_gram(d), total, self.gram_rounding)

    def draw(self, B: FloatArray, normals: FloatArray) -> Array:
        """Signs S = sgn(V normals), n × draws, V the unit rows of B; sgn(0) = +1."""
        return self.xp.concatenate(list(self.blocks(self._drawn(B, normals))))

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        """PᵀS for the signs S of `draw`, without storing S."""
        drawn = self._drawn(B, normals)
        return self.total(lambda rows, P: self.transposed_product(P, drawn(rows, P)))

    def _drawn(self, B: FloatArray, normals: FloatArray) -> Callable[[slice, Any], Array]:
        small, z = self.from_numpy(B), self.from_numpy(normals)
        # A row's length does not change the sign of −gᵀz.
        return lambda _, P: self.copy(self.xp.where(self.thin_product(P, small) @ z > 0.0, -1.0, 1.0))

    # Sums, rows and columns.

    def total(self, function: Callable[[slice, Any], Any]) -> FloatArray:
        """The sum of ``function(rows, P[rows])`` over all blocks of rows."""
        total = None
        for part in self.blocks(function):
            total = part if total is None else total.__iadd__(part)
        return self.to_numpy(total)

    def gram(self) -> FloatArray:
        """PᵀP, accurate to float64."""
        return self.to_numpy(self.divided_gram(None))

    def diagonal(self, weights: FloatArray) -> Array:
        """Diagonal of P diag(weights) Pᵀ."""
        return self.xp.einsum("ij,ij,j->i", self.P, self.P, self.from_numpy(weights))

    def absolute_sums(self) -> FloatArray:
        """The sums of the columns of |P|."""
        return self.total(lambda _, P: abs(P).sum(axis=0, dtype=self.xp.float64))

    def with_scaled_columns(self, factors: FloatArray) -> Rows:
        """P diag(factors); a copy, unless all factors are 1."""
        return self if bool((factors == 1.0).all()) else rows_of(self.P * self.from_numpy(factors))

    def with_columns(self, counts: NDArray[np.bool_]) -> Rows:
        """P with these columns only."""
        P = self.P[:, np.flatnonzero(counts)]
        return rows_of(np.ascontiguousarray(P) if self.on_host else P.contiguous())

    def to_host(self) -> FloatArray:
        """All of P as a float64 NumPy array, for small n."""
        return self.to_numpy(self.P)


class Linearized:
    """The map B ↦ PᵀV(B) of `Rows.image` near one point. Solvers use it on samples, or on P itself when n is small."""

    def __init__(self, rows: Rows, B: FloatArray) -> None:
        self._rows = rows
        self._V, self._norms = rows.all_unit_rows(B)
        self._factors = -1.0 / self._norms.clip(float(rows.xp.finfo(self._norms.dtype).tiny))[:, None]

    def change(self, dB: FloatArray) -> FloatArray:
        """Its derivative in the direction dB: Σ_i p_i dv_iᵀ with dv_i = −(I − v_i v_iᵀ)(p_iᵀ dB)/‖g_i‖."""
        rows, small = self._rows, self._rows.from_numpy(dB)

        def block(index: slice, P: Any) -> Any:
            G, V = rows.thin_product(P, small), self._V[index]
            G -= rows.dots(G, V)[:, None] * V
            G *= self._factors[index]
            return rows.transposed_product(P, G)

        return rows.total(block)

    def gram(self) -> FloatArray:
        """PᵀD⁻¹P, where D holds the ‖g_i‖, raised to at least a thousandth of their mean."""
        d = self._norms.clip(1e-3 * float(self._norms.mean()))
        return self._rows.to_numpy(self._rows.divided_gram(d))


class Mixing:
    """Coordinate steps v_i ← −g_i/‖g_i‖ on unit rows V, which the object holds, one row after the other."""

    def __init__(self, P: FloatArray, weights: FloatArray, V: FloatArray) -> None:
        self._P, self._weights, self._V = P, weights, V
        self._T = P.T @ V

    def sweep(self) -> float:
        """One pass over all rows; returns the mean squared movement of a row, weighted by ‖g_i‖."""
        return mixing_sweep(self._P, self._weights, self._V, self._T)

    def image(self) -> FloatArray:
        """PᵀV of the present V, computed from scratch."""
        return self._P.T @ self._V


def is_small(size: int, V: FloatArray) -> bool:
    """Whether threads do not pay: few multiplications, or a product with a vector, which memory limits."""
    return V.ndim == 1 or size * V.shape[1] < THREADED_PRODUCT


@njit(cache=True, nogil=True)
def mixing_sweep(P, weights, V, T):  # type: ignore[no-untyped-def]
    """One pass of exact coordinate steps v_i ← −g_i/‖g_i‖ where g_i leaves out row i itself; updates T = PᵀV.

    Returns the mean squared movement of a row, weighted by ‖g_i‖. The value of the relaxation never rises.
    """
    n, k = V.shape
    moved = 0.0
    total = 0.0
    rank = P.shape[1]
    weighted = np.empty((STEP_ROWS, rank))
    gradient = np.empty((STEP_ROWS, k))
    among = np.empty((STEP_ROWS, STEP_ROWS))
    step = np.empty((STEP_ROWS, k))
    change = np.empty_like(T)
    for first in range(0, n, STEP_ROWS):
        rows = min(STEP_ROWS, n - first)
        panel = P[first : first + rows]
        for i in range(rows):
            for j in range(rank):
                weighted[i, j] = panel[i, j] * weights[j]
        np.dot(weighted[:rows], T, gradient[:rows])
        if rows == STEP_ROWS:
            np.dot(weighted, panel.T, among)
        else:
            among[:rows, :rows] = np.dot(weighted[:rows], panel.T)
        for i in range(rows):
            row = V[first + i]
            own = among[i, i]
            for c in range(k):
                gradient[i, c] -= own * row[c]
            for j in range(i):
                a = among[i, j]
                for c in range(k):
                    gradient[i, c] += a * step[j, c]
            square = 0.0
            for c in range(k):
                square += gradient[i, c] * gradient[i, c]
            norm = np.sqrt(square)
            distance = 0.0
            for c in range(k):
                new = -gradient[i, c] / norm if norm > TINY else row[c]
                step[i, c] = new - row[c]
                row[c] = new
                distance += step[i, c] * step[i, c]
            moved += distance * norm
            total += norm
        np.dot(panel.T, step[:rows], change)
        T += change
    return moved / max(total, TINY)
