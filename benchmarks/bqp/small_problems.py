"""Random small problems in the caller's words, enumerated by definition, and what can be wrong with an answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

SENSES = ("max-cut", "qubo", "ising")
EPS = Fraction(1, 2**52)


@dataclass(frozen=True)
class Instance:
    """A problem in the caller's words, and its enumeration."""

    sense: str
    weights: str
    labels: tuple[Any, ...]
    terms: tuple[tuple[Any, Any, float], ...]  # u = v: linear, or a self-loop
    offset: float = 0.0
    maximize: bool = False
    fixed: dict[Any, int] = field(default_factory=dict)

    @cached_property
    def values(self) -> tuple[int, int]:
        """The values of a variable."""
        return (0, 1) if self.sense == "qubo" else (-1, 1)

    def objective(self, assignment: dict[Any, int]) -> Fraction:
        """By definition, for one assignment."""
        total = Fraction(self.offset)
        for u, v, w in self.terms:
            a, b = assignment[u], assignment[v]
            if self.sense == "max-cut":
                total += Fraction(w) * (a != b)
            else:
                total += Fraction(w) * (a if u == v else a * b)
        return total

    @cached_property
    def size(self) -> Fraction:
        """Σ|w| + |offset|."""
        return sum((abs(Fraction(w)) for _, _, w in self.terms), abs(Fraction(self.offset)))

    @cached_property
    def optimum(self) -> Fraction:
        """The best objective of all assignments that keep the constraints."""
        exponent = max((Fraction(w).denominator.bit_length() for _, _, w in self.terms), default=1)
        grid = np.array(list(itertools.product(self.values, repeat=len(self.labels))), dtype=np.int64)
        column = {label: k for k, label in enumerate(self.labels)}
        totals = np.zeros(len(grid), dtype=object)
        for u, v, w in self.terms:
            a, b = grid[:, column[u]], grid[:, column[v]]
            factor = (a != b).astype(int) if self.sense == "max-cut" else a if u == v else a * b
            totals = totals + factor.astype(object) * int(Fraction(w) * 2**exponent)
        allowed = np.ones(len(grid), dtype=bool)
        for label, value in self.fixed.items():
            allowed &= grid[:, column[label]] == value
        best = (max if self.maximize else min)(totals[allowed].tolist())
        return Fraction(self.offset) + Fraction(best, 2**exponent)


class Claim(NamedTuple):
    """What an entry point answered, in the caller's words."""

    assignment: dict[Any, int]
    objective: float
    bound: float
    gap: float
    status: str


def violations(instance: Instance, claim: Claim) -> list[str]:
    """What is wrong with an answer."""
    if set(claim.assignment) != set(instance.labels) or not set(claim.assignment.values()) <= set(instance.values):
        return [f"no assignment: {claim.assignment}"]
    found = []
    exact, sign = instance.objective(claim.assignment), -1 if instance.maximize else 1
    if abs(Fraction(claim.objective) - exact) > EPS * instance.size:
        found.append(f"objective {claim.objective!r}, but its assignment has {float(exact)!r}")
    if any(claim.assignment[label] != value for label, value in instance.fixed.items()):
        found.append("a fixed variable has another value")
    if np.isnan(claim.bound) or (np.isfinite(claim.bound) and sign * Fraction(claim.bound) > sign * instance.optimum):
        found.append(f"bound {claim.bound!r} cuts off the optimum {float(instance.optimum)!r}")
    if not np.isfinite(claim.bound) and sign * claim.bound > 0:
        found.append(f"no bound, but with the wrong sign: {claim.bound}")
    if claim.gap == 0.0 and claim.status != "optimal":
        found.append(f"gap 0, but status {claim.status}")
    if claim.status == "optimal":
        allowed = 0 if instance.weights in ("integers", "multiples", "halves") else Fraction(2, 10**9) * instance.size
        if abs(exact - instance.optimum) > allowed:
            found.append(f"optimal, but {float(exact)!r} instead of {float(instance.optimum)!r}")
    return found


# ---- random problems ----

WEIGHTS: dict[str, Callable[[np.random.Generator], float]] = {
    "integers": lambda rng: float(rng.integers(-9, 10)),
    "multiples": lambda rng: 49.0 * float(rng.integers(-5, 6)),  # 1 / 49 · 49 is not 1 in float64
    "halves": lambda rng: float(rng.integers(-20, 21)) / 8.0,
    "fractions": lambda rng: float(rng.standard_normal()),
    "huge": lambda rng: float(rng.standard_normal() * 1e290),
    "tiny": lambda rng: float(rng.standard_normal() * 1e-290),
    "mixed": lambda rng: float(rng.standard_normal() * 10.0 ** rng.uniform(-280, 280)),
}
LABELS: tuple[Callable[[int], tuple[Any, ...]], ...] = (
    lambda n: tuple(range(n)),
    lambda n: tuple(f"v{k}" for k in range(n)),
    lambda n: tuple((k, f"a{k}", (k,), f"{k}", -k)[k % 5] for k in range(n)),
    lambda n: tuple(3 * k for k in range(n, 0, -1)),
)


def random_instance(seed: int) -> Instance:
    """A problem with up to 12 variables; some have self-loops, parallel edges, isolated nodes, constraints."""
    rng = np.random.default_rng(seed)
    sense = SENSES[seed % 3]
    weights = list(WEIGHTS)[seed // 3 % len(WEIGHTS)]
    n = int(rng.integers(1, 13)) if rng.random() < 0.3 else int(rng.integers(1, 9))
    labels = LABELS[int(rng.integers(len(LABELS)))](n)
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < rng.choice([0.2, 0.5, 1.0])]
    terms = [(labels[i], labels[j], WEIGHTS[weights](rng)) for i, j in pairs]
    if rng.random() < (0.3 if sense == "max-cut" else 0.6):
        terms += [(label, label, WEIGHTS[weights](rng)) for label in labels if rng.random() < 0.6]
    if terms and rng.random() < 0.3:
        u, v, _ = terms[int(rng.integers(len(terms)))]
        terms.append((v, u, WEIGHTS[weights](rng)))
    offset = float(rng.choice([0.0, 0.0, 3.0, 0.1])) if sense != "max-cut" else 0.0
    maximize = sense == "max-cut" or (sense == "qubo" and rng.random() < 0.4)
    instance = Instance(sense, weights, labels, tuple(terms), offset, maximize)
    if rng.random() < 0.4:
        return instance
    fixed = {label: int(rng.choice(instance.values)) for label in labels if rng.random() < 0.25}
    return Instance(sense, weights, labels, tuple(terms), offset, maximize, fixed)
