"""`qubo` and `ising`: all forms agree with the definition of the energy; bad input is refused by name."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp

dimod = pytest.importorskip("dimod")
N = 5
rng = np.random.default_rng(3)
Q = rng.integers(-9, 10, (N, N)).astype(float)  # not symmetric: the energy is zᵀQz
LINEAR = rng.integers(-5, 6, N).astype(float)
ENERGIES = {z: np.array(z) @ Q @ np.array(z) + LINEAR @ np.array(z) + 0.5 for z in itertools.product((0, 1), repeat=N)}
LABELS = ("a", 1, ("b",), None, 2.5)
LABELED = {(LABELS[i], LABELS[j]): Q[i, j] for i in range(N) for j in range(N)}
TWICE = tuple(np.tile(np.indices((N, N)).reshape(2, -1), 2))
FORMS: dict[str, dict[str, Any]] = {
    "array": {"Q": Q, "linear": LINEAR},
    "list": {"Q": Q.tolist(), "linear": LINEAR.tolist()},
    "symmetric": {"Q": (Q + Q.T) / 2.0, "linear": LINEAR},
    "upper triangular": {"Q": np.triu(Q) + np.tril(Q, -1).T, "linear": LINEAR},
    "diagonal": {"Q": Q + np.diag(LINEAR)},
    "sparse": {"Q": sp.csr_array(Q), "linear": LINEAR},
    "duplicates": {"Q": sp.coo_array((np.append(Q, Q) / 2.0, TWICE)), "linear": LINEAR},
    "dict": {"Q": LABELED, "linear": dict(zip(LABELS, LINEAR, strict=True))},
}  # fmt: skip


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_qubo(form: str, sense: str) -> None:
    answer = bqp.qubo(**FORMS[form], offset=0.5, sense=sense, method="exact")
    optimum = (min if sense == "min" else max)(ENERGIES.values())
    assert answer.energy == answer.lower_bound == answer.upper_bound == optimum
    assert (answer.gap, answer.status) == (0.0, bqp.Status.OPTIMAL)
    values = answer.assignment.values() if form == "dict" else answer.assignment
    assert ENERGIES[tuple(int(v) for v in values)] == answer.energy
    if form == "dict":
        assert tuple(answer.assignment) == LABELS
    assert ("upper_bound" if sense == "max" else "lower_bound") in repr(answer)


def test_bounds_of_both_senses_enclose_the_optimum() -> None:
    W = np.triu(np.random.default_rng(0).standard_normal((30, 30)))
    for sense in ("min", "max"):
        answer = bqp.qubo(W, sense=sense, method="sdr", random_state=0)
        assert answer.lower_bound <= answer.upper_bound
        assert answer.energy == (answer.upper_bound if sense == "min" else answer.lower_bound)
        z = answer.assignment.astype(float)
        assert answer.energy == pytest.approx(z @ W @ z, rel=1e-12)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("kind", [dimod.Float32BQM, dimod.Float64BQM, dimod.DictBQM])
def test_models_of_dimod_keep_their_labels_and_energies(vartype: str, kind: Any) -> None:
    model = kind({"a": 1, 2: -3}, {("a", 2): 2, (2, ("c",)): -1.5}, 0.25, vartype)
    energies = dimod.ExactSolver().sample(model).record.energy
    for sense, optimum in (("min", energies.min()), ("max", energies.max())):
        answer = bqp.qubo(model, sense=sense, method="exact")
        assert answer.energy == optimum == answer.bound
        assert model.energy(answer.assignment) == answer.energy
        assert set(answer.assignment.values()) <= ({0, 1} if vartype == "BINARY" else {-1, 1})


H = np.array([1.0, -2.0, 0.0])
J = np.array([[0.0, 2.0, -1.0], [1.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
SPINS = {s: H @ np.array(s) + np.array(s) @ J @ np.array(s) - 3.0 for s in itertools.product((-1, 1), repeat=3)}


@pytest.mark.parametrize("form", ["array", "sparse", "dict"])
def test_every_form_of_an_ising_model(form: str) -> None:
    couplings = {(i, j): J[i, j] for i in range(3) for j in range(3) if i != j}
    given = {"array": (H, J), "sparse": (H, sp.csr_array(J)), "dict": (dict(enumerate(H)), couplings)}[form]
    answer = bqp.ising(*given, offset=-3.0, method="exact")
    assert answer.energy == answer.lower_bound == min(SPINS.values())
    spins = answer.spins.values() if form == "dict" else answer.spins
    assert SPINS[tuple(int(s) for s in spins)] == answer.energy
    assert repr(answer).startswith("Answer(energy=")
    same = dimod.ExactSolver().sample_ising(dict(enumerate(H)), couplings).first.energy - 3.0
    assert answer.energy == same


def test_ising_of_one_part_only() -> None:
    assert bqp.ising([1.0, -2.0], method="exact").energy == -3.0
    assert bqp.ising({"a": 1.0}, method="exact").spins == {"a": -1}
    no_field = bqp.ising(None, {("a", "b"): 1.0}, method="exact")
    assert (no_field.energy, no_field.problem.anchor) == (-1.0, None)
    empty = bqp.ising({}, {}, offset=2.0)
    assert (empty.energy, empty.lower_bound, empty.spins) == (2.0, 2.0, {})


def test_parity_of_spins_closes_the_gap() -> None:
    """An odd ring of spins: the relaxation ends below −3, but energies are odd."""
    ring = {(k, (k + 1) % 5): 1 for k in range(5)}
    answer = bqp.ising(None, ring, method="sdr", random_state=0)
    assert (answer.energy, answer.lower_bound, answer.status.value) == (-3.0, -3.0, "optimal")


@pytest.mark.parametrize("fixed", [{}, {0: 1}, {0: 1, 3: 0}])
def test_fixed_variables(fixed: dict[int, int]) -> None:
    allowed = {z: e for z, e in ENERGIES.items() if all(z[i] == v for i, v in fixed.items())}
    answer = bqp.qubo(Q, linear=LINEAR, offset=0.5, fixed=fixed, method="exact")
    assert answer.energy == answer.lower_bound == min(allowed.values())
    assert tuple(answer.assignment.tolist()) in allowed
    spins = bqp.ising(H, J, offset=-3.0, fixed={1: -1}, method="exact")
    assert spins.energy == min(e for s, e in SPINS.items() if s[1] == -1)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-320])
def test_huge_and_tiny_coefficients(scale: float) -> None:
    scaled = np.triu(Q) * scale
    for method in ("exact", "sdr", "local_search"):
        answer = bqp.qubo(scaled, method=method, random_state=0)
        best = min(math.fsum(scaled[np.ix_(np.array(z, bool), np.array(z, bool))].ravel()) for z in ENERGIES)
        assert answer.lower_bound <= best
        assert answer.energy == best


BAD = [
    (lambda: bqp.qubo(np.ones((2, 3))), ValueError, r"Q must be square, got shape \(2, 3\)"),
    (lambda: bqp.qubo([[1, 2], [3]]), ValueError, "Q must be a rectangular array"),
    (lambda: bqp.qubo([[math.nan]]), ValueError, "the weight of variable 0 must be finite in float64, got nan"),
    (lambda: bqp.qubo(sp.csr_array([[0.0, math.inf], [0.0, 0.0]])), ValueError, r"of \(0, 1\) must be finite"),
    (lambda: bqp.qubo([["a"]]), TypeError, "Q must hold numbers"),
    (lambda: bqp.qubo([[1j]]), TypeError, "Q must be real"),
    (lambda: bqp.qubo({("a", "b", "c"): 1}), ValueError, r"pairs of labels \(u, v\) as keys, got \('a', 'b', 'c'\)"),
    (lambda: bqp.qubo({"ab": 1}), ValueError, "pairs of labels"),
    (lambda: bqp.qubo({("a", "b"): "x"}), TypeError, r"the weight of \('a', 'b'\) must be a real number, got 'x'"),
    (lambda: bqp.qubo({("a", "a"): math.nan}), ValueError, "the weight of variable 'a' must be finite"),
    (lambda: bqp.qubo({("a", "a"): 1}, linear=[1.0]), TypeError, "linear and Q must be both dicts"),
    (lambda: bqp.qubo(np.eye(2), linear={0: 1.0}), TypeError, "linear and Q must be both dicts"),
    (lambda: bqp.qubo(np.eye(2), linear=[1.0]), ValueError, "linear must have 2 entries"),
    (lambda: bqp.qubo(np.eye(2), sense="minimum"), ValueError, "sense must be 'min' or 'max'"),
    (lambda: bqp.qubo(np.eye(2), offset=math.inf), ValueError, "offset must be finite"),
    (lambda: bqp.qubo(np.eye(2), offset="1"), TypeError, "offset must be a real number"),
    (lambda: bqp.qubo(np.eye(2), time_limit=0.0), ValueError, "time_limit must be a positive"),
    (lambda: bqp.qubo(np.eye(2), fixed={0: -1}), ValueError, r"fixed\[0\] must be 0 or 1, got -1"),
    (lambda: bqp.qubo(dimod.BQM("SPIN"), offset=1.0), ValueError, "belong to the model"),
    (lambda: bqp.ising(), ValueError, "ising needs h or J"),
    (lambda: bqp.ising([1.0], np.eye(1)), ValueError, r"J has the pair \(0, 0\), but s² is always 1"),
    (lambda: bqp.ising(None, {("a", "a"): 1.0}), ValueError, "s² is always 1"),
    (lambda: bqp.ising({"a": 1.0}, np.zeros((1, 1))), TypeError, "h and J must be both dicts"),
    (lambda: bqp.ising([1.0], {("a", "b"): 1.0}), TypeError, "h and J must be both dicts"),
    (lambda: bqp.ising([1.0], np.zeros((2, 2))), ValueError, "h must have 2 entries"),
    (lambda: bqp.ising([[1.0]]), ValueError, "h must have 1 entries"),
    (lambda: bqp.ising([math.nan]), ValueError, "the weight of variable 0 must be finite"),
    (lambda: bqp.ising([1.7e308], offset=1.7e308), ValueError, "add up to more than float64 holds"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "said"), BAD, ids=[said for _, _, said in BAD])
def test_bad_input_is_refused_by_name(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


LARGE = (1e3, 1e6, 1e9, 1e12, 1e15)


@pytest.mark.parametrize("method", ["auto", "exact", "branch_and_bound", "local_search"])
@pytest.mark.parametrize("penalty", LARGE)
def test_penalties_do_not_hide_small_terms(penalty: float, method: str) -> None:
    Q = [[0, 0, 0, 0.5], [0, -1.1, penalty, penalty], [0, 0, -2.9, -1.3], [0, 0, 0, 0]]
    answer = bqp.qubo(Q, method=method, random_state=0)
    assert (answer.energy, answer.gap, answer.status.value) == (-4.2, 0.0, "optimal")
    assert -4.2 - 1e-15 <= answer.lower_bound <= -4.2
    shifted = bqp.qubo(Q, offset=-penalty, sense="max", method=method, random_state=0)
    assert shifted.status.value == "optimal"


def test_an_offset_that_cancels_the_energy_counts_in_the_gap() -> None:
    answer = bqp.ising({"a": 0.1, "b": -0.7}, {("a", "b"): 1e6}, offset=1e6, method="sdr", random_state=0)
    assert (answer.status.value == "optimal") == (answer.gap <= 1e-9)
    exact = bqp.ising({"a": 0.1, "b": -0.7}, {("a", "b"): 1e6}, offset=1e6, method="exact")
    assert (exact.energy, exact.gap, exact.status.value) == (pytest.approx(-0.8), 0.0, "optimal")
