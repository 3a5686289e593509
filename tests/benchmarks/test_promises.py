"""The benchmark of promises: other tests are valid too, and pools promise what `compress` would."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.promises import hoeffding, hoeffding_bentkus
from scipy.stats import binom

pytest.importorskip("benchmarks.promises", reason="benchmarks/ is not importable: run pytest from the repository root")

from benchmarks import promise_pools
from hashlearn.compression.contenders import found
from hashlearn.compression.testing import Claim, outcome_of


@pytest.mark.parametrize("test", [hoeffding, hoeffding_bentkus])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.95])
def test_other_tests_are_valid(test: Any, recall: float) -> None:
    claim, n = Claim(recall, 0.95, 10, 200), 1000
    chances = binom.pmf(np.arange(n + 1), n, recall)  # a query finds all or nothing, and the mean is just the claim
    accepted = math.fsum(p for j, p in enumerate(chances) if test(claim, j / n, n))
    assert 0.0 < accepted <= 0.05
    assert not test(claim, recall, n)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> promise_pools.Pool:
    monkeypatch.setattr(promise_pools, "TASKS", {"digits": ("digits", None, "cosine")})
    monkeypatch.setattr(promise_pools, "CODES", (("pca_sign", 4), ("pca_sign", 8)))
    monkeypatch.setattr(promise_pools, "POOL", 600)
    made = promise_pools.pool_of("digits", tmp_path)
    again = promise_pools.pool_of("digits", tmp_path)
    assert [str(code) for code in made.codes] == [str(code) for code in again.codes]
    assert all(np.array_equal(a.testing, b.testing) for a, b in zip(made.codes, again.codes, strict=True))
    return again


def test_a_pool_promises_what_was_asked_for(pool: promise_pools.Pool) -> None:
    assert (pool.n_queries, pool.n_database, len(pool.codes)) == (600, 1197, 4)
    asked, judges = promise_pools.without_replacement(pool, 400, np.random.default_rng(0))
    assert not set(asked) & set(judges)
    drawn = pool.split(asked)
    assert (len(drawn[0].choosing), len(drawn[0].testing)) == (80, 320)
    claim = Claim(0.9, 0.99, 10, 200)
    outcome = outcome_of(drawn, claim, pool.n_database)
    assert outcome.is_kept(claim)
    assert found(pool.codes[drawn.index(outcome.accepted)].testing, outcome.depth).mean() > 0.9
