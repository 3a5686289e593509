"""Tensors as rows: every pass agrees with NumPy's, bounds hold in float64, in = out."""

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.bqp import presolve
from hashlearn.bqp.rows import Linearized, Rows, rows_of
from hashlearn.linalg.principal_axes import _quantized
from tests.bqp.problems import brute_force

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from hashlearn.bqp.rows.torch_rows import BlockMixing  # noqa: E402
from hashlearn.linalg import tensors as torch_blocks  # noqa: E402

DTYPES = {"float32": (torch.float32, 2e-5), "float64": (torch.float64, 1e-11)}


@pytest.fixture(autouse=True)
def _no_small_problems_on_the_host(monkeypatch):
    monkeypatch.setattr(presolve, "HOST_ROWS", 0)
    monkeypatch.setattr(torch_blocks, "BLOCK", 64)  # several blocks and a rest


def a_pair(dtype: str, n: int = 300, rank: int = 7) -> tuple[Rows, Rows, float]:
    kind, accuracy = DTYPES[dtype]
    P = torch.randn((n, rank), generator=torch.Generator().manual_seed(n)).to(kind)
    return rows_of(P), rows_of(P.double().numpy()), accuracy


def close(a, b, accuracy):
    a = a.double().numpy() if isinstance(a, torch.Tensor) else a
    assert np.abs(a - b).max() <= accuracy * max(np.abs(b).max(), 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pass_is_that_of_numpy(dtype):
    tensor, array, accuracy = a_pair(dtype)
    rng = np.random.default_rng(0)
    B, dB, normals = (rng.standard_normal(shape) for shape in ((7, 4), (7, 4), (4, 5)))
    weights = rng.standard_normal(7)
    for ours, theirs in zip(tensor.image(B), array.image(B), strict=True):
        close(ours, theirs, accuracy)
    close(Linearized(tensor, B).change(dB), Linearized(array, B).change(dB), 20 * accuracy)
    close(Linearized(tensor, B).gram(), Linearized(array, B).gram(), 10 * accuracy)
    close(tensor.product(B), array.product(B), accuracy)
    close(tensor.gram(), array.gram(), 1e-11)
    close(tensor.diagonal(weights), array.diagonal(weights), accuracy)
    S, expected = tensor.draw(B, normals), array.draw(B, normals)
    assert (S.double().numpy() != expected).mean() < (0.002 if dtype == "float32" else 1e-9)
    close(tensor.draw_products(B, normals), array.transposed(S.double().numpy()), accuracy)
    close(tensor.transposed(S), array.transposed(S.double().numpy()), 1e-12)
    close(tensor.transposed(S[:, 0]), array.transposed(S[:, 0].double().numpy()), 1e-12)
    for ours, theirs in zip(_quantized(tensor.P, dB[:, :3]), _quantized(array.P, dB[:, :3]), strict=True):
        close(ours, theirs, 10 * accuracy)


def test_the_gram_of_a_proof_is_as_near_as_it_says():
    tensor, array, _ = a_pair("float32", n=1000)
    d = torch.rand(1000, generator=torch.Generator().manual_seed(1)) ** 4 + 1e-6
    proof = tensor.proof_gram(d)
    Q = array.P.astype(np.longdouble) / np.sqrt(d.double().numpy().astype(np.longdouble))[:, None]
    error = np.abs((Q.T @ Q - proof.gram.numpy()).astype(np.float64))
    assert np.linalg.norm(error) <= proof.rounding * np.trace(proof.gram.numpy())
    assert proof.total >= d.double().sum()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_against_brute_force(seed):
    generator = torch.Generator().manual_seed(seed)
    n, rank = 5 + seed, 1 + seed % 5
    P = torch.randn((n, rank), generator=generator) * 10.0 ** (seed % 3)
    weights = np.random.default_rng(seed).standard_normal(rank) - 0.5
    exact = bqp.LowRank(P.double().numpy(), weights)
    optimum = brute_force(exact)
    solution = bqp.solve(bqp.LowRank(P, weights), bqp.SemidefiniteRelaxation(tol=1e-4, max_iter=6), random_state=seed)
    size = 1e-12 * np.abs(exact.toarray()).sum()
    assert solution.bound <= optimum + size
    assert solution.value >= optimum - size
    assert solution.value == pytest.approx(exact.value(solution.x.numpy()), rel=1e-12, abs=size)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["sdr", "local_search"])
def test_solved_as_well_as_by_numpy(dtype, method):
    kind, _ = DTYPES[dtype]
    P = torch.randn((900, 10), generator=torch.Generator().manual_seed(5)).to(kind)
    weights = np.r_[np.ones(3), -4.0 * np.ones(7)]
    solver = bqp.SemidefiniteRelaxation(tol=1e-4) if method == "sdr" else bqp.LocalSearch(n_starts=4)
    ours = bqp.solve(bqp.LowRank(P, weights), solver, random_state=0)
    theirs = bqp.solve(bqp.LowRank(P.double().numpy(), weights), bqp.SemidefiniteRelaxation(tol=1e-4), random_state=0)
    assert ours.x.dtype == torch.int8
    assert ours.x.device == P.device
    assert ours.value >= theirs.bound
    assert ours.value == pytest.approx(theirs.value, rel=1e-2)
    if method == "sdr":
        assert ours.bound == pytest.approx(theirs.bound, rel=3e-4)
        assert ours.bound <= theirs.details["relaxation_value"]


def test_flip_descent_never_rises_and_ends_where_no_flip_helps():
    tensor, array, _ = a_pair("float64", n=700)
    weights = np.array([1.0, 1.0, 1.0, -2.0, -2.0, -1.0, -3.0])
    X = torch.where(torch.rand((700, 6), generator=torch.Generator().manual_seed(2)) < 0.5, -1.0, 1.0).double()
    after = tensor.flip_descent(weights, X, lambda: None, 200)
    A = bqp.LowRank(array.P, weights)
    for x, y in zip(X.T.numpy(), after.T.numpy(), strict=True):
        assert A.value(y) <= A.value(x)
        assert A.flip_gains(y).min() >= -1e-9 * abs(A.value(y))


def test_steps_of_blocks_never_raise_the_relaxation():
    tensor, array, _ = a_pair("float64", n=500)
    weights = np.array([2.0, 1.0, 1.0, -2.0, -2.0, -1.0, -3.0])
    V = np.random.default_rng(0).standard_normal((500, 4))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    mixing = BlockMixing(tensor.P, weights, torch.from_numpy(V))
    values = [float(weights @ (array.transposed(V) ** 2).sum(axis=1))]
    for _ in range(10):
        mixing.sweep()
        values.append(float(weights @ (mixing.image() ** 2).sum(axis=1)))
    assert np.diff(values).max() <= 1e-9 * abs(values[0])
    assert values[-1] < values[0]


def test_identical_rows_are_merged_as_in_numpy():
    generator = torch.Generator().manual_seed(3)
    rows = torch.randint(-9, 10, (9, 4), generator=generator).float()  # their multiples are exact in float32
    P = rows[torch.randint(0, 9, (200,), generator=generator)]
    weights = -np.ones(4)
    ours = presolve.merge(bqp.LowRank(P, weights))
    theirs = presolve.merge(bqp.LowRank(P.double().numpy(), weights))
    np.testing.assert_allclose(ours.problem.P.numpy(), theirs.problem.P, rtol=1e-6)
    z = np.where(np.random.default_rng(0).random(theirs.problem.n) < 0.5, -1.0, 1.0)
    np.testing.assert_array_equal(ours.expand(torch.tensor(z)).numpy(), theirs.expand(z))
    x = torch.where(torch.rand(200, generator=generator) < 0.5, -1.0, 1.0)
    np.testing.assert_array_equal(ours.collapse(x).numpy(), theirs.collapse(x.double().numpy()))


def test_small_problems_take_any_method_through_the_host(monkeypatch):
    monkeypatch.setattr(presolve, "HOST_ROWS", 1000)
    A = bqp.LowRank(torch.tensor([[1.0, 0.5], [1.0, -2.0], [-1.0, 1.0]]), [-1.0, 1.0])
    solution = bqp.solve(A, "exact", x0=torch.ones(3))
    assert isinstance(solution.x, torch.Tensor)
    assert solution.value == pytest.approx(brute_force(bqp.LowRank(A.P.double().numpy(), A.weights)))


P = torch.ones((4, 2))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (lambda: bqp.LowRank(P.int(), [1.0, 1.0]), TypeError, "float32 or float64"),
        (lambda: bqp.LowRank(P * float("nan"), [1.0, 1.0]), ValueError, "must be finite"),
        (lambda: bqp.LowRank(P.clone().requires_grad_(), [1.0, 1.0]), ValueError, "must not require a gradient"),
        (lambda: bqp.LowRank(P[0], [1.0, 1.0]), ValueError, "2 dimension"),
        (lambda: bqp.LowRank(P, [1.0]), ValueError, "one number for each column"),
        (lambda: bqp.solve(bqp.LowRank(P, [1.0, -1.0]), x0=np.ones(4)), TypeError, "must be a tensor"),
        (lambda: bqp.solve(bqp.LowRank(P, [1.0, -1.0]), x0=torch.ones(3)), ValueError, "must have shape"),
        (lambda: bqp.solve(bqp.LowRank(P, [1.0, -1.0]), x0=torch.zeros(4)), ValueError, "only -1 and"),
        (lambda: bqp.solve(bqp.LowRank(P, [1.0, -1.0]), x0=torch.ones(4, device="meta")), ValueError, "is on meta"),
        (lambda: bqp.solve(bqp.LowRank(P, [1.0, -1.0]), "al"), ValueError, "takes NumPy arrays"),
    ],
)
def test_bad_input_is_named(bad, error, message):
    with pytest.raises(error, match=message):
        bad()


@pytest.mark.parametrize("host_rows", [0, 1000])
def test_a_tensor_of_zeros_is_a_problem(host_rows, monkeypatch):
    monkeypatch.setattr(presolve, "HOST_ROWS", host_rows)
    solution = bqp.solve(bqp.LowRank(torch.zeros((5, 2)), [1.0, -1.0]))
    assert (solution.value, solution.bound, solution.status) == (0.0, 0.0, "optimal")


def test_signs_in_float64_are_merged():
    """Only one bit of their numbers differs, the highest."""
    signs = torch.where(torch.randn((5, 9), generator=torch.Generator().manual_seed(0)) < 0.0, -1.0, 1.0).double()
    assert presolve.merge(bqp.LowRank(signs.repeat(4, 1), -np.ones(9))).problem.n == 5
