"""What `solve` accepts, refuses, promises and returns, for every method in the registry."""

import dataclasses
import os
import signal
import sys
import threading
import time
from fractions import Fraction
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core import event

from hashlearn import bqp
from hashlearn.bqp import state as state_module
from hashlearn.bqp.state import TRACE_LIMIT, AtMost, SolveState
from hashlearn.core.progress import watched

METHODS = list(bqp.METHODS)


def four_kinds(n: int = 14) -> dict[str, object]:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((n, n))
    half = sp.random_array((n, n), density=0.3, rng=rng)
    low_rank = bqp.LowRank(rng.standard_normal((n, 3)), [-1.0, 0.5, -2.0])
    sparse = sp.csr_array(half + half.T)
    return {
        "dense": dense + dense.T,
        "sparse": sparse,
        "low rank": low_rank,
        "sparse plus low rank": bqp.as_operator(sparse) + low_rank,
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", list(four_kinds()))
def test_every_method_on_every_kind(method, kind):
    A = four_kinds()[kind]
    operator = bqp.as_operator(A)
    best = bqp.solve(A, "exact").value
    solution = bqp.solve(A, method, random_state=3)
    assert solution.x.dtype == np.int8
    assert set(np.unique(solution.x)) <= {-1, 1}
    assert solution.value == pytest.approx(operator.value(solution.x), rel=1e-12)
    slack = 1e-12 * np.abs(operator.toarray()).sum()
    assert solution.bound <= best + slack
    assert best <= solution.value + slack
    assert solution.method == method
    again = bqp.solve(A, method, random_state=3)
    np.testing.assert_array_equal(solution.x, again.x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("A", "optimum"),
    [([[2.5]], 2.5), ([[0.0, 1.0], [1.0, 0.0]], -2.0), (-np.eye(5), -5.0), (np.eye(5), 5.0), (np.zeros((7, 7)), 0.0)],
    ids=["1x1", "2x2", "minus identity", "identity", "zero"],
)
def test_tiny_and_degenerate_problems(method, A, optimum):
    solution = bqp.solve(A, method, random_state=0)
    assert solution.value == pytest.approx(optimum)
    assert solution.bound <= solution.value


@pytest.mark.parametrize("method", METHODS)
def test_inputs_stay_untouched_and_may_be_read_only(method):
    M = np.asfortranarray(four_kinds()["dense"])
    before = M.copy()
    M.flags.writeable = False
    x0 = np.ones(14, dtype=np.int8)
    x0.flags.writeable = False
    bqp.solve(M, method, random_state=0, x0=x0)
    np.testing.assert_array_equal(M, before)


@pytest.mark.parametrize("method", METHODS)
def test_never_worse_than_the_start(method):
    A = four_kinds()["dense"]
    best = bqp.solve(A, "exact")
    assert bqp.solve(A, method, random_state=0, x0=best.x).value <= best.value + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_huge_and_tiny_entries_scale_through(method):
    M = np.asarray(four_kinds()["dense"])
    reference = bqp.solve(M, method, random_state=1).value
    for factor in (2.0**300, 2.0**-300):
        assert bqp.solve(M * factor, method, random_state=1).value == pytest.approx(reference * factor, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "sdp"}, "method must be one of .*did you mean 'sdr'"),
        ({"method": "nothing like it"}, "method must be one of auto, sdr, al"),
        ({"time_limit": 0}, "time_limit must be a positive number"),
        ({"time_limit": -1.0}, "time_limit must be a positive number"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"max_iter": 2.5}, "max_iter must be an integer of at least 1"),
        ({"method": "spectral", "max_iter": 3}, "'spectral' has no iterations to limit"),
        ({"random_state": "seed"}, "random_state must be None, a non-negative integer"),
        ({"random_state": -1}, "random_state must be None, a non-negative integer"),
        ({"x0": [1, 1]}, "x0 must have 3 entries, one for each variable, got 2"),
        ({"x0": [1, 0, 1]}, "x0 must hold only -1 and [+]1, got 0 at index 1"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        bqp.solve(np.ones((3, 3)) - np.eye(3), **arguments)


def test_a_solver_that_is_no_dataclass_has_no_max_iter():
    class Ones(bqp.Solver):
        name = "ones"

        def solve(self, A, state, rng, x0):
            state.propose(np.ones(A.n))
            return bqp.Status.CONVERGED

    assert bqp.solve(-np.ones((30, 30)), Ones()).value == -900.0
    with pytest.raises(ValueError, match="'ones' has no iterations to limit"):
        bqp.solve(-np.ones((30, 30)), Ones(), max_iter=3)


def test_a_class_instead_of_a_solver_is_refused():
    with pytest.raises(TypeError, match="method must be a name or a solver object"):
        bqp.solve(np.eye(3), bqp.Spectral)


@pytest.mark.parametrize("seed", [None, 7, np.random.default_rng(1), np.random.RandomState(1)])
def test_every_usual_random_state_is_welcome(seed):
    assert bqp.solve(np.ones((3, 3)) - np.eye(3), "sdr", random_state=seed).value == -2.0


@dataclasses.dataclass(frozen=True)
class Endless(bqp.Solver):
    """Proposes one good point, then waits for ever, or is interrupted."""

    name = "endless"
    interrupt: bool = False

    def solve(self, A, state, rng, x0):
        state.propose_bound(-100.0)
        state.propose(np.where(np.arange(A.n) % 2, 1.0, -1.0))
        if self.interrupt:
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            state.check_time("waiting")


@pytest.mark.parametrize(("interrupt", "status"), [(False, "time_limit"), (True, "interrupted")])
def test_time_limit_and_ctrl_c_return_the_best_so_far(interrupt, status):
    ring = np.roll(np.eye(4), 1, axis=0) + np.roll(np.eye(4), -1, axis=0)
    solution = bqp.solve(ring, Endless(interrupt), time_limit=30.0 if interrupt else 0.1)  # values are 8 · k
    assert solution.status == status
    assert solution.value == -8.0
    assert solution.bound == -96.0
    assert [entry.value for entry in solution.trace] == [np.inf, -8.0]
    assert [entry.bound for entry in solution.trace] == [-96.0, -96.0]


@dataclasses.dataclass(frozen=True)
class Claims(bqp.Solver):
    """Offers all ones, and this bound."""

    name = "claims"
    bound: float = -np.inf
    status: bqp.Status = bqp.Status.CONVERGED

    def solve(self, A, state, rng, x0):
        state.propose(np.ones(A.n))
        state.propose_bound(self.bound)
        return self.status


@pytest.mark.parametrize(
    ("bound", "gap", "status"),
    [
        (-4.0, 0.0, "optimal"),
        (-4.0 - 1e-12, 2.5e-13, "optimal"),
        (-4.0 - 1e-6, 2.5e-7, "converged"),
        (-4.004, 1e-3, "converged"),
        (-np.inf, np.inf, "converged"),
    ],
)
def test_only_a_bound_that_meets_the_value_makes_it_optimal(bound, gap, status):
    solution = bqp.solve(-np.eye(4), Claims(bound))
    assert (solution.value, solution.bound) == (-4.0, bound)
    assert solution.gap == pytest.approx(gap, rel=1e-3)
    assert solution.status == status


def test_a_solver_cannot_call_its_answer_optimal_without_a_bound():
    assert bqp.solve(-np.eye(4), Claims(-5.0, bqp.Status.OPTIMAL)).status == "converged"


def test_a_value_that_is_mostly_rounding_is_not_optimal():
    """The bound meets the value as computed, and the value itself is known to a few digits only."""
    P = np.array([[1e8, 1e8 + 1.0], [1e8, 1e8 + 3.3]])
    A = bqp.LowRank(P, [1.0, -1.0])
    value = A.value([1.0, 1.0])
    assert bqp.solve(A, Claims(value)).status == "converged"
    assert bqp.solve(A.toarray(), Claims(float(A.toarray().sum()))).status == "optimal"


def test_the_better_of_a_bound_in_integers_and_one_in_floats_decides():
    class Both(Claims):
        def solve(self, A, state, rng, x0):
            state.propose_bound(Fraction(-9))
            return super().solve(A, state, rng, x0)

    solution = bqp.solve(-np.eye(4), Both(-4.0))
    assert (solution.value, solution.bound, solution.gap, solution.status) == (-4.0, -4.0, 0.0, "optimal")


def test_a_bound_of_zero_below_the_value_does_not_make_it_optimal():
    solution = bqp.solve(np.eye(4), Claims(0.0))
    assert (solution.value, solution.bound, solution.gap, solution.status) == (4.0, 0.0, np.inf, "converged")


def test_a_bound_that_rounding_put_above_the_value_is_lowered_to_it():
    solution = bqp.solve(-np.eye(4), Claims(-4.0 + 1e-12))
    assert (solution.value, solution.bound, solution.gap) == (-4.0, -4.0, 0.0)


def test_a_weaker_bound_does_not_replace_a_better_one():
    state = SolveState(bqp.as_operator(np.eye(3)))
    assert state.propose_bound(-1.0)
    assert not state.propose_bound(-2.0)
    assert state.bound == -1.0


def test_the_best_point_stays_when_the_solver_goes_on_with_its_array():
    state = SolveState(bqp.as_operator(np.eye(3)))
    x = np.ones(3)
    state.propose(x)
    x[0] = -1.0
    np.testing.assert_array_equal(state.x, np.ones(3))


@dataclasses.dataclass(frozen=True)
class Compiles(bqp.Solver):
    """Compiles a kernel, which takes longer than the time limit of the test, and then checks the time."""

    name: ClassVar[str] = "compiles"

    def solve(self, A: bqp.Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> bqp.Status:
        left = state.seconds_left
        started = time.perf_counter()
        with event.trigger_event("numba:compile"):
            time.sleep(0.3)
        assert time.perf_counter() - started > 0.3
        assert left - 0.1 < state.seconds_left <= left
        state.check_time("after the compilation")
        return bqp.Status.CONVERGED


def test_compilation_does_not_count_towards_the_time_limit():
    solution = bqp.solve(-np.eye(4), Compiles(), time_limit=0.2)
    assert solution.status == bqp.Status.CONVERGED
    assert solution.seconds > 0.3


@pytest.mark.parametrize("method", ["sdr", "al", "local_search", "nopt", "graph_cut"])
def test_real_solvers_hear_the_time_limit(method):
    rng = np.random.default_rng(0)
    A = bqp.LowRank(rng.standard_normal((30_000, 60)), np.r_[np.ones(30), -np.ones(30)])
    solution = bqp.solve(A, method, random_state=0, time_limit=0.02)
    assert solution.status == bqp.Status.TIME_LIMIT
    assert len(solution.x) == 30_000


def ticking(clock, monkeypatch, **options):
    """A run whose clock shows the last of ``clock``, and the list of its progress reports."""
    monkeypatch.setattr(state_module, "time", SimpleNamespace(perf_counter=lambda: clock[-1]))
    told = []
    return SolveState(bqp.as_operator(np.eye(3)), progress=told.append, started=clock[-1], **options), told


def test_progress_is_told_ten_times_a_second_at_most(monkeypatch):
    clock = [100.0]
    state, told = ticking(clock, monkeypatch)
    fork = state.fork("sdr", lambda: False)
    for step in range(2000):
        clock.append(100.0 + 0.001 * step)
        (fork if step % 2 else state).check_time(f"stage {step % 3}", step / 2000)
    assert told[0].seconds == 0.0
    assert 19 <= len(told) <= 21
    assert np.diff([report.seconds for report in told]).min() > 0.09
    state.report_end()
    state.report_end()  # the last one is never held back
    assert told[-1].fraction == told[-2].fraction == 1.0


def test_progress_is_a_fraction_of_the_time_limit_or_else_of_the_work(monkeypatch):
    clock = [100.0]
    state, told = ticking(clock, monkeypatch, time_limit=8.0)
    for seconds, fraction in ((0.0, 0.9), (2.0, None), (6.0, 0.1)):
        clock.append(100.0 + seconds)
        state.check_time("search", fraction)
    assert [report.fraction for report in told] == [0.0, 0.25, 0.75]
    free, told = ticking(clock, monkeypatch)
    free.fork("local_search", lambda: False).check_time("search", 0.4)
    clock.append(200.0)
    free.check_time("relaxation")
    assert [(report.fraction, report.total) for report in told] == [(0.4, 1.0), (None, None)]


@pytest.mark.parametrize("time_limit", [None, 60.0])
def test_the_last_report_has_the_value_and_bound_of_the_answer(time_limit):
    told = []
    A = four_kinds()["dense"]
    solution = bqp.solve(A, random_state=0, time_limit=time_limit, progress=told.append)
    assert (told[-1].value, told[-1].bound) == pytest.approx((solution.value, solution.bound), rel=1e-14)
    assert told[-1].fraction == 1.0
    assert 1 < len(told) <= 2 + 10 * solution.seconds


def test_verbose_shows_a_bar(monkeypatch):
    asked = []

    def noted(progress, verbose):
        asked.append(verbose)
        return watched(progress, False)

    monkeypatch.setattr(sys.modules["hashlearn.bqp.solve"], "watched", noted)
    edges = [("a", "b"), ("b", "c")]
    bqp.solve(np.ones((2, 2)))
    bqp.max_cut(edges, verbose=True)
    bqp.qubo({("a", "b"): 1.0}, verbose=True)
    bqp.ising({"a": 1.0}, verbose=True)
    bqp.solve_problem(bqp.max_cut_problem(edges), verbose=True)
    assert asked == [False, True, True, True, True]
    monkeypatch.undo()
    with pytest.raises(ValueError, match="verbose must be True or False, got 'yes'"):
        bqp.max_cut(edges, verbose="yes")


def test_progress_is_told_stage_value_and_bound(monkeypatch):
    monkeypatch.setattr(state_module, "SECONDS_BETWEEN_REPORTS", 0.0)
    heard = []
    solution = bqp.solve(four_kinds()["dense"], "sdr", random_state=0, progress=heard.append)
    assert {p.stage for p in heard} >= {"interior point", "rounding"}
    assert heard[-1].bound == pytest.approx(solution.bound)
    assert all(p.method == "sdr" for p in heard)


def test_trace_improves_and_is_bounded_in_length():
    state = SolveState(bqp.as_operator(np.eye(3)))
    for value in range(2 * TRACE_LIMIT):
        state.propose_bound(float(value))
    assert len(state.trace) == TRACE_LIMIT
    solution = bqp.solve(four_kinds(24)["dense"], "local_search", random_state=0)
    values = [entry.value for entry in solution.trace]
    assert values == sorted(values, reverse=True)


def test_repr_is_short_and_tells_the_essentials():
    text = repr(bqp.solve(np.ones((3, 3)) - np.eye(3), "exact"))
    assert "value=-2" in text
    assert "status='optimal'" in text
    assert len(text) < 200


@pytest.mark.parametrize("method", ["auto", "branch_and_bound", "sdr", "local_search", "al"])
def test_a_limit_that_is_an_upper_bound_ends_a_solve(method):
    """Searches do not go on until it (tests/inference), but nothing goes on beyond it."""
    A = np.triu(np.random.default_rng(0).standard_normal((300, 300)), 1)
    assert bqp.solve(A + A.T, method, time_limit=AtMost(1e-3), random_state=0).status == bqp.Status.TIME_LIMIT


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda: bqp.solve(np.eye(2), time_limit="5"),
            TypeError,
            "time_limit must be a positive number of seconds or None",
        ),
        (lambda: bqp.solve(np.eye(2), "tabu"), ValueError, "got 'tabu'; did you mean 'local_search'"),
        (lambda: bqp.qubo(np.eye(2), maximize=True), TypeError, "argument 'maximize'; use sense='max'"),
        (lambda: bqp.ising([1.0], metod="sdr"), TypeError, "keyword argument 'metod'; did you mean 'method'"),
        (lambda: bqp.max_cut([(0, 1)], seed=1), TypeError, "unexpected keyword argument 'seed'"),
        (
            lambda: bqp.solve_problem(bqp.ising_problem([1.0]), limit=1),
            TypeError,
            "unexpected keyword argument 'limit'",
        ),
    ],
)
def test_mistakes_are_named_in_the_callers_words(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_optimal_means_a_gap_of_1e_9_also_near_zero():
    """The gap is relative to the bound, whatever the entries of A are."""
    A = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert bqp.solve(A, Claims(-2.0 - 4e-9)).status == "converged"
    near_zero = np.diag([1.0, -1.0]) + 1e-14 * A
    solution = bqp.solve(near_zero, Claims(-5e-13))
    assert (solution.status, solution.gap > 0.5) == ("converged", True)
