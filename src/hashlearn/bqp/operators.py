"""The matrix A of eq. (5) as an operator: a dense array, or a sparse matrix plus a low-rank product.

There are these two kinds and no others, because a sum becomes one of them at once: dense plus anything is dense.
A product costs O(n²), or O(nnz + n · rank), for each column.

A is what is stored: numbers that float64 holds. A bound on min xᵀAx is proven only if it allows for the rounding of
everything computed from them. When the parts of A cancel, that rounding is large compared with the entries that remain.
So every error bound comes from the magnitudes of the parts, |S| + |P| |W| |P|ᵀ, and never from A itself. EPS is twice
the unit roundoff, so each count of roundings is too large by a factor of two.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hashlearn.bqp.exact_numbers import ExactForm
from hashlearn.bqp.rows import Array, Rows, checked_matrix, is_small, rows_of
from hashlearn.core.arrays import EPS, FloatArray, IntArray, is_tensor
from hashlearn.core.checks import finite_float64, require_symmetric, require_whole
from hashlearn.core.threads import map_row_blocks
from hashlearn.linalg.gram import gram

LARGEST_EXACT = 2.0**53  # integers up to here are exact in float64, and so are their sums
SCALE_ROWS = 250  # rows on a device that `scale` samples


class Operator(ABC):
    """A symmetric real n × n matrix, known through its products. Use `as_operator` to make one.

    It is a stored part, which is an array or a sparse matrix or absent, plus a low-rank part P diag(weights) Pᵀ.
    """

    n: int
    array: Any = None  # the n × n array, if A is dense
    sparse: Any = None  # the sparse part: a canonical float64 CSR array, or a CSR tensor
    rows: Rows  # the passes over the rows of the factor P, which has no columns if there is no low-rank part
    weights: FloatArray
    form: ExactForm | None = None  # of the problem that A stands for, where its entries are rounded

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, n)``, as an array would say."""
        return (self.n, self.n)

    @property
    def P(self) -> Any:
        """The factor of the low-rank part P diag(weights) Pᵀ: an array or a tensor (n, rank)."""
        return self.rows.P

    @property
    def rank(self) -> int:
        """Number of columns of P: an upper bound on the rank of the low-rank part."""
        return self.rows.rank

    @property
    def is_dense(self) -> bool:
        """Whether A is an array."""
        return self.array is not None

    @property
    def is_low_rank(self) -> bool:
        """Whether A is P diag(weights) Pᵀ and nothing else."""
        return self.array is None and self.sparse is None

    @property
    def is_sparse(self) -> bool:
        """Whether A is a sparse matrix and nothing else."""
        return self.sparse is not None and self.rank == 0

    @property
    def _stored(self) -> Any:
        return self.sparse if self.array is None else self.array

    @property
    def _entries(self) -> FloatArray:
        """The numbers in the stored part."""
        return self.array if self.is_dense else np.empty(0) if self.sparse is None else self.sparse.data

    @abstractmethod
    def _changed(self, change: Callable[[Any], Any], P: Any, weights: FloatArray) -> Operator:
        """An operator of the same kind with ``change`` of the stored part, and with this low-rank part."""

    def __matmul__(self, V: Array) -> Array:
        """A @ V for V of shape (n,) or (n, k)."""
        if self.rank == 0 and not self.is_low_rank:
            return _product(self._stored, V)
        T = self.rows.transposed(V)
        product = self.rows.product(self.weights * T if T.ndim == 1 else self.weights[:, None] * T)
        return product if self.is_low_rank else product + _product(self._stored, V)

    def value(self, x: Array) -> float:
        """xᵀAx, eq. (5); for the low-rank part through Pᵀx alone."""
        x = np.asarray(x, dtype=np.float64) if self.rows.on_host else x
        value = 0.0 if self.is_low_rank else float(x @ (self._stored @ x))
        if self.rank:
            t = self.rows.transposed(x)
            value += float(self.weights @ (t * t))
        return value

    def diagonal(self) -> Array:
        """The diagonal of A, shape (n,)."""
        diagonal = self.rows.diagonal(self.weights)
        return diagonal if self.is_low_rank else diagonal + self._stored.diagonal()

    def toarray(self) -> FloatArray:
        """A as a dense array: n² numbers, for small n, tests and oracles."""
        if self.is_dense:
            return self.array.copy()
        P = self.rows.to_host()
        A = (P * self.weights) @ P.T
        A = 0.5 * (A + A.T)
        return A if self.sparse is None else A + self.sparse.toarray()

    def scaled(self, factor: float) -> Operator:
        """``factor`` · A."""
        return self._changed(lambda S: factor * S, self.rows, factor * self.weights)

    def exponent(self) -> int | None:
        """The least e such that no part of an entry is larger than n² · 2^e; None if A = 0."""
        sums, largest = self.rows.absolute_sums(), np.abs(self._entries).max(initial=0.0)
        exponents = (np.frexp(self.weights)[1] + 2 * np.frexp(sums)[1])[(sums > 0.0) & (self.weights != 0.0)]
        exponents = np.append(exponents, np.frexp(largest)[1]) if largest > 0.0 else exponents
        return int(exponents.max()) if exponents.size else None

    def scaled_by_power(self, exponent: int) -> Operator:
        """2^``exponent`` · A without rounding; columns of P are brought to size 1."""
        columns = np.clip(np.frexp(self.rows.absolute_sums())[1], -1000, 1000)
        rows = self.rows.with_scaled_columns(np.ldexp(1.0, -columns))
        weights = np.ldexp(self.weights, 2 * columns + exponent)
        return self._changed(lambda S: math.ldexp(1.0, exponent) * S, rows, weights)

    def congruent(self, C: Any) -> Operator:
        """CᵀAC for a sparse C (n × m); Diag(C) A Diag(C) for a vector."""
        P = np.ascontiguousarray(self.P * C[:, None]) if C.ndim == 1 else C.T @ self.P
        return self._changed(lambda S: _congruent(S, C), P, self.weights)

    def restricted(self, index: NDArray[np.intp]) -> Operator:
        """The principal submatrix A[index][:, index]."""
        return self._changed(lambda S: S[index][:, index], self.rows.to_numpy(self.P[index]), self.weights)

    def without_diagonal(self) -> tuple[Operator, FloatArray]:
        """A without the stored diagonal of its dense or sparse part, and that diagonal, which shifts every value."""
        diagonal = np.zeros(self.n) if self.is_low_rank else self._stored.diagonal().copy()
        stored_diagonal = sp.diags_array(diagonal, format="csr")
        return self._changed(lambda S: S - stored_diagonal, self.rows, self.weights), diagonal

    def row_norms(self, check_time: Callable[[], Any] | None = None) -> FloatArray:
        """‖a_i‖ for every row. The parts of a sum count as orthogonal."""
        if self.is_dense:
            return np.sqrt(np.einsum("ij,ij->i", self.array, self.array))
        norms = _low_rank_norms(self.P, self.weights, check_time) if self.rank else np.zeros(self.n)
        return norms if self.sparse is None else np.hypot(norms, np.sqrt(self.sparse.power(2).sum(axis=1)))

    def absolute_product(self, u: FloatArray) -> FloatArray:
        """(|S| + |P| |W| |P|ᵀ) u for u ≥ 0, where S is the stored part."""
        if self.is_dense:
            return np.concatenate(map_row_blocks(lambda a, b: np.abs(self.array[a:b]) @ u, self.n, self.n))
        P = np.abs(self.rows.to_host())
        product = P @ (np.abs(self.weights) * (P.T @ u))
        return product if self.sparse is None else product + abs(self.sparse) @ u

    def magnitudes(self) -> FloatArray:
        """The sums of the rows of |S| + |P| |W| |P|ᵀ: what rounding is measured against, even where parts cancel."""
        return self.absolute_product(np.ones(self.n))

    def total_magnitude(self) -> float:
        """The sum of `magnitudes`, also for rows on a device."""
        return sum(self._part_magnitudes())

    def _part_magnitudes(self) -> tuple[float, float]:
        """The total of |S|, and that of |P| |W| |P|ᵀ."""
        entries = self._entries
        parts = map_row_blocks(lambda a, b: float(abs(entries[a:b]).sum()), len(entries), math.prod(entries.shape[1:]))
        low_rank = float(np.abs(self.weights) @ self.rows.absolute_sums() ** 2) if self.rank else 0.0
        return sum(parts), low_rank

    def product_roundings(self) -> float:
        """A @ v is off by at most this · EPS · ‖|A|‖ for a vector of norm 1, |A| taken part by part."""
        stored = 0.0 if self.is_low_rank else 3.0 + (self.n if self.is_dense else np.diff(self.sparse.indptr).max())
        return float(stored + (self.rows.sum_rounding / EPS + self.rank + 2.0 if self.rank else 0.0))

    def is_exact(self) -> bool:
        """Whether entries and values are computed without rounding: integers whose sums stay below 2⁵³."""
        if not (self.rows.on_host or self.is_sparse) or not self.total_magnitude() < LARGEST_EXACT:
            return False
        return all(bool((M.round() == M).all()) for M in (self.weights, self._entries, self.P))

    def entry_error(self) -> float:
        """The most by which the entries of `toarray` can be off, added up."""
        # A product of this length takes rank + 2 roundings, merged rows two more, and a sum of both parts one.
        return 0.0 if self.rank == 0 or self.is_exact() else (self.rank + 7) * EPS * self.total_magnitude()

    def value_error(self) -> float:
        """The most by which ``value(x)`` can be off, for any signs x."""
        if self.is_exact():
            return 0.0
        stored, low_rank = self._part_magnitudes()
        own = 2.0 * (self.n + 2) * EPS * stored + (2.0 * self.rows.sum_rounding + (self.rank + 4) * EPS) * low_rank
        return own + EPS * (stored + low_rank)

    def exact_form(self) -> ExactForm | None:
        """A in integers; None if it has a low-rank part."""
        if self.form is not None or self.is_low_rank or self.rank or not self.rows.on_host:
            return self.form
        return ExactForm.of_floats(self._stored)

    def csr(self) -> tuple[FloatArray, NDArray[np.int32], IntArray]:
        """``(data, indices, indptr)`` of the sparse part, for kernels; an absent part is empty."""
        S = self.sparse
        if S is None:
            return np.empty(0), np.empty(0, np.int32), np.zeros(self.n + 1, np.int64)
        return S.data, S.indices.astype(np.int32, copy=False), S.indptr.astype(np.int64, copy=False)

    def scale(self) -> float:
        """A typical size of Σ_i |(Ax)_i|: what "small" is measured against. 0 only for A = 0.

        For rows on a device it is estimated from a few of them: Σ_i |(Ax)_i| grows with n^(3/2).
        """
        if not self.rows.on_host:
            return self._scale_of_sample
        Z = np.random.default_rng(0).standard_normal((self.n, 8 if self.n < 1000 else 1))
        return float(np.abs(self @ Z).sum() / Z.shape[1])

    @cached_property
    def _scale_of_sample(self) -> float:
        sample = self.rows.to_numpy(self.P[:: max(1, self.n // SCALE_ROWS)])
        return Structured.unchecked(P=sample, weights=self.weights).scale() * (self.n / len(sample)) ** 1.5

    def flip_gains(self, x: ArrayLike) -> FloatArray:
        """Change of xᵀAx when x_i alone changes its sign: 4 (A_ii − x_i (Ax)_i) for every i.

        >>> as_operator([[0.0, 1.0], [1.0, 0.0]]).flip_gains([1, 1])
        array([-4., -4.])
        """
        x = np.asarray(x, dtype=np.float64)
        return 4.0 * (self.diagonal() * x * x - x * (self @ x))

    def __add__(self, other: Any) -> Operator:
        other = as_operator(other)
        if self.n != other.n:
            raise ValueError(f"operators in a sum must have equal size: got {self.shape} and {other.shape}")
        if self.is_dense or other.is_dense:
            return Dense.unchecked(self.toarray() + other.toarray())
        parts = [A.sparse for A in (self, other) if A.sparse is not None]
        sparse = sp.csr_array(parts[0] + parts[1]) if len(parts) == 2 else (parts or [None])[0]
        P = np.hstack([self.rows.to_host(), other.rows.to_host()])
        return Structured.unchecked(sparse, P, np.concatenate([self.weights, other.weights]))

    def __radd__(self, other: Any) -> Operator:
        return self.__add__(other)

    def __repr__(self) -> str:
        entries = "" if self.sparse is None else f", nonzeros={len(self._entries)}"
        return f"{type(self).__name__}(n={self.n}{entries}, rank={self.rank})"

    # NumPy must leave `array + operator` to us.
    __array_ufunc__ = None


class Dense(Operator):
    """A symmetric array; the mean of it and its transpose if rounding made them differ."""

    def __init__(self, array: ArrayLike) -> None:
        self._set(np.ascontiguousarray(require_symmetric(finite_float64(array, "A", ndim=2))))

    @classmethod
    def unchecked(cls, array: FloatArray) -> Dense:
        """An operator of an array that is known to be float64, C-contiguous, finite and symmetric."""
        A = cls.__new__(cls)
        A._set(array)
        return A

    def _set(self, array: FloatArray) -> None:
        self.array, self.n = array, len(array)
        self.rows, self.weights = rows_of(np.empty((self.n, 0))), np.empty(0)

    def _changed(self, change: Callable[[Any], Any], P: Any, weights: FloatArray) -> Dense:
        return Dense.unchecked(np.ascontiguousarray(change(self.array)))


class Structured(Operator):
    """A = S + P diag(weights) Pᵀ with a sparse S and P of shape (n, rank); S or P may be absent.

    Low rank is the form that A has in both settings of the paper; a sum is a neighbor graph with a constant background.
    Columns of P that are zero, or have weight zero, are dropped.
    """

    def __init__(self, sparse: Any = None, P: Any = None, weights: Any = None) -> None:
        self.sparse = None if sparse is None else _canonical(sparse)
        n = None if sparse is None else self.sparse.shape[0]
        self.rows, self.weights = (rows_of(np.empty((n, 0))), np.empty(0)) if P is None else _checked_factor(P, weights)
        self.n = self.rows.n
        if n not in (None, self.n):
            raise ValueError(f"operators in a sum must have equal size: got {(n, n)} and {self.shape}")

    @classmethod
    def unchecked(cls, sparse: Any = None, P: Any = None, weights: FloatArray | None = None) -> Structured:
        """An operator of a canonical symmetric CSR array and of a finite matrix, or its `Rows`. Nothing is copied."""
        A = Structured.__new__(Structured)
        A.sparse = sparse
        A.rows = rows_of(np.empty((sparse.shape[0], 0)) if P is None else P)
        A.weights = np.empty(0) if weights is None else weights
        A.n = A.rows.n
        return A

    def _changed(self, change: Callable[[Any], Any], P: Any, weights: FloatArray) -> Structured:
        sparse = None if self.sparse is None else sp.csr_array(change(self.sparse))
        if sparse is not None:
            sparse.sort_indices()
        return Structured.unchecked(sparse, P, weights)


def LowRank(P: Any, weights: Any) -> Structured:
    """A = P diag(weights) Pᵀ, with P an array, a tensor or a `Rows` object (see `hashlearn.bqp.rows`).

    >>> A = LowRank([[1.0], [2.0]], weights=[-1.0])
    >>> A.toarray()
    array([[-1., -2.],
           [-2., -4.]])
    """
    return Structured(None, P, weights)


def Sparse(matrix: Any) -> Structured:
    """A symmetric scipy.sparse matrix or array, stored as canonical CSR: sorted, entries of one place added up."""
    return Structured(matrix)


def _canonical(matrix: Any) -> sp.csr_array:
    require_whole(matrix, "A")
    matrix = sp.csr_array(matrix)
    data = finite_float64(matrix.data, "A", ndim=1, may_be_empty=True)
    matrix = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
    matrix.sum_duplicates()
    return require_symmetric(matrix)


def _checked_factor(P: Any, weights: Any) -> tuple[Rows, FloatArray]:
    rows = rows_of(checked_matrix(P, "P"))
    weights = finite_float64(weights, "weights", ndim=1)
    if weights.shape[0] != rows.rank:
        raise ValueError(
            f"weights must hold one number for each column of P: P has shape {(rows.n, rows.rank)}, "
            f"so {rows.rank} were expected and {weights.shape[0]} came"
        )
    counts = (weights != 0.0) & (rows.absolute_sums() > 0.0)
    return (rows, weights) if counts.all() else (rows.with_columns(counts), weights[counts])


def _congruent(S: Any, C: Any) -> Any:
    """`Operator.congruent` of a stored part."""
    if C.ndim == 2:
        product = C.T @ (C.T @ S).T
        return 0.5 * (product + product.T)
    if sp.issparse(S):
        data = S.data * (np.repeat(C, np.diff(S.indptr)) * C[S.indices])
        return sp.csr_array((data, S.indices, S.indptr), shape=S.shape)
    array = S * C[:, None]
    array *= C
    return array


def _product(matrix: Any, V: FloatArray) -> FloatArray:
    """A stored part times V; with a sparse one in blocks of rows on all cores."""
    if not sp.issparse(matrix) or is_small(matrix.nnz, V):
        return matrix @ V

    def block(first: int, last: int) -> FloatArray:
        a, b = matrix.indptr[first], matrix.indptr[last]  # these rows share memory with the matrix
        parts = matrix.data[a:b], matrix.indices[a:b], matrix.indptr[first : last + 1] - a
        return sp.csr_array(parts, shape=(last - first, matrix.shape[1])) @ V

    return np.concatenate(map_row_blocks(block, matrix.shape[0], matrix.nnz // matrix.shape[0]))


def _low_rank_norms(P: FloatArray, weights: FloatArray, check_time: Callable[[], Any] | None) -> FloatArray:
    """‖P W p_i‖ through PᵀP. P and W are scaled to size 1 first, so that their powers do not overflow."""
    size, weight = max(P.max(), -P.min()), np.abs(weights).max()
    W = weights / weight
    M = W[:, None] * (gram(P, check_time=check_time) / size / size) * W

    def squares(first: int, last: int) -> FloatArray:
        rows = P[first:last] / size
        return np.einsum("ij,ij->i", rows @ M, rows)

    norms = np.sqrt(np.maximum(np.concatenate(map_row_blocks(squares, len(P))), 0.0))
    return norms * size * size * weight


def as_operator(A: Any) -> Operator:
    """The operator of an array (or nested lists), a scipy.sparse matrix or a sparse tensor; an `Operator` itself."""
    if isinstance(A, Operator):
        return A
    if sp.issparse(A):
        return Sparse(A)
    if is_tensor(A) and str(A.layout) != "torch.strided":
        from hashlearn.bqp.torch_sparse import TorchSparse  # PyTorch is optional

        return TorchSparse(A)
    return Dense(A)


def diagonal_operator(entries: ArrayLike) -> Structured:
    """Diag(entries). A diagonal only shifts every value of eq. (5) by the sum of its entries."""
    return Sparse(sp.diags_array(finite_float64(entries, "entries", ndim=1), format="csr"))
