"""RankingHasher in model files, ONNX graphs and workers: the same codes, the same report, and nothing forged."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import RankingHasher, load
from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.persistence import describe, export_onnx
from tests.persistence.models import TEST, X, assert_same_codes
from tests.persistence.test_forged_numbers import forged

KINDS = [(encoder, metric) for encoder in ("mlp", "linear") for metric in ("cosine", "euclidean")]
every_kind = pytest.mark.parametrize(("encoder", "metric"), KINDS)


@cache
def fitted(encoder: str, metric: str) -> RankingHasher:
    chosen: dict[str, Any] = {"hidden": 24, "n_steps": 20, "batch_size": 64, "random_state": 0}
    return RankingHasher(11, encoder=encoder, metric=metric, **chosen).fit(X[:300])


@every_kind
def test_a_model_and_its_report_come_back(encoder: str, metric: str, tmp_path: Path) -> None:
    hasher = fitted(encoder, metric)
    hasher.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for rows in (X[TEST], X[TEST].astype(np.float32)):
        assert_same_codes(again, hasher, rows)
    assert again.ranking_report_ == hasher.ranking_report_
    assert str(again.ranking_report_) == str(hasher.ranking_report_)
    assert again.get_params() == hasher.get_params()
    assert describe(tmp_path / "model")["method"] == "ranking"


def test_a_report_without_checks_comes_back(tmp_path: Path) -> None:
    hasher = RankingHasher(4, hidden=8, random_state=0).fit(X[:60])
    hasher.save(tmp_path / "model")
    assert load(tmp_path / "model").ranking_report_ == hasher.ranking_report_


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_model_whose_training_diverged_can_be_stored(tmp_path: Path) -> None:
    hasher = RankingHasher(4, encoder="linear", n_steps=10, temperature=1e-300, random_state=0).fit(X[:200])
    hasher.save(tmp_path / "model")
    assert load(tmp_path / "model").ranking_report_ == hasher.ranking_report_


@pytest.mark.parametrize("array", ["weights", "intercepts", "hidden_weights", "hidden_intercepts", "output_weights"])
def test_the_largest_float32_numbers_give_finite_margins(array: str, tmp_path: Path) -> None:
    fitted("mlp", "cosine").save(tmp_path / "model")
    forged(tmp_path / "model", f"hash_functions_/{array}", lambda numbers: numbers.fill(np.finfo(np.float32).max))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (300, 64))
    for rows in (signs, LARGEST_FEATURE * signs, np.zeros((1, 64))):
        for dtype in (np.float64, np.float32):
            assert np.isfinite(load(tmp_path / "model").decision_function(rows.astype(dtype))).all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every_kind
def test_onnxruntime_gives_the_same_codes(encoder: str, metric: str, dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path, hasher, rows = tmp_path / "encoder.onnx", fitted(encoder, metric), X[TEST].astype(dtype)
    report = export_onnx(hasher, path, sample=rows, dtype=dtype)
    assert (report.rows, report.differing) == (400, 0)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["codes"], {"features": rows})[0], hasher.encode(rows))
    odd = rows[:4] * np.array([[0.0], [1e-30], [1e-9], [1e16]], dtype)
    assert export_onnx(hasher, path, sample=odd, dtype=dtype).differing == 0
