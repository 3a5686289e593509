"""k-means whose cells are numbered so that Hamming distances of the numbers approximate distances of the codewords.

He, Wen and Sun (2013), for one space of few bits: minimize E_quan + weight · E_aff with

    E_quan = mean ‖x − c(x)‖²,    E_aff = Σ_ij n_i n_j / n² (‖c_i − c_j‖ − s √h(i, j))²,

h the Hamming distance of the numbers i and j, n_i the samples in cell i, s a scale set once. A step costs
O(n · 2^bits · n_features).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, sum_row_blocks

UPDATES = 10  # majorization steps for codewords between two assignments; each lowers the error
SETTLED = 1e-5  # stop if no sample changed its cell and the relative gain is at most this


class AffinityKMeans(NamedTuple):
    """Codewords in the order of their numbers, the first bit of a number the highest."""

    codewords: FloatArray  # (2^bits, n_features)
    errors: FloatArray  # (steps, 4): E_quan and E_aff after each assignment, and after each update of the codewords


def affinity_kmeans(
    X: NDArray[Any], n_bits: int, weight: float, n_iter: int, rng: np.random.Generator
) -> AffinityKMeans:
    """Cells start as the signs of the first n_bits columns, which should be those of most variance."""
    n = len(X)
    square = float(np.einsum("ij,ij->", X, X, dtype=np.float64)) / n
    hamming = np.bitwise_count(np.arange(2**n_bits)[:, None] ^ np.arange(2**n_bits)).astype(np.float64)
    cells, codewords = _sign_cells(X, n_bits, rng)
    counts, means = _cell_means(X, cells, codewords)
    codewords = means
    wanted = _scale(codewords, counts / n, hamming) * np.sqrt(hamming)
    errors = []
    for _ in range(n_iter):
        nearest = _nearest(X, codewords)
        counts, means = _cell_means(X, nearest, codewords)
        shares = counts / n
        # Mean ‖x − c‖² = spread inside the cells + Σ share ‖mean − c‖²; only the second depends on the codewords.
        spread = square - float(shares @ (means * means).sum(axis=1))
        before = _errors(codewords, means, shares, wanted, spread)
        codewords = _update(codewords, means, shares, wanted, weight)
        after = _errors(codewords, means, shares, wanted, spread)
        errors.append((*before, *after))
        gained = before[0] - after[0] + weight * (before[1] - after[1])
        if np.array_equal(nearest, cells) and gained <= SETTLED * (after[0] + weight * after[1]):
            break
        cells = nearest
    return AffinityKMeans(codewords, np.array(errors).reshape(-1, 4))


def _sign_cells(X: NDArray[Any], n_bits: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], FloatArray]:
    """Cell numbers from signs, and a vertex of their box for each; random directions if columns are too few."""
    directions = np.eye(X.shape[1], n_bits)
    directions[:, X.shape[1] :] = rng.standard_normal((X.shape[1], max(0, n_bits - X.shape[1])))
    values = np.asarray(X @ directions.astype(X.dtype), dtype=np.float64)
    powers = 2 ** np.arange(n_bits - 1, -1, -1)
    vertex_signs = np.where(np.arange(2**n_bits)[:, None] & powers, 1.0, -1.0)
    return (values >= 0.0) @ powers, (vertex_signs * np.abs(values).mean(axis=0)) @ np.linalg.pinv(directions)


def _nearest(X: NDArray[Any], codewords: FloatArray) -> NDArray[np.int64]:
    turned, half = codewords.T.astype(X.dtype), (0.5 * (codewords * codewords).sum(axis=1)).astype(X.dtype)
    blocks = map_row_blocks(lambda a, b: (X[a:b] @ turned - half).argmax(axis=1), len(X), max(X.shape[1], len(half)))
    return np.concatenate(blocks)


def _cell_means(X: NDArray[Any], cells: NDArray[np.int64], empty: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Samples in each cell and their mean; a cell without samples keeps its row of ``empty``."""
    counts = np.bincount(cells, minlength=len(empty)).astype(np.float64)
    member = np.eye(len(empty), dtype=X.dtype)
    width = max(X.shape[1], len(empty))
    sums = sum_row_blocks(lambda a, b: (member[cells[a:b]].T @ X[a:b]).astype(np.float64), len(X), width)
    filled = counts > 0.0
    means = empty.copy()
    means[filled] = sums[filled] / counts[filled, None]
    return counts, means


def _scale(codewords: FloatArray, shares: FloatArray, hamming: FloatArray) -> float:
    """The s that minimizes E_aff for these codewords."""
    weights = np.multiply.outer(shares, shares)
    whole = float((weights * hamming).sum())
    return float((weights * _distances(codewords) * np.sqrt(hamming)).sum()) / whole if whole > 0.0 else 0.0


def _update(
    codewords: FloatArray, means: FloatArray, shares: FloatArray, wanted: FloatArray, weight: float
) -> FloatArray:
    """Codewords by majorization (SMACOF): ‖c_i − c_j‖ is replaced by its tangent, which gives linear systems."""
    filled = np.flatnonzero(shares)
    C, p, t = codewords[filled], shares[filled], wanted[np.ix_(filled, filled)]
    weights = np.multiply.outer(p, p)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.inv(np.diag(p) + 2.0 * weight * laplacian)
    data_term = p[:, None] * means[filled]
    for _ in range(UPDATES):
        distances = _distances(C)
        ratio = -weights * np.divide(t, distances, out=np.zeros_like(t), where=distances > 0.0)
        np.fill_diagonal(ratio, 0.0)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        C = inverse @ (data_term + 2.0 * weight * (ratio @ C))
    updated = codewords.copy()
    updated[filled] = C
    return updated


def _errors(
    codewords: FloatArray, means: FloatArray, shares: FloatArray, wanted: FloatArray, spread: float
) -> tuple[float, float]:
    moved = codewords - means
    stress = np.multiply.outer(shares, shares) * (_distances(codewords) - wanted) ** 2
    return spread + float(shares @ (moved * moved).sum(axis=1)), float(stress.sum())


def _distances(C: FloatArray) -> FloatArray:
    squares = (C * C).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * (C @ C.T), 0.0))
    np.fill_diagonal(distances, 0.0)
    return distances
