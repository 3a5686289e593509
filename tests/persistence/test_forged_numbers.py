"""Model files with right checksums over numbers that would crash, or make margins NaN: all are refused at load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.mutated_files import rewritten

from hashlearn import TwoStepHasher, load
from hashlearn.core.checks import LARGEST_FEATURE
from hashlearn.core.container import DTYPES
from hashlearn.hash_functions import LinearMargins, every_bit
from hashlearn.hashers import HASHERS, LSH
from hashlearn.persistence import PersistenceError
from hashlearn.targets import Similarity
from tests.persistence.models import TRAIN, X, Y, fitted, unfitted

Change = Callable[[np.ndarray], None]


def forged(path: Path, array: str, change: Change) -> None:
    """Change the numbers of one array of a model file in place; the checksums are made to fit."""

    def edit(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        first, last = header[array]["data_offsets"]
        numbers = np.frombuffer(bytes(payload[first:last]), DTYPES[header[array]["dtype"]]).copy()
        change(numbers)
        payload[first:last] = numbers.tobytes()

    path.write_bytes(rewritten(path.read_bytes(), edit))


def ends_at_zero(indptr: np.ndarray) -> None:
    indptr[1:-1], indptr[-1] = 2**30, 0


def wraps_around(indptr: np.ndarray) -> None:
    indptr[1:-3], indptr[-3], indptr[-2] = 2**31 - 1, -(2**31), -1


def decreases(indptr: np.ndarray) -> None:
    indptr[3] = 0


def is_negative(indptr: np.ndarray) -> None:
    indptr[3] = -5


@pytest.mark.parametrize("change", [ends_at_zero, wraps_around, decreases, is_negative])
def test_wild_indptr_is_refused_in_points_and_in_parameters(tmp_path: Path, change: Change) -> None:
    unfitted("ksh").fit(sp.csr_array(X[TRAIN]), Y[TRAIN]).save(tmp_path / "points")
    similar = sp.csr_array((Y[:40, None] == Y[:40]).astype(np.float64))
    TwoStepHasher(4, target=Similarity(similar), random_state=0).fit(X[:40]).save(tmp_path / "target")
    for name, array in (("points", "hash_functions_/points_indptr"), ("target", "parameters/target/matrix/indptr")):
        load(tmp_path / name)
        forged(tmp_path / name, array, change)
        with pytest.raises(PersistenceError, match=rf"{name}.*indptr must"):
            load(tmp_path / name)


@pytest.mark.parametrize("name", HASHERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_in_every_array(tmp_path: Path, name: str, value: float) -> None:
    path = tmp_path / "model"
    fitted(name).save(path)
    content = path.read_bytes()
    arrays: list[str] = []

    def collect(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        real = [key for key, entry in header.items() if entry.get("dtype") in ("F32", "F64") and entry["shape"]]
        reports = ("inference_report_/bits", "ranking_report_/checks", "objectives_")  # tables of what happened
        arrays.extend(key for key in real if not key.startswith(reports))

    rewritten(content, collect)
    assert arrays
    for array in arrays:
        path.write_bytes(content)
        forged(path, array, lambda numbers: numbers.__setitem__(len(numbers) // 2, value))
        if array.endswith("forest_thresholds") and value == np.inf:
            assert np.isfinite(load(path).decision_function(X[TRAIN])).all()  # it sends every row to the left
            continue
        with pytest.raises(PersistenceError, match=array.rpartition("/")[2]):
            load(path)


@pytest.mark.parametrize(
    ("name", "field"), [("spherical_hashing", "scale"), ("kmeans_hashing", "scale"), ("two_step", "gamma")]
)
@pytest.mark.parametrize("value", [0.0, -1.0, 5e-324, 1e308, None, True, "1"])
def test_scales_that_are_zero_negative_subnormal_or_huge_are_refused(
    tmp_path: Path, name: str, field: str, value: Any
) -> None:
    path = tmp_path / "model"
    fitted(name).save(path)

    def edit(header: dict[str, Any], model: dict[str, Any], payload: bytearray) -> None:
        model["fitted"]["hash_functions_"]["state"][field] = value

    path.write_bytes(rewritten(path.read_bytes(), edit))
    with pytest.raises(PersistenceError, match=f"{field} must be|too large"):
        load(path)


@pytest.mark.parametrize("name", HASHERS)
def test_entries_whose_margins_would_overflow_are_refused(tmp_path: Path, name: str) -> None:
    path, kind = tmp_path / "model", fitted(name).hash_functions_.kind
    if kind == "network":
        pytest.skip("its numbers are float32 and cannot overflow float64; see test_ranking")
    fitted(name).save(path)
    array = {
        "linear": "weights",
        "cosine": "weights",
        "kernel_expansion": "coefficients",
        "forests": "forest_leaves",
        "spheres": "centers",
        "codewords": "weights",
    }[kind]
    forged(path, f"hash_functions_/{array}", lambda numbers: numbers.fill(1.7e308))
    with pytest.raises(PersistenceError, match="too large"):
        load(path)


@pytest.mark.parametrize("name", HASHERS)
def test_margins_of_the_largest_rows_are_finite(name: str) -> None:
    hasher = fitted(name)
    signs = np.where(np.random.default_rng(0).random((200, 64)) < 0.5, -1.0, 1.0)
    rows = np.vstack([LARGEST_FEATURE * signs, signs])
    assert np.isfinite(hasher.decision_function(rows)).all()
    assert np.isfinite(hasher.decision_function(rows.astype(np.float32))).all()


def test_rows_that_overflow_in_float32_get_the_margins_of_float64_cut_to_its_range() -> None:
    weights = np.array([[1e39, 1.0], [-1e39, 1.0], [1.0, 1.0]])
    functions = LinearMargins(weights, np.zeros(2), every_bit(2), "large")
    rows = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1e-39, 2e-39, 0.0]])
    largest = np.finfo(np.float32).max
    narrow = functions.decision_function(rows.astype(np.float32))
    np.testing.assert_allclose(narrow, [[1.0, 1.0], [largest, 1.0], [-1.0, 0.0]], rtol=1e-5, atol=1e-30)
    for i in range(3):
        alone = functions.decision_function(rows[i : i + 1].astype(np.float32))
        np.testing.assert_array_equal(alone, narrow[i : i + 1])


def test_save_refuses_what_load_would_refuse(tmp_path: Path) -> None:
    hasher = LSH(3, random_state=0).fit(X[TRAIN])
    hasher.hash_functions_.weights[5, 1] = np.nan
    with pytest.raises(PersistenceError, match=r"cannot be stored.*weights must be finite"):
        hasher.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("names", "match"),
    [(np.arange(64), "feature_names_in_ must be strings"), (np.array(["a", "b"]), "do not fit")],
)
def test_names_of_features_are_checked(tmp_path: Path, names: np.ndarray, match: str) -> None:
    hasher = unfitted("lsh").fit(X[TRAIN])
    hasher.feature_names_in_ = names
    with pytest.raises(PersistenceError, match=match):
        hasher.save(tmp_path / "model")
