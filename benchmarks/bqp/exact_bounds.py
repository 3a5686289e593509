"""Are proven bounds below the optimum? Thousands of small problems, checked in exact integer arithmetic.

Every float64 is an integer times a power of two, so xᵀAx is computed here in Python's integers, without any rounding,
from the parts that the operator stores. No method of `hashlearn.bqp` is used for that. The problems come from families
made to provoke rounding: factors that cancel, entries of wide ranges, ties, planted optima whose dual is exactly
singular, rows that merge, diagonals, tiny and huge entries. Certificates are called directly, because `solve` cuts a
bound down to the value; and all methods that prove something are run too.

    python -m benchmarks.bqp.exact_bounds --problems 20000
"""

from __future__ import annotations

import argparse
import functools
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp.methods.exact import enumerate_signs
from hashlearn.bqp.operators import LowRank, Operator, as_operator
from hashlearn.bqp.sdr.certificate import dual_bound, factored_bound, low_rank_bound

Generator = np.random.Generator
LOG_CHUNK = 12  # sign vectors are tried 2¹² at a time


@dataclass(frozen=True)
class ExactProblem:
    """An operator, and the same matrix as integers times 2^exponent."""

    family: str
    operator: Operator
    matrix: np.ndarray  # of Python integers, not necessarily symmetric
    exponent: int
    tight: np.ndarray | None = None  # y with A − Diag(y) ⪰ 0, singular, where it is known

    def value(self, x: np.ndarray) -> Fraction:
        """xᵀAx."""
        signs = np.array([int(s) for s in x], dtype=object)
        return _times(int(signs @ self.matrix @ signs), self.exponent)

    def optimum(self) -> Fraction:
        """The smallest of all 2^(n − 1) values. Float64 finds those that may be it, integers decide."""
        n = len(self.matrix)
        largest = max((abs(int(a)) for a in self.matrix.ravel()), default=0)
        down = max(largest.bit_length() - 900, 0)
        rough = np.array([[float(int(a) >> down) for a in row] for row in self.matrix])
        room = 4.0 * n * n * (np.abs(rough).sum() * 2.0**-52 + n)
        best: int | None = None
        low = np.inf
        for first in range(0, 1 << (n - 1), 1 << LOG_CHUNK):
            codes = np.arange(first, min(first + (1 << LOG_CHUNK), 1 << (n - 1)))
            X = np.ones((len(codes), n))
            X[:, 1:] -= 2.0 * ((codes[:, None] >> np.arange(n - 1)) & 1)
            values = np.einsum("ij,ij->i", X @ rough, X)
            low = min(low, float(values.min()))
            for x in X[values <= low + room]:
                signs = x.astype(int).astype(object)
                exact = int(signs @ self.matrix @ signs)
                best = exact if best is None else min(best, exact)
        assert best is not None
        return _times(best, self.exponent)


def _times(integer: int, exponent: int) -> Fraction:
    return Fraction(integer) * (Fraction(2) ** exponent)


def integers(array: np.ndarray) -> tuple[np.ndarray, int]:
    """``(N, e)`` with array = N · 2^e exactly."""
    mantissas, exponents = np.frexp(np.asarray(array, dtype=np.float64))
    if not mantissas.any():
        return np.zeros(array.shape, dtype=object), 0
    e = int(exponents[mantissas != 0.0].min()) - 53
    flat = [
        int(m * 2.0**53) << (int(q) - 53 - e) if m else 0 for m, q in zip(mantissas.flat, exponents.flat, strict=True)
    ]
    return np.array(flat, dtype=object).reshape(array.shape), e


def _sum(*parts: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    e = min(exponent for _, exponent in parts)
    return sum(matrix * (1 << (exponent - e)) for matrix, exponent in parts), e


def _low_rank(P: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, int]:
    factor, e = integers(P)
    weights, f = integers(w)
    return (factor * weights) @ factor.T, 2 * e + f


def given(family: str, A: Any, tight: np.ndarray | None = None) -> ExactProblem:
    """A problem from an array, a sparse matrix, ``(P, weights)``, or a list of those to be added up."""
    parts = A if isinstance(A, list) else [A]
    operators = [LowRank(*part) if isinstance(part, tuple) else as_operator(part) for part in parts]
    operator = functools.reduce(lambda left, right: left + right, operators)
    if operator.is_dense:
        exact = [integers(operator.array)]
    else:
        exact = [_low_rank(operator.P, operator.weights)]
        exact += [] if operator.sparse is None else [integers(operator.sparse.toarray())]
    return ExactProblem(family, operator, *_sum(*exact), tight)


def _symmetric(rng: Generator, n: int) -> np.ndarray:
    half = rng.standard_normal((n, n))
    return half + half.T


def _cancelling_factors(rng: Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """P diag(w) Pᵀ whose columns nearly undo each other: what is left is of the size of its rounding."""
    rank = int(rng.integers(1, 4))
    P = rng.standard_normal((n, rank)) * 10.0 ** rng.uniform(0, 9)
    near = P + rng.standard_normal((n, rank)) * np.abs(P).max() * 10.0 ** rng.uniform(-16, -6)
    w = rng.choice([0.1, 1.0, 3.0], rank)
    return np.hstack([P, near]), np.concatenate([w, -w * (1.0 + rng.choice([0.0, 1e-15, 1e-12], rank))])


def cancelling(rng: Generator, n: int) -> ExactProblem:
    """Low rank, or low rank minus itself as a sparse or dense matrix."""
    P, w = _cancelling_factors(rng, n)
    kind = rng.integers(4)
    if kind == 0:
        return given("cancelling", (P, w))
    P, w = P[:, :1], np.array([1.0])
    rounded = -(P @ P.T) + (rng.random((n, n)) < 0.5) * _symmetric(rng, n)
    rounded = np.tril(rounded) + np.tril(rounded, -1).T
    if kind == 1:
        return given("cancelling", [rounded, (P, w)])
    return given("cancelling", [sp.csr_array(rounded), (P, w)])


def integer_differences(rng: Generator, n: int) -> ExactProblem:
    """Two columns of integers just above 2⁵³ that differ in their last digits."""
    a = 2.0**53 + 2.0 * rng.integers(0, 2**40, n)
    return given(
        "integer differences", (np.column_stack([a, a + 2.0 * rng.integers(1, 2**12, n)]), np.array([1.0, -1.0]))
    )


def wide_range(rng: Generator, n: int) -> ExactProblem:
    """Entries, rows or columns from 1e-30 to 1e30, or much further apart."""
    span = rng.choice([5.0, 30.0, 110.0])
    if rng.random() < 0.5:
        half = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-span, span, (n, n))
        return given("wide range", np.tril(half) + np.tril(half, -1).T)
    rank = int(rng.integers(1, 5))
    P = rng.standard_normal((n, rank)) * 10.0 ** rng.uniform(-span / 4, span / 4, (n, rank))
    return given("wide range", (P, rng.standard_normal(rank) * 10.0 ** rng.uniform(-span / 4, span / 4, rank)))


def near_degenerate(rng: Generator, n: int) -> ExactProblem:
    """Almost positive semidefinite, with a null vector of signs: the optimum is 0 but for rounding."""
    s = rng.choice([-1.0, 1.0], n)
    B = rng.standard_normal((n, n))
    B -= np.outer(B @ s, s) / n
    A = B.T @ B + rng.choice([0.0, 1e-15, -1e-12]) * _symmetric(rng, n)
    return given("near degenerate", np.tril(A) + np.tril(A, -1).T)


def planted(rng: Generator, n: int) -> ExactProblem:
    """−|g_ij| s_i s_j: the optimum is −Σ|a_ij|, and the dual y_i = −Σ_j|a_ij| is exactly tight."""
    s = rng.choice([-1.0, 1.0], n)
    G = np.abs(_symmetric(rng, n)) * 10.0 ** rng.uniform(-3, 3)
    np.fill_diagonal(G, 0.0)
    A = -G * np.outer(s, s)
    y = -np.abs(A).sum(axis=1)
    return given("planted", sp.csr_array(A) if rng.random() < 0.5 else A, y)


def planted_rank_one(rng: Generator, n: int) -> ExactProblem:
    """−ccᵀ: the optimum is −(Σ|c|)², and y_i = −|c_i| Σ|c| is tight."""
    c = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.5:
        c = np.rint(1e6 * c) + 1.0
    return given("planted rank one", (c[:, None], np.array([-1.0])), -np.abs(c) * np.abs(c).sum())


def merged_rows(rng: Generator, n: int) -> ExactProblem:
    """Few distinct rows, whose pᵀWp may be 0 but for rounding."""
    rank = int(rng.integers(2, 5))
    rows = rng.standard_normal((max(1, n // 3), rank)) * rng.choice([0.1, 1.0, 1e8])
    w = rng.standard_normal(rank)
    if rng.random() < 0.6:  # p² w = 0 in floating point, or nearly
        rows[:, -1] = np.sqrt(np.maximum((rows[:, :-1] ** 2) @ np.abs(w[:-1]), 0.0))
        w[:-1], w[-1] = np.abs(w[:-1]), -1.0
    return given("merged rows", (rows[rng.integers(0, len(rows), n)], w))


def diagonal(rng: Generator, n: int) -> ExactProblem:
    """All signs are as good as each other."""
    entries = rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 8, n)
    return given("diagonal", sp.diags_array(entries, format="csr") if rng.random() < 0.5 else np.diag(entries))


def tiny(rng: Generator, n: int) -> ExactProblem:
    """Entries down to 1e-280."""
    scale = 10.0 ** rng.uniform(-280, -100)
    if rng.random() < 0.5:
        return given("tiny", _symmetric(rng, n) * scale)
    return given("tiny", (rng.standard_normal((n, 3)) * np.sqrt(scale), rng.standard_normal(3)))


def huge(rng: Generator, n: int) -> ExactProblem:
    """Entries up to 1e240, as products of factors."""
    scale = 10.0 ** rng.uniform(60, 118)
    if rng.random() < 0.5:
        return given("huge", _symmetric(rng, n) * scale)
    return given("huge", (rng.standard_normal((n, 3)) * scale, rng.standard_normal(3)))


def ordinary(rng: Generator, n: int) -> ExactProblem:
    """Gaussian or integer, dense, sparse or low rank; almost symmetric; entries in several parts."""
    kind = rng.integers(5)
    if kind == 0:
        return given("ordinary", _symmetric(rng, n))
    if kind == 1:
        half = rng.integers(-9, 10, (n, n)).astype(float)
        return given("ordinary", half + half.T)
    if kind == 2:
        return given("ordinary", (rng.standard_normal((n, 3)), rng.standard_normal(3)))
    if kind == 3:
        A = _symmetric(rng, n)
        return given("ordinary", A * (1.0 + 1e-16 * rng.integers(-2, 3, (n, n))))
    i, j = rng.integers(0, n, (2, 4 * n))
    w = rng.standard_normal(4 * n)
    parts = (np.concatenate([w, w]), (np.concatenate([i, j]), np.concatenate([j, i])))
    return given("ordinary", sp.coo_array(parts, shape=(n, n)))


FAMILIES: tuple[Callable[[Generator, int], ExactProblem], ...] = (
    cancelling, integer_differences, wide_range, near_degenerate, planted, planted_rank_one, merged_rows, diagonal,
    tiny, huge, ordinary,
)  # fmt: skip


class Claim(NamedTuple):
    """A bound, and who claims it."""

    source: str
    bound: float


def direct_claims(problem: ExactProblem, rng: Generator) -> Iterator[Claim]:
    """Certificates for duals that are tight, nearly tight, and random."""
    A = problem.operator
    yield Claim("enumeration", enumerate_signs(A)[1])
    with np.errstate(all="ignore"):
        guess = -np.abs(A @ rng.choice([-1.0, 1.0], A.n))
    duals = [guess, guess * rng.uniform(0.5, 2.0, A.n)]
    if problem.tight is not None:
        duals += [problem.tight, problem.tight * (1.0 + 1e-15 * rng.standard_normal(A.n))]
    for y in duals:
        yield Claim("factored", factored_bound(A, y, rng).bound)
        yield Claim("dual", dual_bound(A, y, rng).bound)
        yield Claim("chebyshev", dual_bound(A, y, rng, proof_limit=0).bound)
        if A.is_low_rank and A.rank:
            proof = A.rows.proof_gram(-y)
            tightest = low_rank_bound(proof, A.weights)
            yield Claim("low rank", tightest.bound)
            above = tightest.bound * (1.0 - 10.0 ** rng.uniform(-16, -8))
            yield Claim("low rank, enough", low_rank_bound(proof, A.weights, above, 0.5 * above, False).bound)


def solved_claims(problem: ExactProblem, seed: int) -> Iterator[tuple[Claim, bqp.Solution]]:
    """What `solve` says, by every method that proves something."""
    for method in ("sdr", "exact", "local_search"):
        solution = bqp.solve(problem.operator, method, random_state=seed)
        yield Claim(method, solution.bound), solution


def wrong_claims(problem: ExactProblem, seed: int) -> tuple[int, list[str]]:
    """How many claims were checked, and those that exact arithmetic refutes."""
    rng = np.random.default_rng(seed)
    optimum = problem.optimum()
    wrong, checked = [], 0
    # Certificates take problems as `solve` hands them on: of ordinary size.
    ordinary_size = 1e-60 < float(abs(problem.operator.scale())) < 1e60
    for claim in direct_claims(problem, rng) if ordinary_size else ():
        checked += 1
        if np.isfinite(claim.bound) and Fraction(claim.bound) > optimum:
            wrong.append(f"{claim.source}: bound {claim.bound!r} above the optimum by {_relative(claim, optimum)}")
    for claim, solution in solved_claims(problem, seed):
        checked += 1
        if np.isnan(claim.bound) or not np.isfinite(solution.value):
            wrong.append(f"{claim.source}: value {solution.value}, bound {claim.bound}")
        elif np.isfinite(claim.bound) and Fraction(claim.bound) > optimum:
            wrong.append(f"{claim.source}: bound {claim.bound!r} above the optimum by {_relative(claim, optimum)}")
        if solution.status == bqp.Status.OPTIMAL:
            allowed = max(abs(optimum) / 10**9, Fraction(problem.operator.scale()) / 10**12)
            if problem.value(solution.x) - optimum > 2 * allowed:
                wrong.append(
                    f"{claim.source}: called optimal, but is not: {float(problem.value(solution.x) - optimum)}"
                )
    return checked, wrong


def _relative(claim: Claim, optimum: Fraction) -> str:
    return f"{float((Fraction(claim.bound) - optimum) / (abs(optimum) or 1)):.2g}"


def main(problems: int, seed: int, largest: int) -> int:
    """Check, print the counts by family, return the number of wrong claims."""
    warnings.simplefilter("error")
    started, claims, wrong, seen = time.perf_counter(), 0, 0, Counter()
    for k in range(seed, seed + problems):
        rng = np.random.default_rng(k)
        family = FAMILIES[k % len(FAMILIES)]
        n = int(rng.integers(2, largest + 1)) if k % 100 else 20
        problem = family(rng, n)
        checked, refuted = wrong_claims(problem, k)
        claims += checked
        wrong += len(refuted)
        seen[problem.family] += 1
        for line in refuted:
            print(f"problem {k}, {problem.family}, n = {n}: {line}", flush=True)
    for name, count in seen.items():
        print(f"{name:22s} {count:6d} problems")
    seconds = time.perf_counter() - started
    print(f"{problems} problems, {claims} claims, {wrong} refuted by exact arithmetic, {seconds:.0f} s")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--largest", type=int, default=11, help="most variables (every hundredth problem has 20)")
    arguments = parser.parse_args()
    raise SystemExit(1 if main(arguments.problems, arguments.seed, arguments.largest) else 0)
