"""Anneals, cluster crossover, and the search on sparse problems that is made of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp import graphs

from hashlearn import bqp
from hashlearn.bqp import LocalSearch, Status
from hashlearn.bqp.methods import annealing
from hashlearn.bqp.methods.annealing import Annealer, clusters
from tests.bqp.problems import some_signs


def without_diagonal(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(matrix - sp.diags_array(matrix.diagonal()))


def planted(matrix: sp.csr_array, seed: int = 0) -> tuple[sp.csr_array, float]:
    """Weights of the same sizes whose signs hidden signs all satisfy, and the optimum, that of these signs."""
    x = some_signs(matrix.shape[0], seed)
    coo = matrix.tocoo()
    weights = -np.abs(coo.data) * x[coo.coords[0]] * x[coo.coords[1]]
    return sp.csr_array((weights, coo.coords), shape=matrix.shape), -float(np.abs(coo.data).sum())


def weighted(matrix: sp.csr_array, seed: int = 0) -> sp.csr_array:
    """The same graph with weights that are no integers."""
    upper = sp.triu(matrix, 1).tocsr()
    upper.data = upper.data * np.random.default_rng(seed).uniform(0.5, 1.5, upper.nnz)
    return sp.csr_array(upper + upper.T)


GRAPHS = {
    "random": lambda: graphs.random_graph(800, 6.0, 0),
    "torus": lambda: graphs.square_torus(900, 0),
    "weighted torus": lambda: weighted(graphs.square_torus(900, 0)),
    "integers": lambda: sp.csr_array(3.0 * graphs.square_torus(900, 0) + 6.0 * graphs.square_torus(900, 1)),
    "3-regular": lambda: graphs.regular_graph(1200, 0),
    "with a diagonal": lambda: sp.csr_array(graphs.square_torus(900, 0) + sp.diags_array(np.arange(900.0))),
    "isolated nodes": lambda: sp.csr_array(sp.block_diag([graphs.random_graph(900, 5.0, 0), sp.csr_array((50, 50))])),
    "two parts": lambda: sp.csr_array(sp.block_diag([graphs.square_torus(400, 0), graphs.random_graph(400, 5.0, 1)])),
}


@pytest.fixture(params=GRAPHS)
def graph(request):
    return GRAPHS[request.param]()


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(annealing, "STEPS", 5e7)


def test_the_answer_is_a_local_optimum_with_its_value(graph):
    A = bqp.as_operator(graph)
    before = graph.copy()
    solution = bqp.solve(graph, "local_search", random_state=0)
    assert set(np.unique(solution.x)) <= {-1, 1}
    assert solution.value == A.value(solution.x)
    assert solution.trace[-1].value == pytest.approx(solution.value, rel=1e-12)
    assert A.flip_gains(solution.x).min() >= -1e-9 * np.abs(graph.data).max()
    assert solution.status is Status.CONVERGED
    assert "anneal" in solution.details["engine"]
    assert (before != graph).nnz == 0


def test_same_seed_same_answer_for_any_thread_count(graph, monkeypatch):
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(bqp.solve(graph, "local_search", random_state=5))
    np.testing.assert_array_equal(answers[0].x, answers[1].x)
    other = bqp.solve(graph, "local_search", random_state=6)
    assert abs(other.x.astype(float) @ answers[0].x) < len(other.x)


@pytest.mark.parametrize("scale", [1.0, 1e-100, 1e100, 0.3])
def test_planted_signs_are_found(graph, scale):
    matrix, optimum = planted(without_diagonal(graph))
    solution = bqp.solve(scale * matrix, "local_search", random_state=0)
    assert solution.value == pytest.approx(scale * optimum, rel=1e-12)


def test_a_bipartite_graph_is_cut_completely():
    n = 1200
    ring = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    far = sp.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 7) % n)), shape=(n, n))
    W = sp.csr_array(ring + ring.T + far + far.T)
    solution = bqp.solve(W, "local_search", random_state=0)
    assert graphs.cut(W, solution.x) == 2 * n


def test_the_trial_chooses_crossover_on_tori_only(monkeypatch):
    monkeypatch.setattr(annealing, "STEPS", 3e8)
    engines = {
        kind: bqp.solve(graphs.KINDS[kind](2000, 0), "local_search", random_state=0).details["engine"]
        for kind in graphs.KINDS
    }
    assert engines.pop("torus ±1") == annealing.CLUSTERS
    assert set(engines.values()) == {annealing.CYCLES}


@pytest.mark.parametrize("sweeps", [1, 30, 3000])
def test_max_iter_counts_sweeps(graph, sweeps, monkeypatch):
    monkeypatch.setattr(annealing, "STEPS", 1e12)
    solution = bqp.solve(graph, LocalSearch(max_iter=sweeps), time_limit=100.0, random_state=0)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.value < graph.diagonal().sum()
    again = bqp.solve(graph, LocalSearch(max_iter=sweeps), random_state=0)
    np.testing.assert_array_equal(again.x, solution.x)


@pytest.mark.parametrize("n_starts", [1, 2, 20])
def test_any_number_of_starts_works(graph, n_starts):
    A = bqp.as_operator(graph)
    solution = bqp.solve(A, LocalSearch(n_starts=n_starts), random_state=0)
    assert A.flip_gains(solution.x).min() >= -1e-9 * np.abs(graph.data).max()


@pytest.mark.parametrize("limit", [1e-3, 0.05, 1.0])
def test_time_limits(graph, limit):
    bqp.solve(graph, "local_search", time_limit=0.2, random_state=0)  # compiles
    solution = bqp.solve(graph, "local_search", time_limit=limit, random_state=0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.seconds <= limit + 1.0
    if limit == 1.0:
        assert solution.trace[0].seconds < 0.5
        assert solution.value < bqp.solve(graph, "local_search", time_limit=1e-3, random_state=0).value


def test_few_sweeps_are_one_anneal(monkeypatch):
    monkeypatch.setattr(annealing, "STEPS", 1.0)
    solution = bqp.solve(graphs.random_graph(2000, 5.0, 0), "local_search", random_state=0)
    assert solution.details["engine"] == annealing.ONE_ANNEAL


class TestAnnealer:
    def test_an_anneal_lowers_the_value_and_counts_its_sweeps(self, graph):
        matrix, x = without_diagonal(graph), some_signs(graph.shape[0])
        end, sweeps = Annealer(matrix).anneal(x, np.random.default_rng(0), 30)
        end = end.astype(float)
        assert end @ (matrix @ end) < -0.3 * np.abs(matrix.data).sum()
        assert 30 <= sweeps < 40

    def test_pieces_do_not_change_the_anneal(self, graph, monkeypatch):
        def walk() -> np.ndarray:
            return Annealer(without_diagonal(graph)).anneal(some_signs(graph.shape[0]), np.random.default_rng(0), 20)[0]

        whole = walk()
        monkeypatch.setattr("hashlearn.bqp.methods.annealing.PIECE", 1)
        np.testing.assert_array_equal(walk(), whole)

    def test_whole_weights_are_exact_in_single_precision(self):
        def dtype(matrix) -> type:
            return Annealer(matrix).matrix.dtype

        assert dtype(GRAPHS["integers"]()) == np.float32
        assert dtype(0.25 * GRAPHS["torus"]()) == np.float32
        assert dtype(GRAPHS["weighted torus"]()) == np.float64
        assert dtype(sp.csr_array(1.0 + 2.0**30 * (1.0 - np.eye(5)) - np.eye(5))) == np.float32
        wide = sp.csr_array([[0.0, 1.0, 2.0**24], [1.0, 0.0, 1.0], [2.0**24, 1.0, 0.0]])
        assert dtype(wide) == np.float64


class TestClusters:
    @pytest.mark.parametrize("count", [2, 3, 5])
    def test_every_parent_is_a_point_with_its_value(self, graph, count):
        matrix = without_diagonal(graph)
        parents = [some_signs(matrix.shape[0], seed) for seed in range(count)]
        small, cluster = clusters(matrix, parents)
        np.testing.assert_allclose((small - small.T).toarray(), 0.0, atol=1e-12)
        assert not small.diagonal().any()
        values = [parent @ (matrix @ parent) for parent in parents]
        assert small.shape[0] == cluster.max() + 1
        inner = values[0] - small.sum()  # the pairs within clusters, the same at every point
        for parent, value in zip(parents, values, strict=True):
            relative = parent * parents[0]
            y = np.zeros(small.shape[0])
            y[cluster] = relative
            np.testing.assert_array_equal(y[cluster], relative)  # one sign for each cluster
            assert inner + y @ (small @ y) == pytest.approx(value, rel=1e-9, abs=1e-9)
