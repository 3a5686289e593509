"""Local search: the table's optima, 1-flip optimality, its budgets, and the tabu walks below it."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp.instances import mixture_bit

import hashlearn.bqp.methods.local_search as local_search
import hashlearn.bqp.methods.tabu as tabu
from hashlearn import bqp
from hashlearn.bqp import Dense, LocalSearch, LowRank, Sparse, Status, Structured, as_operator
from hashlearn.bqp.elimination import eliminate
from hashlearn.bqp.methods.annealing import AnnealedSearch
from hashlearn.bqp.methods.augmented_lagrangian import dual_feasible_start
from hashlearn.bqp.methods.spectral import sign
from hashlearn.bqp.methods.tabu import TabuWalks
from hashlearn.bqp.presolve import merge
from hashlearn.bqp.state import SolveState
from tests.bqp.problems import (
    PROBLEMS,
    random_low_rank,
    random_sparse,
    random_symmetric,
    repeated_rows,
    ring,
    some_signs,
    unfrustrated,
)

SHORT = LocalSearch(n_starts=3, max_iter=20_000)
FEW_SWEEPS = LocalSearch(n_starts=3, max_iter=300)


def neighbors(n: int, degree: int, seed: int) -> sp.csr_array:
    """A sparse matrix with about ``degree`` random ±1 entries a row, made without an n × n array."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, n, (2, n * degree // 2))
    half = sp.coo_array((rng.choice([-1.0, 1.0], len(i)), (i, j)), shape=(n, n)).tocsr()
    return sp.csr_array(half + half.T)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize(
    "method", [LocalSearch(n_starts=3), LocalSearch(max_iter=100_000)], ids=["own budget", "max_iter"]
)
def test_finds_the_optimum_of_the_table(problem, method):
    A = problem.make()
    solution = bqp.solve(A, method, random_state=0)
    assert solution.value == pytest.approx(problem.optimum, rel=1e-9, abs=1e-9)
    assert A.value(solution.x) == solution.value
    assert solution.bound <= problem.optimum + 1e-9 * abs(problem.optimum)


LARGE = {
    "dense": lambda: random_symmetric(150, 0),
    "sparse": lambda: random_sparse(150, 1, density=0.1),
    "low rank, made dense": lambda: random_low_rank(150, 5, 3),
    "low rank, by sweeps": lambda: random_low_rank(2500, 5, 4),
    "low rank, repeated rows": lambda: repeated_rows(1000, weights=(-1.0, -0.5, 2.0)),
    "sparse plus low rank, made dense": lambda: as_operator(random_sparse(100, 5)) + random_low_rank(100, 3, 6),
    "sparse plus low rank, by sweeps": lambda: as_operator(neighbors(2500, 6, 7)) + random_low_rank(2500, 3, 8),
}


@pytest.fixture(params=LARGE)
def large(request):
    return as_operator(LARGE[request.param]())


def short(A: bqp.Operator) -> LocalSearch:
    """20,000 moves, but only 300 where a move is a sweep."""
    swept = A.rank > 0 and A.n > local_search.LARGEST_DENSIFIED
    return FEW_SWEEPS if swept else SHORT


def test_the_answer_is_a_local_optimum(large):
    solution = bqp.solve(large, short(large), random_state=0)
    assert set(np.unique(solution.x)) <= {-1, 1}
    assert large.flip_gains(solution.x).min() >= -1e-9 * abs(solution.value)
    assert solution.value < large.value(np.ones(large.n))


def test_same_seed_same_answer_for_any_thread_count(large, monkeypatch):
    answers = []
    for threads in ("1", "1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(bqp.solve(large, LocalSearch(n_starts=2, max_iter=300), random_state=5))
    for other in answers[1:]:
        assert other.value == answers[0].value
        np.testing.assert_array_equal(other.x, answers[0].x)


def test_starts_from_x0_and_never_worse(large, monkeypatch):
    x0 = bqp.solve(large, short(large), random_state=1).x
    starts = []
    for engine in (TabuWalks, local_search._Descents):
        improve = engine.improve
        monkeypatch.setattr(
            engine, "improve", lambda s, x, *a, improve=improve: starts.append(x.copy()) or improve(s, x, *a)
        )
    descend = AnnealedSearch._descend
    monkeypatch.setattr(AnnealedSearch, "_descend", lambda s, x, *a: starts.append(x.copy()) or descend(s, x, *a))
    again = bqp.solve(large, LocalSearch(n_starts=1, max_iter=1), x0=x0, random_state=2)
    assert again.value <= large.value(x0)
    step = eliminate(large) if large.is_sparse else merge(large)
    x0 = x0.astype(float)
    np.testing.assert_array_equal(starts[0], x0 if step is None else step.collapse(x0))


def test_no_square_array_for_large_low_rank(monkeypatch):
    A = random_low_rank(2100, 3, 0)
    B = Sparse(ring(2100)) + A
    monkeypatch.setattr(Structured, "toarray", None)
    for operator in (A, B):
        assert bqp.solve(operator, LocalSearch(n_starts=2, max_iter=20), random_state=0).value < 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_class_of_rows_moves_as_one(seed):
    """Flips of single rows do not move a class; the second start is an eigenvector in which a class agrees."""
    A = mixture_bit(500, True, seed=seed)
    step = merge(A)
    small = A if step is None else step.problem
    start = dual_feasible_start(small, SolveState(small), np.random.default_rng(0))
    end = small.value(bqp.flips.Descent(small).descend(sign(start.x)))
    assert bqp.solve(A, LocalSearch(n_starts=2), random_state=0).value <= end


class TestStatus:
    A = random_symmetric(40, 0)

    def test_own_budget_ends_early_when_nothing_improves(self, monkeypatch):
        walks = []
        improve = TabuWalks.improve
        monkeypatch.setattr(TabuWalks, "improve", lambda *a, **k: walks.append(improve(*a, **k)) or walks[-1])
        bqp.solve(unfrustrated(30, 0), LocalSearch(n_starts=2), random_state=0)  # every walk finds the optimum
        assert len(walks) == 1 + 2 * local_search.IDLE_WALKS

    def test_max_iter_counts_moves(self, monkeypatch):
        made = []
        improve = TabuWalks.improve
        monkeypatch.setattr(TabuWalks, "improve", lambda *a, **k: made.append(improve(*a, **k)) or made[-1])
        bqp.solve(self.A, "local_search", max_iter=7001, random_state=0)
        assert sum(w.moves for w in made) == 7001

    def test_until_the_time_limit(self):
        solution = bqp.solve(self.A, LocalSearch(n_starts=2), time_limit=0.3, random_state=0)
        assert solution.status is Status.TIME_LIMIT
        assert solution.value < np.sum(self.A)

    def test_tiny_problems_are_proven_even_under_a_time_limit(self):
        solution = bqp.solve(random_symmetric(15, 0), "local_search", time_limit=60.0, random_state=0)
        assert solution.status is Status.OPTIMAL

    def test_max_iter_turns_enumeration_off(self):
        solution = bqp.solve(random_symmetric(15, 0), LocalSearch(max_iter=50), random_state=0)
        assert solution.status is Status.ITERATION_LIMIT
        assert solution.bound == -np.inf


def test_a_long_walk_offers_on_the_way(monkeypatch):
    """Interrupted within the first walk, the best point of that walk comes back."""
    monkeypatch.setattr(tabu, "PIECE", 20_000)
    monkeypatch.setattr("hashlearn.bqp.state.SECONDS_BETWEEN_REPORTS", 0.0)

    def stop(progress):
        if progress.value < -1000.0:
            raise KeyboardInterrupt

    solution = bqp.solve(neighbors(600, 6, 0).toarray(), "local_search", random_state=0, progress=stop)
    assert solution.status is Status.INTERRUPTED
    assert -2000.0 < solution.value < -1000.0


def test_sweeps_offer_on_the_way(monkeypatch):
    monkeypatch.setattr("hashlearn.bqp.state.SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr("hashlearn.bqp.flips.PIECE", 2000)
    A = random_low_rank(3000, 4, 0)
    calls = []

    def stop(progress):
        calls.append(progress)
        if len(calls) > 10:
            raise KeyboardInterrupt

    solution = bqp.solve(A, "local_search", random_state=0, progress=stop)
    assert solution.status is Status.INTERRUPTED
    assert solution.value < A.value(np.ones(3000))


@pytest.mark.parametrize("field", ["n_starts", "max_iter"])
@pytest.mark.parametrize("bad", [0, -3, 2.5, "many", True])
def test_bad_options_are_refused_by_name(field, bad):
    with pytest.raises(ValueError, match=f"{field} must be an integer of at least 1, got {bad!r}"):
        LocalSearch(**{field: bad})


@pytest.mark.parametrize("n_starts", [1, 2, 5])
def test_any_number_of_starts_works(n_starts):
    A = unfrustrated(30, 0)
    for kind in (A, sp.csr_array(A), LowRank(np.arange(1.0, 31.0)[:, None], [-1.0])):
        operator = as_operator(kind)
        solution = bqp.solve(operator, LocalSearch(n_starts=n_starts, max_iter=3000), random_state=0)
        assert operator.flip_gains(solution.x).min() >= -1e-9


WALKED = {
    "dense": lambda: Dense(random_symmetric(60, 3)),
    "dense integers": lambda: Dense(neighbors(80, 5, 5).toarray()),
    "two variables": lambda: Dense(np.array([[0.0, 1.0], [1.0, 0.0]])),
    "with a diagonal": lambda: Dense(random_symmetric(50, 6) + np.diag(np.arange(50.0))),
}


class TestWalks:
    @pytest.fixture(params=WALKED)
    def A(self, request):
        return WALKED[request.param]()

    @pytest.mark.parametrize("tenure", [1, 5, 40])
    def test_value_is_the_value_of_the_signs(self, A, tenure):
        rng = np.random.default_rng(0)
        walk = TabuWalks(A, tenure=tenure, patience=10**6).improve(some_signs(A.n), rng, 20_000)
        assert walk.moves == 20_000
        assert A.value(walk.x) == pytest.approx(walk.value, rel=1e-9, abs=1e-9)
        assert A.value(walk.x) <= A.value(some_signs(A.n))
        assert A.flip_gains(walk.x).min() >= -1e-9

    def test_value_so_far_is_true_after_every_piece(self, A, monkeypatch):
        monkeypatch.setattr(tabu, "PIECE", 500)
        seen = []

        def between(walk):
            assert A.value(walk.x) == pytest.approx(walk.value, rel=1e-9, abs=1e-9)
            seen.append(walk.value)

        rng = np.random.default_rng(0)
        whole = TabuWalks(A, tenure=4, patience=10**6).improve(some_signs(A.n), rng, 2000, between)
        assert len(seen) > 3
        assert seen == sorted(seen, reverse=True)
        assert seen[-1] == whole.value

    def test_pieces_do_not_change_the_walk(self, A, monkeypatch):
        def walk():
            rng = np.random.default_rng(0)
            return TabuWalks(A, tenure=4, patience=10**6).improve(some_signs(A.n), rng, 3000)

        whole = walk()
        monkeypatch.setattr(tabu, "PIECE", 300)
        np.testing.assert_array_equal(walk().x, whole.x)

    def test_patience_ends_the_walk(self, A):
        rng = np.random.default_rng(0)
        walk = TabuWalks(A, tenure=4, patience=200).improve(some_signs(A.n), rng, 10**7)
        assert 200 <= walk.moves < 10**6


def test_walks_leave_local_optima():
    """Plain descent stops where it is; a tabu walk from the same local optimum finds better ones."""
    A = Dense(neighbors(300, 6, 1).toarray())
    stuck = bqp.flips.Descent(A).descend(some_signs(300))
    walk = TabuWalks(A, tenure=15, patience=3000).improve(stuck, np.random.default_rng(0), 10**5)
    assert walk.value < A.value(stuck) - 20.0


def moved(x, gain, until, value=0.0, best=0.0, now=0, tenure=10):
    """The variable that one move without couplings flips."""
    n = len(x)
    before, counts, values = x.copy(), np.array([now, 0]), np.array([value, best])
    random = np.array([7 + now], np.uint64)
    tabu.tabu_moves(np.zeros((n, n)), x, gain, x.copy(), until, counts, values, random, tenure, 10**9, 1e-9, 1)
    return int(np.flatnonzero(x != before)[0])


@pytest.mark.parametrize(
    ("gains", "until", "chosen"),
    [
        ([1.0, 1.5], [0, 9], 0),  # tabu and better than any free flip, but no new best: 10 − 4 · 1.5 = 4
        ([1.0, 3.0], [0, 9], 1),  # a new best: 10 − 4 · 3 = −2 < 2
        ([4.0, 3.0], [0, 9], 0),  # a new best, but a free flip is better still
        ([-6.0, -5.0], [9, 9], 1),  # nothing is free
    ],
)
def test_aspiration(gains, until, chosen):
    assert moved(np.ones(2), np.array(gains), np.array(until), value=10.0, best=2.0) == chosen


def test_tabu_keeps_a_flip_for_its_tenure():
    """Without couplings every flip costs nothing, so only the tabu list decides: no variable moves twice within it."""
    x, gain, until = np.ones(40), np.zeros(40), np.zeros(40, np.int64)
    flips = [moved(x, gain, until, now=now) for now in range(500)]
    last: dict[int, int] = {}
    for move, i in enumerate(flips):
        assert move - last.get(i, -100) >= 10
        last[i] = move
    assert len(last) == 40
