"""`compress` on the digits: what it returns keeps its word, and bad input is refused."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from hashlearn import compress, load, metrics
from hashlearn.compression import Compression, verify
from hashlearn.compression.contenders import Contender
from hashlearn.compression.promise import LARGEST_CONFIDENCE, TABLE_SHARE, log_stake
from hashlearn.core import container
from hashlearn.core.container import read_header
from hashlearn.core.progress import Progress
from hashlearn.files import open_rows
from hashlearn.hashers import LSH
from hashlearn.persistence import PersistenceError, save
from hashlearn.persistence.values import fingerprint

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
        ({"bet": 0.0}, "does not follow from its own numbers"),
        ({"promised": 0.915}, "promised must be at most recall"),
        ({"mode": "quantum"}, "mode must be one of"),
        ({"metric": "manhattan"}, "metric must be one of"),
        ({"family": "<script>"}, "family must be one of"),
        ({"keep_floats": False}, "max_depth must be k"),
        ({"n_choosing": -5}, "n_choosing must be from 0"),
        ({"n_choosing": 0}, "n_choosing must be at least 1"),
        ({"n_rows": 10**400}, "n_rows must be from 0"),
        ({"growth": 10**400}, "growth must be from 0"),
        ({"confidence": 1.0 - 2.0**-53}, "from 0 to 1"),
        ({"depth": 10, "max_depth": 10}, "tested must name the code of the promise with its depth"),
        ({"tested": []}, "tested must name the code"),
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
    promise = {"certificate": asdict(plan.certificate) | change, "frontier": []}
    save(plan.hasher, tmp_path / "model", promise=promise)
    with pytest.raises(PersistenceError, match=words):
        Compression.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "quantum"}, "mode must be one of"),
        ({"family": "<script>"}, "family must be one of"),
        ({"bytes_per_row": 0}, "bytes and depths of the frontier must be at least 1"),
        ({"bytes_per_row": 2**60}, "bytes at most 4096"),
        ({"depth": 0}, "bytes and depths of the frontier must be at least 1"),
        ({"depth": 10**400}, "depth must be from 0"),
        ({"codes_bound": 1.5}, "recalls and bounds of the frontier must be from 0 to 1"),
        ({"fit_seconds": 10**400}, "fit_seconds must be from 0"),
    ],
)
def test_changed_frontier_is_refused(plan: Compression, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    row, *others = (asdict(row) for row in plan.frontier)
    promise = {"certificate": asdict(plan.certificate), "frontier": [row | change, *others]}
    save(plan.hasher, tmp_path / "model", promise=promise)
    with pytest.raises(PersistenceError, match=words):
        Compression.load(tmp_path / "model")


def test_counts_of_any_size_take_no_memory(plan: Compression, tmp_path: Path) -> None:
    n = 2**63 - 1
    changed = replace(plan.certificate, n_testing=n, found=(0,) * plan.certificate.k + (n,))
    replace(plan, certificate=changed).save(tmp_path / "model")
    assert (
        Compression.load(tmp_path / "model").certificate.measured == 1.0
    )  # a list with an entry for each would not fit


def test_all_codes_that_were_tested_share_the_confidence(plan: Compression, tmp_path: Path) -> None:
    c = plan.certificate
    values = np.repeat(np.arange(c.k + 1) / c.k, c.found)
    stake = log_stake(values, c.promised, c.bet)
    alone = 1.0 - math.exp(0.2 - stake)  # accepted for one code, not for ten
    for count, is_accepted in ((1, True), (10, False)):
        changed = replace(c, confidence=min(alone, LARGEST_CONFIDENCE), tested=(*c.tested, *["another"] * (count - 1)))
        needed = math.log(count / (1.0 - TABLE_SHARE)) - math.log1p(-changed.confidence)
        assert changed.accepted() == (needed < stake) == is_accepted


def test_a_plan_is_read_once(plan: Compression, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced between two reads would give a hasher with another model's promise."""
    plan.save(tmp_path / "plan")
    reads = []
    monkeypatch.setattr(container, "read_header", lambda *given: reads.append(given) or read_header(*given))
    Compression.load(tmp_path / "plan")
    assert len(reads) == 1


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


def test_the_frontier_shows_what_more_bytes_give() -> None:
    plan = compress(X, recall=0.5, families=["pca_sign", "itq"])
    sizes = {
        family: {row.bytes_per_row for row in plan.frontier if row.family == family} for family in ("pca_sign", "itq")
    }
    assert sizes == {"pca_sign": {4, 6, 8}, "itq": {4}}  # 64 features make 8 bytes at most


def unlucky(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Codes up to this size find nothing for the testing queries, whatever the choosing queries say."""
    real = compress_module.contenders

    def made(*arguments: Any) -> list[Contender]:
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


@pytest.mark.parametrize("may_go_on", [True, False])
def test_codes_that_are_sure_are_fitted_if_none_can_be_tried_after_the_test(
    monkeypatch: pytest.MonkeyPatch, may_go_on: bool
) -> None:
    """Codes below 8 bytes are likely to keep the recall, but the testing queries refuse them."""
    unlucky(monkeypatch, size=6)
    monkeypatch.setattr(compress_module, "can_show_others", lambda *_: may_go_on)
    monkeypatch.setattr(compress_module, "is_likely", lambda _, code: code.bytes_per_row >= 4)
    monkeypatch.setattr(compress_module, "is_sure", lambda _, code: code.bytes_per_row >= 8)
    plan = compress(X, recall=0.8, families=["itq"], mode="hamming")
    assert plan.certificate.kept
    assert plan.bytes_per_row == 8


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


def test_sizes_that_gain_by_the_testing_queries_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choosing queries find everything at every size, so they see no gain."""
    real = compress_module.contenders

    def made(*arguments: Any) -> list[Contender]:
        codes = real(*arguments)
        for place, code in enumerate(codes):
            n, share = len(code.testing), code.bytes_per_row / 48
            testing = np.where(np.arange(n)[:, None] < share * n, 1, 10**6) * np.ones_like(code.testing)
            codes[place] = replace(code, choosing=np.ones_like(code.choosing), testing=testing)
        return codes

    monkeypatch.setattr(compress_module, "contenders", made)
    rows = np.random.default_rng(0).normal(size=(2500, 400))
    plan = compress(rows, recall=0.9, families=["pca_sign"], mode="hamming")
    assert plan.certificate.kept
    assert plan.bytes_per_row == 48


def test_bounds_are_rounded_down(plan: Compression) -> None:
    """94.9967 % must not read as 95 %, nor 99.996 % as 100 %."""
    counts = (0,) * 9 + (1, 10**9)
    almost = replace(plan.certificate, recall=0.95, promised=0.949_996_7)
    assert "at least 94.9996 %" in str(replace(plan, certificate=almost))
    high = replace(plan.certificate, recall=0.999_96, promised=0.999_96, found=counts)
    assert "at least 99.996 %" in str(replace(plan, certificate=high))
    undecided = replace(verify(plan, X[:1400], X[1400:]), kept=None, promised=0.999_96, bound=0.949_96)
    assert "at least 99.996 % is not decided" in str(undecided)
    assert "show 94.9 %" in str(undecided)


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


def test_names_of_columns_are_those_of_scikit_learn(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    plan = compress(pandas.DataFrame(X), recall=0.9, families=["pca_sign"])  # its columns are named 0, 1, …
    assert not hasattr(plan.hasher, "feature_names_in_")
    plan.save(tmp_path / "plan")
    assert Compression.load(tmp_path / "plan").certificate.model == fingerprint(plan.hasher)
    mixed = pandas.DataFrame(X, columns=[*range(63), "names"])
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        compress(mixed, recall=0.9, families=["pca_sign"])


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_columns_in_another_order_are_refused_as_hashers_refuse_them(package: str) -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    pytest.importorskip(package)
    made = {
        "pandas": lambda rows: rows,
        "polars": lambda rows: pytest.importorskip("polars").DataFrame({name: rows[name].to_numpy() for name in rows}),
        "pyarrow": lambda rows: pytest.importorskip("pyarrow").Table.from_pandas(rows, preserve_index=False),
    }[package]
    turned = frame[frame.columns[::-1]]
    database, queries, strange = made(frame[:1400]), made(frame[1400:]), made(turned[1400:])
    plan = compress(database, queries=queries, recall=0.9, families=["pca_sign"])
    words = "must have the columns of {} in the same order, got 'pixel 63' as column 0 instead of 'pixel 0'"
    with pytest.raises(ValueError, match="queries " + words.format("X")):
        compress(database, queries=strange, recall=0.9, families=["pca_sign"])
    with pytest.raises(ValueError, match="queries " + words.format("the model")):
        verify(plan, database, strange)
    with pytest.raises(ValueError, match="database " + words.format("the model")):
        verify(plan, made(turned[:1400]), queries)
    for refused in (plan.index, plan.index(database).search, plan.hasher.encode):
        with pytest.raises(ValueError, match="same order"):
            refused(strange)
    assert verify(plan, database, queries) == verify(plan, X[:1400], X[1400:])  # without a warning


def test_repeated_queries_are_named(plan: Compression) -> None:
    with pytest.warns(UserWarning, match="only 1 of 397 queries are distinct; .* independently of each other"):
        compress(X[:1400], queries=np.tile(X[1400], (397, 1)), recall=0.9, families=["pca_sign"])
    with pytest.warns(UserWarning, match="only 397 of 400 queries are distinct"):
        verify(plan, X[:1400], np.concatenate([X[1400:], X[1400:1403]]))


def test_promises_of_any_size_can_be_asked_for(tmp_path: Path) -> None:
    plan = compress(X, recall=5e-324, families=["pca_sign"])
    assert plan.recall_lower_bound == 5e-324
    plan.save(tmp_path / "plan")
    assert Compression.load(tmp_path / "plan").certificate == plan.certificate
    sure = compress(X, recall=0.8, confidence=1.0 - 1e-9, families=["pca_sign"], n_queries=400)
    assert sure.certificate.accepted()
    assert "99.9999999 % confidence" in str(sure)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"recall": 1.0}, "recall must be below 1: no finite number of queries"),
        ({"recall": 95}, "recall must be"),
        ({"confidence": 1}, "confidence must be"),
        ({"confidence": 1.0 - 2.0**-53}, "confidence must be at most 1 - 1e-9"),
        ({"metric": "dot"}, "metric must be one of"),
        ({"mode": "fast"}, "mode must be one of"),
        ({"families": ["pca"]}, "families must be one of"),
        ({"families": []}, "families must name at least one"),
        ({"families": ["two_step"]}, "give y"),
        ({"max_bytes": 3}, "max_bytes=3 leaves nothing to try for 64 features; the smallest codes have 4 bytes"),
        ({"max_depth": 5}, "max_depth must be an integer of at least 10"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be an integer of at least 0"),
        ({"recall": 0.99}, "takes at least 599 queries"),
        ({"max_rows": 2, "k": 1}, "no code has more bits than the 2 database row"),
    ],
)
def test_bad_input(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        compress(X, **{"families": QUICK, **settings})


def test_bad_rows() -> None:
    broken = X.copy()
    broken[7, 3] = np.nan
    with pytest.raises(TypeError, match="X must be dense rows, got a sparse matrix"):
        compress(csr_array(X))
    with pytest.raises(ValueError, match=r"X has 1 number\(s\) at row 1, and 2 at row 0"):
        compress([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError, match="X has 1 masked entries, which cannot be left out"):
        compress(np.ma.masked_invalid(broken))
    with pytest.raises(ValueError, match=r"X must have at least 2 row\(s\), got shape \(1, 64\)"):
        compress(X[:1], queries=X, k=1)


def test_columns_of_text_are_named(plan: Compression) -> None:
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    words = "has values that are no numbers in column 'title', could not convert string to float: 'x'; leave it out"
    titled = frame.assign(title="x")
    for refused in (compress, LSH(8).fit):
        with pytest.raises(ValueError, match=f"X {words}"):
            refused(titled)
    with pytest.raises(ValueError, match=f"queries {words}"):
        verify(plan, X, titled)
    with pytest.raises(ValueError, match="X has values that are no numbers in column 'day', "):
        compress(frame.assign(day=np.datetime64("2026-01-01", "ns")))


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
