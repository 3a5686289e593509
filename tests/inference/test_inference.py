"""Algorithm 1: the bit problems against eq. (4) computed densely, descent, starts and the report."""

import dataclasses
import itertools
import time

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp, inference, targets
from hashlearn.bqp.methods import annealing, local_search, tabu
from hashlearn.bqp.methods.spectral import sign
from hashlearn.inference.all_rows import WholeBits
from hashlearn.inference.objective import frobenius_square, objective
from hashlearn.linalg.principal_axes import principal_axes


def sample(n=80, n_features=6, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return 2.0 * rng.standard_normal((n_classes, n_features))[y] + rng.standard_normal((n, n_features)), y


X, LABELS = sample()
WHOLE_PRESETS = [name for name in inference.PRESETS if name not in ("passes", "sampled_al")]


def all_kinds():
    rng = np.random.default_rng(0)
    similarity = targets.Distance().build(X, None, rng).toarray()
    return {
        "low rank": targets.Labels().build(X, LABELS, rng),
        "sparse plus low rank": targets.ThresholdedDistance(0.1).build(X, None, rng),
        "dense": bqp.as_operator(similarity),
        "sparse": targets.Pairs(similar=[(0, 1), (2, 3)], dissimilar=[(0, 2)]).build(X, None, rng),
    }


def whole_bits(target, start):
    solver = bqp.Spectral()
    return WholeBits(target, start, solver, solver, monotone=True, rng=np.random.default_rng(0))


@pytest.mark.parametrize("kind", list(all_kinds()))
def test_bit_problem_is_equation_4(kind):
    Y = all_kinds()[kind]
    rng = np.random.default_rng(1)
    problems = whole_bits(Y, inference.start_codes("random", X, 5, rng))
    for bit in (0, 3, 1, 1, 4, 0):
        others = np.delete(problems.codes, bit, axis=1)
        expected = others @ others.T - 5 * Y.toarray()
        A = problems.problem(bit)
        np.testing.assert_allclose(A.toarray(), expected, atol=1e-9)
        # Eq. (4): the objective changes by twice what xᵀAx changes by.
        x = np.where(rng.random(len(X)) < 0.5, -1.0, 1.0)
        before, change = problems.objective(), A.value(x) - A.value(problems.codes[:, bit])
        problems.update(bit, x)
        assert problems.objective() - before == pytest.approx(2.0 * change / 25 / len(X) ** 2, abs=1e-9)


@pytest.mark.parametrize("kind", list(all_kinds()))
def test_objective_without_forming_y(kind):
    Y = all_kinds()[kind]
    Z = inference.start_codes("pca", X, 4, np.random.default_rng(0))
    dense = Y.toarray()
    assert frobenius_square(Y) == pytest.approx(np.sum(dense**2))
    assert objective(Y, Z) == pytest.approx(np.mean((Z @ Z.T / 4 - dense) ** 2))


@pytest.mark.parametrize("kind", list(all_kinds()))
@pytest.mark.parametrize(
    "solver", [name for name in ("auto", *bqp.METHODS, *WHOLE_PRESETS) if name not in ("exact", "branch_and_bound")]
)
def test_never_uphill_with_every_solver(kind, solver):
    Z = inference.start_codes("pca", X, 6, np.random.default_rng(0))
    n_sweeps = 1 if solver == "local_search" else 3  # its defaults search long
    codes, report = inference.infer_codes(
        all_kinds()[kind], Z, solver=solver, n_sweeps=n_sweeps, rng=np.random.default_rng(0)
    )
    assert codes.dtype == np.int8
    assert set(np.unique(codes)) <= {-1, 1}
    steps = np.diff([report.start_objective, *report.objectives])
    assert np.all(steps <= 1e-12)
    assert report.final_objective == pytest.approx(objective(all_kinds()[kind], codes.astype(float)))
    assert report.final_objective <= report.objectives[-1] + 1e-12
    assert all(record.bound <= record.value + 1e-9 * abs(record.value) for record in report.bits)
    # x and −x are one solution: the one nearer to the bit as it was is taken.
    assert all(record.changed <= len(X) // 2 for record in report.bits)
    if report.stopped_early:
        assert not any(record.changed for record in report.bits[-6:])


def test_classes_get_one_code_each():
    codes, report = inference.infer_codes(
        all_kinds()["low rank"],
        inference.start_codes("pca", X, 8, np.random.default_rng(0)),
        rng=np.random.default_rng(0),
    )
    for c in range(4):
        assert len(np.unique(codes[c == LABELS], axis=0)) == 1
    assert len(np.unique(codes, axis=0)) == 4
    assert report.stopped_early


def test_literal_mode_takes_what_the_solver_says_and_does_all_sweeps():
    Z = inference.start_codes("random", X, 3, np.random.default_rng(0))
    Y = all_kinds()["low rank"]
    _, report = inference.infer_codes(Y, Z, solver="spectral", monotone=False, rng=np.random.default_rng(0))
    assert len(report.objectives) == 3
    assert not report.stopped_early


@dataclasses.dataclass(frozen=True)
class Slow(bqp.Solver):
    """Waits, and offers nothing."""

    name = "slow"

    def solve(self, A, state, rng, x0):
        end = time.perf_counter() + 5.0
        while time.perf_counter() < end:
            state.check_time("waiting")
        return bqp.Status.CONVERGED


def test_a_bit_that_takes_long_ends_at_the_time_limit():
    Z = inference.start_codes("random", X, 3, np.random.default_rng(0))
    codes, report = inference.infer_codes(all_kinds()["dense"], Z, solver=Slow(), time_limit=0.6)
    assert report.out_of_time
    assert [record.status for record in report.bits] == 3 * ["time_limit"]
    assert report.seconds < 4.0
    np.testing.assert_array_equal(codes, Z)


@pytest.mark.parametrize("engine", ["walks", "sweeps", "anneals"])
@pytest.mark.parametrize("solver", ["local_search", bqp.Auto(), "auto", "al"])
def test_a_limit_that_is_not_reached_changes_no_code(engine, solver, monkeypatch):
    """A search must not go on until the limit, nor may a solver plan with it."""
    rng = np.random.default_rng(0)
    chain = targets.Pairs(similar=[(i, i + 1) for i in range(70)], dissimilar=[(i, i + 9) for i in range(70)])
    Y = (chain if engine == "anneals" else targets.Distance()).build(X, None, rng)
    monkeypatch.setattr(local_search, "LARGEST_DENSIFIED", 0 if engine == "sweeps" else 2048)
    monkeypatch.setattr(local_search, "SWEEP_STEPS", 1e6)
    monkeypatch.setattr(tabu, "STEPS", 1e6)
    monkeypatch.setattr(annealing, "STEPS", 1e6)
    Z = inference.start_codes("random", X, 3, rng)

    def inferred(time_limit):
        rng = np.random.default_rng(1)
        return inference.infer_codes(Y, Z, solver=solver, n_sweeps=1, rng=rng, time_limit=time_limit)

    (limited, report), (free, _) = inferred(60.0), inferred(None)
    np.testing.assert_array_equal(limited, free)
    assert "time_limit" not in [record.status for record in report.bits]
    assert len(report.bits) == 3
    assert not report.out_of_time


@dataclasses.dataclass(frozen=True)
class SlowAtFirst(bqp.Solver):
    """Waits for the time limit the first time."""

    calls: list
    name = "slow at first"

    def solve(self, A, state, rng, x0):
        self.calls.append(0)
        while len(self.calls) == 1:
            state.check_time("waiting")
        return bqp.Spectral().solve(A, state, rng, x0)


def test_a_bit_that_takes_more_than_its_share_leaves_time_for_the_others():
    Z = inference.start_codes("random", X, 3, np.random.default_rng(0))
    _, report = inference.infer_codes(all_kinds()["dense"], Z, solver=SlowAtFirst([]), time_limit=1.5)
    statuses = [record.status for record in report.bits]
    assert statuses[0] == "time_limit"
    assert "time_limit" not in statuses[1:]
    assert len(statuses) > 3  # the bit was solved again
    assert report.out_of_time
    assert "shortened by the time limit" in str(report)


@dataclasses.dataclass(frozen=True, eq=False)
class Offers(bqp.Solver):
    """Offers one point."""

    x: np.ndarray
    name = "offers"

    def solve(self, A, state, rng, x0):
        state.propose(self.x)
        return bqp.Status.CONVERGED


def test_a_bit_is_not_replaced_by_one_that_only_rounding_makes_better():
    """Values in tenths: two signs of one exact value, and sums that differ in the last digit."""
    half = np.triu(np.random.default_rng(0).integers(-9, 10, (8, 8)), 1)
    exact = half + half.T
    Y = bqp.Sparse(sp.csr_array(-0.1 * exact))
    points = np.array(list(itertools.product((1.0, -1.0), repeat=7)))
    points = np.column_stack([np.ones(len(points)), points])
    A = whole_bits(Y, points[:1].T.copy()).problem(0)
    x, better = next(
        (x, other)
        for x, other in itertools.permutations(points, 2)
        if x @ exact @ x == other @ exact @ other and A.value(other) < A.value(x)
    )
    codes, report = inference.infer_codes(Y, x[:, None], solver=Offers(better))
    assert report.bits[0].changed == 0
    np.testing.assert_array_equal(codes[:, 0], x)


def test_progress_counts_bits():
    heard = []
    Z = inference.start_codes("pca", X, 4, np.random.default_rng(0))
    inference.infer_codes(
        all_kinds()["dense"],
        Z,
        n_sweeps=2,
        monotone=False,
        progress=lambda p: heard.append((p.done, p.total)),
        solver="spectral",
    )
    assert heard == [(i + 1, 8) for i in range(8)]


def test_report_as_table():
    Z = inference.start_codes("pca", X, 4, np.random.default_rng(0))
    _, report = inference.infer_codes(all_kinds()["dense"], Z, n_sweeps=2, rng=np.random.default_rng(0))
    text = str(report)
    assert text.splitlines()[0].startswith("auto (sdr, tol 0.03, rank 4, proof limit 2000, all rows): ")
    assert f"{report.objectives[0]:.6f}" in text


def test_pca_start_is_the_sign_of_the_components():
    from sklearn.decomposition import PCA

    scores = PCA(4).fit_transform(X / np.abs(X).max())
    ours = principal_axes(X, 4, np.random.default_rng(0)).scores(X)
    np.testing.assert_allclose(np.abs(ours), np.abs(scores), atol=1e-8)
    np.testing.assert_array_equal(inference.start_codes("pca", X, 4, np.random.default_rng(0)), sign(ours))
    sparse = sp.csr_array(X)
    np.testing.assert_allclose(principal_axes(sparse, 4, np.random.default_rng(0)).scores(sparse), ours, atol=1e-9)


def test_itq_loses_less_than_pca():
    V = principal_axes(X, 4, np.random.default_rng(0)).scores(X)

    def loss(codes):
        # Best rotation of the components onto the codes (orthogonal Procrustes).
        U, _, Wt = np.linalg.svd(V.T @ codes)
        return np.sum((codes - V @ (U @ Wt)) ** 2)

    pca, itq = (inference.start_codes(name, X, 4, np.random.default_rng(0)) for name in ("pca", "itq"))
    assert loss(itq) < loss(pca)


def test_more_rotations_give_a_start_of_no_higher_objective(monkeypatch):
    Y = targets.Distance().build(X, None, np.random.default_rng(0))

    def objectives(count):
        monkeypatch.setattr("hashlearn.inference.starts.MAX_ROTATIONS", count)
        starts = (inference.start_codes("auto", X, 4, np.random.default_rng(seed), Y) for seed in range(5))
        return np.array([objective(Y, codes) for codes in starts])

    one, many = objectives(1), objectives(10)
    assert np.all(many <= one)
    assert np.any(many < one)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("pcaa", "did you mean 'pca'"),
        (np.ones((3, 4)), r"\(n_samples, n_bits\) = \(80, 4\), got \(3, 4\)"),
        (np.full((80, 4), 2), "only -1 and [+]1, or only 0 and 1"),
    ],
)
def test_wrong_starts_are_told_what_is_wrong(init, message):
    with pytest.raises(ValueError, match=message):
        inference.start_codes(init, X, 4, np.random.default_rng(0))


def test_given_codes_as_bits_or_signs():
    bits = (np.random.default_rng(0).random((80, 4)) < 0.5).astype(np.uint8)
    from_bits = inference.start_codes(bits, X, 4, np.random.default_rng(0))
    from_signs = inference.start_codes(2 * bits.astype(int) - 1, X, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(from_bits, from_signs)


def test_a_bit_of_a_chain_is_compared_with_the_start_itself():
    """Elimination improves the start of a sparse bit before it is measured, and the start must not get that credit."""
    Y = targets.Pairs(dissimilar=[(i, i + 1) for i in range(29)]).build(
        np.zeros((30, 2)), None, np.random.default_rng(0)
    )
    codes, _ = inference.infer_codes(Y, np.ones((30, 1)), solver="local_search", rng=np.random.default_rng(0))
    z = codes[:, 0].astype(float)
    assert abs(z[:-1] @ z[1:] + 29.0) < 1e-12
