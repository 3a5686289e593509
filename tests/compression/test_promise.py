"""The laws of the test behind a promise. Probabilities are exact: every outcome is counted, nothing is simulated."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from hashlearn.compression.promise import (
    LARGEST_BET,
    SPREAD,
    ZEROS_ADDED,
    accepts,
    best_bet,
    fewest_values,
    log_stake,
    lower_bound,
    refutes,
    spread_of_bets,
)

CONFIDENCE = 0.95
# Points, their probabilities: Bernoulli values, and three points.
DISTRIBUTIONS = {
    "often": ((0.0, 1.0), (0.1, 0.9)),
    "rarely": ((0.0, 1.0), (0.7, 0.3)),
    "three points": ((0.0, 0.8, 1.0), (0.05, 0.3, 0.65)),
    "nearly one value": ((0.0, 0.9, 1.0), (0.01, 0.59, 0.4)),
}
SAMPLE_SIZES = (1, 12, 40)
BETS = {"largest": LARGEST_BET, "half": 0.5, "small": 0.1, "several": SPREAD}  # shares of 1 / claim
SHARES = st.lists(st.integers(0, 10).map(lambda j: j / 10), min_size=1, max_size=40)
CLAIMS = st.floats(0.05, 0.99)


@cache
def outcomes(name: str, n: int) -> list[tuple[np.ndarray, float]]:
    """Every sample of n values, up to their order, with its probability."""
    points, chances = DISTRIBUTIONS[name]
    counts = [[*rest, n - sum(rest)] for rest in np.ndindex(*[n + 1] * (len(points) - 1)) if sum(rest) <= n]
    samples = [np.repeat(points, count) for count in counts]
    return list(zip(samples, multinomial.pmf(counts, n, chances).tolist(), strict=True))


def probability(name: str, n: int, event: Any) -> float:
    return math.fsum(chance for values, chance in outcomes(name, n) if event(values))


def mean_of(name: str) -> float:
    points, chances = DISTRIBUTIONS[name]
    return float(np.dot(points, chances))


@pytest.mark.parametrize("bet", BETS)
@pytest.mark.parametrize("n", SAMPLE_SIZES)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_fair_game_keeps_its_stake_on_average_and_rarely_accepts(name: str, n: int, bet: str) -> None:
    claim = mean_of(name)
    bets = BETS[bet] / claim
    mean = math.fsum(p * math.exp(log_stake(values, claim, bets)) for values, p in outcomes(name, n))
    assert mean == pytest.approx(1.0)
    assert probability(name, n, lambda values: accepts(values, claim, bets, CONFIDENCE)) <= 1.0 - CONFIDENCE


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_false_claims_lose_and_true_ones_win(name: str) -> None:
    n, mean = 40, mean_of(name)
    for claim in (mean + 0.02, mean - 0.2):
        stakes = [p * math.exp(log_stake(v, claim, 0.5 / claim)) for v, p in outcomes(name, n)]
        assert (math.fsum(stakes) < 1.0) == (claim > mean)
    assert probability(name, n, lambda v: accepts(v, mean - 0.2, LARGEST_BET / mean, CONFIDENCE)) > 1.0 - CONFIDENCE


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("bets", [0.9, 0.4, SPREAD])
def test_a_bound_rarely_exceeds_the_mean(name: str, bets: Any) -> None:
    bounds = [(lower_bound(values, bets, CONFIDENCE), chance) for values, chance in outcomes(name, 12)]
    assert math.fsum(chance for bound, chance in bounds if bound > mean_of(name)) <= 1.0 - CONFIDENCE
    assert max(bound for bound, _ in bounds) > 0.0


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_true_claim_is_rarely_refuted(name: str) -> None:
    mean = mean_of(name)
    assert probability(name, 40, lambda values: refutes(values, mean, CONFIDENCE)) <= 1.0 - CONFIDENCE
    assert refutes(np.zeros(200), mean, CONFIDENCE)


@given(SHARES, CLAIMS, st.integers(0, 39), st.floats(0.01, LARGEST_BET))
def test_better_values_and_smaller_claims_raise_the_stake(values: list[float], claim: float, i: int, b: float) -> None:
    bet, raised = b / claim, values.copy()
    raised[i % len(values)] = 1.0
    assert log_stake(raised, claim, bet) >= log_stake(values, claim, bet) - 1e-9
    assert log_stake(values, 0.9 * claim, bet) > log_stake(values, claim, bet)


@given(SHARES, CLAIMS)
def test_what_is_accepted_is_measured_and_not_refuted(values: list[float], claim: float) -> None:
    values = 8 * values
    mean = np.mean(values)
    if accepts(values, claim, 0.9 / claim, 0.9):
        assert mean > claim
        assert not refutes(values, claim, 0.9)
    if refutes(values, claim, 0.9):
        assert mean < claim


@given(SHARES, st.floats(0.05, LARGEST_BET))
def test_the_bound_is_the_largest_claim_that_is_accepted(values: list[float], bet: float) -> None:
    values = 8 * values
    bound = lower_bound(values, bet, CONFIDENCE)
    assert bound == 0.0 or accepts(values, bound, bet, CONFIDENCE)
    assert not accepts(values, bound + 2e-6, bet, CONFIDENCE)
    assert bound <= np.mean(values)
    assert lower_bound(values, bet, CONFIDENCE, most=0.5) == pytest.approx(min(bound, 0.5), abs=2e-6)


@given(SHARES, st.floats(0.05, 0.95))
def test_refuting_mirrors_accepting(values: list[float], claim: float) -> None:
    losses = 1.0 - np.array(8 * values)
    accepted = accepts(losses, 1.0 - claim, SPREAD / (1.0 - claim), CONFIDENCE)
    assert refutes(1.0 - losses, claim, CONFIDENCE) == accepted


@pytest.mark.parametrize("claim", [0.5, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("confidence", [0.9, 0.99, 0.999])
def test_fewest_values_is_exact(claim: float, confidence: float) -> None:
    fewest = fewest_values(claim, confidence)
    assert accepts(np.ones(fewest), claim, LARGEST_BET / claim, confidence)
    assert not accepts(np.ones(fewest - 1), claim, LARGEST_BET / claim, confidence)


@given(SHARES, CLAIMS, st.integers(10, 2000))
def test_the_best_bet_is_within_its_limits_and_grows_most(values: list[float], claim: float, n: int) -> None:
    def growth(bet: float) -> float:
        return n / len(values) * log_stake(values, claim, bet) + ZEROS_ADDED * math.log1p(-bet * claim)

    bet = best_bet(values, claim, n)
    assert 0.0 <= bet <= LARGEST_BET / claim
    assert growth(bet) >= max(growth(other) for other in np.linspace(0.0, 0.999 * LARGEST_BET / claim, 30)) - 1e-2
    if np.mean(values) <= claim:
        assert bet < 1e-4


def test_the_order_of_values_and_shares_of_several_bets() -> None:
    values, bets = np.random.default_rng(0).integers(0, 11, 100) / 10, np.array([0.1, 0.5, 0.9])
    stakes = [math.prod(1.0 + bet * (value - 0.4) for value in values) for bet in bets]
    assert log_stake(values, 0.4, bets) == pytest.approx(math.log(np.mean(stakes)))
    assert log_stake(values[::-1], 0.4, bets) == log_stake(values, 0.4, bets)


@given(SHARES, CLAIMS, st.floats(0.01, LARGEST_BET))
def test_counts_are_weights(values: list[float], claim: float, bet: float) -> None:
    distinct, counts = np.unique(values, return_counts=True)
    assert log_stake(distinct, claim, bet, counts) == log_stake(values, claim, bet)


@pytest.mark.parametrize("claim", [1e-12, 1e-310, 5e-324])
def test_tiny_claims_have_finite_bets(claim: float) -> None:
    assert math.isfinite(best_bet([1.0, 0.5], claim, 100))
    assert accepts([0.5] * 20, claim, best_bet([1.0, 0.5], claim, 100), CONFIDENCE)
    assert accepts([0.5] * 20, claim, spread_of_bets(claim), CONFIDENCE)
    assert not accepts([0.0] * 20, claim, spread_of_bets(claim), CONFIDENCE)
    assert fewest_values(claim, CONFIDENCE) == 1
