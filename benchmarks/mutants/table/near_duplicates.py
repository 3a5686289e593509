"""Pairs of codes, and the promise about near-duplicates."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

PAIRS = ("tests/search/test_pairs.py",)
DUPLICATES = ("tests/compression/test_near_duplicates.py",)

MUTANTS = [
    Mutant(
        "rows are pairs with themselves",
        "search/pairs.py",
        "range(max(0, row + 1 - block_start), n, ROWS_AT_ONCE)",
        "range(max(0, row - block_start), n, ROWS_AT_ONCE)",
        PAIRS,
    ),
    Mutant(
        "a pair at the radius is left out",
        "search/pairs.py",
        "                if distance <= radius:",
        "                if distance < radius:",
        PAIRS,
    ),
    Mutant(
        "a group of rows is not compared with its own block",
        "search/pairs.py",
        "range(start // ROWS_PER_BLOCK, len(blocks))",
        "range(start // ROWS_PER_BLOCK + 1, len(blocks))",
        PAIRS,
    ),
    Mutant(
        "a buffer grows when it has overflowed",
        "search/pairs.py",
        "if size + ROWS_AT_ONCE > len(first):",
        "if size + ROWS_AT_ONCE > len(first) + ROWS_AT_ONCE // 2:",
        PAIRS,
    ),
    Mutant(
        "pairs are not verified by floats",
        "compression/similar_rows.py",
        "near = cosines >= self.least\n",
        "near = cosines >= -1.0\n",
        DUPLICATES,
    ),
    Mutant(
        "rounding makes equal rows differ",
        "compression/similar_rows.py",
        "self.least = similarity - 4.0 * X.shape[1] * EPS",
        "self.least = similarity + 0.0 * X.shape[1] * EPS",
        DUPLICATES,
    ),
    Mutant(
        "a pair of two checked rows comes twice",
        "compression/similar_rows.py",
        "new[1:] = (np.diff(low) != 0) | (np.diff(high) != 0)",
        "new[1:] = True",
        DUPLICATES,
    ),
    Mutant(
        "pairs of checked rows are forgotten",
        "compression/near_duplicates.py",
        "pairs = joined_pairs([pairs, near])",
        "pairs = near",
        DUPLICATES,
    ),
    Mutant(
        "the mean share is taken over pairs, not over rows",
        "compression/accepted_radius.py",
        "np.bincount(row, weights=distances <= radius) / n_near",
        "np.asarray(distances <= radius, float)",
        DUPLICATES,
    ),
    Mutant(
        "the radius is one less than accepted",
        "compression/accepted_radius.py",
        "return bisect_left(range(n_bits), True, key=accepted)",
        "return bisect_left(range(n_bits), True, key=accepted) - 1",
        DUPLICATES,
    ),
    Mutant(
        "the rows that chose the bet test it",
        "compression/accepted_radius.py",
        "accepts(shares(radius)[n_choosing:], claim, bet, confidence)",
        "accepts(shares(radius)[:n_choosing], claim, bet, confidence)",
        DUPLICATES,
    ),
    Mutant(
        "a group keeps its highest row",
        "compression/near_duplicates.py",
        "np.sort(np.unique(self.groups(), return_index=True)[1])",
        "np.sort(self.n_rows - 1 - np.unique(self.groups()[::-1], return_index=True)[1])",
        DUPLICATES,
    ),
]
