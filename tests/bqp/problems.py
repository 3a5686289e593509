"""Small problems with known optimum, for every solver's tests: brute force, planted, or a closed form.

``PROBLEMS`` lists them; ``problem("ring of 11")`` finds one. The oracle here shares no code with the solvers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp import LowRank, Operator, Structured, as_operator


class Problem(NamedTuple):
    name: str
    make: Callable[[], Operator]
    optimum: float


def all_signs(n: int) -> np.ndarray:
    """All sign vectors with x_0 = +1 as rows: 2^(n−1) of them."""
    codes = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)
    return np.hstack([np.ones((len(codes), 1)), 1.0 - 2.0 * (codes & 1)])


def brute_force(A: Operator | np.ndarray) -> float:
    """min xᵀAx by trying everything, from the dense array."""
    array = A if isinstance(A, np.ndarray) else A.toarray()
    X = all_signs(len(array))
    return float(np.einsum("ki,ij,kj->k", X, array, X, optimize=True).min())


def some_signs(n: int, seed: int = 0) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(n) < 0.5, -1.0, 1.0)


def operators(n: int, seed: int) -> list[Operator]:
    """Dense, sparse, low rank, low rank with repeated rows and a negative diagonal, sparse plus low rank."""
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    S = np.triu(np.where(rng.random((n, n)) < 0.4, rng.standard_normal((n, n)), 0.0), 1)
    sparse = as_operator(sp.csr_array(S + S.T))
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    distinct = rng.standard_normal((max(n // 3, 1), 3))
    repeated = LowRank(distinct[rng.integers(0, len(distinct), n)], -rng.random(3))
    return [as_operator(M + M.T), sparse, low_rank, repeated, sparse + low_rank]


def random_symmetric(n: int, seed: int, integers: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    half = rng.integers(-9, 10, (n, n)).astype(float) if integers else rng.standard_normal((n, n))
    return half + half.T


def signed_graph(n: int, seed: int) -> np.ndarray:
    """Weights of −1 or +1 on half of all pairs."""
    rng = np.random.default_rng(seed)
    half = np.tril((rng.random((n, n)) < 0.5) * rng.choice([-1.0, 1.0], (n, n)), -1)
    return half + half.T


def random_sparse(n: int, seed: int, density: float = 0.3) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    half = np.where(rng.random((n, n)) < density / 2, rng.standard_normal((n, n)), 0.0)
    return sp.csr_array(half + half.T)


def random_low_rank(n: int, rank: int, seed: int) -> Structured:
    rng = np.random.default_rng(seed)
    return LowRank(rng.standard_normal((n, rank)), rng.standard_normal(rank))


def unfrustrated(n: int, seed: int) -> np.ndarray:
    """a_ij = −|g_ij| s_i s_j with planted signs s: the optimum is −Σ|a_ij|, reached at s."""
    rng = np.random.default_rng(seed)
    s = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return -np.abs(random_symmetric(n, seed)) * np.outer(s, s)


def adjacency(n: int, edges: list[tuple[int, int]]) -> sp.csr_array:
    i, j = np.array(edges).T
    return sp.csr_array((np.ones(2 * len(edges)), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))


def ring(n: int) -> sp.csr_array:
    return adjacency(n, [(i, (i + 1) % n) for i in range(n)])


def complete(n: int) -> np.ndarray:
    return np.ones((n, n)) - np.eye(n)


def bipartite(left: int, right: int) -> sp.csr_array:
    return adjacency(left + right, [(i, left + j) for i in range(left) for j in range(right)])


def grid(rows: int, columns: int) -> sp.csr_array:
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return adjacency(rows * columns, across + down)


def petersen() -> sp.csr_array:
    outer = [(i, (i + 1) % 5) for i in range(5)]
    inner = [(5 + i, 5 + (i + 2) % 5) for i in range(5)]
    return adjacency(10, outer + inner + [(i, 5 + i) for i in range(5)])


def repeated_rows(copies: int, seed: int = 0, weights: tuple[float, ...] = (-1.0, 1.0, -2.0)) -> Structured:
    """Five distinct rows, each ``copies`` times, in random order."""
    rng = np.random.default_rng(seed)
    rows = np.round(rng.standard_normal((5, len(weights))), 2)
    return LowRank(rows[rng.permutation(np.repeat(np.arange(5), copies))], weights)


def supervised(copies: int) -> tuple[LowRank, float]:
    """One bit of a supervised code, A = zzᵀ + L·11ᵀ − 2L·CCᵀ, with z constant inside each of four classes.

    Every in-class entry of A is 1 + L − 2L = 1 − L < 0, so an optimum is constant inside classes: a 4-variable problem.
    """
    n_bits, z = 3, np.array([1.0, 1.0, -1.0, -1.0])
    classes = np.tile(np.arange(4), copies)
    P = np.column_stack([z[classes], np.ones(len(classes)), np.eye(4)[classes]])
    A = LowRank(P, [1.0, n_bits] + [-2.0 * n_bits] * 4)
    small = copies**2 * (np.outer(z, z) + n_bits - 2.0 * n_bits * np.eye(4))
    return A, brute_force(small)


def _from(name: str, make: Callable[[], object], optimum: float | None = None) -> Problem:
    def operator() -> Operator:
        return as_operator(make())

    return Problem(name, operator, brute_force(operator()) if optimum is None else optimum)


def _table() -> list[Problem]:
    planted = np.where(np.arange(30) % 3 == 0, -1.0, 1.0)
    problems = [
        _from("two variables", lambda: np.array([[0.0, 1.0], [1.0, 0.0]]), -2.0),
        _from("random dense 3", lambda: random_symmetric(3, 0)),
        _from("random dense 12", lambda: random_symmetric(12, 1)),
        _from("random integers 13", lambda: random_symmetric(13, 2, integers=True)),
        _from("random dense 12, tiny", lambda: 1e-9 * random_symmetric(12, 3)),
        _from("random dense 12, huge", lambda: 1e9 * random_symmetric(12, 4)),
        _from("random sparse 14", lambda: random_sparse(14, 5)),
        _from("random low rank 12", lambda: random_low_rank(12, 3, 6)),
        _from("sparse plus low rank 12", lambda: as_operator(random_sparse(12, 7)) + random_low_rank(12, 2, 8)),
        _from("planted rank one, dense", lambda: -np.outer(planted, planted), -900.0),
        _from("planted rank one, low rank", lambda: LowRank(planted[:, None], [-1.0]), -900.0),
        _from("planted rank one, distinct rows", lambda: LowRank(np.arange(1.0, 31.0)[:, None], [-1.0]), -(465.0**2)),
        _from("unfrustrated dense 40", lambda: unfrustrated(40, 9), -float(np.abs(unfrustrated(40, 9)).sum())),
        _from("complete bipartite 3 + 4", lambda: bipartite(3, 4), -24.0),
        _from("grid 5 by 8", lambda: grid(5, 8), -2.0 * (5 * 7 + 4 * 8)),
        _from("complete graph 9", lambda: complete(9), 1.0 - 9.0),
        _from("complete graph 10", lambda: complete(10), -10.0),
        _from("complete graph 26", lambda: complete(26), -26.0),
        _from("complete graph 10, weights 0.1", lambda: 0.1 * complete(10), -1.0),
        _from("ring of 11", lambda: ring(11), -18.0),
        _from("ring of 12", lambda: ring(12), -24.0),
        _from("ring of 30", lambda: ring(30), -60.0),
        _from("Petersen graph", petersen, 30.0 - 4.0 * 12.0),
        _from("negative identity 7", lambda: -np.eye(7), -7.0),
        _from("negative identity 30, sparse", lambda: -sp.eye_array(30, format="csr"), -30.0),
        _from("identity 7", lambda: np.eye(7), 7.0),
        _from("zero dense 5", lambda: np.zeros((5, 5)), 0.0),
        _from("zero sparse 30", lambda: sp.csr_array((30, 30)), 0.0),
        _from("zero low rank 30", lambda: LowRank(np.zeros((30, 2)), [1.0, 1.0]), 0.0),
        _from("no attraction at all", lambda: np.ones((8, 8)), 0.0),
        _from("repeated rows 15", lambda: repeated_rows(3)),
        _from("repeated rows 15, positive diagonal", lambda: repeated_rows(3, weights=(1.0, 2.0))),
        _from("repeated rows 15, mixed diagonal", lambda: repeated_rows(3, seed=1, weights=(1.0, -1.0))),
        _from("supervised 4 classes of 3", lambda: supervised(3)[0]),
        _from("supervised 4 classes of 600", lambda: supervised(600)[0], supervised(600)[1]),
    ]
    assert len({p.name for p in problems}) == len(problems)
    return problems


PROBLEMS = _table()


def problem(name: str) -> Problem:
    return next(p for p in PROBLEMS if p.name == name)
