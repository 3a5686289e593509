"""Exported graphs: onnxruntime gives the codes of `encode`, and what it cannot give is not written."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeClassifier

from hashlearn import TwoStepHasher, hash_functions
from hashlearn.hashers import HASHERS
from hashlearn.persistence import PersistenceError, export_onnx, onnx_export, onnx_graph
from tests.persistence.models import N_BITS, TEST, TRAIN, X, Y, fitted, unfitted

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

WITHOUT_GRAPH = ("spherical_hashing", "spectral_hashing", "kmeans_hashing")


def two_step(rows=None, **parameters):
    parameters = {"n_bits": 5, "solver": "sweeps", "n_sweeps": 1, "random_state": 0, **parameters}
    return TwoStepHasher(**parameters).fit(X[TRAIN] if rows is None else rows, Y[TRAIN])


def outputs(path, rows):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["margins", "codes"], {"features": np.ascontiguousarray(rows)})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [name for name in HASHERS if name not in WITHOUT_GRAPH])
def test_every_hasher_gives_the_same_codes(name, dtype, tmp_path):
    path, hasher, rows = tmp_path / "encoder.onnx", fitted(name, dtype), X[TEST].astype(dtype)
    report = export_onnx(hasher, path, sample=rows, dtype=dtype)
    assert (report.opset, report.rows, report.bits, report.differing) == (18, 400, 400 * N_BITS, 0)
    assert report.bytes == path.stat().st_size
    margins, codes = outputs(path, rows)
    assert (margins.dtype, codes.dtype) == (np.dtype(dtype), np.uint8)
    np.testing.assert_array_equal(codes, hasher.encode(rows))
    scale = np.abs(hasher.decision_function(rows)).max()
    np.testing.assert_allclose(
        margins, hasher.decision_function(rows), atol=scale * (1e-12 if dtype == "float64" else 1e-4)
    )


@pytest.mark.parametrize("choice", [*hash_functions.HASH_FUNCTIONS])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_hash_function_gives_the_same_codes(choice, dtype, tmp_path):
    hasher = two_step(hash_function=hash_functions.Trees(n_trees=7) if choice == "trees" else choice)
    report = export_onnx(hasher, tmp_path / "encoder.onnx", dtype=dtype)
    assert report.differing == 0
    for rows in (X[:1], X[:7], X[:0], X - 0.5):
        np.testing.assert_array_equal(outputs(tmp_path / "encoder.onnx", rows.astype(dtype))[1].shape, (len(rows), 1))
    codes = outputs(tmp_path / "encoder.onnx", X.astype(dtype))[1]
    assert np.mean(codes != hasher.encode(X.astype(dtype))) <= 1e-3


def test_sparse_points_and_constant_bits(tmp_path):
    sparse = two_step(sp.csr_array(X[TRAIN]), hash_function="kernel_ridge")
    assert export_onnx(sparse, tmp_path / "sparse.onnx", sample=sp.csr_array(X[TEST])).differing == 0
    codes = np.where(Y[TRAIN, None] > [4, 4, 9, -1], 1, -1).astype(np.int8)
    codes[:, 1] *= -1
    for columns in (slice(0, 4), slice(2, 4)):  # repeated, mirrored, never, always; then nothing but constants
        hasher = two_step(n_bits=4)
        hasher.hash_functions_ = hash_functions.RBFSVM().fit(X[TRAIN], codes[:, columns], np.random.default_rng(0))
        hasher.n_bits = codes[:, columns].shape[1]
        assert export_onnx(hasher, tmp_path / "constant.onnx").differing == 0
        np.testing.assert_array_equal(outputs(tmp_path / "constant.onnx", X)[1], hasher.encode(X))


@pytest.mark.parametrize("n_bits", [1, 8, 9, 33])
def test_any_number_of_bits_is_packed_as_encode_packs(n_bits, tmp_path):
    hasher = unfitted("lsh", n_bits=n_bits).fit(X[TRAIN])
    export_onnx(hasher, tmp_path / "encoder.onnx")
    np.testing.assert_array_equal(outputs(tmp_path / "encoder.onnx", X)[1], hasher.encode(X))


def test_the_opset_is_what_the_file_states(tmp_path):
    for opset in (18, 20):
        assert export_onnx(fitted("fasthash"), tmp_path / "encoder.onnx", opset=opset).opset == opset
        model = onnx.load(tmp_path / "encoder.onnx")
        assert {entry.domain: entry.version for entry in model.opset_import} == {"": opset, "ai.onnx.ml": 5}
    properties = {entry.key: entry.value for entry in model.metadata_props}
    assert properties == {"method": "fasthash", "bit_order": "big", "n_bits": str(N_BITS)}


def test_a_graph_that_gives_other_codes_is_not_written(tmp_path, monkeypatch):
    hasher = unfitted("itq").fit(X[TRAIN])
    original = onnx_graph.Graph.affine
    monkeypatch.setattr(onnx_graph.Graph, "affine", lambda self, x, W, b: original(self, x, W, b + 1e-6))
    with pytest.raises(PersistenceError, match="other codes than encode"):
        export_onnx(hasher, tmp_path / "encoder.onnx")
    monkeypatch.setattr(onnx_graph.Graph, "affine", lambda self, x, W, b: original(self, x, -W, -b))
    with pytest.raises(PersistenceError, match="bits differ"):
        export_onnx(hasher, tmp_path / "encoder.onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_has_no_graph_is_refused(tmp_path, monkeypatch):
    tree = two_step(hash_function=DecisionTreeClassifier())
    for hasher in (tree, *map(fitted, WITHOUT_GRAPH)):
        with pytest.raises(PersistenceError, match=r"no ONNX graph; what has: .*kernel.*linear"):
            export_onnx(hasher, tmp_path / "encoder.onnx")
    with pytest.raises(PersistenceError, match="opset must be an integer of at least 18"):
        export_onnx(fitted("lsh"), tmp_path / "encoder.onnx", opset=9)
    with pytest.raises(PersistenceError, match="dtype must be"):
        export_onnx(fitted("lsh"), tmp_path / "encoder.onnx", dtype="float16")
    with pytest.raises(ValueError, match="63 features"):
        export_onnx(fitted("lsh"), tmp_path / "encoder.onnx", sample=X[:, 1:])
    monkeypatch.setattr(onnx_export, "LARGEST_FILE", 100)
    with pytest.raises(PersistenceError, match="end at 2 GB"):
        export_onnx(fitted("lsh"), tmp_path / "encoder.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_how_to_get_it():
    with pytest.raises(ImportError, match=r"pip install 'onnx>=.*' 'onnxruntime>="):
        onnx_graph.optional("no_such_package_at_all")
