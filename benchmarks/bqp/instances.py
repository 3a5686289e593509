"""The problems that are measured: one bit of a code, eq. (5) in low-rank form, and max-cut and QUBO files.

The bit is the first of ``n_bits`` after the PCA start: every sample is projected on the leading principal
components and each projection is thresholded at its mean. With Z̄ the other bits (samples are rows), C the
one-hot classes and X the unit-norm features,

    supervised    A = Z̄Z̄ᵀ + L·11ᵀ − 2L·CCᵀ      target Y = +L within a class, −L across
    unsupervised  A = Z̄Z̄ᵀ − L·XXᵀ               target Y = L·XXᵀ

so A_ii = −1 in both. P = [Z̄ 1 C] or [Z̄ X] is the only array of its size that is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bqp.mnist import data_file, training_set
from hashlearn.bqp import LowRank, Problem, Structured, read_problem

FloatArray = NDArray[np.float64]
ROWS_PER_BLOCK = 16_384


def mnist_bit(n: int, supervised: bool, n_bits: int = 16, seed: int = 0) -> Structured:
    """The first bit of ``n`` training images of MNIST, drawn evenly from the ten classes.

    Supervised: principal components of the pixels. Unsupervised: pixels centered, rows scaled to unit norm,
    and the principal components of those rows.
    """
    X, labels = _mnist_sample(n, seed)
    X -= X.mean(axis=0)
    if not supervised:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    codes = _signs(X, *_principal_components(X.mean(axis=0), _covariance(X), n_bits))
    Z = codes[:, 1:]
    return _supervised(Z, labels, 10, n_bits) if supervised else _unsupervised(Z, X, n_bits)


def mixture_bit(
    n: int, supervised: bool, n_features: int = 64, n_classes: int = 10, n_bits: int = 16, seed: int = 0
) -> Structured:
    """The first bit of a mixture of ``n_classes`` Gaussians in ``n_features`` dimensions, rows scaled to unit
    norm.

    Centers and noise are standard normal and the centers are moved to mean zero. Samples are generated in
    blocks, twice where they are not kept, so that memory stays near that of P.
    """
    blocks = _Mixture(n, n_features, n_classes, seed)
    mean, moment = np.zeros(n_features), np.zeros((n_features, n_features))
    others = n_bits - 1
    P = np.empty((n, others + (1 + n_classes if supervised else n_features)))
    for rows, X, labels in blocks:
        mean += X.sum(axis=0) / n
        moment += X.T @ X / n
        P[rows, others:] = _class_columns(labels, n_classes) if supervised else X
    components = _principal_components(mean, moment - np.outer(mean, mean), n_bits)
    if supervised:
        for rows, X, _ in blocks:
            P[rows, :others] = _signs(X, *components)[:, 1:]
        return LowRank(P, _supervised_weights(n_classes, n_bits))
    for rows in _row_blocks(n):
        P[rows, :others] = _signs(P[rows, others:], *components)[:, 1:]
    return LowRank(P, _unsupervised_weights(n_features, n_bits))


def file_problem(name: str) -> Problem:
    """A max-cut or QUBO file of ``$HASHLEARN_DATA/bqp``."""
    return read_problem(data_file("bqp", name))


def file_bit(name: str) -> Any:
    """The operator of a file, for tables that do not care where it came from."""
    return file_problem(name).operator


def stored_bit(path: str) -> Structured:
    """What `store` wrote: a race has many turns on one instance, and building it takes longer than some."""
    with np.load(path, allow_pickle=False) as arrays:
        return LowRank(arrays["P"], arrays["weights"])


def store(path: str, family: str, arguments: dict[str, Any]) -> None:
    """Build a low-rank instance and write it, with its classes where it has them."""
    A, labels = build(family, **arguments), classes(family, arguments)
    np.savez(path, P=A.P, weights=A.weights, **({} if labels is None else {"classes": labels}))


# What a task may name: family and keyword arguments travel to the worker as JSON.
FAMILIES: dict[str, Callable[..., Any]] = {
    "mnist": mnist_bit,
    "mixture": mixture_bit,
    "file": file_bit,
    "stored": stored_bit,
}


def build(family: str, **arguments: Any) -> Any:
    """The operator A of an instance."""
    return FAMILIES[family](**arguments)


def classes(family: str, arguments: dict[str, Any]) -> NDArray[np.intp] | None:
    """The class of each sample of a supervised bit of MNIST, for solvers that take blocks; else None."""
    if family == "stored":
        with np.load(arguments["path"], allow_pickle=False) as arrays:
            return arrays.get("classes")
    if family != "mnist" or not arguments["supervised"]:
        return None
    return _mnist_sample(arguments["n"], arguments.get("seed", 0))[1]


def _mnist_sample(n: int, seed: int) -> tuple[FloatArray, NDArray[np.intp]]:
    pixels, labels = training_set()
    chosen = balanced_draw(labels, n, np.random.default_rng(seed))
    return pixels[chosen] / 255.0, labels[chosen].astype(np.intp)


def balanced_draw(labels: NDArray[Any], n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``n`` indices with the classes as even as they can be, in random order."""
    if not 1 <= n <= len(labels):
        raise ValueError(f"n must be between 1 and {len(labels)}, got {n}")
    order = rng.permutation(len(labels))
    # The k-th member of every class comes before the (k + 1)-th of any.
    rank_in_class = np.empty(len(labels), dtype=np.intp)
    for label in np.unique(labels):
        members = np.flatnonzero(labels[order] == label)
        rank_in_class[members] = np.arange(len(members))
    return rng.permutation(order[np.argsort(rank_in_class, kind="stable")[:n]])


def _supervised(Z: FloatArray, labels: NDArray[np.intp], n_classes: int, n_bits: int) -> Structured:
    return LowRank(np.hstack([Z, _class_columns(labels, n_classes)]), _supervised_weights(n_classes, n_bits))


def _unsupervised(Z: FloatArray, X: FloatArray, n_bits: int) -> Structured:
    return LowRank(np.hstack([Z, X]), _unsupervised_weights(X.shape[1], n_bits))


def _class_columns(labels: NDArray[np.intp], n_classes: int) -> FloatArray:
    """[1 C]."""
    columns = np.zeros((len(labels), 1 + n_classes))
    columns[:, 0] = 1.0
    columns[np.arange(len(labels)), 1 + labels] = 1.0
    return columns


def _supervised_weights(n_classes: int, n_bits: int) -> FloatArray:
    return np.concatenate([np.ones(n_bits - 1), [n_bits], np.full(n_classes, -2.0 * n_bits)])


def _unsupervised_weights(n_features: int, n_bits: int) -> FloatArray:
    return np.concatenate([np.ones(n_bits - 1), np.full(n_features, -float(n_bits))])


def _covariance(X: FloatArray) -> FloatArray:
    centered = X - X.mean(axis=0)
    return centered.T @ centered / len(X)


def _principal_components(mean: FloatArray, covariance: FloatArray, n_bits: int) -> tuple[FloatArray, FloatArray]:
    """The mean and the ``n_bits`` leading components as columns."""
    if n_bits > len(covariance):
        raise ValueError(f"{n_bits} bits need at least as many features, there are {len(covariance)}")
    return mean, np.linalg.eigh(covariance)[1][:, : -n_bits - 1 : -1]


def _signs(X: FloatArray, mean: FloatArray, components: FloatArray) -> FloatArray:
    """Projections thresholded at their mean: the PCA start."""
    return np.where(X @ components >= mean @ components, 1.0, -1.0)


def _row_blocks(n: int) -> list[slice]:
    return [slice(a, min(a + ROWS_PER_BLOCK, n)) for a in range(0, n, ROWS_PER_BLOCK)]


class _Mixture:
    """Blocks of rows ``(rows, X, labels)``, the same at every pass."""

    def __init__(self, n: int, n_features: int, n_classes: int, seed: int) -> None:
        self.n, self.seed = n, seed
        centers = np.random.default_rng(seed).standard_normal((n_classes, n_features))
        self.centers = centers - centers.mean(axis=0)

    def __iter__(self) -> Iterator[tuple[slice, FloatArray, NDArray[np.intp]]]:
        for number, rows in enumerate(_row_blocks(self.n)):
            rng = np.random.default_rng([self.seed, number])
            size = rows.stop - rows.start
            labels = rng.integers(len(self.centers), size=size)
            X = self.centers[labels] + rng.standard_normal((size, self.centers.shape[1]))
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            yield rows, X, labels
