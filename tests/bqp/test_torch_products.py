"""Thin products of aligned rows, and calls that a GPU would replay: the same numbers as by the plain way."""

import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hashlearn.bqp.rows.torch_rows import (  # noqa: E402
    BlockMixing,
    CudaGraphs,
    FlipDescent,
    TorchRows,
    flip_descent,
)
from hashlearn.linalg.tensors import (  # noqa: E402
    BLOCK,
    CHUNK,
    allow_tf32,
    block_products,
    buffer,
    float64_gram,
    forbid_tf32,
    thin_product,
    transposed_product,
)


def rows(n, rank, aligned, seed=0):
    X = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, rank)))
    return buffer(n, rank, X).copy_(X) if aligned else X


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 9])
def test_thin_products(aligned, columns):
    P = rows(BLOCK + 77, 13, aligned)
    B, V = rows(13, columns, False, 1), rows(len(P), columns, False, 2)
    torch.testing.assert_close(thin_product(P[:, :12], B[:12]), P[:, :12] @ B[:12])
    for part in (slice(None), slice(5, 900)):
        torch.testing.assert_close(thin_product(P[part], B), P[part] @ B)
        torch.testing.assert_close(transposed_product(P[part], V[part]), P[part].T @ V[part])


def test_the_gram_matrix_of_aligned_rows():
    P, d = rows(300, 13, True), torch.rand(300) + 0.5
    torch.testing.assert_close(float64_gram(P, d), P.T @ (P / d.double()[:, None]))
    torch.testing.assert_close(float64_gram(P, None), P.T @ P)


def test_another_thread_does_not_change_the_precision_of_reported_sums(monkeypatch):
    """A second thread searches in TF32 while the first one sums what is reported."""
    n = CHUNK + BLOCK
    P, X = TorchRows(torch.ones((n, 2), dtype=torch.float32)), torch.ones((n, 1), dtype=torch.float32)
    before, precisions, inside, leave = torch.get_float32_matmul_precision(), [], threading.Event(), threading.Event()

    def search():
        with allow_tf32(SimpleNamespace(device=torch.device("cuda"))):
            inside.set()
            leave.wait(10.0)

    def recorded(*arguments):
        if not precisions:
            thread.start()
            inside.wait(0.5)  # it must not get in
        precisions.append(torch.get_float32_matmul_precision())
        return block_products(*arguments)

    thread = threading.Thread(target=search)
    monkeypatch.setattr("hashlearn.bqp.rows.torch_rows.block_products", recorded)
    try:
        np.testing.assert_array_equal(P.transposed(X), [[n], [n]])
        assert precisions == ["highest", "highest"]
    finally:
        leave.set()
        thread.join()
    assert inside.is_set()
    assert torch.get_float32_matmul_precision() == before


def test_reported_sums_are_in_float32_whatever_the_user_allows(monkeypatch):
    precisions = []
    real = block_products
    monkeypatch.setattr(
        "hashlearn.bqp.rows.torch_rows.block_products",
        lambda *arguments: precisions.append(torch.get_float32_matmul_precision()) or real(*arguments),
    )
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        P = TorchRows(torch.ones((CHUNK + 1, 2), dtype=torch.float32))
        P.transposed(P.P[:, :1])
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert precisions == ["highest", "highest"]


def test_the_newer_switches_of_pytorch_are_set_and_set_back():
    """They make `torch.get_float32_matmul_precision` raise."""
    switches = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    if not all(hasattr(switch, "fp32_precision") for switch in switches):
        pytest.skip("this PyTorch has no such switches")
    before = [switch.fp32_precision for switch in switches]
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        with forbid_tf32():
            assert [switch.fp32_precision for switch in switches] == ["ieee", "ieee"]
        assert [switch.fp32_precision for switch in switches] == [before[0], "bf16"]
        P = TorchRows(torch.ones((300, 2)))
        np.testing.assert_array_equal(P.transposed(P.P[:, 0]), [300.0, 300.0])
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = before[1]


def test_a_descent_is_reused_for_the_next_bit_and_freed_with_its_rows():
    P, weights = TorchRows(rows(400, 5, False)), np.array([1.0, 1.0, -3.0, -3.0, -3.0])
    X = torch.where(rows(400, 2, False, 3) < 0.0, -1.0, 1.0).double()
    first = P.flip_descent(weights, X, lambda: None, 50)
    reused = P.graphs.recorded[FlipDescent]
    P.P[:, 0] *= -1.0  # the next bit: other numbers at the same place
    second = P.flip_descent(weights, X, lambda: None, 50)
    assert P.graphs.recorded[FlipDescent] is reused
    fresh = flip_descent(P.P.clone(), weights, X, lambda: None, 50, CudaGraphs())
    torch.testing.assert_close(second, fresh)
    assert torch.equal(first, first.sign())
    assert P.flip_descent(weights, X[:, :1], lambda: None, 50).shape == (400, 1)
    alive = weakref.ref(P.graphs.recorded[FlipDescent])
    del P, reused
    assert alive() is None


def test_a_descent_over_other_rows_is_not_reused():
    graphs, weights = CudaGraphs(), np.array([1.0, 1.0, -3.0, -3.0, -3.0])
    X = torch.where(rows(400, 2, False, 3) < 0.0, -1.0, 1.0).double()
    for seed in (0, 1):
        P = rows(400, 5, False, seed)
        found = flip_descent(P, weights, X, lambda: None, 50, graphs)
        torch.testing.assert_close(found, flip_descent(P, weights, X, lambda: None, 50, CudaGraphs()))


def test_a_mixing_is_reused_for_samples_of_the_same_rows_and_begins_anew():
    graphs, weights = CudaGraphs(), np.array([1.0, 1.0, -3.0, -3.0, -3.0])
    V = [torch.nn.functional.normalize(rows(200, 3, False, seed)) for seed in (5, 6)]
    samples = [rows(200, 5, True, seed) for seed in (7, 8)]
    first = graphs.begun(BlockMixing, samples[0], weights, V[0])
    first.sweep()
    again = graphs.begun(BlockMixing, samples[1], weights, V[1])
    assert again is first
    fresh = BlockMixing(samples[1], weights, V[1])
    for _ in range(4):
        assert again.sweep() == pytest.approx(fresh.sweep())
    np.testing.assert_allclose(again.image(), fresh.image())
    other = graphs.begun(BlockMixing, samples[1], weights, V[1][:, :2].contiguous())
    assert other is not first
