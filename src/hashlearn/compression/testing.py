"""From ranks to promises: what the choosing queries plan, and what the testing queries show.

The probability of a false statement is divided before the testing queries are looked at (Bonferroni). A few codes that
the choosing queries select, the finalists, share most of it. The table has the rest: an equal part for every statement
about every code that could be tried. So promise and table hold together, and the promise may be any row of the table.

Recall grows with depth, so with one bet for all depths of a code the stake grows with depth too. Depths are tested from
the deepest on, and the first that fails ends the test (a fixed sequence): depths need no correction, and the smallest
accepted one can be found by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hashlearn.compression.contenders import Contender, found
from hashlearn.compression.promise import (
    LARGEST_BET,
    TABLE_SHARE,
    accepts,
    best_bet,
    fewest_values,
    lower_bound,
    shared,
)
from hashlearn.compression.splitting import Ranks
from hashlearn.core.arrays import FloatArray

SMALLEST_CLAIM = 0.01  # that a bet is fitted to
STATEMENTS = 3  # of the table about each code: a depth, the recall at the largest depth, the recall without floats
USUAL_FINALISTS = 4  # that `is_sure` expects to share the error
DOUBT = 2.0  # standard errors of a mean: so far below the claim a code may still keep it, so far above it surely does


@dataclass(frozen=True)
class Claim:
    """What is to be shown: mean recall of at least ``recall``, with at most ``max_depth`` candidates to rescore."""

    recall: float
    confidence: float
    k: int
    max_depth: int  # k if there is nothing to rescore with

    def shared(self, n: int, share: float = 1.0) -> Claim:
        """The same claim for one of n statements, so that all n hold together with this share of the error."""
        return Claim(self.recall, shared(self.confidence, n, share), self.k, self.max_depth)

    def margin(self, values: FloatArray, n_testing: int) -> float:
        """How far above the claim the mean of n_testing values must be, roughly, to be accepted."""
        needed = -math.log1p(-self.confidence) / n_testing  # growth of the stake for each value
        return max(math.sqrt(2.0 * float(values.var()) * needed), needed)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the testing queries show."""

    accepted: Contender
    depth: int
    promised: float
    bet: float
    tested: tuple[str, ...]  # the finalists and the accepted code, in words. All that was shown holds together

    def is_kept(self, claim: Claim) -> bool:
        """Whether the whole claim is promised."""
        return self.promised == claim.recall


@dataclass(frozen=True)
class Bounds:
    """What the testing queries show of one code."""

    depth: int | None  # enough for the claim; None: not even all rows are shown to be enough
    recall: float  # at the largest depth
    codes_recall: float  # without floats
    bet: float  # that showed the depth, or the recall if the depth is above the largest


class Evidence:
    """What the testing queries show of every code, and the verdict. All of it holds together at the claim's confidence.

    The choosing queries select the finalists among ``own``. Each of the ``n_codes`` that could be tried, finalist or
    not, has its part of the error too. So more codes may be tried after a look at the testing queries.
    """

    def __init__(self, own: list[Contender], claim: Claim, n_rows: int, n_codes: int) -> None:
        self.finalists = finalists(own, claim, not can_show_others(claim, n_codes, len(own[0].testing)))
        self._claim, self._n_rows = claim, n_rows
        self._finalist_claim = claim.shared(len(self.finalists), 1.0 - TABLE_SHARE)
        self._table_claim = _table_claim(claim, n_codes)
        self._bounds: dict[Contender, Bounds] = {}

    def bounds(self, contender: Contender) -> Bounds:
        """The best that is shown of a code, by the table's part of the error and by that of a finalist."""
        if contender not in self._bounds:
            self._bounds[contender] = self._tested(contender)
        return self._bounds[contender]

    def _tested(self, contender: Contender) -> Bounds:
        k, deepest, table = self._claim.k, self._claim.max_depth, self._table_claim
        bet = bet_on(table, contender, self._n_rows)
        depths = [(shown_depth(table, contender, self._n_rows, bet), bet)]
        of_codes = bound_of_recall(table, contender, k)
        recalls = [of_codes, bound_of_recall(table, contender, deepest)]  # more candidates find no less
        if contender in self.finalists:
            bet = bet_on(self._finalist_claim, contender, deepest)
            depths.append((shown_depth(self._finalist_claim, contender, deepest, bet), bet))
            recalls.append((shown_recall(self._finalist_claim, contender, deepest, bet), bet))
        best = max(recalls)
        depths += [(at, bet) for at, (recall, bet) in ((k, of_codes), (deepest, best)) if recall >= self._claim.recall]
        depth, bet = min(((depth, bet) for depth, bet in depths if depth is not None), default=(None, 0.0))
        recall, codes_recall = best[0], best[0] if deepest == k else of_codes[0]
        if depth is None or depth > deepest:
            return Bounds(depth, recall, codes_recall, best[1])
        at_k = self._claim.recall if depth == k else 0.0
        return Bounds(depth, max(recall, self._claim.recall), max(codes_recall, at_k), bet)

    def keeps(self, contender: Contender) -> bool:
        """Whether a code is shown to keep the claim."""
        depth = self.bounds(contender).depth
        return depth is not None and depth <= self._claim.max_depth

    def outcome(self, own: list[Contender]) -> Outcome:
        """The smallest code that is shown to keep the claim, at its smallest depth; else the highest recall shown."""
        kept = [
            (contender.bytes_per_row, depth, place)
            for place, contender in enumerate(own)
            if (depth := self.bounds(contender).depth) is not None and depth <= self._claim.max_depth
        ]
        if kept:
            _, depth, place = min(kept)
            accepted, promised = own[place], self._claim.recall
        else:
            depth = self._claim.max_depth
            accepted = max(own, key=lambda c: (self.bounds(c).recall, float(found(c.choosing, depth).mean())))
            promised = self.bounds(accepted).recall
        tested = self.finalists if accepted in self.finalists else [*self.finalists, accepted]
        words = (
            f"{contender}: {f'depth {self.bounds(contender).depth}' if self.keeps(contender) else 'not shown'}"
            for contender in tested
        )
        return Outcome(accepted, depth, promised, self.bounds(accepted).bet, tuple(words))


def _table_claim(claim: Claim, n_codes: int) -> Claim:
    """The claim for one statement of the table."""
    return claim.shared(STATEMENTS * n_codes, TABLE_SHARE)


def can_show_others(claim: Claim, n_codes: int, n_testing: int) -> bool:
    """Whether ``n_testing`` queries are enough to accept a code that is tested with the table's part of the error."""
    return n_testing >= fewest_values(claim.recall, _table_claim(claim, n_codes).confidence)


def outcome_of(own: list[Contender], claim: Claim, n_rows: int) -> Outcome:
    """The verdict if no more than these codes can be tried."""
    return Evidence(own, claim, n_rows, len(own)).outcome(own)


def finalists(own: list[Contender], claim: Claim, is_last_test: bool = False) -> list[Contender]:
    """Codes that may keep the claim, smallest first, up to the first size at which one surely does.

    Only the codes that may need the fewest candidates of their size are finalists. If none surely keeps the claim, the
    one with the best recall is a finalist too. With few queries there are fewer finalists, so that each has a larger
    part of the error. The last test needs a finalist that `is_sure`, since no other code can be tried after it.
    """
    tested: list[Contender] = []
    for size in sorted({contender.bytes_per_row for contender in own}):
        of_size = [contender for contender in own if contender.bytes_per_row == size]
        likely = [contender for contender in of_size if _expects(claim, contender, claim.max_depth, -DOUBT)]
        depths = [expected_depth(claim, contender, claim.max_depth, 1.0) for contender in likely]
        for contender in likely:
            if expected_depth(claim, contender, claim.max_depth, -1.0) <= min(depths):
                tested.append(contender)
        if is_last_test and any(is_sure(claim, contender) for contender in likely):
            return _affordable(tested, claim, DOUBT)
        if not is_last_test and any(_expects(claim, contender, claim.max_depth, DOUBT) for contender in likely):
            return _affordable(tested, claim, doubts=0.0)
    safest = _best_first(own, claim)[0]
    return _affordable(tested if safest in tested else [*tested, safest], claim, -DOUBT)


def _affordable(tested: list[Contender], claim: Claim, doubts: float) -> list[Contender]:
    """The best of these codes: as many as can share the error if the best one is still to be accepted."""
    best_first = _best_first(tested, claim)
    for n in range(len(tested), 1, -1):
        part = claim.shared(n, 1.0 - TABLE_SHARE)
        is_enough = len(best_first[0].testing) >= fewest_values(part.recall, part.confidence)
        if is_enough and _expects(part, best_first[0], part.max_depth, doubts):
            return [contender for contender in tested if contender in best_first[:n]]
    return best_first[:1]


def _best_first(own: list[Contender], claim: Claim) -> list[Contender]:
    """The codes by the recall of their choosing queries, the highest first."""
    return sorted(own, key=lambda contender: -float(found(contender.choosing, claim.max_depth).mean()))


def is_likely(claim: Claim, contender: Contender) -> bool:
    """Whether the choosing queries expect the claim to be accepted at ``max_depth``."""
    return _expects(claim, contender, claim.max_depth, doubts=1.0)


def is_sure(claim: Claim, contender: Contender) -> bool:
    """Whether the choosing queries expect the claim to be accepted, with a margin of `DOUBT` standard errors.

    The code shares the error with other finalists: four in all, or fewer if queries are too few for four.
    """
    parts = (claim.shared(n, 1.0 - TABLE_SHARE) for n in range(USUAL_FINALISTS, 0, -1))
    n_testing = len(contender.testing)
    part = next((part for part in parts if n_testing >= fewest_values(part.recall, part.confidence)), None)
    return part is not None and _expects(part, contender, claim.max_depth, DOUBT)


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


def bound_of_recall(claim: Claim, contender: Contender, depth: int) -> tuple[float, float]:
    """A lower bound of recall at this depth, at the claim's confidence, and the bet that shows it."""
    bet = _bet(claim, found(contender.choosing, depth), 1.0, len(contender.testing))
    return lower_bound(found(contender.testing, depth), bet, claim.confidence), bet


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
