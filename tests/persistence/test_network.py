"""Networks in model files and ONNX graphs: the same codes, and nothing forged is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.mutated_files import rewritten

from hashlearn import load
from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.hashers import HASHERS
from hashlearn.persistence import PersistenceError, describe, export_onnx
from hashlearn.persistence.values import HASHER_NAMES
from tests.hash_functions.network import NetworkHasher
from tests.persistence.models import TEST, TRAIN, X, assert_same_codes
from tests.persistence.test_forged_numbers import forged

ARRAYS = ("weights", "intercepts", "hidden_weights", "hidden_intercepts", "output_weights")
CENTERED = X - X.mean(axis=0)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files name a hasher by its key in the registry."""
    monkeypatch.setitem(HASHERS, "network", NetworkHasher)
    monkeypatch.setitem(HASHER_NAMES, NetworkHasher, "network")


def fitted(dtype: str = "float64", **parameters: Any) -> NetworkHasher:
    return NetworkHasher(11, **parameters).fit(CENTERED[TRAIN].astype(dtype))


@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("n_hidden", [0, 7])
def test_a_model_loaded_gives_the_codes_of_the_model_saved(n_hidden: int, unit_rows: bool, tmp_path: Path) -> None:
    hasher = fitted(n_hidden=n_hidden, unit_rows=unit_rows)
    hasher.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for rows in (CENTERED[TEST], CENTERED[TEST].astype(np.float32)):
        assert_same_codes(again, hasher, rows)
    arrays = describe(tmp_path / "model")["arrays"]
    assert {arrays[f"hash_functions_/{name}"]["dtype"] for name in ARRAYS} == {"float32"}


def test_a_version_without_the_hasher_refuses_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted().save(tmp_path / "model")
    monkeypatch.delitem(HASHERS, "network")
    with pytest.raises(PersistenceError, match="unknown method 'network'"):
        load(tmp_path / "model")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("array", ARRAYS)
def test_nan_and_infinity_are_refused(array: str, value: float, tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    forged(tmp_path / "model", f"hash_functions_/{array}", lambda numbers: numbers.__setitem__(-1, value))
    with pytest.raises(PersistenceError, match=f"{array} must be finite"):
        load(tmp_path / "model")


@pytest.mark.parametrize("array", ARRAYS)
def test_the_largest_float32_numbers_give_finite_margins(array: str, tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    forged(tmp_path / "model", f"hash_functions_/{array}", lambda numbers: numbers.fill(np.finfo(np.float32).max))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (300, 64))
    for rows in (signs, LARGEST_FEATURE * signs, np.zeros((1, 64))):
        for dtype in (np.float64, np.float32):
            assert np.isfinite(load(tmp_path / "model").decision_function(rows.astype(dtype))).all()


def edited(path: Path, **changes: Any) -> None:
    """Change the state of the functions in a model file; the checksums are made to fit."""

    def edit(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        model["fitted"]["hash_functions_"]["state"].update(changes)

    path.write_bytes(rewritten(path.read_bytes(), edit))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"unit_rows": 1}, "unit_rows must be true or false"),
        ({"unit_rows": "yes"}, "unit_rows must be true or false"),
        ({"scale": 0.0}, "scale must be a number"),
        ({"scale": -1.0}, "scale must be a number"),
        ({"scale": 5e-324}, "scale must be a number"),
        ({"scale": 1e308}, "scale must be a number"),
        ({"scale": True}, "scale must be a number"),
        ({"scale": None}, "scale must be a number"),
        ({"scale": 1e-300, "unit_rows": False}, "network.* are too large"),
        ({"n_features": 63}, "weights must have shape"),
        ({"hidden_weights": {"$": "array", "name": "hash_functions_/weights"}}, "hidden_intercepts must have shape"),
        ({"output_weights": {"$": "array", "name": "hash_functions_/weights"}}, "output_weights must have shape"),
        ({"weights": {"$": "array", "name": "hash_functions_/hidden_weights"}}, "weights must have shape"),
        ({"weights": {"$": "array", "name": "hash_functions_/bit_source"}}, "weights must be an array of real"),
    ],
)
def test_forged_states_are_refused(changes: dict[str, Any], match: str, tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    load(tmp_path / "model")
    edited(tmp_path / "model", **changes)
    with pytest.raises(PersistenceError, match=match):
        load(tmp_path / "model")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("unit_rows", [True, False])
@pytest.mark.parametrize("n_hidden", [0, 7, 300])
def test_onnxruntime_gives_the_same_codes(n_hidden: int, unit_rows: bool, dtype: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path, hasher = tmp_path / "encoder.onnx", fitted(dtype, n_hidden=n_hidden, unit_rows=unit_rows)
    assert export_onnx(hasher, path, dtype=dtype).differing == 0
    rows = np.random.default_rng(1).standard_normal((500, 64)).astype(dtype)
    rows[:5] *= np.array([[0.0], [1e-30], [1e-9], [1e17], [1.0]], dtype)
    report = export_onnx(hasher, path, sample=rows, dtype=dtype)
    assert (report.rows, report.differing) == (500, 0)
    assert report.within_rounding < 0.005 * report.bits
    functions = hasher.hash_functions_
    assert report.bytes < sum(getattr(functions, name).nbytes for name in ARRAYS) + 10_000
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["codes"], {"features": rows})[0], hasher.encode(rows))
    assert session.run(["codes"], {"features": rows[:0]})[0].shape == (0, 2)
    largest = (LARGEST_FEATURE * np.sign(rows[4:5])).astype(dtype)  # the sum of its squares overflows in float32
    np.testing.assert_array_equal(session.run(["codes"], {"features": largest})[0], hasher.encode(largest))
