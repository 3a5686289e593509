"""A toy hash function: least squares with another default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hashlearn.hash_functions.fitted import FittedHashFunctions
from hashlearn.hash_functions.hash_function import HashFunction, Training
from hashlearn.hash_functions.linear import LinearRidge


@dataclass(frozen=True)
class ToyHashFunction(HashFunction):
    """Linear least squares with a weight of its own."""

    alpha: float = 1e-3

    name: ClassVar[str] = "toy_hash_function"

    def _fit(self, data: Training) -> FittedHashFunctions:
        return LinearRidge(self.alpha)._fit(data)
