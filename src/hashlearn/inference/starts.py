"""The codes to start from, line 1 of Algorithm 1: signs of PCA (the paper's), ITQ, random signs, or given codes.

"auto" is ITQ on the factor of the target if it has one, else PCA on the features. Codes that start
from what they should preserve end at a lower objective (docs/quality.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import rows_of
from hashlearn.core import thresholds
from hashlearn.core.arrays import FloatArray, is_tensor, tensor_like
from hashlearn.core.names import require_choice
from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread
from hashlearn.inference.objective import frobenius_square, objective
from hashlearn.linalg.principal_axes import (
    filled_up,
    itq_rotation,
    principal_axes,
    random_rotation,
    signs_of_product,
    top_directions,
)

# ITQ from random rotations ends far apart at few bits, where a trial is cheap: 40 trials of 8 bits, 8 of 40 and more.
MAX_ROTATIONS, MIN_ROTATIONS, ROTATED_BITS = 40, 8, 320

Start = Callable[[Any, int, np.random.Generator], Any]  # gives an array for an array, a tensor for a tensor


def pca_codes(X: Any, n_bits: int, rng: np.random.Generator) -> Any:
    """Signs of the first n_bits principal components (their mean is 0)."""
    V = _principal_scores(X, n_bits, rng)
    return signs_of_product(V, np.eye(n_bits))


def itq_codes(X: Any, n_bits: int, rng: np.random.Generator) -> Any:
    """Iterative quantization (Gong and Lazebnik 2011): signs of the components, rotated to lose least."""
    V = _principal_scores(X, n_bits, rng)
    return signs_of_product(V, itq_rotation(V, random_rotation(n_bits, rng))[0])


def random_codes(X: Any, n_bits: int, rng: np.random.Generator) -> Any:
    """Independent fair coins."""
    coins = np.where(rng.random((X.shape[0], n_bits)) < 0.5, -1.0, 1.0)
    return tensor_like(coins, X) if is_tensor(X) else coins


STARTS: dict[str, Start] = {"pca": pca_codes, "itq": itq_codes, "random": random_codes}


def start_codes(init: Any, X: Any, n_bits: int, rng: np.random.Generator, target: bqp.Operator | None = None) -> Any:
    """Codes as float ±1, shape (n, n_bits), from a name or from codes given as ±1 or 0/1; ``target`` is for "auto"."""
    n = X.shape[0]
    if isinstance(init, str):
        require_choice(init, "init", ["auto", *STARTS])
        with one_blas_thread():
            if init != "auto":
                return STARTS[init](X, n_bits, rng)
            factor = None if target is None else _factor(target)
            if target is None or factor is None:
                return pca_codes(X, n_bits, rng)
            return _rotated_codes(target, factor, n_bits, rng)
    if is_tensor(init):
        return 2.0 * init - 1.0 if bool((init == 0).any()) else init  # `infer_codes` checks them
    codes = np.asarray(init)
    if codes.shape != (n, n_bits):
        raise ValueError(f"init must be codes of shape (n_samples, n_bits) = ({n}, {n_bits}), got {codes.shape}")
    if np.isin(codes, (0, 1)).all():
        return 2.0 * codes.astype(np.float64) - 1.0
    if np.isin(codes, (-1, 1)).all():
        return codes.astype(np.float64)
    raise ValueError("init must hold only -1 and +1, or only 0 and 1")


def best_rotation(scores: Any, target: bqp.Operator, count: int, rng: np.random.Generator) -> FloatArray:
    """The rotation whose signs of ``scores`` have the lowest objective, of several that ITQ finds."""
    starts = [random_rotation(scores.shape[1], rng) for _ in range(count)]
    square = frobenius_square(target)

    def rotation(start: FloatArray) -> tuple[float, FloatArray]:
        R = itq_rotation(scores, start)[0]
        return objective(target, signs_of_product(scores, R), square), R

    trials = map(rotation, starts) if is_tensor(scores) else map_threads(rotation, starts)
    return min(trials, key=lambda trial: trial[0])[1]


def _rotated_codes(target: bqp.Operator, factor: Any, n_bits: int, rng: np.random.Generator) -> Any:
    """ITQ codes of the factor; with many rows in memory the rotation is fitted on a sample."""
    count = min(MAX_ROTATIONS, max(MIN_ROTATIONS, ROTATED_BITS // n_bits))
    V, rows = _principal_scores(factor, n_bits, rng), thresholds.ROTATION_ROWS
    if target.n <= rows or not target.rows.on_host:
        return signs_of_product(V, best_rotation(V, target, count, rng))
    sample = np.sort(rng.choice(target.n, rows, replace=False))
    R = best_rotation(V[sample], target.restricted(sample), count, rng)

    def block(a: int, b: int) -> None:
        V[a:b] = signs_of_product(V[a:b], R)

    map_row_blocks(block, *V.shape)
    return V


def _factor(target: bqp.Operator) -> Any:
    """F with FFᵀ = Y up to negative parts; None for a target that is no such product."""
    if not (target.is_low_rank and (target.weights > 0.0).any()):
        return None
    is_positive = target.weights > 0.0
    rows = target.rows if is_positive.all() else target.rows.with_columns(is_positive)
    weights = target.weights[is_positive]
    return rows.P if np.all(weights == 1.0) else rows.with_scaled_columns(np.sqrt(weights)).P  # a view, no copy of P


def _principal_scores(X: Any, n_components: int, rng: np.random.Generator) -> Any:
    """Centered scores (n, n_components) of X; past its rank random directions fill up."""
    if is_tensor(X):
        return _scores_of_tensor(X, n_components, rng)
    axes = principal_axes(X, n_components, rng)
    return axes._replace(directions=filled_up(axes.directions, n_components, rng)).scores(X)


def _scores_of_tensor(X: Any, n_components: int, rng: np.random.Generator) -> Any:
    import torch

    rows = rows_of(X)
    mean = rows.transposed(rows.from_numpy(np.ones(rows.n))) / rows.n
    covariance = rows.gram() - rows.n * np.multiply.outer(mean, mean)
    directions = top_directions(covariance, min(n_components, rows.rank, rows.n))
    directions = filled_up(directions, n_components, rng)
    return torch.addmm(tensor_like(-mean @ directions, X), X, tensor_like(directions, X))
