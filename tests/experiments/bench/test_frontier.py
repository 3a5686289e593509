"""The frontier: every coder's size and recall, what is drawn, what is printed, stored and refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from hashlearn import metrics
from hashlearn.bits.hamming import hamming_distances
from hashlearn.cli.experiments import bench_command
from hashlearn.cli.report import report_command
from hashlearn.experiments import datasets
from hashlearn.experiments.bench import coders
from hashlearn.experiments.bench.frontier import run_frontier_cell
from hashlearn.experiments.bench.methods import METHODS
from hashlearn.experiments.bench.peers import PEERS
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import read
from hashlearn.experiments.bench.splits import AllRows
from hashlearn.experiments.bench.tables import Cell
from hashlearn.hashers import ITQ, SignCodes
from tests.experiments.bench import fakes

DIGITS = datasets.load("digits")
DATA = replace(DIGITS, X=DIGITS.X[:700], y=DIGITS.y[:700], images=None)
CHANCE = 10 / 630


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    monkeypatch.setenv("HASHLEARN_NUM_THREADS", "1")  # small k-means in several OpenMP threads mostly waits


def record(method, n_bytes, protocol=None):
    return run_frontier_cell(Cell("frontier", "digits", method, 8 * n_bytes, 0), DATA, protocol or AllRows())


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_beats_chance_in_the_bytes_it_was_given(name):
    peer = PEERS[name]
    if not peer.installed:
        pytest.skip(f"{peer.install} is not installed")
    n_bytes = max(2, peer.least_bytes + peer.least_bytes % 2)
    found = record(name, n_bytes)
    recalls = found["metrics"]
    assert 2 * CHANCE < recalls["asymmetric@10"] <= recalls["rescored@10"] <= 1.0
    assert 0 < found["bytes_per_row"] <= n_bytes
    assert peer.install in found["versions"]
    assert found["encoded_per_second"] > 0.0
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize("name", ["Sign", "Sign cut", "ITQ"])
def test_our_rows_have_all_three_searches(name):
    recalls = record(name, 8)["metrics"]
    assert 2 * CHANCE < recalls["hamming@10"] < recalls["asymmetric@10"] < recalls["rescored@10"] <= 1.0


@pytest.mark.parametrize(
    ("name", "n_bytes", "stored"),
    [("PQ", 3, 3), ("OPQ", 5, 5), ("RQ", 1, 1), ("PRQ", 2, 2), ("RaBitQ 1 bit", 16, 16), ("RaBitQ 2 bits", 30, 30)],
)
def test_bytes_are_those_of_faiss(name, n_bytes, stored):
    pytest.importorskip("faiss")
    assert PEERS[name].build(8 * n_bytes, 64, "cosine").bytes_per_row == stored


def test_rabitq_uses_no_more_components_than_there_are():
    pytest.importorskip("faiss")
    coder = PEERS["RaBitQ 1 bit"].build(8 * 48, 64, "cosine")
    assert (coder.description, coder.bytes_per_row) == ("PCAR64,RaBitQ1", 16)


def test_a_decoded_search_finds_what_the_index_finds():
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    found = []
    for decoded in (True, False):
        coder = coders.FaissIndex("RQ1x4", 6, decoded=decoded)
        with pytest.warns(UserWarning, match="at least 624 training points"):  # FAISS's words, once
            coder.fit(X)
        coder.store(X)
        found.append(coder.search(X[:20], 10)["asymmetric"])
    decoded_rows = coder._index.reconstruct_n(0, 300)
    gaps = ((X[:20, None] - decoded_rows) ** 2).sum(axis=2)
    distances = [np.take_along_axis(gaps, rows, axis=1) for rows in found]
    assert distances[0] == pytest.approx(distances[1], rel=1e-4)


def test_equal_hamming_distances_come_by_row():
    X = DATA.X[:300]
    coder = coders.HasherBits(ITQ(6, random_state=0))
    coder.fit(X)
    coder.store(X)
    codes = coder.encode(X)
    expected = np.argsort(hamming_distances(codes[:30], codes), axis=1, kind="stable")[:, :20]
    assert np.array_equal(coder.search(X[:30], 20)["hamming"], expected)


def test_recall_is_that_of_the_metric_s_neighbors():
    for metric in ("cosine", "euclidean"):
        protocol = AllRows(metric)
        split = protocol.draw(DATA, 0)
        database, queries = DATA.X[split.database].astype(float), DATA.X[split.queries].astype(float)
        if metric == "cosine":
            database, queries = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (database, queries))
        true = np.argsort(((queries[:, None] - database) ** 2).sum(axis=2), axis=1, kind="stable")[:, :10]
        hasher = SignCodes(32, features="pca").fit(database)
        found = hamming_distances(hasher.encode(queries), hasher.encode(database))
        found = np.argsort(found, axis=1, kind="stable")
        expected = metrics.recall_of_neighbors(found, true)
        assert record("Sign", 4, protocol)["metrics"]["hamming@10"] == pytest.approx(expected, abs=0.01)


def test_a_hasher_that_knows_metrics_is_given_the_table_s(monkeypatch):
    quick = replace(METHODS["Ranking"], parameters=lambda request: {"encoder": "linear", "n_steps": 2})
    monkeypatch.setitem(METHODS, "Ranking", quick)
    found = record("Ranking", 4, AllRows("euclidean"))
    assert found["configuration"]["parameters"]["metric"] == "'euclidean'"
    assert found["metrics"]["hamming@10"] > 2 * CHANCE


def test_the_curve_ends_at_what_rescoring_reaches():
    found = record("ITQ", 4)
    recall, precision = found["curve"]["recall"], found["curve"]["precision"]
    assert recall[9] == pytest.approx(found["metrics"]["asymmetric@10"])
    assert recall[99] == pytest.approx(found["metrics"]["rescored@10"])
    assert precision[9] == pytest.approx(recall[9])


def test_queries_are_a_tenth_or_the_test_part():
    split = AllRows().draw(DATA, 0)
    assert len(split.queries) == 70
    assert np.array_equal(np.sort(np.concatenate([split.queries, split.database])), np.arange(700))
    assert not np.array_equal(AllRows().draw(DATA, 1).queries, split.queries)
    own = fakes.dataset(n_queries=5)
    assert np.array_equal(AllRows().draw(own, 3).queries, np.flatnonzero(own.is_query))
    few = AllRows(most_queries=4).draw(own, 3)
    assert len(few.queries) == 4
    assert own.is_query[few.queries].all()
    assert len(few.database) == len(own) - 35
    assert few.description["queries"] == "canonical, 4 of them"


def test_sizes_that_a_peer_does_not_have_are_left_out():
    methods = [cell.method for cell in plan("frontier", ["digits"], ["PQ", "RaBitQ 1 bit"], [12, 64], n_draws=1).cells]
    assert methods == ["PQ"]


def test_a_peer_whose_package_is_absent_is_named_and_not_run(monkeypatch):
    monkeypatch.setitem(PEERS, "PQ", replace(PEERS["PQ"], package="no_such_module"))
    assert "PQ" in plan("frontier").not_installed
    assert "PQ" not in plan("frontier").methods
    assert plan("frontier", methods=["PQ"]).methods == ("PQ",)
    with pytest.raises(ImportError, match="PQ needs faiss-cpu, which is not installed: pip install faiss-cpu"):
        record("PQ", 2)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="needs 100 rows beside the queries, got 54"):
        run_frontier_cell(Cell("frontier", "digits", "Sign", 8, 0), fakes.dataset((60,)), AllRows())


def bench(*arguments, out):
    return CliRunner().invoke(bench_command, ["frontier", *arguments, "--draws", "1", "--out", str(out)])


@pytest.fixture
def small_digits(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda name, features=None, progress=None: DATA)


def test_the_command_prints_stores_and_resumes(tmp_path, small_digits):
    options = ("digits", "--methods", "sign,itq", "--bytes", "4,16", "--queries", "50")
    first = bench(*options, out=tmp_path)
    assert first.exit_code == 1  # 128 bits of 64 features
    assert "| ITQ    |          16 |" in first.output
    assert "50 queries (a tenth of the rows, 50 of them); neighbors by cosine distance" in first.output
    assert "digits, Sign, 128 bits, draw 0: ValueError: n_bits=128 needs as many features" in first.output
    again = bench(*options, "--json", out=tmp_path)
    told = json.loads(again.stdout)
    assert told["bytes"]["digits, ITQ, 128 bits, draw 0"] == 16
    assert len(told["values"]["digits"]["asymmetric@10"]["Sign"]["32"]["values"]) == 1
    assert "0 cell(s) run, 3 stored before" in again.stderr
    page = tmp_path / "page.html"
    assert CliRunner().invoke(report_command, [str(tmp_path), "-o", str(page)]).exit_code == 0
    text = page.read_text("utf-8")
    for kind in ("asymmetric", "hamming", "rescored"):
        assert f'data-plot="{kind}"' in text
    assert 'data-table="frontier"' in text
    assert "--metric cosine --queries 50" in text


def test_results_by_another_metric_are_not_filled_up(tmp_path, small_digits):
    assert bench("--methods", "Sign", "--bytes", "2", out=tmp_path).exit_code == 0
    ended = bench("--methods", "Sign,ITQ", "--bytes", "2", "--metric", "euclidean", out=tmp_path)
    assert "its stored results were made with metric 'cosine', now asked for metric 'euclidean'" in ended.output
    assert len(read(tmp_path).records) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frontier", "--bits", "8", "--bytes", "1"], "--bits and --bytes both give code lengths"),
        (["frontier", "--bytes", "x"], "--bytes must be whole numbers"),
        (["frontier", "--methods", "LSX"], "did you mean 'LSQ'"),
        (["frontier", "--methods", "SDH"], "method SDH is not unsupervised"),
        (["unsupervised", "--methods", "PQ"], "unknown method 'PQ'"),
        (["frontier", "--metric", "cosin"], "did you mean 'cosine'"),
        (
            ["unsupervised", "--metric", "cosine"],
            "metric must be map, map@K, p@N (K and N positive) or precision-radius",
        ),
        (["frontier", "--metric", "cosine", "--metric", "euclidean"], "name it once"),
        (["frontier", "--protocol", "own"], "table 'frontier' learns from all rows"),
    ],
)
def test_bad_input(arguments, message, tmp_path):
    ended = CliRunner().invoke(bench_command, [*arguments, "--out", str(tmp_path)])
    assert ended.exit_code == 2
    assert message in ended.output
