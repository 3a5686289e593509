"""Near-duplicates: right pairs, and the promise about missed ones."""

from __future__ import annotations

from benchmarks.mutants.mutant import Mutant

DUPLICATES = ("tests/compression/test_near_duplicates.py",)

MUTANTS = [
    Mutant(
        "pairs are not verified by floats",
        "compression/near_duplicates.py",
        "near = cosines >= self.least\n",
        "near = cosines >= -1.0\n",
        DUPLICATES,
    ),
    Mutant(
        "rounding makes equal rows differ",
        "compression/near_duplicates.py",
        "self.least = similarity - 4.0 * X.shape[1] * EPS",
        "self.least = similarity + 0.0 * X.shape[1] * EPS",
        DUPLICATES,
    ),
    Mutant(
        "a pair of codes in one block comes twice",
        "compression/near_duplicates.py",
        "later = first < near.indices\n",
        "later = first != near.indices\n",
        DUPLICATES,
    ),
    Mutant(
        "pairs of checked rows are forgotten",
        "compression/near_duplicates.py",
        "pairs = _joined([pairs, near])",
        "pairs = near",
        DUPLICATES,
    ),
    Mutant(
        "the mean share is taken over pairs, not over rows",
        "compression/near_duplicates.py",
        "np.bincount(row, weights=distances <= radius) / n_near",
        "np.asarray(distances <= radius, float)",
        DUPLICATES,
    ),
    Mutant(
        "the radius is one less than accepted",
        "compression/near_duplicates.py",
        "return bisect_left(range(n_bits), True, key=accepted)",
        "return bisect_left(range(n_bits), True, key=accepted) - 1",
        DUPLICATES,
    ),
    Mutant(
        "the rows that chose the bet test it",
        "compression/near_duplicates.py",
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
