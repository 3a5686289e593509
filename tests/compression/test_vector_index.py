"""`plan.index`: rows come and go, under ids, and the answers stay those of a full sort of what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import compress
from hashlearn.compression import Compression
from hashlearn.files import open_rows
from hashlearn.hashers import LSH
from hashlearn.search import HammingIndex, asymmetric_search, rescore

X = load_digits(return_X_y=True)[0]
NAMES = np.array([f"digit {number}" for number in range(len(X))], object)


@pytest.fixture(scope="module", params=["hamming", "asymmetric"])
def plan(request: pytest.FixtureRequest) -> Compression:
    made: Compression = compress(X, recall=0.9, families=["itq"], mode=request.param)
    return made


def expected(plan: Compression, rows: np.ndarray, ids: np.ndarray, queries: np.ndarray, k: int) -> Any:
    """Candidates by a full search of these rows, ranked again by the floats."""
    order = np.argsort(ids)
    rows, ids, depth = rows[order], ids[order], plan.certificate.depth_for(len(rows))
    if plan.mode == "asymmetric":
        found: Any = asymmetric_search(plan.hasher.decision_function(queries), plan.hasher.encode(rows), depth)
    else:
        index = HammingIndex(plan.n_bits)
        index.add(plan.hasher.encode(rows))
        found = index.search(plan.hasher.encode(queries), depth)
    best = rescore(found, queries, rows, k)
    return ids[best.indices], best.scores


def test_rows_come_and_go(plan: Compression, tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(1500)
    index, queries = plan.index(X[order], ids=NAMES[order]), X[1700:1720]

    def check(rows: np.ndarray, ids: np.ndarray) -> None:
        for there in (index, plan.load_index(tmp_path / "rows.index")):
            found = there.search(queries, k=7)
            names, scores = expected(plan, rows, ids, queries, 7)
            assert found.indices.tolist() == names.tolist()
            np.testing.assert_array_equal(found.distances, 0.0 - scores)
            assert (len(there), there.count(), there.ids.tolist()) == (len(ids), len(ids), sorted(ids))

    index.save(tmp_path / "rows.index")
    check(X[:1500], NAMES[:1500])
    index.add(X[1500:1600], NAMES[1500:1600])
    index.upsert(X[1600:1610], NAMES[:10])  # a row takes the place of another
    rows = np.concatenate([X[1600:1610], X[10:1600]])
    index.save(tmp_path / "rows.index")
    check(rows, NAMES[:1600])
    assert index.remove(NAMES[5:300]) + index.remove(where=NAMES[300:1200]) == 1195  # most vectors belong to no row
    index.save(tmp_path / "rows.index")
    left = np.r_[0:5, 1200:1600]
    check(rows[left], NAMES[left])
    some = index.search(queries, k=3, where=[*NAMES[1300:1302], "no digit"]).indices
    assert {*some.ravel()} == {*NAMES[1300:1302], None}
    with pytest.raises(ValueError, match="is there already"):
        index.add(X[:1], NAMES[:1])
    with pytest.raises(KeyError, match="is not"):
        index.remove(["no digit"])


def test_rows_of_every_kind(plan: Compression, tmp_path: Path) -> None:
    pandas, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    names = plan.index(X).search(X[:20]).indices
    np.save(tmp_path / "rows.npy", X)
    kinds: dict[str, Any] = {
        "series": pandas.Series(list(X)),
        "tensor": torch.as_tensor(X),
        "lists": X.tolist(),
        "mapped": np.load(tmp_path / "rows.npy", mmap_mode="r"),
        "file": open_rows(tmp_path / "rows.npy"),
    }
    for rows in kinds.values():
        queries = X[:20] if rows is kinds["file"] else rows[:20]
        assert plan.index(rows).search(queries).indices.tolist() == names.tolist()


def test_what_is_no_index_of_the_plan_is_refused(plan: Compression, tmp_path: Path) -> None:
    other, path = LSH(plan.n_bits, random_state=0).fit(X), tmp_path / "codes.index"
    codes = HammingIndex(plan.n_bits)
    codes.add(other.encode(X))
    codes.save(path)
    with pytest.raises(ValueError, match="without vectors"):
        plan.load_index(path)
    plan.index(X[:20]).save(path)
    worse = compress(X, recall=0.9, families=["pca_sign"], mode="hamming")
    with pytest.raises(ValueError, match=r"codes of model \w+, not of \w+"):
        worse.load_index(path)
    with pytest.raises(ValueError, match="contains NaN at row 1"):
        plan.index(np.where(np.arange(len(X))[:, None] == 1, np.nan, X))
    index = plan.index(X[:20])
    for rows, ids, words in (
        (X[:2], [20], "one entry for each of the 2"),
        (X[:2, :9], None, "9 features"),
        (X[:2], ["a", "b"], "ids must be integers"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            index.add(rows, ids)
    assert len(index) == 20


def test_codes_alone(tmp_path: Path) -> None:
    plan = compress(X, recall=0.5, families=["itq"], keep_floats=False)
    index = plan.index(X, ids=NAMES)
    index.save(tmp_path / "codes.index")
    assert not HammingIndex.load(tmp_path / "codes.index").has_vectors
    found = plan.load_index(tmp_path / "codes.index").search(X[:3])
    assert found.indices.tolist() == index.search(X[:3]).indices.tolist()


def test_an_index_that_was_emptied_takes_rows_again(plan: Compression, tmp_path: Path) -> None:
    index = plan.index(X[:20])
    assert index.remove(index.ids) == 20
    assert (index.count(), len(index.ids)) == (0, 0)
    index.save(tmp_path / "empty.index")
    for there in (index, plan.load_index(tmp_path / "empty.index")):
        assert there.add(X[:3]).tolist() == [20, 21, 22]
        assert there.search(X[:1], k=1).indices.tolist() == [[20]]
