"""Files that earlier versions wrote load today, and give the codes they gave then."""

import json

import numpy as np
import pytest

from hashlearn import load
from hashlearn.persistence import FORMAT_VERSION, PersistenceError, describe, formats
from tests.persistence.write_golden import GOLDEN, N_BITS, PARAMETERS, SINCE, rows

FILES = sorted(GOLDEN.glob("format_*/*.hashlearn"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_files_load_and_give_their_codes(path):
    hasher = load(path)
    margins = np.array(json.loads((path.parent / "margins.json").read_text())[path.stem])
    np.testing.assert_allclose(hasher.decision_function(rows()), margins, atol=2e-6)
    sure = np.abs(margins) > 1e-5
    assert sure.mean() > 0.5
    np.testing.assert_array_equal(hasher.transform(rows())[sure], (margins >= 0.0)[sure])
    assert describe(path)["provenance"]["notes"] == "golden"
    assert list(hasher.feature_names_in_) == [f"feature {k}" for k in range(10)]
    assert hasher.n_bits == N_BITS


def test_there_is_a_golden_file_of_every_kind_for_every_format():
    found = {(path.parent.name, path.stem) for path in FILES}
    expected = {(f"format_{k}", name) for k in range(1, FORMAT_VERSION + 1) for name in PARAMETERS}
    expected |= {(f"format_{k}", name) for name, (since, *_) in SINCE.items() for k in range(since, FORMAT_VERSION + 1)}
    assert found == expected
    assert sum(path.stat().st_size for path in FILES) < 200_000 * FORMAT_VERSION


def test_older_formats_are_brought_up_to_date_step_by_step(monkeypatch):
    def rename(model):
        return {**model, "method": "itq", "parameters": {**model["parameters"], "n_iter": 7}}

    def forget(model):
        return {**model, "parameters": {k: v for k, v in model["parameters"].items() if k != "centre"}}

    path = GOLDEN / "format_1" / "lsh.hashlearn"
    monkeypatch.setattr(formats, "FORMAT_VERSION", 3)
    monkeypatch.setattr(formats, "UPGRADES", {2: rename})
    with pytest.raises(PersistenceError, match="format 1 is not one"):
        load(path)
    monkeypatch.setattr(formats, "UPGRADES", {1: forget, 2: rename})
    hasher = load(path)
    assert (type(hasher).__name__, hasher.n_iter) == ("ITQ", 7)
