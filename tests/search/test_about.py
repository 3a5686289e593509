"""Codes say which model made them, in index files and in Parquet; codes of another model are refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex, arrow
from hashlearn.search.about import checked_model, require_same_model
from tests.search.codes import engine, random_codes

MODEL, OTHER = "0123456789ab" + "c" * 52, "ba9876543210" + "c" * 52
REFUSED = "has codes of model 0123456789ab, not of ba9876543210; encode its rows again with this model"
NO_DIGEST = "model must be the digest of a hasher, 64 hexadecimal digits"
BAD: list[Any] = ["", "x", MODEL[:-1], MODEL + "0", MODEL.upper(), MODEL + "\n", MODEL.encode(), 7, object()]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_digest_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=NO_DIGEST):
        checked_model(bad)
    with pytest.raises(ValueError, match=NO_DIGEST):
        HammingIndex(12, model=bad)


def test_an_unknown_model_may_be_any() -> None:
    for stored, model in ((None, MODEL), (MODEL, None), (MODEL, MODEL), (None, None)):
        require_same_model(stored, model, "x")
    with pytest.raises(ValueError, match=f"x {REFUSED}"):
        require_same_model(MODEL, OTHER, "x")


def saved(path: Path, model: str | None) -> None:
    index = HammingIndex(12, model=model)
    index.add(random_codes(5, 12))
    index.save(path)


def test_an_index_file_holds_the_model(tmp_path: Path) -> None:
    saved(tmp_path / "a", MODEL)
    assert HammingIndex.load(tmp_path / "a").model == HammingIndex.load(tmp_path / "a", model=MODEL).model == MODEL
    assert pickle.loads(pickle.dumps(HammingIndex(12, model=MODEL))).model == MODEL
    with pytest.raises(ValueError, match=f"'{tmp_path / 'a'}' {REFUSED}"):
        HammingIndex.load(tmp_path / "a", model=OTHER)
    with pytest.raises(ValueError, match=NO_DIGEST):
        HammingIndex.load(tmp_path / "a", model="x")


def test_an_index_file_without_a_model_is_any_model_s(tmp_path: Path) -> None:
    saved(tmp_path / "a", None)
    assert HammingIndex.load(tmp_path / "a", model=OTHER).model is None  # still unknown


def test_parquet_holds_the_model(tmp_path: Path) -> None:
    parquet = engine("pyarrow.parquet")
    codes, ids, path = random_codes(9, 12), np.arange(9), tmp_path / "a.parquet"
    parquet.write_table(arrow.to_arrow(codes, ids, 12, model=MODEL), path)
    assert arrow.about_codes(parquet.read_schema(path)).model == MODEL
    for model in (None, MODEL):
        np.testing.assert_array_equal(arrow.from_arrow(parquet.read_table(path), model=model)[0], codes)
    with pytest.raises(ValueError, match=REFUSED):
        arrow.from_arrow(parquet.read_table(path), model=OTHER)
    with pytest.raises(ValueError, match=NO_DIGEST):
        arrow.to_arrow(codes, ids, 12, model="x")
    parquet.write_table(arrow.to_arrow(codes, ids, 12), path)
    assert arrow.about_codes(parquet.read_schema(path)).model is None
    np.testing.assert_array_equal(arrow.from_arrow(parquet.read_table(path), model=OTHER)[0], codes)


@pytest.mark.parametrize("lie", [b"", b"x", b"\xff" * 64, MODEL.upper().encode()])
def test_forged_metadata_are_refused(lie: bytes) -> None:
    engine("pyarrow")
    table = arrow.to_arrow(random_codes(9, 12), np.arange(9), 12, model=MODEL)
    forged = table.replace_schema_metadata(
        {arrow.ABOUT: table.schema.metadata[arrow.ABOUT].replace(MODEL.encode(), lie)}
    )
    with pytest.raises(ValueError, match=f"{NO_DIGEST}|metadata of to_arrow"):
        arrow.from_arrow(forged)
