"""Rows of ordinary work in every hasher and in `compress`: frames, columns of vectors, empty batches, warnings."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hashlearn import compress, near_duplicates
from hashlearn.hashers import ITQ, LSH, BaseHasher, tune
from hashlearn.persistence import PersistenceError
from tests.persistence.models import TEST, TRAIN, X, Y, fitted, unfitted

CALLS = ("encode", "transform", "decision_function")


def test_frames_of_numbers_keep_their_names() -> None:
    names = [f"pixel {i}" for i in range(64)]
    frames = [pd.DataFrame(X, columns=names), pa.table(list(X.T), names)]
    if find_spec("polars"):
        frames.append(import_module("polars").DataFrame(X, schema=names))
    for frame in frames:
        hasher = LSH(8, random_state=0).fit(frame)
        assert list(hasher.feature_names_in_) == names
        np.testing.assert_array_equal(hasher.encode(frame), LSH(8, random_state=0).fit(X).encode(X))


def test_score_takes_a_column_of_vectors() -> None:
    hasher, column = fitted("itq"), pd.Series(list(X[TEST]))
    assert hasher.score(column) == hasher.score(X[TEST])
    assert hasher.score(column, Y[TEST]) == hasher.score(X[TEST], Y[TEST])


def test_compress_tune_and_near_duplicates_take_a_column_of_vectors() -> None:
    options: dict[str, Any] = {"recall": 0.8, "families": ["pca_sign"], "confidence": 0.9}
    plain = compress(X, **options)
    for rows in (pd.Series(list(X)), pd.DataFrame({"embedding": list(X)}), pa.array(list(X)), list(X)):
        plan = compress(rows, **options, queries=None)
        assert plan.certificate == plain.certificate
        assert not hasattr(plan.hasher, "feature_names_in_")
    named = compress(pa.table(list(X.T), [f"pixel {i}" for i in range(64)]), **options)
    assert list(named.hasher.feature_names_in_[:2]) == ["pixel 0", "pixel 1"]
    with pytest.raises(ValueError, match=r"a column of vectors, 'e', beside 'id'"):
        compress(pd.DataFrame({"id": range(len(X)), "e": list(X)}), **options)
    with pytest.raises(ValueError, match="queries has no vector at row 1"):
        compress(X, queries=pd.Series([X[0], None, *X[:500]]), **options)
    found = near_duplicates(pd.Series(list(X[:50])), similarity=0.99)
    np.testing.assert_array_equal(found.pairs, near_duplicates(X[:50], similarity=0.99).pairs)
    tuned = tune(pd.DataFrame(X[:120], columns=[f"p{i}" for i in range(64)]), n_bits=4, grid={}, random_state=0)
    assert len(tuned.hasher.feature_names_in_) == 64


@pytest.mark.parametrize("name", ["two_step", "ranking"])
def test_empty_tensors_and_places_of_nan_in_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    rows, hasher = torch.as_tensor(X[TRAIN]), fitted(name)
    found = [getattr(hasher, call)(rows[:0]) for call in CALLS]
    assert [tuple(part.shape) for part in found] == [(0, 2), (0, 11), (0, 11)]
    assert [part.dtype for part in found] == [torch.uint8, torch.uint8, rows.dtype]
    with pytest.raises(ValueError, match="63 features"):
        hasher.encode(rows[:0, :63])
    spoiled = rows.clone()
    spoiled[5, 6] = float("nan")
    for call in (unfitted(name).fit, hasher.encode):
        with pytest.raises(ValueError, match="X contains NaN at row 5, column 6"):
            call(spoiled)


def test_rows_that_teach_nothing_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="all 40 rows of X are equal, so all codes will be equal too"):
        ITQ(4, random_state=0).fit(np.ones((40, 6)))
    with pytest.warns(UserWarning, match="X has one column, from which n_bits=8 bits are learned: many will be copies"):
        ITQ(8, random_state=0).fit(X[:, 20:21])


class FirstSigns(BaseHasher):
    """A hasher as a user would write it: public names only."""

    def fit(self, X: Any, y: Any = None) -> FirstSigns:
        self.mean_ = np.mean(X, axis=0)
        return self

    def decision_function(self, X: Any) -> Any:
        return (X - self.mean_)[:, 20 : 20 + self.n_bits]


class Halved(ITQ):
    """One that changes the margins of another."""

    def decision_function(self, X: Any) -> Any:
        return super().decision_function(X) - 0.1


def test_a_public_decision_function_is_all_that_a_hasher_needs(tmp_path: Any) -> None:
    hasher = FirstSigns(n_bits=12).fit(X[TRAIN])
    wanted = (X[TEST] - X[TRAIN].mean(axis=0))[:, 20:32] >= 0.0
    np.testing.assert_array_equal(hasher.transform(X[TEST]), wanted)
    np.testing.assert_array_equal(hasher.fit_transform(X[TRAIN])[:3], hasher.transform(X[:3]))
    np.testing.assert_array_equal(hasher.encode(pd.Series(list(X[TEST]))), np.packbits(wanted, axis=1))
    assert hasher.encode(X[:0]).shape == hasher.encode([]).shape == (0, 2)
    assert 0.0 < hasher.score(X[TEST], Y[TEST]) < 1.0
    assert hasher.score(X[TEST]) < 0.0
    with pytest.raises(
        PersistenceError, match=r"only hashers of hashlearn\.hashers\.HASHERS can be saved, got FirstSigns"
    ):
        hasher.save(tmp_path / "model.hashlearn")
    halved = Halved(12, random_state=0).fit(X)
    np.testing.assert_array_equal(halved.transform(X), ITQ(12, random_state=0).fit(X).decision_function(X) >= 0.1)


def test_margins_of_a_wrong_shape_are_refused() -> None:
    class Flat(FirstSigns):
        def decision_function(self, X: Any) -> Any:
            return super().decision_function(X)[:, 0]

    with pytest.raises(
        ValueError, match=r"decision_function of Flat must return .* \(n_samples, 12\).* shape \(400,\)"
    ):
        Flat(n_bits=12).fit(X).encode(X[TEST])
