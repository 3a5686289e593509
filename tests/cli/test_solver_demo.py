"""``hashlearn demo --solvers``: the built-in problems are what they say, and the tables are complete."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hashlearn import bqp
from hashlearn.cli import demo, main
from hashlearn.experiments.solver_problems import digits_bit, random_graph


@dataclass(frozen=True)
class Half:
    """The best of all points, and a bound that is too low by 120 %."""

    name: ClassVar[str] = "half"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        for x in itertools.product((1.0, -1.0), repeat=A.n):
            run.offer(np.array(x))
        run.offer_bound(2.2 * run.value)
        return bqp.Status.CONVERGED


@dataclass(frozen=True)
class Weak:
    """All ones, and a bound that nobody needs."""

    name: ClassVar[str] = "weak"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        run.offer_bound(-100.0)
        return bqp.Status.CONVERGED


@dataclass(frozen=True)
class Nothing:
    """All ones, no proof."""

    name: ClassVar[str] = "nothing"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        return bqp.Status.CONVERGED


@dataclass(frozen=True)
class Refuses:
    name: ClassVar[str] = "refuses"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        raise ValueError("n > 3")


@dataclass(frozen=True)
class Interrupted:
    """Ctrl-C on anything larger than what the warm-up sees here."""

    name: ClassVar[str] = "interrupted"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        if A.n < 8:
            return bqp.Status.CONVERGED
        raise KeyboardInterrupt


def use(monkeypatch: pytest.MonkeyPatch, *solvers: Any) -> None:
    for name in reversed(list(bqp.METHODS)):  # undone in reverse, so that the order of the registry comes back
        monkeypatch.delitem(bqp.METHODS, name)
    for solver in solvers:
        monkeypatch.setitem(bqp.METHODS, solver.name, solver)


def run(monkeypatch: pytest.MonkeyPatch, examples: list[demo.Example]) -> Result:
    monkeypatch.setattr(demo, "built_in_examples", lambda seed: examples)
    return CliRunner().invoke(main, ["demo", "--solvers", "--time-limit", "0.5"])


def cells(output: str, method: str) -> list[str]:
    return next(line for line in output.splitlines() if line.startswith(method + " ")).split()


SQUARE = bqp.as_operator(np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=float))


def test_table_of_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The square: 4 edges, all cut at xᵀAx = −8; a bound of −17.6 is one of −16, a cut of 6."""
    use(monkeypatch, Half, Nothing, Refuses)
    result = run(monkeypatch, [demo.Example("a square", SQUARE, n_edges=4)])
    assert result.exit_code == 0, result.output
    assert cells(result.stdout, "half")[:5] == ["half", "4", "6", "33.3", "%"]
    assert cells(result.stdout, "nothing")[:5] == ["nothing", "0", "–", "100", "%"]
    assert cells(result.stdout, "refuses") == ["refuses", "–", "–", "–", "–", "n", ">", "3"]
    assert "How to read it" in result.stdout
    assert "Where next" in result.stdout
    assert result.stderr == ""


def test_table_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Half)
    result = run(monkeypatch, [demo.Example("a square", SQUARE)])
    assert cells(result.stdout, "half")[:5] == ["half", "-8", "-16", "50", "%"]


def test_gap_is_to_the_best_bound_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Weak, Half)
    result = run(monkeypatch, [demo.Example("a square", SQUARE)])
    assert cells(result.stdout, "weak")[:5] == ["weak", "8", "-96", "150", "%"]
    assert cells(result.stdout, "half")[:5] == ["half", "-8", "-16", "50", "%"]


def test_no_bound_at_all_is_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Nothing)
    for n_edges in (None, 4):
        result = run(monkeypatch, [demo.Example("a square", SQUARE, n_edges=n_edges)])
        assert cells(result.stdout, "nothing")[2:4] == ["–", "–"]


def test_interrupt_shows_what_is_there_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Nothing, Interrupted, Half)
    monkeypatch.setattr(demo, "ROWS_TO_WARM_UP", 4)
    result = run(monkeypatch, [demo.Example("a ring", random_graph(8, 2, 0), n_edges=8)] * 2)
    assert result.exit_code == 130
    assert result.stdout.count("a ring") == 1
    assert cells(result.stdout, "interrupted")[-1] == "interrupted"
    assert "half" not in result.stdout


def test_every_method_appears_in_small_versions_of_the_built_in_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    examples = demo.built_in_examples(0, graph_sizes=(12,))
    rows = np.arange(0, 1797, 30)
    small = [
        demo.Example(e.title, e.operator if e.n_edges else e.operator.restricted(rows), e.n_edges) for e in examples
    ]
    result = run(monkeypatch, small)
    assert result.exit_code == 0, result.output
    for example in small:
        assert example.title in result.stdout
    for method in bqp.METHODS:
        assert sum(line.startswith(method + " ") for line in result.stdout.splitlines()) == len(small)
    assert max(map(len, result.stdout.splitlines())) <= 110


@pytest.mark.parametrize("supervised", [True, False])
def test_digits_bit_is_the_problem_of_the_paper(supervised: bool) -> None:
    """Against eqs. (3) to (5) written out: a_ij = z̄_i·z̄_j − y_ij, with the codes taken from the operator."""
    from sklearn.datasets import load_digits

    n_bits = 8
    A = digits_bit(supervised, n_bits)
    some = np.random.default_rng(0).choice(A.n, 40, replace=False)
    others = A.P[some, : n_bits - 1]
    assert set(np.unique(others)) == {-1.0, 1.0}
    assert np.all(np.abs(A.P[:, : n_bits - 1].mean(axis=0)) < 0.5)
    X, y = load_digits(return_X_y=True)
    if supervised:
        distance = (y[some, None] != y[some]).astype(float)
        target = n_bits - 2.0 * n_bits * distance
    else:
        X = X - X.mean(axis=0)
        X = X[some] / np.linalg.norm(X[some], axis=1, keepdims=True)
        distance = ((X[:, None] - X) ** 2).sum(axis=2)
        target = n_bits - n_bits * distance / 2.0
    np.testing.assert_allclose(A.restricted(some).toarray(), others @ others.T - target, atol=1e-10)


@pytest.mark.parametrize(("n", "degree"), [(2, 1), (5, 2), (6, 5), (10, 3), (40, 6)])
def test_random_graph_is_regular_simple_and_repeatable(n: int, degree: int) -> None:
    A = random_graph(n, degree, 3).toarray()
    assert np.array_equal(A, A.T)
    assert set(np.unique(A)) == {0.0, 1.0}
    assert not A.diagonal().any()
    assert np.all(A.sum(axis=0) == degree)
    assert np.array_equal(A, random_graph(n, degree, np.random.default_rng(3)).toarray())
    if n == 40:
        assert not np.array_equal(A, random_graph(n, degree, 4).toarray())


@pytest.mark.parametrize(("n", "degree"), [(5, 3), (4, 4), (4, 0), (1, 1)])
def test_impossible_graphs_are_refused(n: int, degree: int) -> None:
    with pytest.raises(ValueError, match="degree must be"):
        random_graph(n, degree)


@pytest.mark.parametrize("n_bits", [1, 62])
def test_impossible_code_lengths_are_refused(n_bits: int) -> None:
    with pytest.raises(ValueError, match="n_bits"):
        digits_bit(True, n_bits)
