"""Leading eigenvectors of a large sparse matrix, by subspace iteration with a Chebyshev filter (Zhou et al. 2006).

A polynomial of the matrix multiplies a block of vectors. It is small on the rest of the spectrum and
grows fast beyond, so a few blocks of products replace thousands of single ones. O(nnz · count) a product, in float32.

Accuracy is that of eigenvalues to about 1e-3. If many eigenvalues are equal to that accuracy, as in graphs of many
small parts, the vectors are an orthonormal basis of part of their common space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_threads, one_blas_thread

GUARDS = 16  # more vectors than asked for; the last ones converge slowly
DEGREES = (10, 20, 30, 40, 40, 40)  # of the filter, round by round
SETTLED = 1e-3  # largest change of a leading eigenvalue from one round to the next
ROWS = 8192


def leading_eigenvectors(
    A: sp.csr_array, count: int, known: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The ``count`` largest eigenvalues, largest first, and their vectors as columns.

    Parameters
    ----------
    A : symmetric, with all eigenvalues from −1 to 1
    count : at most the number of rows minus 17
    known : an eigenvector of length 1 that is left out

    >>> A = sp.csr_array(np.diag(np.linspace(-0.5, 0.5, 300)))
    >>> known = np.eye(300)[299]
    >>> leading_eigenvectors(A, 2, known, np.random.default_rng(0))[0].round(3)
    array([0.497, 0.493])
    """
    known32 = known.astype(np.float32)[:, None]
    rows = [slice(first, min(first + ROWS, A.shape[0])) for first in range(0, A.shape[0], ROWS)]
    blocks = [A[part].astype(np.float32) for part in rows]

    def combined(V: NDArray[Any], a: float, b: float, W: NDArray[Any] | None) -> NDArray[Any]:
        """a (A V) + b V − W."""
        result = np.empty_like(V)

        def fill(number: int) -> None:
            part = rows[number]
            product = blocks[number] @ V
            product *= a
            if b:
                product += b * V[part]
            if W is not None:
                product -= W[part]
            result[part] = product

        list(map_threads(fill, range(len(rows))))
        return result

    def orthonormal(V: NDArray[Any]) -> NDArray[Any]:
        V = V / np.abs(V).max(axis=0)
        V -= known32 @ (known32.T @ V)
        basis: NDArray[Any] = np.linalg.qr(V)[0]
        return basis

    with one_blas_thread():
        V = orthonormal(rng.standard_normal((A.shape[0], count + GUARDS), dtype=np.float32))
        before = np.full(count, np.inf)
        for degree in (*DEGREES, 0):
            H = (V.T @ combined(V, 1.0, 0.0, None)).astype(np.float64)
            values, Q = np.linalg.eigh(0.5 * (H + H.T))
            V = V @ Q.astype(np.float32)
            leading = values[::-1][:count]
            if degree == 0 or np.abs(leading - before).max() < SETTLED:
                break
            before = leading
            # The filter maps [−1, smallest Ritz value] to [−1, 1], where Chebyshev polynomials are small.
            middle, half = 0.5 * (values[0] - 1.0), max(0.5 * (values[0] + 1.0), 0.1)
            earlier, V = V, combined(V, 1.0 / half, -middle / half, None)
            for _ in range(degree - 1):
                earlier, V = V, combined(V, 2.0 / half, -2.0 * middle / half, earlier)
                size = np.float32(np.abs(V[:ROWS]).max() or 1.0)
                if size > 1e10:
                    earlier /= size
                    V /= size
            V = orthonormal(V)
    return leading, np.ascontiguousarray(V[:, ::-1][:, :count], dtype=np.float64)
