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
from hashlearn.hash_functions.stored import require_range, stored_array


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
        if is_tensor(margins):
            return self._expand_tensor(margins)
        if np.array_equal(self.source, np.arange(self.n_distinct)) and (self.signs > 0).all():
            return margins
        constant = self.source < 0
        full = np.empty((len(margins), self.n_bits), dtype=margins.dtype)
        full[:, constant] = self.signs[constant]
        varying = ~constant
        full[:, varying] = margins[:, self.source[varying]] * self.signs[varying].astype(margins.dtype)
        return full

    def _expand_tensor(self, margins: Any) -> Any:
        import torch

        constant = tensor_like(np.where(self.source < 0, self.signs, 0.0), margins)
        if margins.shape[1] == 0:
            return constant.expand(margins.shape[0], -1).clone()
        source = torch.as_tensor(np.maximum(self.source, 0), device=margins.device)
        return margins[:, source] * tensor_like(np.where(self.source < 0, 0.0, self.signs), margins) + constant

    def describe(self) -> str:
        """Words such as ``10 of 32 bits fitted (22 repeated or complementary)``.

        >>> distinct_bits(np.array([[1, -1, 1], [-1, 1, 1]], dtype=np.int8)).describe()
        '1 of 3 bits fitted (1 repeated or complementary, 1 constant)'
        """
        constant = int((self.source < 0).sum())
        repeated = self.n_bits - constant - self.n_distinct
        rest = [f"{k} {what}" for k, what in ((repeated, "repeated or complementary"), (constant, "constant")) if k]
        return f"{self.n_distinct} of {self.n_bits} bits fitted" + (f" ({', '.join(rest)})" if rest else "")

    def state(self) -> dict[str, Any]:
        """Plain arrays for a file."""
        return {"bit_columns": self.columns, "bit_source": self.source, "bit_signs": self.signs}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> DistinctBits:
        """The inverse of ``state``."""
        parts = ("bit_columns", "bit_source", "bit_signs")
        columns, source, signs = (stored_array(state, part, (None,), "i") for part in parts)
        if len(source) == 0 or len(signs) != len(source):
            raise ValueError(f"bit_source and bit_signs must have one entry a bit, got {len(source)} and {len(signs)}")
        require_range(columns, "bit_columns", 0, len(source) - 1)
        require_range(source, "bit_source", -1, len(columns) - 1)
        if not (np.abs(signs.astype(np.int64)) == 1).all():
            raise ValueError("bit_signs must hold only -1 and +1")
        return cls(columns.astype(np.intp), source.astype(np.intp), signs.astype(np.int8))


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
    chosen: list[int] = []
    seen: dict[bytes, tuple[int, int]] = {}
    for b, column in enumerate(columns):
        differs, sign = column != column[0], 1 if column[0] else -1
        known, first_sign = -1, 1
        if differs.any():
            key = np.packbits(differs).tobytes()
            if key not in seen:
                seen[key] = (len(chosen), sign)
                chosen.append(b)
            known, first_sign = seen[key]
        source.append(known)
        signs.append(sign * first_sign)
    return DistinctBits(np.array(chosen, np.intp), np.array(source, np.intp), np.array(signs, np.int8))
