"""The bet behind a promise, the codes that are tested, the split of queries, and worst ranks."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

BET = ("tests/compression/test_promise.py",)
TESTING = ("tests/compression/test_testing.py",)
SPLIT = ("tests/compression/test_splitting.py",)
RANKS = ("tests/search/test_ranks.py",)

MUTANTS = [
    Mutant(
        "several bets each get the whole stake",
        "compression/promise.py",
        "float(np.logaddexp.reduce(growth) - math.log(len(bets)))",
        "float(np.logaddexp.reduce(growth))",
        BET,
    ),
    Mutant(
        "a claim is accepted at a lower confidence",
        "compression/promise.py",
        ">= -math.log1p(-confidence)",
        ">= -0.8 * math.log1p(-confidence)",
        BET,
    ),
    Mutant("a bound is the claim that was refused", "compression/promise.py", "return below", "return above", BET),
    Mutant(
        "nothing is added to the values that a bet is fitted to",
        "compression/promise.py",
        "- ZEROS_ADDED * math.log1p(-bet * claim)",
        "",
        BET,
    ),
    Mutant(
        "a bet is fitted to the testing queries",
        "compression/testing.py",
        "values = found(contender.choosing, expected_depth(claim, contender, deepest))",
        "values = found(contender.testing, expected_depth(claim, contender, deepest))",
        TESTING,
    ),
    Mutant(
        "the largest depth is judged by the testing queries",
        "compression/testing.py",
        "values = found(contender.choosing, depth)\n    doubt",
        "values = found(contender.testing, depth)\n    doubt",
        TESTING,
    ),
    Mutant(
        "statements that hold together are tested as if they were alone",
        "compression/promise.py",
        "return 1.0 - share * (1.0 - confidence) / n",
        "return confidence",
        TESTING,
    ),
    Mutant(
        "codes that are tested together do not share the error",
        "compression/testing.py",
        "claim.shared(len(self.finalists), 1.0 - TABLE_SHARE)",
        "claim",
        TESTING,
    ),
    Mutant(
        "the table and the finalists have the whole error each",
        "compression/testing.py",
        "claim.shared(STATEMENTS * n_codes, TABLE_SHARE)",
        "claim.shared(STATEMENTS * n_codes)",
        TESTING,
    ),
    Mutant(
        "the bound of the table does not count for the verdict",
        "compression/testing.py",
        "((k, of_codes), (deepest, best)) if",
        "((k, of_codes),) if",
        TESTING,
    ),
    Mutant(
        "codes that may keep the claim are not tested",
        "compression/testing.py",
        "claim.max_depth, -DOUBT)",
        "claim.max_depth, DOUBT)",
        TESTING,
    ),
    Mutant(
        "queries that equal a row are kept",
        "compression/splitting.py",
        "return ~(copies | zero)",
        "return ~zero",
        SPLIT,
    ),
    Mutant(
        "queries that choose test too",
        "compression/splitting.py",
        "testing=asked[n_choosing:]",
        "testing=asked",
        SPLIT,
    ),
    Mutant(
        "equal scores count for the row",
        "search/ranks.py",
        "scores[j] >= limits[reached]",
        "scores[j] > limits[reached]",
        RANKS,
    ),
    Mutant(
        "equal Hamming distances count for the row",
        "search/ranks.py",
        "within[distances[rows[i, place]]]",
        "within[max(distances[rows[i, place]], 1) - 1] + 1",
        RANKS,
    ),
]
