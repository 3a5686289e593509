"""Codes with many ties, and the answer that every exact search must give, from all distances and a stable sort."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from hashlearn.bits import hamming_distances, pack_bits
from hashlearn.search import HammingIndex
from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, TEXT


def random_codes(n: int, n_bits: int, seed: int = 0) -> np.ndarray:
    """Few ones, so that codes are near each other and most distances occur many times."""
    return pack_bits(np.random.default_rng(seed).random((n, n_bits)) < 0.2)


def nearest(queries: np.ndarray, codes: np.ndarray, ids: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and distances of the k nearest, ties by id."""
    order = np.argsort(ids)
    distances = hamming_distances(queries, codes[order])
    places = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return ids[order][places], np.take_along_axis(distances, places, axis=1)


def within(query: np.ndarray, codes: np.ndarray, ids: np.ndarray, radius: int) -> tuple[np.ndarray, np.ndarray]:
    """Ids and distances of everything within the radius of one query."""
    found, distances = nearest(query[None], codes, ids, len(codes))
    near = distances[0] <= radius
    return found[0][near], distances[0][near]


def filled(n_bits: int, n: int = 300, seed: int = 0) -> tuple[HammingIndex, np.ndarray, np.ndarray]:
    """An index, its codes and their ids, which are in no order."""
    codes = random_codes(n, n_bits, seed)
    ids = np.random.default_rng(seed).permutation(5 * n)[:n]
    index = HammingIndex(n_bits)
    index.add(codes, ids)
    return index, codes, ids


def some_ids(id_type: str, n: int = 60, seed: int = 0) -> list[Any]:
    """Ids in no order. Text has quotes, line ends, letters of several bytes, and ids that begin alike."""
    numbers = [int(number) for number in np.random.default_rng(seed).permutation(7 * n)[:n]]
    letters = ["a'", 'b"', "c\n", "é", "漢", "\U0001f600", "%", "\\"]
    return {
        INTEGER: [2**62 + number for number in numbers],
        TEXT: [f"{letters[number % 8]}{number}" for number in numbers],
    }[id_type]


def engine(*modules: str) -> Any:
    """The first module, or a skip with a reason; what a package warns of while it is imported is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [pytest.importorskip(module, reason=f"{module} is not installed") for module in modules]
    return found[0]


def split_settings(n_bits: int, settings: dict[str, Any]) -> tuple[About, dict[str, Any]]:
    """About, and the options of a store, of settings of both."""
    of_about = {name: settings[name] for name in ("id_type", "model", "fields") if name in settings}
    return About(n_bits, **of_about), {name: value for name, value in settings.items() if name not in of_about}
