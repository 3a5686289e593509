"""Inputs that look harmless: tiny features, masked entries, NumPy's small integers, labels that no two rows share."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import RankingHasher, TwoStepHasher, bits, files
from hashlearn.core.labels import checked_labels
from hashlearn.hashers import BRE, HASHERS, ITQ, KSH, LSH, BinaryAutoencoder, SpectralHashing

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 8))
Y = np.arange(60) % 3
UNSUPERVISED = {"lsh": LSH(12, random_state=0), "itq": ITQ(5, random_state=0), "spectral": SpectralHashing(5)}


@pytest.mark.parametrize("hasher", [BinaryAutoencoder(4, random_state=0), SpectralHashing(4)], ids=["ba", "spectral"])
@pytest.mark.parametrize(
    ("tiny", "dtype"), [(5e-324, "f8"), (1e-310, "f8"), (1e-307, "f8"), (1.5e-45, "f4"), (1e-38, "f4")]
)
def test_margins_of_tiny_features_are_finite(hasher: Any, tiny: float, dtype: str) -> None:
    rows = np.where(X > 0, tiny, 0.0).astype(dtype)
    assert rows.any()
    hasher.fit(rows)
    assert np.isfinite(hasher.decision_function(rows)).all()
    assert np.isfinite(hasher.decision_function(X.astype(dtype))).all()


@pytest.mark.parametrize("hasher", [BinaryAutoencoder(4, random_state=0), SpectralHashing(4)], ids=["ba", "spectral"])
def test_small_features_are_still_told_apart(hasher: Any) -> None:
    codes = hasher.fit(X).encode(X)
    assert len(np.unique(codes)) > 3
    np.testing.assert_array_equal(hasher.fit(X * 2.0**-900).encode(X * 2.0**-900), codes)


def test_masked_entries_are_refused() -> None:
    masked = np.ma.masked_array(X, mask=np.zeros(X.shape, bool))
    hasher = LSH(5, random_state=0).fit(masked)  # nothing is masked
    np.testing.assert_array_equal(hasher.encode(masked), hasher.encode(X))
    masked.mask[3, :2] = True
    for call in (hasher.fit, hasher.encode, hasher.transform, hasher.decision_function, hasher.score):
        with pytest.raises(ValueError, match=r"X has 2 masked entries.*fill them first: X\.filled\(value\)"):
            call(masked)
    labels = np.ma.masked_array(Y, mask=Y == 2)
    for supervised in (TwoStepHasher(4), KSH(4), BRE(4)):
        with pytest.raises(ValueError, match="y has 20 masked entries"):
            supervised.fit(X, labels)


@pytest.mark.parametrize("kind", [list, lambda labels: np.array(labels, dtype=object)])
def test_numbers_beside_text_are_no_labels(kind: Any) -> None:
    """1 and "1" became one class."""
    mixed = kind([1, "1", "2"] * 20)
    for call in (TwoStepHasher(4).fit, KSH(4).fit, RankingHasher(8).fit):
        with pytest.raises(
            ValueError, match=r"y has text and other labels, such as '1' and 1; give labels of one type"
        ):
            call(X, mixed)


@pytest.mark.parametrize("number", [int, float, np.int16])
def test_objects_are_the_numbers_that_they_hold(number: Any) -> None:
    """As text, 1 and 1.0 were two classes, and 10 came before 9."""
    objects = np.array([number(y + 8) for y in Y], dtype=object)
    objects[0] = float(objects[0])
    codes = TwoStepHasher(4, random_state=0).fit(X, objects).codes_
    np.testing.assert_array_equal(codes, TwoStepHasher(4, random_state=0).fit(X, Y + 8).codes_)
    assert checked_labels(np.array([2**80, 1], dtype=object), 2).tolist() == [str(2**80), "1"]


@pytest.mark.parametrize("name", sorted(UNSUPERVISED))
def test_small_numpy_integers_are_taken_as_python_s(name: str, tmp_path: Path) -> None:
    plain = UNSUPERVISED[name]
    parameters = plain.get_params()
    small = type(plain)(**{k: np.uint8(v) if type(v) is int else v for k, v in parameters.items()})
    codes = plain.fit(X).encode(X)
    np.testing.assert_array_equal(small.fit(X).encode(X), codes)
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(files.encode_rows(small, files.open_rows(tmp_path / "x.npy")), codes)
    assert type(small.n_bits) is int
    assert -(-small.n_bits // 8) == codes.shape[1]


def test_every_integer_of_the_default_hasher_may_be_numpy_s() -> None:
    plain = TwoStepHasher(5, n_sweeps=2, n_jobs=1, random_state=7).fit(X, Y)
    small = TwoStepHasher(np.int8(5), n_sweeps=np.uint8(2), n_jobs=np.int8(1), random_state=np.uint8(7)).fit(X, Y)  # type: ignore[arg-type]
    np.testing.assert_array_equal(small.codes_, plain.codes_)
    np.testing.assert_array_equal(small.encode(X), plain.encode(X))


@pytest.mark.parametrize("n_bits", [9, 12, 16])
def test_packed_codes_take_small_integers(n_bits: int) -> None:
    codes = bits.pack_bits(RNG.random((5, n_bits)) < 0.5)
    assert bits.packed_codes(codes, n_bits=np.uint8(n_bits)).shape == (5, 2)  # type: ignore[arg-type]
    assert bits.unpack_bits(codes, np.uint8(n_bits)).shape == (5, n_bits)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"must have 2 byte\\(s\\) in a row for n_bits={n_bits}"):
        bits.packed_codes(codes[:, :1], n_bits=np.uint8(n_bits))  # type: ignore[arg-type]


SUPERVISED = [name for name, kind in HASHERS.items() if kind._learns_from_labels]


@pytest.mark.parametrize("name", SUPERVISED)
@pytest.mark.parametrize("labels", [np.arange(60), X[:, 0], [f"row {i}" for i in range(60)], np.eye(60, dtype=int)])
def test_labels_that_no_two_rows_share_are_refused(name: str, labels: Any) -> None:
    message = r"y has 60 different labels for 60 rows.*Leave y out|y has no label that two rows share|one class"
    with pytest.raises(ValueError, match=message):
        HASHERS[name](4).fit(X, labels)


def test_targets_without_labels_take_any_y() -> None:
    first = TwoStepHasher(4, target="neighbors", random_state=0).fit(X, X[:, 0])  # as a Pipeline would
    second = TwoStepHasher(4, target="neighbors", random_state=0).fit(X)
    np.testing.assert_array_equal(first.encode(X), second.encode(X))


def test_nearly_as_many_classes_as_rows_are_questioned(caplog: pytest.LogCaptureFixture) -> None:
    few = TwoStepHasher(3, solver="local_search", n_sweeps=1, spread=False, arrange=False, random_state=0)
    with caplog.at_level(logging.WARNING, "hashlearn"):
        few.fit(X, np.arange(60) // 2)
        assert "classes" not in caplog.text
        few.fit(X, np.maximum(np.arange(60), 28))
    assert "y has 32 classes for 60 rows" in caplog.text
