"""From ranks to promises: what the choosing queries plan, and what the testing queries show.

A plan holds everything that must be fixed before the testing queries are looked at: where to test, in which order, and
how much to bet. Recall grows with depth, so with one bet for all depths the stake grows with depth too. Depths are
tested from the deepest on, and the first that fails ends the test (a fixed sequence): no correction is needed, and the
smallest accepted depth can be found by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hashlearn.compression.contenders import Contender, OwnContender, Ranks, found
from hashlearn.compression.promise import LARGEST_BET, accepts, best_bet, lower_bound
from hashlearn.core.arrays import FloatArray

SMALLEST_CLAIM = 0.01  # that a bet is fitted to
SAFE = 5.0  # standard errors of the mean of the choosing queries


@dataclass(frozen=True)
class Claim:
    """What is to be shown: mean recall of at least ``recall``, with at most ``max_depth`` candidates to rescore."""

    recall: float
    confidence: float
    k: int
    max_depth: int  # k if there is nothing to rescore with

    def shared(self, n: int) -> Claim:
        """The same claim for one of n contenders, so that all n hold together (Bonferroni)."""
        return Claim(self.recall, 1.0 - (1.0 - self.confidence) / n, self.k, self.max_depth)

    def margin(self, values: FloatArray, n_testing: int) -> float:
        """How far above the claim the mean of n_testing values must be, roughly, to be accepted."""
        needed = -math.log1p(-self.confidence) / n_testing  # growth of the stake for each value
        return max(math.sqrt(2.0 * float(values.var()) * needed), needed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the testing queries accepted last, and how they came to it."""

    accepted: OwnContender
    depth: int
    promised: float
    bet: float
    steps: tuple[str, ...]  # in words

    def is_kept(self, claim: Claim) -> bool:
        """Whether the whole claim is promised."""
        return self.promised == claim.recall


def outcome_of(own: list[OwnContender], claim: Claim) -> Outcome:
    """Test along the sequence until a step fails. If it is the first, promise the recall that it does show.

    Each code is tested at the largest depth, then at one that it should pass, so that a smaller code may fail without
    harm. The last one goes down to the smallest depth that it passes.
    """
    order = sequence(own, claim)
    accepted, bet, depth, promised, steps = order[0], 0.0, claim.max_depth, 0.0, []
    for contender in order:
        own_bet = bet_on(claim, contender, claim.max_depth)
        steps.append(f"{contender}, depth {claim.max_depth}")
        if not is_shown(claim, contender, claim.max_depth, own_bet):
            break
        accepted, bet, depth, promised = contender, own_bet, claim.max_depth, claim.recall
        wanted = expected_depth(claim, contender, depth, SAFE)
        if contender is order[-1]:
            wanted = shown_depth(claim, contender, depth, bet) or depth
        steps.append(f"{contender}, depth {wanted}")
        if not is_shown(claim, contender, wanted, bet):
            break
        depth = wanted
    if not promised:
        bet = bet_on(claim, accepted, depth)
        promised = shown_recall(claim, accepted, depth, bet)
    return Outcome(accepted, depth, promised, bet, tuple(steps))


def sequence(own: list[OwnContender], claim: Claim) -> list[OwnContender]:
    """What is tested, in order: the contender with the best recall, then smaller and smaller codes that may keep it."""
    safest = max(own, key=lambda contender: float(found(contender.choosing, claim.max_depth).mean()))
    best: dict[int, OwnContender] = {}  # by size: the one with the fewest candidates
    for contender in sorted(own, key=lambda contender: expected_depth(claim, contender, claim.max_depth)):
        if is_likely(claim, contender):
            best.setdefault(contender.bytes_per_row, contender)
    smaller = [best[size] for size in sorted(best, reverse=True) if size <= safest.bytes_per_row]
    return [safest, *(contender for contender in smaller if contender is not safest)]


def is_likely(claim: Claim, contender: Contender) -> bool:
    """Whether the choosing queries expect the claim to be accepted at ``max_depth``."""
    return _expects(claim, contender, claim.max_depth, doubts=1.0)


def expected_depth(claim: Claim, contender: Contender, deepest: int, doubts: float = 0.0) -> int:
    """The depth at which the choosing queries expect the claim to be accepted; ``deepest`` if they expect none."""
    return smallest(lambda depth: _expects(claim, contender, depth, doubts), claim.k, deepest) or deepest


def _expects(claim: Claim, contender: Contender, depth: int, doubts: float) -> bool:
    """``doubts`` are standard errors of the choosing queries' mean that are added to what is wanted."""
    values = found(contender.choosing, depth)
    doubt = doubts * float(values.std()) / math.sqrt(len(values))
    return bool(values.mean() >= claim.recall + claim.margin(values, len(contender.testing)) + doubt)


def bet_on(claim: Claim, contender: Contender, deepest: int) -> float:
    """The bet for all depths of a contender, and all recalls up to the claim's, from the choosing queries alone."""
    values = found(contender.choosing, expected_depth(claim, contender, deepest))
    return _bet(claim, values, claim.recall, len(contender.testing))


def _bet(claim: Claim, values: FloatArray, most: float, n_testing: int) -> float:
    """Where ``most`` is out of reach, bet on what can be reached."""
    within_reach = max(float(values.mean()) - claim.margin(values, n_testing), SMALLEST_CLAIM)
    return min(best_bet(values, min(most, within_reach), n_testing), LARGEST_BET / most)


def is_shown(claim: Claim, contender: Contender, depth: int, bet: float) -> bool:
    """Whether the testing queries show the claim at this depth."""
    return accepts(found(contender.testing, depth), claim.recall, bet, claim.confidence)


def shown_depth(claim: Claim, contender: Contender, deepest: int, bet: float) -> int | None:
    """The smallest depth that the testing queries show to be enough, from ``deepest`` on; None if not even that."""
    return smallest(lambda depth: is_shown(claim, contender, depth, bet), claim.k, deepest)


def shown_recall(claim: Claim, contender: Contender, depth: int, bet: float) -> float:
    """The highest recall up to the claim's that the testing queries show at this depth."""
    return lower_bound(found(contender.testing, depth), bet, claim.confidence, claim.recall)


def bound_of_recall(claim: Claim, contender: Contender, depth: int) -> float:
    """A lower bound of recall at this depth, at the claim's confidence."""
    bet = _bet(claim, found(contender.choosing, depth), 1.0, len(contender.testing))
    return lower_bound(found(contender.testing, depth), bet, claim.confidence)


def measured_depth(ranks: Ranks, recall: float) -> int:
    """The smallest depth at which the mean recall of these queries is at least ``recall``.

    >>> measured_depth(np.array([[1, 2], [4, 8]]), recall=0.75)
    4
    """
    return int(np.sort(ranks, axis=None)[math.ceil(recall * ranks.size - 1e-9) - 1])


def smallest(holds, low: int, high: int) -> int | None:  # type: ignore[no-untyped-def]
    """The smallest number from low to high for which a rising condition holds; None if there is none.

    >>> smallest(lambda n: n * n >= 50, 1, 100), smallest(lambda n: n > 100, 1, 100)
    (8, None)
    """
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
