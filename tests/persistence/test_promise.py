"""A promise travels in the model file beside the hasher, and the digest of the hasher follows from the header alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.mutated_files import rewritten

from hashlearn.core.container import LARGEST_HEADER, MOST_VALUES
from hashlearn.hashers import HASHERS
from hashlearn.persistence import PersistenceError, describe, fingerprint, load, save
from tests.persistence.models import TRAIN, X, assert_same_codes, fitted, unfitted

PROMISE = {"recall": 0.95, "found": (0, 3, 97), "kept": True, "seed": None, "versions": {"naïve": "1.0"}}
AS_JSON = {**PROMISE, "found": [0, 3, 97]}


def test_a_promise_is_described_and_the_hasher_is_the_same(tmp_path: Path) -> None:
    hasher = fitted("two_step")
    save(hasher, tmp_path / "promised", promise=PROMISE)
    save(hasher, tmp_path / "plain")
    assert describe(tmp_path / "promised")["promise"] == AS_JSON
    assert describe(tmp_path / "plain")["promise"] is None
    copy = load(tmp_path / "promised")
    assert_same_codes(copy, hasher)
    assert vars(copy).keys() == vars(hasher).keys()
    assert fingerprint(copy) == fingerprint(hasher) == describe(tmp_path / "promised")["digest"]


@pytest.mark.parametrize(
    ("promise", "match"),
    [
        ([0.95], r"promise must be a JSON object \(a dict\), got list"),
        ("0.95", "got str"),
        (0.95, "got float"),
        ({"recall": float("nan")}, "promise must be plain JSON"),
        ({"recall": np.int64(1)}, "promise must be plain JSON"),
        ({"recall": fitted}, "promise must be plain JSON"),
        ({"text": "x" * LARGEST_HEADER}, f"{LARGEST_HEADER:,} are allowed"),
        ({"found": [0] * MOST_VALUES}, "too many values"),
    ],
)
def test_a_promise_that_is_no_small_json_object_is_refused(tmp_path: Path, promise: object, match: str) -> None:
    save(fitted("lsh"), tmp_path / "model", promise=PROMISE)
    with pytest.raises(PersistenceError, match=match):
        save(fitted("lsh"), tmp_path / "model", promise=promise)  # type: ignore[arg-type]
    assert describe(tmp_path / "model")["promise"] == AS_JSON
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("promise", [None, 0.95, "0.95", [], True])
def test_a_forged_promise_that_is_no_object_is_refused(tmp_path: Path, promise: object) -> None:
    save(fitted("lsh"), tmp_path / "model", promise=PROMISE)
    content = (tmp_path / "model").read_bytes()
    (tmp_path / "model").write_bytes(rewritten(content, lambda header, model, payload: model.update(promise=promise)))
    for read in (load, describe):
        with pytest.raises(PersistenceError, match="promise must be a JSON object"):
            read(tmp_path / "model")


@pytest.mark.parametrize("name", HASHERS)
def test_the_digest_of_a_file_is_the_fingerprint_of_its_hasher(name: str, tmp_path: Path) -> None:
    hasher = fitted(name)
    for codes in (True, False):
        save(hasher, tmp_path / "model", codes=codes, notes="other notes")
        assert describe(tmp_path / "model")["digest"] == fingerprint(hasher)


def test_models_with_other_codes_have_other_digests(tmp_path: Path) -> None:
    found = set()
    for seed in (0, 1):
        save(unfitted("lsh", random_state=seed).fit(X[TRAIN]), tmp_path / "model")
        found.add(describe(tmp_path / "model")["digest"])

    def flip(header: dict, model: dict, payload: bytearray) -> None:
        payload[header["hash_functions_/intercepts"]["data_offsets"][0] + 6] ^= 1

    (tmp_path / "model").write_bytes(rewritten((tmp_path / "model").read_bytes(), flip))
    assert describe(tmp_path / "model")["digest"] == fingerprint(load(tmp_path / "model")) not in found
    assert len(found) == 2
    assert json.dumps(describe(tmp_path / "model"))
