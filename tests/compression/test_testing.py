"""Depths that are shown, and the codes that are tested: choosing queries plan, testing queries decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multinomial

from hashlearn.compression.compress import _certified
from hashlearn.compression.contenders import Contender, found
from hashlearn.compression.promise import TABLE_SHARE, accepts, fewest_values
from hashlearn.compression.result import Certificate
from hashlearn.compression.splitting import Ranks, Split
from hashlearn.compression.testing import (
    STATEMENTS,
    Claim,
    Evidence,
    bet_on,
    bound_of_recall,
    can_show_others,
    expected_depth,
    finalists,
    is_likely,
    is_sure,
    measured_depth,
    outcome_of,
    shown_depth,
    shown_recall,
    smallest,
)
from hashlearn.hashers import SignCodes

K, N = 5, 400  # neighbors, rows of the database
CLAIM = Claim(recall=0.9, confidence=0.99, k=K, max_depth=100)
HASHER = SignCodes(2).fit(np.random.default_rng(0).normal(size=(20, 4)))


def ranks(n: int, scale: float, seed: int) -> Ranks:
    """Ranks of about ``scale``, from 1 to N."""
    drawn = np.random.default_rng(seed).exponential(scale, size=(n, K))
    return np.clip(drawn.astype(np.int64) + 1, 1, N)


def contender(
    scale: float, testing: float | None = None, n: int = 500, size: int = 8, mode: str = "hamming", seed: int = 0
) -> Contender:
    """With ranks of this scale; ``testing`` is the scale of the testing queries if it is another."""
    both = ranks(n // 4, scale, seed), ranks(n, scale if testing is None else testing, seed + 1)
    return Contender("itq", mode, size, 0.0, *both, HASHER, np.empty((0, 1), np.uint8))


def promise_of(own: list[Contender], claim: Claim) -> tuple[Contender, Certificate]:
    shown, chosen = own[0].testing, own[0].choosing
    outcome = outcome_of(own, claim, N)
    split = Split(np.empty((N, 1)), None, chosen, shown, chosen, shown, "cosine", 0, shown, shown, N)
    return outcome.accepted, _certified(outcome, claim, split, keep_floats=True, own_queries=True, growth=None)


@pytest.fixture(params=range(4))
def some(request: pytest.FixtureRequest) -> Iterator[Contender]:
    return contender(scale=8.0 * 2**request.param, seed=request.param)


def test_the_shown_depth_is_the_smallest_that_is_accepted(some: Contender) -> None:
    bet = bet_on(CLAIM, some, N)
    shown = [d for d in range(K, N + 1) if accepts(found(some.testing, d), CLAIM.recall, bet, CLAIM.confidence)]
    assert shown_depth(CLAIM, some, N, bet) == min(shown)
    assert shown == list(range(min(shown), N + 1))  # nothing deeper fails
    assert shown_depth(CLAIM, some, min(shown) - 1, bet) is None
    assert min(shown) > measured_depth(some.testing, CLAIM.recall)


def test_the_measured_depth_is_the_smallest_with_that_mean(some: Contender) -> None:
    for recall in (0.05, 0.5, 0.8, 0.9, 0.99, 1.0):
        enough = [d for d in range(1, N + 1) if (some.testing <= d).mean() >= recall - 1e-12]
        assert measured_depth(some.testing, recall) == min(enough)


def test_a_perfect_code_needs_no_more_than_k_candidates() -> None:
    perfect, few = contender(0.1), fewest_values(CLAIM.recall, CLAIM.confidence)
    assert shown_depth(CLAIM, perfect, N, bet_on(CLAIM, perfect, N)) == K
    assert shown_depth(CLAIM, replace(perfect, testing=perfect.testing[: few - 1]), N, 0.98 / 0.9) is None


def test_bounds_of_recall_are_close_below_the_measured(some: Contender) -> None:
    for depth in (K, 20, 100):
        values = found(some.testing, depth)
        bound, its_bet = bound_of_recall(CLAIM, some, depth)
        bet = bet_on(CLAIM, some, CLAIM.max_depth)
        assert values.mean() - 0.1 < bound < values.mean()
        assert accepts(values, bound, its_bet, CLAIM.confidence)
        shown = shown_recall(CLAIM, some, depth, bet)
        assert accepts(values, shown, bet, CLAIM.confidence)
        assert shown < min(values.mean(), CLAIM.recall)


def test_a_claim_that_many_share_is_tested_at_a_higher_confidence(some: Contender) -> None:
    shared = CLAIM.shared(1000)
    assert shared.confidence == pytest.approx(0.99999)
    assert (shared.recall, shared.k, shared.max_depth) == (CLAIM.recall, CLAIM.k, CLAIM.max_depth)
    alone, together = (shown_depth(claim, some, N, bet_on(claim, some, N)) for claim in (CLAIM, shared))
    assert alone is not None
    assert together is not None
    assert alone < together


def test_likely_is_what_is_expected_within_the_largest_depth() -> None:
    near, far = contender(10.0), contender(60.0)
    assert is_likely(CLAIM, near)
    assert expected_depth(CLAIM, near, N) < CLAIM.max_depth
    assert not is_likely(CLAIM, far)
    assert expected_depth(CLAIM, far, N) > CLAIM.max_depth == expected_depth(CLAIM, far, CLAIM.max_depth)


def test_only_choosing_queries_plan() -> None:
    own = [contender(scale, size=size, seed=size) for scale, size in ((5.0, 16), (12.0, 12), (25.0, 8), (80.0, 4))]
    others = [replace(c, testing=ranks(len(c.testing), 150.0, seed=9)) for c in own]
    planned, again = ([str(c) for c in finalists(codes, CLAIM)] for codes in (own, others))
    assert planned == again == [str(own[2])]
    for a, b in zip(own, others, strict=True):
        assert bet_on(CLAIM, a, CLAIM.max_depth) == bet_on(CLAIM, b, CLAIM.max_depth)
        assert expected_depth(CLAIM, a, N) == expected_depth(CLAIM, b, N)
        assert is_likely(CLAIM, a) == is_likely(CLAIM, b)


def test_of_each_size_the_kinds_of_search_that_may_need_the_fewest_candidates_are_tested() -> None:
    slow, fast = (contender(scale, size=8, mode=mode) for scale, mode in ((30.0, "hamming"), (14.0, "asymmetric")))
    best = contender(3.0, size=16)
    assert finalists([slow, fast, best], CLAIM) == finalists([best, fast, slow], CLAIM) == [fast]
    close = contender(14.5, size=8, seed=5)
    assert finalists([close, slow, fast, best], CLAIM) == [close, fast]


def test_of_two_codes_of_one_size_the_testing_queries_choose() -> None:
    first, second = contender(14.0, testing=20.0, size=8), contender(14.5, testing=10.0, size=8, seed=5)
    winner, certificate = promise_of([first, second], CLAIM)
    assert winner is second
    assert len(certificate.tested) == 2


def test_codes_are_tested_up_to_the_first_that_surely_passes() -> None:
    hopeless, close, sure, larger = (
        contender(scale, size=size, seed=size) for scale, size in ((80.0, 4), (40.0, 8), (15.0, 12), (5.0, 16))
    )
    assert not is_likely(CLAIM, close)
    assert finalists([larger, close, hopeless, sure], CLAIM) == [close, sure]


def test_the_last_test_goes_on_to_a_code_that_passes_although_finalists_share_the_error() -> None:
    scales = {8: 36.0, 12: 32.0, 16: 29.0, 24: 24.0, 32: 12.0}
    codes = [
        replace(c, testing=c.testing[:100]) for c in (contender(scale, size=size) for size, scale in scales.items())
    ]
    first, last = (finalists(codes, CLAIM, is_last_test) for is_last_test in (False, True))
    assert not is_sure(CLAIM, first[-1])
    assert is_sure(CLAIM, last[-1])
    assert not any(is_sure(CLAIM, code) for code in last[:-1])


def test_if_no_code_surely_passes_the_one_with_the_best_recall_is_tested_too() -> None:
    worst, best = contender(70.0, size=16), contender(60.0, size=8)
    assert finalists([worst, best], CLAIM) == [best]
    small, large = contender(42.0, size=8, seed=1), contender(41.0, size=16, seed=1)
    assert finalists([large, small], CLAIM) == [small, large]


@pytest.mark.parametrize(("n", "most"), [(50, 1), (55, 2), (1000, 3)])
def test_few_queries_have_so_few_finalists_that_the_best_can_be_shown(n: int, most: int) -> None:
    """One finalist takes 46 queries that find everything, two take 53, and three 57."""
    smaller = [contender(40.0, n=n, size=size, seed=size) for size in (4, 8)]
    own = [*smaller, contender(0.1, n=n, size=12)]
    assert finalists(own, CLAIM)[-1] is own[2]
    assert len(finalists(own, CLAIM)) == most
    winner, certificate = promise_of(own, CLAIM)
    assert certificate.kept
    assert winner is own[2] or n > 100


def test_the_smallest_code_is_promised_at_its_smallest_depth() -> None:
    own = [contender(scale, size=size, seed=size) for scale, size in ((5.0, 16), (12.0, 12), (20.0, 8))]
    winner, certificate = promise_of(own, CLAIM)
    assert winner is own[2]
    assert certificate.kept
    assert certificate.accepted()
    alone = CLAIM.shared(1, 1.0 - TABLE_SHARE)
    assert certificate.depth == shown_depth(alone, winner, CLAIM.max_depth, bet_on(alone, winner, CLAIM.max_depth))
    assert certificate.measured == pytest.approx(found(winner.testing, certificate.depth).mean())
    assert certificate.tested == (f"{winner}: depth {certificate.depth}",)


def test_codes_that_are_tested_share_the_error() -> None:
    close, part, more = contender(40.0, testing=90.0, size=8), CLAIM.shared(2, 1.0 - TABLE_SHARE), 0
    for scale in range(15, 30):
        sure = contender(float(scale), size=12)
        winner, certificate = promise_of([close, sure], CLAIM)
        assert winner is sure
        alone, shared = (shown_depth(c, sure, c.max_depth, bet_on(c, sure, c.max_depth)) for c in (CLAIM, part))
        assert certificate.depth == shared
        assert certificate.tested == (f"{close}: not shown", f"{sure}: depth {shared}")
        assert certificate.accepted()
        more += shared != alone
    assert more > 3


def test_a_small_code_that_does_better_than_expected_is_promised() -> None:
    close, sure = contender(40.0, testing=15.0, size=8), contender(15.0, size=12)
    winner, certificate = promise_of([close, sure], CLAIM)
    assert winner is close
    assert certificate.kept
    assert [words.split(":")[1] != " not shown" for words in certificate.tested] == [True, True]


def test_a_code_that_surely_passes_may_fail() -> None:
    failing = contender(5.0, testing=90.0, size=16)
    winner, certificate = promise_of([failing], CLAIM)
    assert winner is failing
    assert not certificate.kept
    assert certificate.depth == CLAIM.max_depth
    assert certificate.accepted()


def test_a_larger_code_is_promised_if_all_finalists_fail() -> None:
    failing, larger = contender(5.0, testing=90.0, size=8), contender(5.0, size=16)
    assert finalists([failing, larger], CLAIM) == [failing]
    winner, certificate = promise_of([failing, larger], CLAIM)
    assert winner is larger
    assert certificate.kept
    assert certificate.accepted()
    assert certificate.tested == (f"{failing}: not shown", f"{larger}: depth {certificate.depth}")


def test_the_verdict_is_the_best_that_is_shown_of_any_code() -> None:
    rng, kept = np.random.default_rng(0), 0
    for draw in range(40):
        scales = rng.uniform(30.0, 70.0, size=(5, 2))
        own = [
            contender(*scales[place], size=size, n=300, seed=10 * draw + place)
            for place, size in enumerate((4, 8, 8, 12, 16))
        ]
        evidence = Evidence(own, CLAIM, N, 10)
        bounds, outcome = [evidence.bounds(c) for c in own], evidence.outcome(own)
        enough = [(c.bytes_per_row, b.depth) for c, b in zip(own, bounds, strict=True) if (b.depth or N) <= 100]
        assert outcome.is_kept(CLAIM) == bool(enough) == any(b.recall >= CLAIM.recall for b in bounds)
        accepted = outcome.accepted
        if enough:
            assert (accepted.bytes_per_row, outcome.depth) == min(enough)
        else:
            assert outcome.promised == max(b.recall for b in bounds)
        values = found(accepted.testing, outcome.depth)
        assert accepts(values, outcome.promised, outcome.bet, CLAIM.confidence)
        kept += bool(enough)
    assert 5 < kept < 35


def test_a_bound_of_recall_shows_the_largest_depth() -> None:
    """The bet on a depth is fitted where all is found, and loses at smaller depths; the bet on the recall wins."""
    choosing, testing = np.full((100, K), 50), np.full((2000, K), 50)  # nothing is found without floats
    choosing[:9], testing[:100] = N, N  # these queries find nothing within the largest depth
    own = [contender(5.0, size=8), replace(contender(1.0, size=16), choosing=choosing, testing=testing)]
    evidence = Evidence(own, CLAIM, N, 2)
    assert evidence.finalists == own[:1]
    bounds = evidence.bounds(own[1])
    assert CLAIM.recall < bounds.recall < 0.95
    assert bounds.depth == CLAIM.max_depth
    assert accepts(found(testing, CLAIM.max_depth), CLAIM.recall, bounds.bet, CLAIM.confidence)


def test_a_bound_without_floats_shows_depth_k_and_the_recall_of_more_candidates() -> None:
    """No row of the table says that codes alone keep a recall that the row, or the verdict, refuses."""
    n, rng, shown = 300, np.random.default_rng(0), 0
    for _ in range(200):
        choosing, testing = (np.where(rng.random((m, 1)) < 0.955, 1, N) * np.ones((1, K), int) for m in (60, n))
        for deepest in (K, 100):
            claim = replace(CLAIM, max_depth=deepest)
            own = [replace(contender(1.0), choosing=choosing, testing=testing)]
            bounds = Evidence(own, claim, N, 3).bounds(own[0])
            assert bounds.codes_recall <= bounds.recall
            assert (bounds.codes_recall >= claim.recall) == (bounds.depth == K)
            assert deepest > K or bounds.codes_recall == bounds.recall
            shown += bounds.depth == K
    assert 20 < shown < 380


def test_promise_and_table_share_the_error() -> None:
    own = [contender(40.0, size=8), contender(15.0, size=12)]
    evidence, n = Evidence(own, CLAIM, N, 50), 2
    assert len(evidence.finalists) == n
    errors = [1.0 - claim.confidence for claim in (evidence._finalist_claim, evidence._table_claim)]
    assert n * errors[0] + STATEMENTS * 50 * errors[1] == pytest.approx(1.0 - CLAIM.confidence)
    assert errors[0] > errors[1] > 0.0


def test_if_nothing_passes_less_is_promised() -> None:
    worse, better = contender(90.0, size=8), contender(60.0, size=16)
    winner, certificate = promise_of([worse, better], CLAIM)
    assert winner is better
    assert not certificate.kept
    assert certificate.depth == CLAIM.max_depth
    assert certificate.measured - 0.1 < certificate.promised < certificate.measured < CLAIM.recall
    assert certificate.accepted()


def test_a_condition_that_never_or_always_holds() -> None:
    assert smallest(lambda _: True, 3, 9) == 3
    assert smallest(lambda _: False, 3, 9) is None
    assert smallest(lambda n: n >= 9, 3, 9) == 9


def test_a_lower_promise_can_be_checked_again() -> None:
    n = 100
    choosing, testing = np.ones((20, K), np.int64), np.ones((n, K), np.int64)
    testing[:6] = N  # six queries find nothing
    own = [replace(contender(1.0), choosing=choosing, testing=testing)]
    certificate = promise_of(own, CLAIM)[1]
    assert not certificate.kept
    assert certificate.accepted()


def test_a_bet_never_loses_more_than_the_stake() -> None:
    half = np.tile([1, 1, 1, N, N], (500, 1))
    own = replace(contender(1.0), choosing=half[:100], testing=half)
    assert bet_on(CLAIM, own, CLAIM.max_depth) < 1.0 / CLAIM.recall


# The chance that both codes find the neighbor of a query, and that the larger one alone does; how many of 20 choosing
# queries find it by the smaller code. If few do, both codes are tested.
@pytest.mark.parametrize("few", [11, 17])
@pytest.mark.parametrize(("both", "larger_alone"), [(0.49, 0.3), (0.49, 0.0), (0.3, 0.19)])
def test_a_false_promise_is_as_rare_as_said_with_all_choices(both: float, larger_alone: float, few: int) -> None:
    n, claim = 18, Claim(recall=0.5, confidence=0.8, k=1, max_depth=1)
    choosing = {size: np.repeat([1, 2], [count, 20 - count])[:, None] for size, count in ((16, 17), (8, few))}
    means = {16: both + larger_alone, 8: both}
    chances = (both, larger_alone, 1.0 - both - larger_alone)
    false = 0.0
    for a, b in np.ndindex(n + 1, n + 1):
        if a + b > n:
            continue
        found_by = {16: np.repeat([1, 2], [a + b, n - a - b]), 8: np.repeat([1, 2], [a, n - a])}
        own = [replace(contender(1.0, size=s), choosing=choosing[s], testing=r[:, None]) for s, r in found_by.items()]
        winner, certificate = promise_of(own, claim)
        assert len(finalists(own, claim)) == (1 if few == 17 else 2)
        if certificate.promised > means[winner.bytes_per_row] + 1e-9:
            false += float(multinomial.pmf([a, b, n - a - b], n, chances))
    assert 0.0 < false <= 1.0 - claim.confidence


def test_other_codes_are_tried_only_if_the_queries_can_show_them() -> None:
    perfect = np.ones((300, K), np.int64)
    for n, is_enough in ((300, True), (100, False)):
        code = replace(contender(15.0), testing=perfect[:n])
        evidence = Evidence([code], CLAIM, N, n_codes=40)
        assert can_show_others(CLAIM, 40, n) == is_enough
        assert is_enough == (bound_of_recall(evidence._table_claim, code, CLAIM.max_depth)[0] >= CLAIM.recall)
