"""Model files are safetensors files: its own reader opens them and finds the same arrays."""

import json

import numpy as np
import pytest

from hashlearn.hashers import HASHERS
from tests.persistence.models import fitted

safe_open = pytest.importorskip("safetensors", reason="safetensors is not installed").safe_open


@pytest.mark.parametrize("name", HASHERS)
def test_the_official_reader_agrees(name, tmp_path):
    hasher = fitted(name)
    hasher.save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="numpy") as file:
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        model = json.loads(file.metadata()["model"])
    assert model["method"] == name
    assert arrays.keys() == model["sha256"].keys()
    for key, value in hasher.hash_functions_.state().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(arrays[f"hash_functions_/{key}"], value)
