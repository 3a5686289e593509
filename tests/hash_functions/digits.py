"""Digits with codes in which every kind of column occurs: distinct, repeated, complementary, constant."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

N_LEARN = 300
REPEATED, COMPLEMENTARY, ALWAYS, NEVER = 4, 5, 6, 7  # columns; the first four are distinct


@cache
def learn_and_new() -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.float64], NDArray[np.int8]]:
    """X and codes of 300 rows to learn, X and codes of 700 others; 8 bits."""
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    words = np.random.default_rng(5).choice([-1, 1], size=(10, 4)).astype(np.int8)
    codes = np.column_stack([words[y], words[y, 1], -words[y, 2], np.ones_like(y), -np.ones_like(y)]).astype(np.int8)
    return X[:N_LEARN], codes[:N_LEARN], X[N_LEARN:1000], codes[N_LEARN:1000]


def bit_accuracy(margins: NDArray[np.floating], codes: NDArray[np.int8]) -> float:
    """Share of bits that the margins get right."""
    return float(np.mean((margins >= 0.0) == (codes > 0)))
