"""Sparse rows: linear methods never make them dense, and others refuse those that would not fit into memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import RankingHasher, TwoStepHasher
from hashlearn.core import memory, thresholds
from hashlearn.hash_functions import linear
from hashlearn.hashers import ITQ, LSH, SignCodes, SpectralHashing
from hashlearn.linalg.principal_axes import principal_axes

RNG = np.random.default_rng(0)
WIDE = sp.random_array((300, 2500), density=0.01, format="csr", rng=RNG)
HUGE = sp.csr_array((200_000, 1_000_000), dtype=np.float32) + sp.eye_array(200_000, 1_000_000, format="csr")
LINEAR = {
    "itq": ITQ(16, random_state=0),
    "lsh": LSH(16, random_state=0),
    "pca": SignCodes(16, features="pca", random_state=0),
    "medians": SignCodes(16, threshold="median"),
    "spectral": SpectralHashing(16, random_state=0),
}


def never_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid to make more than 2,048 columns dense."""
    made = sp.csr_array.toarray

    def toarray(self: Any, *arguments: Any, **options: Any) -> Any:
        assert self.shape[1] <= 2048
        return made(self, *arguments, **options)

    monkeypatch.setattr(sp.csr_array, "toarray", toarray)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("width", [60, 2500])
def test_sparse_rows_give_the_codes_of_dense_ones(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = WIDE[:, :width]
    dense = rows.toarray()
    wanted = LINEAR[name].fit(dense).decision_function(dense)
    never_dense(monkeypatch)
    hasher = LINEAR[name].fit(rows)
    margins = hasher.decision_function(rows)
    sure = np.abs(wanted) > 1e-9
    assert sure.any()
    np.testing.assert_allclose(margins, wanted, atol=1e-10)
    np.testing.assert_array_equal(hasher.transform(rows)[sure], (wanted >= 0.0)[sure])
    np.testing.assert_array_equal(hasher.encode(rows), np.packbits(margins >= 0.0, axis=1))


@pytest.mark.parametrize("n", [60, 2110])
def test_principal_axes_of_many_columns_are_found(n: int) -> None:
    scores, directions = RNG.standard_normal((n, 30)), np.linalg.qr(RNG.standard_normal((2100, 30)))[0]
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0] * np.geomspace(1.0, 1e-3, 30)
    known = scores @ directions.T + 0.3
    for rows in (known, sp.csr_array(known)):
        axes = principal_axes(rows, 8, np.random.default_rng(0))
        np.testing.assert_allclose(np.abs(np.sum(directions[:, :8] * axes.directions, axis=0)), 1.0, atol=1e-6)
        np.testing.assert_allclose(np.abs(axes.scores(rows) * axes.scale), np.abs(scores[:, :8]), atol=1e-6)
        np.testing.assert_allclose(axes.scores(rows).var(axis=0), axes.variances, rtol=1e-6)


def test_labels_and_kernels_learn_from_wide_sparse_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(300) % 3
    rows = sp.csr_array(WIDE + sp.csr_array((np.ones(300), (np.arange(300), labels)), shape=WIDE.shape))
    never_dense(monkeypatch)
    hasher = TwoStepHasher(8, random_state=0).fit(rows, labels)
    assert hasher.score(rows, labels) > 0.9


@pytest.mark.parametrize("target", ["neighbors", "distance", "thresholded_distance"])
def test_fits_that_need_dense_rows_say_what_they_would_take(target: str) -> None:
    with pytest.raises(
        ValueError, match=r"needs dense rows.* allowed: .* 200,000 × 1,000,000 numbers take 1,600\.0 GB"
    ):
        TwoStepHasher(8, target=target, random_state=0).fit(HUGE)


def test_the_limit_is_the_one_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert thresholds.LARGEST_DENSE_FORM == 2 * 10**9
    monkeypatch.setattr(memory, "LARGEST_DENSE_FORM", 8 * 300 * 2500 - 1)
    with pytest.raises(ValueError, match=r"TruncatedSVD, or take hashlearn\.hashers\.ITQ"):
        TwoStepHasher(8, target="distance", random_state=0).fit(WIDE)
    with pytest.raises(ValueError, match="needs dense rows"):
        LSH(8, random_state=0).fit(WIDE).score(WIDE)
    monkeypatch.setattr(memory, "LARGEST_DENSE_FORM", 8 * 300 * 2500)
    assert LSH(8, random_state=0).fit(WIDE).score(WIDE) < 0.0


def test_linear_ridge_refuses_many_sparse_columns_before_codes_are_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "LARGEST_DENSE_FORM", 8 * 2500**2 - 1)
    told: list[Any] = []
    hasher = TwoStepHasher(8, hash_function="linear_ridge", progress=told.append, random_state=0)
    with pytest.raises(ValueError, match=r"linear_ridge forms .* 2,500 columns, which take 0\.1 GB; choose linear_svm"):
        hasher.fit(WIDE, np.arange(300) % 3)
    assert told == []


def test_hashers_of_dense_rows_say_what_sparse_ones_would_take() -> None:
    with pytest.raises(TypeError, match=r"dense data is required by RankingHasher; .* take 1,600\.0 GB\. Reduce") as e:
        RankingHasher(8).fit(HUGE)
    assert "toarray" not in str(e.value)
    with pytest.raises(TypeError, match=r"or pass X\.toarray\(\)"):
        RankingHasher(8).fit(WIDE)
