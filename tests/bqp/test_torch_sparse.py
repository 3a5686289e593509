"""Sparse tensors: the relaxation on their device agrees with that on the host, and its bounds hold."""

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp.graphs import regular_graph, square_torus

from hashlearn import bqp
from tests.bqp.problems import brute_force

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from hashlearn.bqp.torch_sparse import TorchSparse  # noqa: E402

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


def test_the_operator_is_that_of_the_host():
    W = square_torus(400, 0) + sp.diags_array(np.arange(400.0))
    ours, host = TorchSparse(tensor(W)), bqp.as_operator(W)
    u = np.random.default_rng(0).random(400)
    there = torch.as_tensor(u)
    pairs = [
        (ours @ there, host @ u),
        (ours.absolute_product(there), host.absolute_product(u)),
        (ours.congruent(there).diagonal(), host.congruent(u).diagonal()),
        (ours.congruent(there) @ there, host.congruent(u) @ u),
        (ours.diagonal(), host.diagonal()),
        (ours.magnitudes(), host.magnitudes()),
    ]
    for mine, theirs in pairs:
        np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-13)
    assert ours.product_roundings() == host.product_roundings()
    assert ours.scaled(2.0).value(there) == pytest.approx(2.0 * host.value(u))


def test_colors_are_independent_sets_and_flips_never_hurt():
    W = square_torus(400, 0)
    A = TorchSparse(tensor(W))
    colors = [nodes.numpy() for nodes, _ in A.coloring.parts(torch.float32)]
    for nodes in colors:
        assert W[nodes][:, nodes].nnz == 0
    assert sorted(np.concatenate(colors)) == list(range(400))
    X = torch.where(torch.rand((400, 5)) < 0.5, -1.0, 1.0)
    before = [A.value(x) for x in X.T]
    after = [A.value(x) for x in A.coloring.descend(X, 100, lambda: None).T]
    assert all(new < old for new, old in zip(after, before, strict=True))


def test_a_start_and_a_tight_gap_are_heeded():
    W = square_torus(900, 1)
    solution = bqp.solve(tensor(W), bqp.SemidefiniteRelaxation(tol=1e-5, n_draws=10), random_state=0)
    assert solution.details["relaxation_gap"] <= 1e-5
    again = bqp.solve(tensor(W), bqp.SemidefiniteRelaxation(tol=1e-1, n_draws=1), random_state=1, x0=solution.x)
    assert again.value <= solution.value


def test_tensors_of_tiny_huge_and_no_entries():
    W = square_torus(400, 0)
    value = bqp.solve(tensor(W), "sdr", random_state=0).value
    for exponent in (-300, 300):
        scaled = bqp.solve(tensor(W * 2.0**exponent), "sdr", random_state=0)
        assert scaled.value == value * 2.0**exponent
        assert scaled.bound <= scaled.value
    zero = bqp.solve(tensor(0.0 * W), "sdr", random_state=0)
    assert (zero.value, zero.bound) == (0.0, 0.0)


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
