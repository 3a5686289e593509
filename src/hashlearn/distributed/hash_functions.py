"""Hash functions from sums over blocks: the very objects that a fit in memory gives, so they save, load and export.

Ridge regression on the features takes one pass, for the products with the codes; the scatter is known by then. Kernel
ridge regression on landmarks drawn by seed takes two: for a sample of rows (γ, landmarks), and for ΦᵀΦ and Φᵀz.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, panels, pieces, plus
from hashlearn.hash_functions import (
    FittedHashFunctions,
    KernelExpansion,
    KernelRidge,
    LinearRidge,
    automatic,
    is_automatic,
)
from hashlearn.hash_functions.distinct_bits import distinct_columns
from hashlearn.hash_functions.kernel_methods import Landmarks
from hashlearn.hash_functions.kernels import choose_gamma
from hashlearn.hash_functions.linear import ridge_margins

SAMPLE_ROWS = 20_000  # that γ is chosen by


def block_hash_function(value: Any, n: int, with_labels: bool) -> LinearRidge | KernelRidge:
    """A hash function for n rows from a name, or itself; only those whose fit is a sum over rows."""
    if is_automatic(value):
        value = automatic(n, with_labels)
    elif isinstance(value, str):
        value = {"linear_ridge": LinearRidge(), "kernel_ridge": KernelRidge()}.get(value, value)
    if isinstance(value, LinearRidge | KernelRidge):
        return value
    raise ValueError(
        "hash_function must be 'auto', 'linear_ridge', 'kernel_ridge', LinearRidge(...) or KernelRidge(...) "
        f"(others are not sums over blocks of rows), got {value!r}"
    )


def fit_over_blocks(
    spec: LinearRidge | KernelRidge,
    executor: Executor,
    moments: Moments,
    codes: list[NDArray[np.uint8]],
    n_bits: int,
    rng: np.random.Generator,
) -> FittedHashFunctions:
    """Learn all bits of the packed ``codes`` of every block."""
    bits = distinct_columns(bit_columns(codes, n_bits))
    each = [(block,) for block in codes]
    if isinstance(spec, LinearRidge):
        products, sums = executor.reduce(
            cross_moments, plus, executor.rows, bits.columns, n_bits, moments.mean, each=each
        )
        return ridge_margins(moments.mean, moments.scatter, products, sums / moments.n, bits, spec.alpha)
    count = min(max(SAMPLE_ROWS, spec.n_landmarks), moments.n)
    sampled = executor.table.sample(count, rng)
    rows = np.concatenate(executor.map(getitem, executor.rows, each=[(index,) for index in sampled]))
    gamma, origin = choose_gamma(spec.gamma, rows, rng)
    chosen = np.sort(rng.choice(len(rows), min(spec.n_landmarks, len(rows)), replace=False))
    landmarks = Landmarks(rows[chosen], gamma)
    sums = executor.reduce(landmark_sums, plus, executor.rows, landmarks, bits.columns, n_bits, each=each)
    packed = np.concatenate([block[index] for block, index in zip(codes, sampled, strict=True)])
    alpha = spec.weight(rows, _signs(packed, bits.columns, n_bits).astype(np.int8), gamma, rng)
    coefficients = landmarks.ridge(sums, alpha)
    title = f"kernel ridge, gamma={gamma:.4g} ({origin}), alpha={alpha:.4g}, {landmarks.m} Nyström landmarks"
    intercepts = np.zeros(bits.n_distinct)
    return KernelExpansion(landmarks.rows, gamma, coefficients, intercepts, bits, f"{title}, {bits.describe()}")


def cross_moments(
    rows: NDArray[Any], codes: NDArray[np.uint8], columns: NDArray[np.intp], n_bits: int, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ (x − mean) zᵀ and Σ z of a block, for the signs z of some columns of its packed codes."""
    products, sums = np.zeros((rows.shape[1], len(columns))), np.zeros(len(columns))
    for panel, packed in zip(panels(rows), pieces(codes), strict=True):
        signs = _signs(packed, columns, n_bits)
        products += (panel - mean).T @ signs
        sums += signs.sum(axis=0)
    return products, sums


def landmark_sums(
    rows: NDArray[Any], codes: NDArray[np.uint8], landmarks: Landmarks, columns: NDArray[np.intp], n_bits: int
) -> FloatArray:
    """[ΦᵀΦ, Φᵀz] of a block."""
    sums = np.zeros((landmarks.m, landmarks.m + len(columns)))
    for panel, packed in zip(panels(rows), pieces(codes), strict=True):
        sums += landmarks.sums(panel, _signs(packed, columns, n_bits))
    return sums


def _signs(packed: NDArray[np.uint8], columns: NDArray[np.intp], n_bits: int) -> FloatArray:
    return 2.0 * np.unpackbits(packed, axis=1, count=n_bits)[:, columns].astype(np.float64) - 1.0


def bit_columns(codes: list[NDArray[np.uint8]], n_bits: int) -> Iterator[NDArray[np.bool_]]:
    """Every bit of all rows, from the packed codes of the blocks.

    >>> [column.tolist() for column in bit_columns([np.array([[128], [64]], np.uint8)], 2)]
    [[True, False], [False, True]]
    """
    for bit in range(n_bits):
        yield np.concatenate([block[:, bit // 8] & (128 >> bit % 8) > 0 for block in codes])
