"""Block graph cuts: exact on what is submodular, never worse than the start, blocks as promised."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn import bqp
from hashlearn.bqp import Dense, GraphCut, Sparse, Status, Structured, as_operator
from hashlearn.bqp.methods.graph_cut import Couplings, minimum_cut_signs
from tests.bqp.problems import (
    PROBLEMS,
    problem,
    random_low_rank,
    random_sparse,
    random_symmetric,
    some_signs,
    supervised,
)

KINDS = {
    "dense": lambda: Dense(random_symmetric(40, 0)),
    "sparse": lambda: Sparse(random_sparse(40, 1)),
    "low rank": lambda: random_low_rank(40, 3, 2),
    "sparse plus low rank": lambda: as_operator(random_sparse(40, 3)) + random_low_rank(40, 2, 4),
}


@pytest.fixture(params=KINDS)
def A(request):
    return KINDS[request.param]()


def both_signs(n: int) -> np.ndarray:
    return 1.0 - 2.0 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    density=st.floats(0.0, 1.0),
    pull=st.sampled_from([0.0, 0.3, 1.0, 3.0, 1e6]),
    size=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_minimum_cut_is_the_minimum(n, seed, density, pull, size):
    rng = np.random.default_rng(seed)
    inside = size * -np.abs(random_symmetric(n, seed)) * (rng.random((n, n)) < density)
    inside = np.minimum(inside, inside.T)
    unary = size * pull * n * rng.standard_normal(n)
    X = both_signs(n)
    energies = np.einsum("ki,ij,kj->k", X, inside, X) + X @ unary
    x = minimum_cut_signs(inside, unary)
    tolerance = 1e-6 * (np.abs(inside).sum() + 1e-9 * np.abs(unary).sum())
    assert x @ inside @ x + x @ unary <= energies.min() + tolerance


def test_minimum_cut_clips_repulsion():
    """Positive weights play no part, and the diagonal neither, however large."""
    inside = np.array([[9.0, 5.0, -1.0], [5.0, -1e12, 0.0], [-1.0, 0.0, 0.0]])
    unary = np.array([-3.0, 1.0, 1.0])
    np.testing.assert_array_equal(minimum_cut_signs(inside, unary), [1.0, -1.0, 1.0])
    assert inside[0, 1] == 5.0


def test_a_block_that_would_get_worse_keeps_its_signs():
    """Both variables of the block are drawn to −1 from outside, but their own repulsion, clipped in the cut, is
    stronger."""
    A = Dense(np.array([[0.0, 5.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    x = np.array([1.0, -1.0, 1.0])
    assert Couplings(A, x).cut(np.array([0, 1])) == 0.0
    np.testing.assert_array_equal(x, [1.0, -1.0, 1.0])


def test_one_block_given_the_others_is_solved_exactly(A):
    """If no pair of the block repels, its new signs are the best there are with the others held fixed."""
    index = np.array([3, 7, 11, 20, 21, 30, 35, 38])
    entries = np.zeros((40, 40))
    entries[np.ix_(index, index)] = -np.abs(A.toarray()[np.ix_(index, index)]) - A.toarray()[np.ix_(index, index)]
    A = A + sp.csr_array(entries)
    for seed in range(6):
        x = some_signs(40, seed)
        couplings = Couplings(A, x)
        before = couplings.refresh()
        tried = np.repeat(x[None], 2**8, axis=0)
        tried[:, index] = both_signs(8)
        best = np.einsum("ki,ij,kj->k", tried, A.toarray(), tried).min()
        gain = couplings.cut(index)
        assert before + gain == pytest.approx(A.value(x), rel=1e-10, abs=1e-8)
        assert A.value(x) == pytest.approx(best, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(couplings.products(index), (A @ x)[index], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda p: p.name)
def test_never_below_the_optimum_nor_above_the_start(entry):
    operator = entry.make()
    for x0 in (None, some_signs(operator.n)):
        solution = bqp.solve(operator, GraphCut(max_iter=5), x0=x0, random_state=0)
        start = np.ones(operator.n) if x0 is None else x0
        assert solution.value <= operator.value(start) + 1e-12 * abs(operator.value(start))
        assert solution.value >= entry.optimum - 1e-9 * abs(entry.optimum) - 1e-12
        assert operator.value(solution.x) == solution.value


@pytest.mark.parametrize(
    "name",
    [
        "two variables",
        "complete bipartite 3 + 4",
        "planted rank one, dense",
        "complete graph 10",
        "negative identity 7",
        "supervised 4 classes of 600",
        "supervised 4 classes of 3",
    ],
)
def test_reaches_the_optimum_where_blocks_suffice(name):
    entry = problem(name)
    values = [bqp.solve(entry.make(), GraphCut(max_iter=10), random_state=seed).value for seed in range(4)]
    assert min(values) == pytest.approx(entry.optimum)


def test_converged_is_a_local_optimum(A):
    """Non-repelling blocks hold every single flip, so a sweep without change leaves none that helps."""
    solution = bqp.solve(A, GraphCut(max_iter=200), random_state=0)
    assert solution.status is Status.CONVERGED
    assert A.flip_gains(solution.x).min() >= -1e-6


def test_found_blocks_are_a_partition_without_repulsion(A):
    for size in (1, 3, 500):
        state = bqp.state.SolveState(A)
        blocks = GraphCut(max_block=size)._greedy_blocks(Couplings(A, np.ones(40)), state, np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(40))
        for block in blocks:
            assert 1 <= len(block) <= size
            inside = A.toarray()[np.ix_(block, block)]
            np.fill_diagonal(inside, 0.0)
            assert inside.max() <= 1e-12
    assert len(blocks) < 40


def test_classes_as_blocks():
    A, optimum = supervised(50)
    labels = np.tile(np.arange(4), 50)
    best = min(bqp.solve(A, GraphCut(blocks=labels), random_state=seed).value for seed in range(4))
    assert best == pytest.approx(optimum)
    solution = bqp.solve(A, GraphCut(blocks=labels), random_state=0)
    assert solution.details["n_blocks"] == 4
    for label in range(4):
        assert len(np.unique(solution.x[labels == label])) == 1


def test_large_blocks_are_split(monkeypatch):
    sizes = []
    cut = Couplings.cut
    monkeypatch.setattr(Couplings, "cut", lambda s, index: sizes.append(len(index)) or cut(s, index))
    A = supervised(25)[0]
    bqp.solve(A, GraphCut(blocks=[0] * 100, max_block=30, max_iter=1), random_state=0)
    assert sizes == [25, 25, 25, 25]


def test_labels_may_be_any_integers_and_are_kept_as_they_are():
    labels = np.array([7, -1, 7, -1])
    method = GraphCut(blocks=labels)
    labels[:] = 0
    np.testing.assert_array_equal(method.blocks, [7, -1, 7, -1])
    repelling = np.ones((4, 4)) - np.eye(4)
    assert bqp.solve(repelling, method, random_state=0).details["n_blocks"] == 2
    assert GraphCut(blocks=(1, 2, 2)).blocks is not None
    with pytest.raises(ValueError, match="read-only"):
        method.blocks[0] = 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"blocks": [[0, 1]]}, "blocks must be None or a sequence of integer labels"),
        ({"blocks": [0.5, 1.0]}, "got shape .* and dtype float64"),
        ({"blocks": ["a", "b"]}, "blocks must be"),
        ({"max_block": 0}, "max_block must be an integer of at least 1, got 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer of at least 1, got 1.5"),
    ],
)
def test_bad_options_are_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        GraphCut(**options)


def test_labels_of_wrong_length_are_refused(A):
    with pytest.raises(ValueError, match="blocks must have 40 labels, one for each variable, got 3"):
        bqp.solve(A, GraphCut(blocks=[0, 1, 1]))


def test_only_small_parts_become_dense(monkeypatch):
    monkeypatch.setattr(Structured, "toarray", None)
    asked = []
    entries = Couplings.entries
    monkeypatch.setattr(Couplings, "entries", lambda s, r, c: asked.append(len(r) * len(c)) or entries(s, r, c))
    bqp.solve(random_low_rank(600, 3, 0), GraphCut(max_block=20), random_state=0)
    assert max(asked) <= 20 * 20
