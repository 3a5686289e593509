"""Where the codes begin, line 1 of Algorithm 1: PCA thresholded at its mean (the paper's), ITQ, random, or given.

"auto" is ITQ on the factor of the target itself, where it has one whose rows differ, and else PCA on the features:
codes that begin with what they should preserve end at a lower objective (docs/quality.md).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from hashlearn import bqp
from hashlearn.bqp.operators import FloatArray
from hashlearn.bqp.passes import Rows, is_tensor, rows_of
from hashlearn.bqp.threads import one_blas_thread, sum_row_blocks
from hashlearn.inference.bit_problem import objective
from hashlearn.inference.bit_solvers import has_few_distinct_rows
from hashlearn.inference.rotation import itq_rotation

ITQ_ITERATIONS = 50
ROTATIONS = 8
# Up to this many features the covariance matrix is formed and decomposed; beyond, a randomised SVD.
MAX_COVARIANCE = 2048

Start = Callable[[Any, int, np.random.Generator], FloatArray]


def pca_codes(X: Any, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Signs of the first n_bits principal components (their mean is 0)."""
    V = principal_components(X, n_bits, rng)
    return signs(V) if isinstance(V, np.ndarray) else rows_of(V).signs_of_product(np.eye(n_bits))


def itq_codes(X: Any, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Iterative quantisation (Gong and Lazebnik 2011): rotate the components so that signs lose least."""
    V = principal_components(X, n_bits, rng)
    return _rotated_signs(V, itq_rotation(V, rng, ITQ_ITERATIONS)[0])


def random_codes(X: Any, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Independent fair coins."""
    coins = np.where(rng.random((_n_rows(X), n_bits)) < 0.5, -1.0, 1.0)
    return rows_of(X).from_numpy(coins) if _has_passes(X) else coins


STARTS: dict[str, Start] = {"pca": pca_codes, "itq": itq_codes, "random": random_codes}


def start_codes(
    init: Any, X: Any, n_bits: int, rng: np.random.Generator, target: bqp.Operator | None = None
) -> FloatArray:
    """Codes as float ±1, shape (n, n_bits), from a name or from codes given as ±1 or 0/1; ``target`` is for "auto"."""
    n = _n_rows(X)
    if isinstance(init, str) and init == "auto":
        factor = None if target is None else _factor(target)
        if target is not None and factor is not None:
            return _best_rotation(target, factor, n_bits, rng)
        init = "pca"
    if isinstance(init, str):
        if init not in STARTS:
            near = difflib.get_close_matches(init, STARTS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(("auto", *STARTS))
            raise ValueError(f"init must be one of {known} or an array of codes, got {init!r}{hint}")
        with one_blas_thread():
            return STARTS[init](X, n_bits, rng)
    if is_tensor(init):
        return 2.0 * init - 1.0 if bool((init == 0).any()) else init  # checked where they are used
    codes = np.asarray(init)
    if codes.shape != (n, n_bits):
        raise ValueError(f"init must be codes of shape (n_samples, n_bits) = ({n}, {n_bits}), got {codes.shape}")
    if np.isin(codes, (0, 1)).all():
        return 2.0 * codes.astype(np.float64) - 1.0
    if np.isin(codes, (-1, 1)).all():
        return codes.astype(np.float64)
    raise ValueError("init must hold only -1 and +1, or only 0 and 1")


def _best_rotation(target: bqp.Operator, factor: FloatArray, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """The best of several ITQ codes of the factor, each from a random rotation: these end far apart at few bits."""
    with one_blas_thread():
        V = principal_components(factor, n_bits, rng)
        trials = (_rotated_signs(V, itq_rotation(V, rng)[0]) for _ in range(ROTATIONS))
        return min(trials, key=lambda codes: objective(target, codes))


def _factor(target: bqp.Operator) -> FloatArray | None:
    """F with FFᵀ = Y up to negative parts; None for a target that is no such product, or that only tells classes."""
    if not isinstance(target, bqp.LowRank) or has_few_distinct_rows(target):
        return None
    kept = target.weights > 0.0
    if not kept.any():
        return None
    if target.rows.on_host:
        return target.P[:, kept] * np.sqrt(target.weights[kept])
    rows = target.rows if kept.all() else target.rows.with_columns(kept)
    return rows.with_scaled_columns(np.sqrt(target.weights[kept])).P


def principal_components(X: Any, n_components: int, rng: np.random.Generator) -> FloatArray:
    """Centred scores (n, n_components) of X over its largest entry; past its rank random directions fill up."""
    if _has_passes(X):
        return _components_by_passes(rows_of(X), n_components, rng)
    n, n_features = X.shape
    sparse = hasattr(X, "toarray")
    scale = float(max(X.max(), -X.min())) or 1.0  # signs do not mind, and squares of 1e200 stay finite
    mean = np.asarray((X / scale).mean(axis=0), dtype=np.float64).ravel()

    def rows(a: int, b: int) -> FloatArray:
        block = X[a:b].toarray() if sparse else X[a:b]
        return np.asarray(block, dtype=np.float64) / scale - mean

    count = min(n_components, n_features, n)
    if n_features <= MAX_COVARIANCE:
        covariance = sum_row_blocks(lambda a, b: rows(a, b).T @ rows(a, b), n)
        directions = np.linalg.eigh(covariance)[1][:, ::-1][:, :count]
    else:
        seed = int(rng.integers(2**31))
        directions = randomized_svd(rows(0, n), count, random_state=seed, n_iter=4)[2].T
    directions = _finished(directions, n_components, rng)
    return np.concatenate([rows(a, min(a + 4096, n)) @ directions for a in range(0, n, 4096)])


def _components_by_passes(rows: Rows, n_components: int, rng: np.random.Generator) -> Any:
    """The same for a kind of rows that is no NumPy array, through PᵀP."""
    mean = rows.transposed(rows.ones(rows.n)) / rows.n
    covariance = rows.gram() - rows.n * np.multiply.outer(mean, mean)
    count = min(n_components, rows.rank, rows.n)
    directions = _finished(np.linalg.eigh(covariance)[1][:, ::-1][:, :count], n_components, rng)
    return rows.shifted_product(directions, -mean @ directions)


def _finished(directions: FloatArray, n_components: int, rng: np.random.Generator) -> FloatArray:
    """With a fixed sign, the entry of largest magnitude positive, and random directions for those that are missing."""
    n_features, count = directions.shape
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(count)])
    if count < n_components:
        extra = rng.standard_normal((n_features, n_components - count))
        directions = np.hstack([directions, extra])
    return directions


def _rotated_signs(V: Any, R: FloatArray) -> Any:
    return signs(V @ R) if isinstance(V, np.ndarray) else rows_of(V).signs_of_product(R)


def _has_passes(X: Any) -> bool:
    """Whether X is a tensor or another kind of rows, rather than an array or a sparse matrix."""
    return is_tensor(X) or isinstance(X, Rows)


def _n_rows(X: Any) -> int:
    return X.n if isinstance(X, Rows) else X.shape[0]


def signs(values: FloatArray) -> FloatArray:
    """+1 for values of at least 0, else −1."""
    return np.where(values >= 0.0, 1.0, -1.0)
