"""`compress` on the digits: what it returns keeps its word, and bad input is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from hashlearn import compress, load, metrics
from hashlearn.compression import Compression, verify
from hashlearn.compression.contenders import OwnContender, Rows, sizes_of
from hashlearn.core.progress import Progress
from hashlearn.hashers import LSH
from hashlearn.persistence import PersistenceError
from hashlearn.persistence.values import fingerprint
from hashlearn.streams import open_rows

X, Y = load_digits(return_X_y=True)
QUICK = ["pca_sign", "itq"]
compress_module = sys.modules["hashlearn.compression.compress"]  # the package has a function of the same name


@pytest.fixture(scope="module")
def plan() -> Compression:
    return compress(X[:1400], recall=0.9, families=QUICK)


def test_promise_holds_on_new_queries(plan: Compression) -> None:
    database, queries = X[:1400], X[1400:]
    true = metrics.float_neighbors(queries, database, 10)
    found = plan.index(database).search(queries, k=10)
    assert metrics.recall_of_neighbors(found, true, k=10) >= plan.recall_lower_bound == 0.9


def test_numbers_agree(plan: Compression) -> None:
    certificate = plan.certificate
    assert certificate.kept
    assert certificate.accepted()
    assert (plan.n_bits, plan.bytes_per_row) == (plan.hasher.n_bits, -(-plan.hasher.n_bits // 8))
    assert sum(certificate.found) == certificate.n_testing
    assert certificate.n_testing + certificate.n_choosing + certificate.n_database == 1400
    assert 10 <= plan.depth <= certificate.max_depth == 200
    assert certificate.model == fingerprint(plan.hasher)
    assert [row.chosen for row in plan.frontier].count(True) == 1
    (chosen,) = [row for row in plan.frontier if row.chosen]
    assert (chosen.bytes_per_row, chosen.mode, chosen.family) == (plan.bytes_per_row, plan.mode, certificate.family)


def test_table_is_valid_in_itself(plan: Compression) -> None:
    for row in plan.frontier:
        assert row.codes_bound <= row.codes_recall <= row.recall
        assert row.bound <= row.recall
        if row.depth is not None:
            assert 10 <= row.depth <= plan.certificate.n_database
    sizes = [row.bytes_per_row for row in plan.frontier]
    assert sizes == sorted(sizes)
    (chosen,) = [row for row in plan.frontier if row.chosen]
    assert chosen.depth == plan.depth  # the table and the sentence say the same
    assert chosen.bound >= plan.recall_lower_bound


def test_same_seed_same_plan(plan: Compression) -> None:
    again = compress(X[:1400], recall=0.9, families=QUICK)
    assert again.certificate == plan.certificate
    assert compress(X[:1400], recall=0.9, families=QUICK, random_state=1).certificate != plan.certificate


def test_file_keeps_everything(plan: Compression, tmp_path: Path) -> None:
    path = tmp_path / "plan.hashlearn"
    plan.save(path)
    again = Compression.load(path)
    assert again.certificate == plan.certificate
    assert again.frontier == plan.frontier
    np.testing.assert_array_equal(load(path).encode(X[:50]), plan.hasher.encode(X[:50]))


def test_model_without_promise_is_refused(tmp_path: Path) -> None:
    LSH(8, random_state=0).fit(X).save(tmp_path / "model")
    with pytest.raises(PersistenceError, match="without a promise"):
        Compression.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"promised": 0.915}, "does not follow from its own numbers"),
        ({"model": "0" * 64}, "the promise of another model"),
        ({"found": [0] * 11}, "valid promise: found must hold"),
        ({"extra": 1}, "must have exactly the fields"),
        ({"depth": "many"}, "depth must be int, got str"),
        ({"depth": True}, "depth must be int, got bool"),
        ({"max_depth": 10**9}, "must ascend"),
        ({"bet": 7.0}, "bet or growth"),
        ({"confidence": 2.0}, "from 0 to 1"),
        ({"tested": [1]}, "tested must be str"),
    ],
)
def test_changed_promise_is_refused(plan: Compression, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    from dataclasses import asdict

    from hashlearn.persistence import save

    promise = {"certificate": asdict(plan.certificate) | change, "frontier": []}
    save(plan.hasher, tmp_path / "model", promise=promise)
    with pytest.raises(PersistenceError, match=words):
        Compression.load(tmp_path / "model")


def test_what_cannot_be_promised_is_said() -> None:
    plan = compress(X, recall=0.95, families=["pca_sign"], keep_floats=False, max_bytes=4)
    certificate = plan.certificate
    assert not certificate.kept
    assert 0.0 < plan.recall_lower_bound < certificate.measured < 0.95
    assert plan.depth == 10
    assert certificate.accepted()
    assert "cannot be promised" in str(plan)
    true = metrics.float_neighbors(X[:100], X, 10)
    assert metrics.recall_of_neighbors(plan.index(X).search(X[:100]), true) > plan.recall_lower_bound


def test_codes_alone_are_promised_where_enough() -> None:
    plan = compress(X, recall=0.5, families=["itq"], keep_floats=False)
    assert plan.certificate.kept
    assert plan.depth == plan.certificate.k == 10
    assert plan.index(X).search(X[:3]).indices.shape == (3, 10)


def test_own_queries_and_metric() -> None:
    plan = compress(X[:1200], recall=0.9, families=["pca_sign"], queries=X[1200:], metric="euclidean", mode="hamming")
    certificate = plan.certificate
    assert certificate.own_queries
    assert (certificate.metric, certificate.mode) == ("euclidean", "hamming")
    assert certificate.n_database == 1200
    assert {row.mode for row in plan.frontier} == {"hamming"}


def test_labels_bring_two_step_codes() -> None:
    plan = compress(X[:900], Y[:900], recall=0.6, families=["pca_sign", "two_step"])
    assert {row.family for row in plan.frontier} == {"pca_sign", "two_step"}


def test_learned_codes_are_tried() -> None:
    plan = compress(X[:1000], recall=0.9, families=["pca_sign", "ranking_linear"])
    assert "ranking_linear" in {row.family for row in plan.frontier}


def test_peers_are_measured_and_never_chosen() -> None:
    pytest.importorskip("faiss")
    plan = compress(X, recall=0.9, families=["pca_sign"], peers=True)
    peers = [row for row in plan.frontier if row.is_peer]
    assert {row.bytes_per_row for row in peers} == {plan.bytes_per_row}  # the smallest that is tried
    assert not any(row.chosen for row in peers)
    assert all(0.3 < row.codes_recall <= row.recall for row in peers)


def test_the_frontier_shows_what_more_bytes_give() -> None:
    plan = compress(X, recall=0.5, families=["pca_sign", "itq"])
    sizes = {
        family: {row.bytes_per_row for row in plan.frontier if row.family == family} for family in ("pca_sign", "itq")
    }
    assert sizes == {"pca_sign": {4, 6, 8}, "itq": {4}}  # 64 features make 8 bytes at most


def unlucky(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Codes up to this size find nothing for the testing queries, whatever the choosing queries say."""
    real = compress_module.contenders

    def made(*arguments: Any) -> list[OwnContender]:
        return [
            replace(c, testing=np.full_like(c.testing, 10**6)) if c.bytes_per_row <= size else c
            for c in real(*arguments)
        ]

    monkeypatch.setattr(compress_module, "contenders", made)


def test_larger_codes_are_tried_before_a_recall_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unlucky(monkeypatch, size=6)
    heard: list[Progress] = []
    plan = compress(X, recall=0.8, families=["itq", "ranking_linear"], mode="hamming", progress=heard.append)
    assert plan.certificate.kept
    assert plan.bytes_per_row == 8
    assert "itq, 6 bytes, since smaller codes failed the test" in [progress.stage for progress in heard]
    assert "ranking_linear" in {row.family for row in plan.frontier if row.bytes_per_row == 8}
    assert max(row.bytes_per_row for row in plan.frontier) == 8  # no code larger than one that is shown


def test_a_recall_is_refused_only_if_no_size_up_to_max_bytes_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    unlucky(monkeypatch, size=8)
    plan = compress(X, recall=0.8, families=["pca_sign", "itq"], max_bytes=6, mode="hamming")
    assert not plan.certificate.kept
    assert {(row.family, row.bytes_per_row) for row in plan.frontier} == {
        (family, size) for family in ("pca_sign", "itq") for size in (4, 6)
    }
    assert plan.recall_lower_bound == max(row.bound for row in plan.frontier)


def test_sizes_that_gain_nothing_end_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    unlucky(monkeypatch, size=1000)
    plan = compress(X, recall=0.8, families=["ranking_linear"], mode="hamming")
    assert not plan.certificate.kept
    assert 12 < max(row.bytes_per_row for row in plan.frontier) < 128


def test_codes_above_128_bytes_are_tried_if_they_are_allowed() -> None:
    rows, none = np.empty((3000, 2000)), np.empty((0, 10), np.int64)
    some = Rows(rows, None, rows[:0], rows[:0], none, none, "cosine", 0)
    assert [sizes_of("itq", some, most)[-1] for most in (128, 192, 1000)] == [1024, 1536, 1536]
    assert sizes_of("ranking_linear", some, 1000)[-1] == 2048


def test_large_collections_are_sampled(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    for rows in (X, open_rows(tmp_path / "X.npy")):
        plan = compress(rows, recall=0.8, families=["pca_sign"], max_rows=500)
        assert (plan.certificate.n_database, plan.certificate.n_rows) == (500, len(X))
        assert plan.certificate.depth_for(500) == plan.depth
        assert plan.depth <= plan.certificate.depth_for(10**6) < 10**6


def test_examples_are_rows_of_x(plan: Compression) -> None:
    assert plan.examples
    for example in plan.examples:
        true = metrics.float_neighbors(X[[example.query]], np.delete(X[:1400], example.query, axis=0), 10)[0]
        true += true >= example.query
        kept_out = set(example.true) ^ set(true.tolist())  # other queries are not in the database either
        assert len(kept_out) <= 10
        assert set(example.found) != set(example.true)


def test_names_of_columns_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    plan = compress(frame, recall=0.9, families=["pca_sign"])
    assert plan.hasher.feature_names_in_[3] == "pixel 3"
    assert plan.certificate.model == fingerprint(plan.hasher)


def test_progress_is_told() -> None:
    heard: list[Progress] = []
    compress(X, recall=0.9, families=["pca_sign"], progress=heard.append)
    assert "pca_sign, 4 bytes" in [progress.stage for progress in heard]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recall": 1.0}, "recall must be below 1: no finite number of queries"),
        ({"recall": 95}, "recall must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"k": 2000}, "k must be an integer from 1 to"),
        ({"k": 0}, "k must be"),
        ({"metric": "dot"}, "metric must be one of"),
        ({"mode": "fast"}, "mode must be one of"),
        ({"families": ["pca"]}, "families must be one of"),
        ({"families": []}, "families must name at least one"),
        ({"families": ["two_step"]}, "give y"),
        ({"max_bytes": 3}, "max_bytes=3 leaves nothing to try for 64 features; the smallest codes have 4 bytes"),
        ({"max_depth": 5}, "max_depth must be an integer of at least 10"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be an integer of at least 0"),
        ({"recall": 0.99}, "takes at least 599 queries"),
        ({"queries": np.zeros((50, 3))}, "same number of columns"),
        (
            {"queries": X[:300] + 0.5, "recall": 0.99},
            "takes at least 599 queries, even if all neighbors are found; there are 300",
        ),
    ],
)
def test_bad_input(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        compress(X, **{"families": QUICK, **settings})


def test_bad_rows() -> None:
    broken = X.copy()
    broken[7, 3] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row"):
        compress(broken)
    with pytest.raises(TypeError, match="X must be dense rows, got a sparse matrix"):
        compress(csr_array(X))
    with pytest.raises(ValueError, match="X must be rows of equal length, in 2 dimensions"):
        compress(X[0])
    with pytest.raises(ValueError, match=r"X has 1 number\(s\) at row 1, and 2 at row 0"):
        compress([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="all of its rows are equal"):
        compress(np.ones((2000, 8)))
    with pytest.raises(ValueError, match="queries contains NaN"):
        compress(X, queries=broken)


def test_queries_from_the_database_are_left_out() -> None:
    with pytest.warns(UserWarning, match="400 of 797 queries equal a database row"):
        plan = compress(X[:1400], recall=0.9, queries=X[1000:], families=["pca_sign"])
    assert plan.certificate.n_testing + plan.certificate.n_choosing == 397
    with pytest.warns(UserWarning, match="equal a database row"), pytest.raises(ValueError, match="there are 0"):
        compress(X, recall=0.9, queries=X[:500])


class TestVerify:
    def test_kept_on_queries_of_the_same_kind(self, plan: Compression) -> None:
        found = verify(plan, X[:1400], X[1400:])
        assert found.kept is not False
        assert found.n_queries == 397
        assert found.measured >= 0.9

    def test_broken_on_queries_of_another_kind(self, plan: Compression) -> None:
        strange = np.random.default_rng(0).permuted(X[1400:], axis=1)
        found = verify(plan, X[:1400], strange)
        assert found.kept is False
        assert "is broken" in str(found)

    def test_few_queries_decide_nothing(self, plan: Compression) -> None:
        found = verify(plan, X[:1400], X[1400:1410])
        assert found.kept is None
        assert "not decided" in str(found)

    def test_remarks(self, plan: Compression) -> None:
        found = verify(plan, X[:1400], X[1400:])
        assert any("tested on 1,225 database rows" in remark for remark in found.remarks)

    def test_other_columns_are_refused(self, plan: Compression) -> None:
        with pytest.raises(ValueError, match="database must have 64 columns"):
            verify(plan, X[:, :10], X)
        with pytest.raises(ValueError, match="rows that are not in the database"), pytest.warns(match="equal"):
            verify(plan, X, X[:20])
