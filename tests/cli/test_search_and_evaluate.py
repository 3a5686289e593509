"""``hashlearn search``, ``evaluate`` and ``onnx`` give what the library gives."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from hashlearn import load, metrics
from hashlearn.bits import hamming_distances
from hashlearn.hashers import LSH
from hashlearn.persistence import describe
from hashlearn.search import HammingIndex, asymmetric_search, rescore
from tests.cli.files import N, X, Y, answer, invoke, refused, write_parquet

QUERIES = slice(N, N + 40)


def test_search_is_brute_force(folder: Path) -> None:
    found = answer("search", "model", "--database", "X.npy", "--queries", "Q.npy", "-k", 5, "--batch-rows", 70)
    hasher = load("model")
    distances = hamming_distances(hasher.encode(X[QUERIES]), hasher.encode(X[:N]))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :5]
    assert [item["ids"] for item in found["neighbors"]] == nearest.tolist()
    assert found["neighbors"][7]["distances"] == distances[7, nearest[7]].tolist()
    assert (found["k"], found["n_database"], found["n_queries"]) == (5, N, 40)
    lines = invoke("search", "model", "--database", "X.npy", "--queries", "Q.npy", "-k", 2).stdout.splitlines()
    first = found["neighbors"][0]
    assert lines[0] == "0\t" + "  ".join(
        f"{i} ({d})" for i, d in zip(first["ids"][:2], first["distances"], strict=False)
    )


def test_a_radius_instead_of_k_and_codes_instead_of_rows(folder: Path) -> None:
    answer("encode", "model", "X.npy", "-o", "codes.npy")
    found = answer("search", "model", "--database-codes", "codes.npy", "--queries", "Q.npy", "--radius", 1)
    hasher = load("model")
    distances = hamming_distances(hasher.encode(X[QUERIES]), hasher.encode(X[:N]))
    assert [sorted(item["ids"]) for item in found["neighbors"]] == [np.flatnonzero(d <= 1).tolist() for d in distances]
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    answer("encode", "model", "X.npy", "-o", "codes.parquet")
    again = answer("search", "model", "--database-codes", "codes.parquet", "--queries", "Q.npy", "--radius", 1)
    assert again["neighbors"] == found["neighbors"]


def test_codes_of_another_model_are_refused(folder: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    LSH(n_bits=12, random_state=1).fit(X[:N]).save("other")
    answer("encode", "model", "X.npy", "-o", "codes.parquet")
    made_by, model = (describe(name)["digest"][:12] for name in ("model", "other"))
    words = f"has codes of model {made_by} (model), not of {model} (other); encode its rows again with this model"
    files = ["--database-codes", "codes.parquet", "--queries", "Q.npy"]
    refused("search", "other", *files, words=words)
    refused("evaluate", "other", *files, "--database-labels", "y.npy", "--query-labels", "yq.npy", words=words)
    answer("encode", "model", "X.npy", "-o", "codes.npy")  # which does not say what model made it
    assert answer("search", "other", "--database-codes", "codes.npy", *files[2:])["n_database"] == N


def test_a_model_without_names_refuses_files_with_columns_in_other_orders(folder: Path) -> None:
    names = [f"x{column}" for column in range(X.shape[1])]
    for file, rows, order in (("rows.csv", X[:N], names), ("queries.csv", X[QUERIES], names[::-1])):
        columns = dict(zip(names, rows.T, strict=True))
        np.savetxt(
            file, np.column_stack([columns[name] for name in order]), "%g", ",", header=",".join(order), comments=""
        )
    words = "rows.csv: its rows must have the columns of queries.csv in the same order, got 'x0' as column 0"
    files = ["--database", "rows.csv", "--queries", "queries.csv"]
    refused("search", "model", *files, words=words)
    refused("evaluate", "model", *files, "--database-labels", "y.npy", "--query-labels", "yq.npy", words=words)
    words = "queries.csv: its rows must have the columns of rows.csv in the same order, got 'x63' as column 0"
    refused("search", "model", *files, "--rescore", "rows.csv", words=words)
    words = "rows.csv: its rows must have the columns of queries.csv in the same order, got 'x0' as column 0"
    refused("search", "model", *files[:2], "--queries", "Q.npy", "--rescore", "queries.csv", words=words)
    words = "queries.csv: its rows must have the columns of rows.csv in the same order, got 'x63' as column 0"
    renamed = Path("queries.csv").read_text().replace("x", "y")
    Path("queries.csv").write_text(renamed)
    words = words.replace("x63", "y63")
    refused("fit", "rows.csv", "-o", "m", "--method", "ranking", "--queries", "queries.csv", words=words)


def test_asymmetric_search_is_that_of_the_margins(folder: Path) -> None:
    hasher = load("model")
    expected = asymmetric_search(hasher.decision_function(X[QUERIES]), hasher.encode(X[:N]), 5)
    files = ["--database", "X.npy", "--queries", "Q.npy", "-k", 5, "--asymmetric"]
    found = answer("search", "model", *files)
    assert [item["ids"] for item in found["neighbors"]] == expected.indices.tolist()
    assert [item["scores"] for item in found["neighbors"]] == expected.scores.tolist()
    assert (found["asymmetric"], "distances" in found["neighbors"][0]) == (True, False)
    line = invoke("search", "model", *files).stdout.splitlines()[0]
    first = zip(expected.indices[0], expected.scores[0], strict=True)
    assert line == "0\t" + "  ".join(f"{i} ({score:.4g})" for i, score in first)


@pytest.mark.parametrize("asymmetric", [True, False])
def test_candidates_are_rescored_by_rows_of_a_file(folder: Path, asymmetric: bool) -> None:
    hasher = load("model")
    index = HammingIndex(12)
    index.add(hasher.encode(X[:N]))
    margins = hasher.decision_function(X[QUERIES])
    candidates = index.search(k=30, margins=margins) if asymmetric else index.search(hasher.encode(X[QUERIES]), 30)
    expected = rescore(candidates, X[QUERIES], X[:N], 4, metric="l2")
    rescoring = ["-k", 4, "--depth", 30, "--metric", "l2", *(["--asymmetric"] if asymmetric else [])]
    answer("encode", "model", "X.npy", "-o", "codes.npy")
    names = ["X.npy", "both.npz::X", "sparse.npz"]
    if find_spec("pyarrow"):
        write_parquet(folder)
        names += ["columns.parquet", "lists.parquet"]
    for name in names:
        files = ["--database-codes", "codes.npy", "--queries", "Q.npy", "--rescore", name]
        found = answer("search", "model", *files, *rescoring)
        assert [item["ids"] for item in found["neighbors"]] == expected.indices.tolist()
        assert [item["scores"] for item in found["neighbors"]] == expected.scores.tolist()
        assert (found["depth"], found["metric"], found["k"]) == (30, "l2", 4)
    assert answer("search", "model", *files, "-k", 40)["depth"] == N


def test_evaluate_is_the_metrics(folder: Path) -> None:
    files = [
        "--database",
        "X.npy",
        "--database-labels",
        "both.npz::y",
        "--queries",
        "Q.npy",
        "--query-labels",
        "yq.npy",
    ]
    found = answer("evaluate", "model", *files, "-k", 7, "--neighbors", 4, "--radius", 3)
    hasher = load("model")
    arguments = (hasher.encode(X[QUERIES]), hasher.encode(X[:N]), Y[QUERIES], Y[:N])
    assert found["mean_average_precision"] == metrics.mean_average_precision(*arguments)
    assert found["precision_within_radius"] == metrics.precision_within_radius(*arguments, radius=3)
    assert found["knn_accuracy"] == metrics.knn_accuracy(*arguments, neighbors=4)
    assert found["recall_at_k"] == metrics.recall_at_k(*arguments, k=7)
    assert len(found["curve"]["precision"]) == 13
    text = invoke("evaluate", "model", *files).stdout
    assert f"{100 * found['mean_average_precision']:.3g} %" in text
    assert "neighbors" not in text


def test_labels_of_words_from_parquet(folder: Path) -> None:
    write_parquet(folder)
    np.save("words.npy", [f"digit {label}" for label in Y[QUERIES]])
    files = ["--database", "lists.parquet", "--queries", "Q.npy", "--query-labels"]
    found = answer("evaluate", "model", *files, "words.npy", "--database-labels", "lists.parquet::name")
    hasher = load("model")
    expected = metrics.mean_average_precision(hasher.encode(X[QUERIES]), hasher.encode(X[:N]), Y[QUERIES], Y[:N])
    assert found["mean_average_precision"] == expected
    words = "query_labels and database_labels must be of one kind"
    refused("evaluate", "model", *files, "yq.npy", "--database-labels", "lists.parquet::name", words=words)


def test_onnx_writes_a_graph_that_was_compared(folder: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    found = answer("onnx", "model", "-o", "model.onnx", "--sample", "Q.npy")
    assert (found["rows"], found["bits"], found["bytes"]) == (40, 480, (folder / "model.onnx").stat().st_size)
    session = runtime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    codes = session.run(["codes"], {"features": X[QUERIES]})[0]
    np.testing.assert_array_equal(codes, load("model").encode(X[QUERIES]))
