"""``hashlearn describe``: models, codes and indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hashlearn import compress, load
from hashlearn.hashers import ITQ
from hashlearn.persistence import describe, fingerprint, save
from hashlearn.search import HammingIndex
from tests.cli.files import N, X, answer, invoke, refused
from tests.compression import plans


def test_a_model(folder: Path) -> None:
    hasher = ITQ(n_bits=8, n_iter=20, random_state=0).fit(X[:N])
    hasher.save("itq", notes="the first digits")
    report = answer("describe", "itq")
    assert report == {"file": "itq", "kind": "model", **describe("itq"), "seconds": report["seconds"], "notes": []}
    assert report["changed"] == {"n_bits": 8, "n_iter": 20, "random_state": 0}
    text = invoke("describe", "itq").stdout
    for words in (
        "ITQ(n_bits=8, n_iter=20, random_state=0)",
        "8 bits from 64 features",
        f"{N} rows of 64 features",
        "the first digits",
        f"{Path('itq').stat().st_size:,} bytes",
        str(fingerprint(hasher)),
        "none; hashlearn compress makes models with one",
    ):
        assert words in text


def test_the_promise_of_a_compression(folder: Path) -> None:
    plan = compress(X[:N], recall=0.3, families=["pca_sign"], keep_floats=False)
    plan.save("promise")
    assert answer("describe", "promise")["promise"]["certificate"]["recall"] == 0.3
    assert " ".join(str(plan).split()) in invoke("describe", "promise").stdout
    plans.plan().save("invented")
    assert "not valid: 'invented' does not hold a valid promise" in invoke("describe", "invented").stdout
    save(load("model"), "other promise", promise={"anything": 1})
    assert 'promise       {"anything": 1}' in invoke("describe", "other promise").stdout


def test_codes_and_which_model_made_them(folder: Path) -> None:
    digest = fingerprint(load("model"))
    answer("encode", "model", "X.npy", "-o", "codes.npy")
    assert answer("describe", "codes.npy")["rows"] == N
    assert "not recorded" in invoke("describe", "codes.npy").stdout
    refused("describe", "X.npy", words="X.npy: has float64 of shape (300, 64); codes are uint8 (n, bytes)")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    answer("encode", "model", "X.npy", "-o", "codes.parquet")
    report = answer("describe", "codes.parquet")
    assert (report["kind"], report["rows"], report["n_bits"], report["id_type"]) == ("codes", N, 12, "int64")
    assert (report["model"], report["model_name"]) == (digest, "model")
    assert f"{digest}  (model)" in invoke("describe", "codes.parquet").stdout


def test_an_index_without_codes(folder: Path) -> None:
    HammingIndex(12).save("index")
    report = answer("describe", "index")
    assert (report["kind"], report["rows"], report["id_type"]) == ("index", 0, None)
    assert "ids" not in invoke("describe", "index").stdout


def test_an_index(folder: Path) -> None:
    hasher = load("model")
    index = HammingIndex(12, model=fingerprint(hasher))
    index.add(hasher.encode(X[:N]))
    index.save("index")
    report = answer("describe", "index")
    assert (report["kind"], report["rows"], report["n_bits"], report["model"]) == ("index", N, 12, fingerprint(hasher))
    assert report["bytes"] == Path("index").stat().st_size
