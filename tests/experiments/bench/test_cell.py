"""One cell: a record that is plain JSON, complete, and the same every time."""

from __future__ import annotations

import base64
import hashlib
import json

import numpy as np
import pytest

from hashlearn import bits, metrics
from hashlearn.experiments.bench.cell import NEAREST, SHOWN_QUERIES, nearest_vectors, run_cell
from hashlearn.experiments.bench.methods import METHODS, CellContext
from hashlearn.experiments.bench.protocols import PROTOCOLS
from hashlearn.experiments.bench.tables import TABLES, Cell
from tests.experiments.bench import fakes

DATA = fakes.dataset()


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def al():
    """A real method on the small data."""
    return run_cell(Cell("inference", "digits", "AL", 6, 1), DATA)


def test_record_is_strict_json_with_every_part(al):
    assert strict(json.dumps(al)) == json.loads(json.dumps(al))
    assert list(al) == [
        "cell",
        "protocol",
        "configuration",
        "versions",
        "machine",
        "seconds",
        "metrics",
        "curve",
        "inference",
        "bit_statistics",
        "digest",
        "warnings",
        "provenance",
        "gallery",
    ]
    assert al["cell"] == {
        "table": "inference",
        "dataset": "digits",
        "features": "pixels",
        "method": "AL",
        "n_bits": 6,
        "draw": 1,
    }
    assert al["configuration"]["hasher"] == "TwoStepHasher"
    assert al["configuration"]["parameters"]["solver"] == "'al'"
    assert "progress" not in al["configuration"]["parameters"]
    assert al["protocol"]["n_train"] == 60 * fakes.N_CLASSES
    assert al["provenance"]["source"] == "made up"


def test_numbers_are_those_of_the_codes(al):
    split = PROTOCOLS["digits"].draw(DATA, 1)
    labels = DATA.y[split.train]
    hasher = (
        METHODS["AL"]
        .build(CellContext(6, 1, "supervised", "digits", "rbf_svm", labels))
        .fit(DATA.X[split.train], labels)
    )
    database, queries = hasher.encode(DATA.X[split.database]), hasher.encode(DATA.X[split.queries])
    scores = (queries, database, DATA.y[split.queries], DATA.y[split.database])
    assert al["digest"] == hashlib.sha256(database.tobytes()).hexdigest()
    assert al["metrics"]["precision@2"] == metrics.precision_within_radius(*scores, radius=2)
    assert al["metrics"]["map"] == metrics.mean_average_precision(*scores)
    assert al["metrics"]["knn_accuracy"] is None
    assert al["curve"]["recall"][-1] == 1.0
    assert np.allclose(al["bit_statistics"]["balance"], bits.unpack_bits(database, 6).mean(axis=0))
    assert 0.0 < al["bit_statistics"]["collisions"] < 1.0


def test_inference_is_reported_and_unproven_bounds_are_null(al):
    assert len(al["inference"]["bits"]) == 6 * len(al["inference"]["objectives"])
    assert al["inference"]["bits"][0]["bound"] is None
    assert al["inference"]["objectives"][-1] <= al["inference"]["start_objective"]
    assert 0.0 < al["seconds"]["inference"] < al["seconds"]["fit"]
    sdr = run_cell(Cell("inference", "digits", "SDR", 2, 0), DATA)
    assert all(bit["bound"] <= bit["value"] for bit in sdr["inference"]["bits"])


@pytest.mark.parametrize("method", ["SDR", "AL", "NOPT", "GraphCut"])
def test_the_same_cell_gives_the_same_codes(method):
    cell = Cell("inference", "digits", method, 4, 0)
    first, again = run_cell(cell, DATA), run_cell(cell, DATA)
    assert first["digest"] == again["digest"]
    assert first["metrics"] == again["metrics"]
    assert first["metrics"]["map"] > 0.8  # these classes are far apart


@pytest.mark.parametrize("method", ["AL", "SDR distance"])
def test_without_labels_and_with_a_vote(method):
    record = run_cell(Cell("knn", "digits", method, 6, 0), DATA)
    assert record["configuration"]["parameters"]["hash_function"] == "'linear_svm'"
    assert record["metrics"]["knn_accuracy"] > 0.8
    assert record["inference"] is not None
    assert strict(json.dumps(record))["metrics"] == record["metrics"]


def test_stages_are_told():
    heard = []
    run_cell(Cell("inference", "digits", "AL", 3, 0), DATA, stage=heard.append)
    assert heard[0] == "learning"
    assert heard[-2:] == ["encoding", "measuring"]
    assert "inference 1/9" in heard


def test_gallery_shows_the_same_queries_for_every_method_and_its_own_nearest():
    records = [run_cell(Cell("inference", "digits", method, 8, 0), DATA) for method in ("Quick", "AL")]
    shown = [[query["image"] for query in record["gallery"]["queries"]] for record in records]
    assert shown[0] == shown[1]
    assert len(set(shown[0])) == SHOWN_QUERIES
    gallery = records[1]["gallery"]
    assert gallery["image_shape"] == [2, 3]
    assert len({query["label"] for query in gallery["queries"]}) == SHOWN_QUERIES
    raw = {image.tobytes(): DATA.class_names[y] for image, y in zip(DATA.images, DATA.y, strict=True)}
    for query in gallery["queries"]:
        assert raw[base64.b64decode(query["image"])] == query["label"]
        distances = [neighbor["distance"] for neighbor in query["neighbors"]]
        assert len(distances) == NEAREST
        assert distances == sorted(distances)
        assert all(raw[base64.b64decode(n["image"])] == n["label"] for n in query["neighbors"])
    assert strict(json.dumps(records[0]))["gallery"] == records[0]["gallery"]


def test_neighbors_at_equal_distance_come_by_index():
    record = run_cell(Cell("inference", "digits", "Quick", 3, 0), DATA)  # eight codes, many ties
    split = PROTOCOLS["digits"].draw(DATA, 0)
    hasher = fakes.Quick(3, random_state=0).fit(DATA.X[split.train])
    query = int(split.queries[0])  # of the first class, which is always shown
    distances = bits.hamming_distances(hasher.encode(DATA.X[[query]]), hasher.encode(DATA.X[split.database]))[0]
    nearest = sorted(range(len(distances)), key=lambda item: (distances[item], item))[:NEAREST]
    shown = record["gallery"]["queries"][0]
    assert base64.b64decode(shown["image"]) == DATA.images[query].tobytes()
    expected = [DATA.images[split.database[item]].tobytes() for item in nearest]
    assert [base64.b64decode(neighbor["image"]) for neighbor in shown["neighbors"]] == expected


def test_warnings_are_kept_with_the_result(monkeypatch):
    import warnings

    def fit(self, X, y=None):
        warnings.warn("not converged", UserWarning, stacklevel=1)
        return fakes.Quick.fit(self, X, y)

    monkeypatch.setattr(fakes.Slow, "fit", fit)
    record = run_cell(Cell("inference", "digits", "Slow", 8, 0), DATA)
    assert record["warnings"] == ["UserWarning: not converged"]


def test_neighbors_are_those_of_the_float_vectors():
    record = run_cell(Cell("neighbors", "digits", "ITQ", 6, 0), DATA)
    split = TABLES["neighbors"].protocol("digits").draw(DATA, 0)
    gaps = DATA.X[split.queries][:, None, :].astype(float) - DATA.X[split.database][None]
    truth = np.argsort((gaps**2).sum(axis=2), axis=1)[:, :10]
    assert np.array_equal(np.sort(nearest_vectors(DATA, split, 10)), np.sort(truth))
    found = record["metrics"]
    assert 0.0 < found["neighbors@10"] < found["neighbors@100"] <= 1.0


def test_classes_never_learned_from():
    record = run_cell(Cell("unseen", "digits", "SDR", 6, 0), DATA)
    assert len(record["protocol"]["unseen_classes"]) == 2
    assert 0.0 < record["metrics"]["map"] <= 1.0
