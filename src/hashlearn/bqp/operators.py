"""The matrix A of eq. (5) as an operator: dense, sparse, low rank, or sparse plus low rank.

Every operator has products ``A @ V`` with n-vectors and n × k arrays, its ``diagonal()``, the ``value(x)`` xᵀAx and
the ``flip_gains(x)`` of all single flips. There are four kinds and no others, because a sum becomes one of them at once
(`error_bounds.added`).

A product costs O(n²), O(nnz), O(n · rank) or the sum of the last two for each column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from hashlearn.bqp.exact_form import ExactForm
from hashlearn.bqp.rows import Rows, Tall, TallArray, checked_matrix, rows_of
from hashlearn.bqp.rows.numpy_rows import is_small
from hashlearn.core.arrays import EPS, FloatArray, is_tensor
from hashlearn.core.checks import finite_float64, require_symmetric, require_whole
from hashlearn.core.threads import map_row_blocks

ON_HOST = Tall()
LARGEST_EXACT = 2.0**53  # integers up to here are exact in float64, and so are their sums
SCALE_ROWS = 250  # rows on a device that `scale` samples


class Operator(ABC):
    """A symmetric real n × n matrix, known through its products. Use `as_operator` to make one."""

    n: int
    error: FloatArray | float = 0.0  # for each row, the most by which rounding changed the stored entries
    form: ExactForm | None = None  # of the problem that A stands for, where its entries are rounded

    @property
    def tall(self) -> Tall:
        """Operations on n-vectors: those of NumPy, unless P is a tensor."""
        return ON_HOST

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, n)``, as an array would say."""
        return (self.n, self.n)

    @abstractmethod
    def __matmul__(self, V: FloatArray) -> FloatArray:
        """A @ V for V of shape (n,) or (n, k)."""

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """The diagonal of A, shape (n,)."""

    @abstractmethod
    def toarray(self) -> FloatArray:
        """A as a dense array: n² numbers, for small n, tests and oracles."""

    @abstractmethod
    def magnitudes(self) -> FloatArray:
        """The sums of the rows of |S| + |P| |W| |P|ᵀ: what rounding is measured against, even where parts cancel."""

    @abstractmethod
    def is_exact(self) -> bool:
        """Whether entries and values are computed without rounding: integers whose sums stay below 2⁵³."""

    def entry_error(self) -> FloatArray:
        """For each row, the most by which the entries of `toarray` can be off, added up."""
        return np.broadcast_to(np.asarray(self.error), (self.n,))

    def exact_form(self) -> ExactForm | None:
        """A in integers; None for low-rank parts, and if sums of entries were rounded."""
        if self.form is not None or not isinstance(self, Dense | Sparse) or np.any(self.error):
            return self.form
        return ExactForm.of_floats(self.array if isinstance(self, Dense) else self.matrix)

    @abstractmethod
    def scaled(self, factor: float) -> Operator:
        """``factor`` · A, of the same kind."""

    @abstractmethod
    def congruent(self, q: FloatArray) -> Operator:
        """Diag(q) A Diag(q), of the same kind."""

    @abstractmethod
    def restricted(self, index: NDArray[np.intp]) -> Operator:
        """The principal submatrix A[index][:, index], of the same kind."""

    def value(self, x: ArrayLike) -> float:
        """xᵀAx, eq. (5)."""
        x = np.asarray(x, dtype=np.float64)
        return float(x @ (self @ x))

    def scale(self) -> float:
        """A typical size of Σ_i |(Ax)_i|: what "small" is measured against. 0 only for A = 0."""
        Z = np.random.default_rng(0).standard_normal((self.n, 8 if self.n < 1000 else 1))
        return float(np.abs(self @ Z).sum() / Z.shape[1])

    def flip_gains(self, x: ArrayLike) -> FloatArray:
        """Change of xᵀAx when x_i alone changes its sign: 4 (A_ii − x_i (Ax)_i) for every i.

        >>> as_operator([[0.0, 1.0], [1.0, 0.0]]).flip_gains([1, 1])
        array([-4., -4.])
        """
        x = np.asarray(x, dtype=np.float64)
        return 4.0 * (self.diagonal() * x * x - x * (self @ x))

    def __add__(self, other: Any) -> Operator:
        from hashlearn.bqp.error_bounds import added  # which imports this file

        return added(self, as_operator(other))

    def __radd__(self, other: Any) -> Operator:
        return self.__add__(other)

    # NumPy must leave `array + operator` to us.
    __array_ufunc__ = None


@dataclass(frozen=True, eq=False)
class Dense(Operator):
    """A symmetric array."""

    array: FloatArray

    def __post_init__(self) -> None:
        array = finite_float64(self.array, "A", ndim=2)
        symmetric = require_symmetric(array)
        self.__dict__.update(array=np.ascontiguousarray(symmetric), n=len(symmetric))
        if symmetric is not array:  # the mean of A and its transpose
            self.__dict__["error"] = EPS * np.abs(symmetric).sum(axis=1)

    @classmethod
    def unchecked(cls, array: FloatArray) -> Dense:
        """An operator of an array that is known to be float64, finite and symmetric."""
        return trusted(cls, array=array, n=len(array))

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return self.array @ V

    def diagonal(self) -> FloatArray:
        return self.array.diagonal().copy()

    def toarray(self) -> FloatArray:
        return self.array.copy()

    def magnitudes(self) -> FloatArray:
        return np.concatenate(map_row_blocks(lambda a, b: np.abs(self.array[a:b]).sum(axis=1), self.n, self.n))

    def is_exact(self) -> bool:
        return not np.any(self.error) and _are_exact(self.magnitudes().sum(), self.array)

    def scaled(self, factor: float) -> Dense:
        return trusted(Dense, array=factor * self.array, n=self.n, error=abs(factor) * self.error)

    def congruent(self, q: FloatArray) -> Dense:
        array = self.array * q[:, None]
        array *= q
        return Dense.unchecked(array)

    def restricted(self, index: NDArray[np.intp]) -> Dense:
        return trusted(Dense, array=self.array[np.ix_(index, index)], n=len(index), error=_entries(self.error, index))


@dataclass(frozen=True, eq=False)
class Sparse(Operator):
    """A symmetric scipy.sparse matrix or array, stored as canonical CSR (sorted, no duplicates)."""

    matrix: sp.csr_array

    def __post_init__(self) -> None:
        require_whole(self.matrix, "A")
        matrix = sp.csr_array(self.matrix)
        data = finite_float64(matrix.data, "A", ndim=1, may_be_empty=True)
        matrix = sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.sum_duplicates()
        symmetric = require_symmetric(matrix)
        added = self.matrix.nnz - matrix.nnz  # an upper bound on how many parts were added up
        if added or symmetric is not matrix:
            given = self.matrix.tocoo()
            parts = np.bincount(given.coords[0], np.abs(given.data), minlength=matrix.shape[0])
            if not _are_exact(parts.sum(), given.data):
                self.__dict__["error"] = (added + 2) * EPS * parts
        self.__dict__.update(matrix=symmetric, n=matrix.shape[0])

    @classmethod
    def unchecked(cls, matrix: sp.csr_array) -> Sparse:
        """An operator of a canonical, symmetric, finite float64 CSR array."""
        return trusted(cls, matrix=matrix, n=matrix.shape[0])

    def __matmul__(self, V: FloatArray) -> FloatArray:
        matrix = self.matrix
        if is_small(matrix.nnz, V):
            return matrix @ V
        return np.concatenate(map_row_blocks(lambda a, b: _rows(matrix, a, b) @ V, self.n, matrix.nnz // self.n))

    def diagonal(self) -> FloatArray:
        return self.matrix.diagonal()

    def toarray(self) -> FloatArray:
        return self.matrix.toarray()

    def magnitudes(self) -> FloatArray:
        return np.asarray(abs(self.matrix).sum(axis=1)).ravel()

    def is_exact(self) -> bool:
        return not np.any(self.error) and _are_exact(self.magnitudes().sum(), self.matrix.data)

    def scaled(self, factor: float) -> Sparse:
        return trusted(Sparse, matrix=sp.csr_array(factor * self.matrix), n=self.n, error=abs(factor) * self.error)

    def congruent(self, q: FloatArray) -> Sparse:
        indices, indptr = self.matrix.indices, self.matrix.indptr
        data = self.matrix.data * (np.repeat(q, np.diff(indptr)) * q[indices])
        return Sparse.unchecked(sp.csr_array((data, indices, indptr), shape=self.shape))

    def restricted(self, index: NDArray[np.intp]) -> Sparse:
        part = sp.csr_array(self.matrix[index][:, index])
        part.sort_indices()
        return trusted(Sparse, matrix=part, n=len(index), error=_entries(self.error, index))


@dataclass(frozen=True, eq=False)
class LowRank(Operator):
    """A = P diag(weights) Pᵀ with P of shape (n, rank), the form that A has in both settings of the paper.

    Columns of P that are zero, or have weight zero, are dropped.

    >>> A = LowRank([[1.0], [2.0]], weights=[-1.0])
    >>> A.toarray()
    array([[-1., -2.],
           [-2., -4.]])
    """

    P: Any  # a NumPy array or a tensor; a `Rows` object may be given as well (see `hashlearn.bqp.rows`)
    weights: FloatArray
    rows: Rows = field(init=False, repr=False)  # the passes over the rows of P

    def __post_init__(self) -> None:
        rows = rows_of(checked_matrix(self.P, "P"))
        weights = finite_float64(self.weights, "weights", ndim=1)
        if weights.shape[0] != rows.rank:
            raise ValueError(
                f"weights must hold one number for each column of P: P has shape {(rows.n, rows.rank)}, "
                f"so {rows.rank} were expected and {weights.shape[0]} came"
            )
        kept = (weights != 0.0) & (rows.absolute_sums() > 0.0)
        if not kept.all():
            rows, weights = rows.with_columns(kept), weights[kept]
        self.__dict__.update(P=rows.P, rows=rows, weights=weights, n=rows.n)

    @classmethod
    def unchecked(cls, P: Any, weights: FloatArray) -> LowRank:
        """An operator of a C-contiguous finite matrix, or of its `Rows`, and nonzero weights. Nothing is copied."""
        rows = rows_of(P)
        return trusted(cls, P=rows.P, rows=rows, weights=weights, n=rows.n)

    @property
    def tall(self) -> Tall:
        return self.rows

    @property
    def rank(self) -> int:
        """Number of columns of P: an upper bound on the rank of A."""
        return self.rows.rank

    def __matmul__(self, V: TallArray) -> TallArray:
        T = self.rows.transposed(V)
        return self.rows.product(self.weights * T if T.ndim == 1 else self.weights[:, None] * T)

    def value(self, x: TallArray) -> float:
        """xᵀAx, eq. (5), through Pᵀx alone: one pass over P."""
        t = self.rows.transposed(np.asarray(x, dtype=np.float64) if self.rows.on_host else x)
        return float(self.weights @ (t * t))

    def scale(self) -> float:
        """For rows on a device it is estimated from a few of them: Σ_i |(Ax)_i| grows with n^(3/2)."""
        if self.rows.on_host:
            return super().scale()
        return self._scale_of_some_rows

    @cached_property
    def _scale_of_some_rows(self) -> float:
        some = self.rows.take(np.arange(0, self.n, max(1, self.n // SCALE_ROWS)))
        return LowRank.unchecked(some, self.weights).scale() * (self.n / len(some)) ** 1.5

    def diagonal(self) -> TallArray:
        return self.rows.diagonal(self.weights)

    def toarray(self) -> FloatArray:
        P = self.rows.to_host()
        A = (P * self.weights) @ P.T
        return 0.5 * (A + A.T)

    def magnitudes(self) -> FloatArray:
        return np.abs(self.rows.to_host()) @ (np.abs(self.weights) * self.rows.absolute_sums())

    def total_magnitude(self) -> float:
        """The sum of `magnitudes`, also for rows on a device."""
        return float(np.abs(self.weights) @ self.rows.absolute_sums() ** 2)

    def is_exact(self) -> bool:
        return self.rows.on_host and _are_exact(self.total_magnitude(), self.weights, self.P)

    def entry_error(self) -> FloatArray:
        # A product of this length takes rank + 2 roundings, and merged rows two more.
        return np.zeros(self.n) if self.is_exact() else (self.rank + 6) * EPS * self.magnitudes()

    def scaled(self, factor: float) -> LowRank:
        return LowRank.unchecked(self.rows, factor * self.weights)

    def congruent(self, q: FloatArray) -> LowRank:
        return LowRank.unchecked(np.ascontiguousarray(self.P * q[:, None]), self.weights)

    def restricted(self, index: NDArray[np.intp]) -> LowRank:
        return LowRank.unchecked(self.rows.take(index), self.weights)


@dataclass(frozen=True, eq=False)
class SparsePlusLowRank(Operator):
    """A sparse plus a low-rank operator, as for a neighbor graph with a constant background."""

    sparse: Sparse
    low_rank: LowRank

    def __post_init__(self) -> None:
        require_equal_n(self.sparse, self.low_rank)
        object.__setattr__(self, "n", self.sparse.n)

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return self.sparse @ V + self.low_rank @ V

    def value(self, x: ArrayLike) -> float:
        return self.sparse.value(x) + self.low_rank.value(x)

    def diagonal(self) -> FloatArray:
        return self.sparse.diagonal() + self.low_rank.diagonal()

    def toarray(self) -> FloatArray:
        return self.sparse.toarray() + self.low_rank.toarray()

    def magnitudes(self) -> FloatArray:
        return self.sparse.magnitudes() + self.low_rank.magnitudes()

    def is_exact(self) -> bool:
        both = self.sparse.is_exact() and self.low_rank.is_exact()
        return both and self.magnitudes().sum() < LARGEST_EXACT

    def entry_error(self) -> FloatArray:
        if self.is_exact():
            return np.zeros(self.n)
        return self.sparse.entry_error() + self.low_rank.entry_error() + EPS * self.magnitudes()

    def scaled(self, factor: float) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.sparse.scaled(factor), self.low_rank.scaled(factor))

    def congruent(self, q: FloatArray) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.sparse.congruent(q), self.low_rank.congruent(q))

    def restricted(self, index: NDArray[np.intp]) -> SparsePlusLowRank:
        return SparsePlusLowRank(self.sparse.restricted(index), self.low_rank.restricted(index))


def _are_exact(total: float, *arrays: FloatArray) -> bool:
    return bool(total < LARGEST_EXACT) and all(np.array_equal(array, np.rint(array)) for array in arrays)


def _entries(error: FloatArray | float, index: NDArray[np.intp]) -> FloatArray | float:
    return error[index] if isinstance(error, np.ndarray) else error


def _rows(matrix: sp.csr_array, first: int, last: int) -> sp.csr_array:
    """Rows first…last, sharing memory with ``matrix``."""
    a, b = matrix.indptr[first], matrix.indptr[last]
    indptr = matrix.indptr[first : last + 1] - a
    return sp.csr_array((matrix.data[a:b], matrix.indices[a:b], indptr), shape=(last - first, matrix.shape[1]))


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


def split(A: Operator) -> tuple[Sparse | None, LowRank | None]:
    """The sparse and the low-rank part of A, None for a part that it does not have; a dense A has neither."""
    if isinstance(A, SparsePlusLowRank):
        return A.sparse, A.low_rank
    return (A if isinstance(A, Sparse) else None), (A if isinstance(A, LowRank) else None)


def diagonal_operator(entries: ArrayLike) -> Sparse:
    """Diag(entries). A diagonal only shifts every value of eq. (5) by the sum of its entries."""
    entries = finite_float64(entries, "entries", ndim=1)
    return Sparse(sp.diags_array(entries, format="csr"))


def require_equal_n(left: Operator, right: Operator) -> None:
    """Refuse a sum of operators of different sizes."""
    if left.n != right.n:
        raise ValueError(f"operators in a sum must have equal size: got {left.shape} and {right.shape}")


def trusted(kind: type, **fields: Any) -> Any:
    """Make an operator from parts that are valid by construction, without checking them again."""
    made: Any = object.__new__(kind)
    made.__dict__.update(fields)
    return made
