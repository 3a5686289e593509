"""From ranks to promises: what the choosing queries plan, and what the testing queries show.

A plan holds everything that must be fixed before the testing queries are looked at: which codes to test, and how much
to bet. A few codes are tested, and they share the probability of a false promise (Bonferroni). Recall grows with depth,
so with one bet for all depths of a code the stake grows with depth too. Depths are tested from the deepest on, and the
first that fails ends the test (a fixed sequence): depths need no correction, and the smallest accepted one can be found
by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hashlearn.compression.contenders import Contender, OwnContender, Ranks, found
from hashlearn.compression.promise import LARGEST_BET, accepts, best_bet, lower_bound
from hashlearn.core.arrays import FloatArray

SMALLEST_CLAIM = 0.01  # that a bet is fitted to
DOUBT = 2.0  # standard errors of a mean: so far below the claim a code may still keep it, so far above it surely does


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
    """What the testing queries show."""

    accepted: OwnContender
    depth: int
    promised: float
    bet: float
    tested: tuple[str, ...]  # every code that was tested, in words. All that was shown holds together

    def is_kept(self, claim: Claim) -> bool:
        """Whether the whole claim is promised."""
        return self.promised == claim.recall


def outcome_of(own: list[OwnContender], claim: Claim) -> Outcome:
    """Test the finalists. The smallest code that shows the claim is promised, at the smallest depth that shows it.

    If none shows it, promise the recall that the one with the best recall does show.
    """
    tested = finalists(own, claim)
    part = claim.shared(len(tested))
    bets = [bet_on(part, contender, claim.max_depth) for contender in tested]
    depths = [shown_depth(part, contender, claim.max_depth, bet) for contender, bet in zip(tested, bets, strict=True)]
    words = tuple(
        f"{contender}: {'not shown' if depth is None else f'depth {depth}'}"
        for contender, depth in zip(tested, depths, strict=True)
    )
    shown = [
        (contender.bytes_per_row, depth, place)
        for place, (contender, depth) in enumerate(zip(tested, depths, strict=True))
        if depth is not None
    ]
    if shown:
        _, depth, place = min(shown)
        return Outcome(tested[place], depth, claim.recall, bets[place], words)
    place = tested.index(_safest(tested, claim))
    promised = shown_recall(part, tested[place], claim.max_depth, bets[place])
    return Outcome(tested[place], claim.max_depth, promised, bets[place], words)


def finalists(own: list[OwnContender], claim: Claim) -> list[OwnContender]:
    """What is tested, smallest first: codes that may keep the claim, up to the first size at which one surely does.

    Only the codes that may need the fewest candidates of their size are tested. If none surely keeps the claim, the one
    with the best recall is tested too.
    """
    tested: list[OwnContender] = []
    for size in sorted({contender.bytes_per_row for contender in own}):
        of_size = [contender for contender in own if contender.bytes_per_row == size]
        likely = [contender for contender in of_size if _expects(claim, contender, claim.max_depth, -DOUBT)]
        depths = [expected_depth(claim, contender, claim.max_depth, 1.0) for contender in likely]
        for contender in likely:
            if expected_depth(claim, contender, claim.max_depth, -1.0) <= min(depths):
                tested.append(contender)
        if any(_expects(claim, contender, claim.max_depth, DOUBT) for contender in likely):
            return tested
    safest = _safest(own, claim)
    return tested if safest in tested else [*tested, safest]


def _safest(own: list[OwnContender], claim: Claim) -> OwnContender:
    return max(own, key=lambda contender: float(found(contender.choosing, claim.max_depth).mean()))


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
