"""Which bits need a function of their own: repeated or complementary columns are fitted once, constant ones never.

Supervised codes have many repeated bits, because ten classes allow few different useful ones. O(n · n_bits).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import is_tensor, tensor_like


@dataclass(frozen=True, eq=False)
class DistinctBits:
    """The way from n_bits columns to the distinct ones and back."""

    columns: NDArray[np.intp]  # columns[k]: where distinct bit k appears first
    source: NDArray[np.intp]  # source[b]: the distinct bit that bit b repeats, −1 for a constant bit
    signs: NDArray[np.int8]  # signs[b]: −1 where bit b is the complement of its source; a constant bit's value

    @property
    def n_bits(self) -> int:
        """The code length."""
        return len(self.source)

    @property
    def n_distinct(self) -> int:
        """Number of bits to fit."""
        return len(self.columns)

    def expand(self, margins: Any) -> Any:
        """Margins (n, n_bits) from those of the distinct bits; a constant bit's margin is its value, −1 or +1."""
        if np.array_equal(self.source, np.arange(self.n_distinct)) and (self.signs > 0).all():
            return margins
        constant = self.source < 0
        factors, offsets = (
            tensor_like(part, margins) if is_tensor(margins) else part.astype(margins.dtype)
            for part in (np.where(constant, 0, self.signs), np.where(constant, self.signs, 0))
        )
        # The margins of constant bits are multiplied by 0; without distinct bits there is no margin to take.
        columns = margins[:, np.maximum(self.source, 0)] if self.n_distinct else margins.sum(1)[:, None]
        return columns * factors + offsets

    def describe(self) -> str:
        """Words such as ``10 of 32 bits fitted (22 repeated or complementary)``.

        >>> distinct_bits(np.array([[1, -1, 1], [-1, 1, 1]], dtype=np.int8)).describe()
        '1 of 3 bits fitted (1 repeated or complementary, 1 constant)'
        """
        constant = int((self.source < 0).sum())
        repeated = self.n_bits - constant - self.n_distinct
        rest = [f"{k} {what}" for k, what in ((repeated, "repeated or complementary"), (constant, "constant")) if k]
        return f"{self.n_distinct} of {self.n_bits} bits fitted" + (f" ({', '.join(rest)})" if rest else "")


def every_bit(n_bits: int) -> DistinctBits:
    """The case in which every bit has a function of its own."""
    return DistinctBits(np.arange(n_bits), np.arange(n_bits), np.ones(n_bits, dtype=np.int8))


def distinct_bits(codes: NDArray[np.int8]) -> DistinctBits:
    """The distinct bits of codes ±1, shape (n, n_bits)."""
    return distinct_columns(codes.T > 0)


def distinct_columns(columns: Iterable[NDArray[np.bool_]]) -> DistinctBits:
    """Compare every column of bits, as it differs from its own first entry, with those before it."""
    source: list[int] = []
    signs: list[int] = []
    firsts: list[int] = []
    known: dict[bytes, tuple[int, int]] = {}  # a distinct bit and its sign
    for b, column in enumerate(columns):
        differs, sign = column != column[0], 1 if column[0] else -1
        bit, first_sign = -1, 1  # of a constant column
        if differs.any():
            key = np.packbits(differs).tobytes()
            if key not in known:
                known[key] = (len(firsts), sign)
                firsts.append(b)
            bit, first_sign = known[key]
        source.append(bit)
        signs.append(sign * first_sign)
    return DistinctBits(np.array(firsts, np.intp), np.array(source, np.intp), np.array(signs, np.int8))
