"""Sparse tensors: the relaxation on their device agrees with that on the host, and its bounds hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp.graphs import regular_graph, square_torus

from hashlearn import bqp
from tests.bqp.problems import brute_force

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from hashlearn.bqp.sdr.device import ColoredMatrix  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Sparse:UserWarning")


def tensor(W: sp.csr_array, layout: str = "csr"):
    coo = sp.coo_array(W)
    index = torch.as_tensor(np.stack(coo.coords).astype(np.int64))
    made = torch.sparse_coo_tensor(index, torch.as_tensor(coo.data), W.shape).coalesce()
    return made.to_sparse_csr() if layout == "csr" else made


@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("graph", [square_torus, regular_graph])
def test_value_and_bound_are_those_of_the_host(graph, layout):
    W = graph(1000, 3)
    ours = bqp.solve(tensor(W, layout), bqp.SemidefiniteRelaxation(tol=1e-3), random_state=0)
    host = bqp.solve(W, bqp.SemidefiniteRelaxation(tol=1e-6), random_state=0)
    assert ours.details["certificate"] == "chebyshev"
    assert ours.details["relaxation_value"] == pytest.approx(host.details["relaxation_value"], rel=1e-3)
    assert host.bound * 1.0011 <= ours.bound <= host.details["relaxation_value"]
    assert ours.x.dtype == torch.int8
    x = ours.x.numpy().astype(float)
    assert ours.value == x @ (W @ x)
    assert ours.value <= 0.8 * host.bound


def test_bounds_hold_on_small_problems():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 12))
        half = sp.random_array((n, n), density=0.4, rng=rng)
        W = sp.csr_array((half + half.T) * 10.0 ** rng.integers(-3, 4))
        if W.nnz == 0:
            continue
        solution = bqp.solve(tensor(W), bqp.SemidefiniteRelaxation(tol=1e-2, max_iter=3), random_state=seed)
        best = brute_force(W.toarray())
        assert solution.bound <= best + 1e-12 * abs(W).sum()
        assert solution.value >= best - 1e-12 * abs(W).sum()


def test_colors_are_independent_sets_and_flips_never_hurt():
    W = square_torus(400, 0)
    A = ColoredMatrix(tensor(W))
    order = A.order.numpy()
    for a, b in zip(A.edges[:-1], A.edges[1:], strict=True):
        assert W[order[a:b]][:, order[a:b]].nnz == 0
    assert sorted(order) == list(range(400))
    X = torch.where(torch.rand((400, 5)) < 0.5, -1.0, 1.0)
    before = A.values(X)
    after = A.values(A.descend(X))
    assert bool((after < before).all())


def test_a_tensor_that_is_not_symmetric_is_named():
    W = torch.tensor([[0.0, 1.0], [0.0, 0.0]]).to_sparse_csr()
    with pytest.raises(ValueError, match="A must be symmetric"):
        bqp.solve(W)


def test_auto_relaxes_sparse_tensors_and_other_methods_refuse_them():
    W = square_torus(400, 0)
    solution = bqp.solve(tensor(W), random_state=0)
    assert solution.bound <= solution.value < 0.0
    with pytest.raises(ValueError, match="method 'local_search' takes no sparse tensor; use 'sdr'"):
        bqp.solve(tensor(W), "local_search")
    with pytest.raises(ValueError, match="fixed takes problems in NumPy arrays"):
        bqp.solve(tensor(W), "sdr", fixed={0: 1})
