"""`BatchEncoder`: small to send, loaded once in a process, true to its model, the same codes in every kind of batch."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.hashers import LSH
from hashlearn.persistence import BatchEncoder, PersistenceError, batch_encoder, fingerprint
from hashlearn.streams import read_codes

N_FEATURES = 6
X = np.random.default_rng(0).standard_normal((40, N_FEATURES)).astype(np.float32)
IDS = np.arange(100, 140)
HASHER = LSH(n_bits=12, random_state=0).fit(X)
CODES = HASHER.encode(X)
BYTES = [code.tobytes() for code in CODES]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(batch_encoder, "_loaded", {})
    HASHER.save(tmp_path / "model.hashlearn")
    return tmp_path / "model.hashlearn"


def sent(original: BatchEncoder) -> BatchEncoder:
    return pickle.loads(pickle.dumps(original))


def frames() -> dict[str, Any]:
    """The same rows in every kind of batch, by name."""
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    lists = arrow.array(X.tolist(), arrow.list_(arrow.float32()))
    fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(X.ravel()), N_FEATURES)
    chunks = arrow.chunked_array([lists[:15], lists[15:15], lists[15:]])
    objects = np.empty(len(X), dtype=object)
    objects[:] = list(X)
    return {
        "dict of a matrix": {"id": IDS, "x": X},
        "dict of an array of arrays": {"id": IDS, "x": objects},
        "dict of a list": {"id": IDS, "x": X.tolist()},
        "pandas": pandas.DataFrame({"id": IDS, "x": list(X)}, index=IDS),
        "polars list": polars.DataFrame({"id": IDS, "x": X.tolist()}),
        "polars array": polars.DataFrame({"id": IDS, "x": X}),
        "arrow list": arrow.table({"id": IDS, "x": lists}),
        "arrow fixed": arrow.table({"id": IDS, "x": fixed}),
        "arrow chunks": arrow.table({"id": IDS, "x": chunks}),
        "arrow half": arrow.table({"id": IDS, "x": fixed.cast(arrow.list_(arrow.float16(), N_FEATURES))}),
        "record batch": arrow.record_batch({"id": IDS, "x": lists}),
    }


def columns(batch: Any) -> dict[str, list[Any]]:
    """Any kind of batch as lists."""
    if isinstance(batch, dict):
        return {name: list(values) for name, values in batch.items()}
    if hasattr(batch, "to_pydict"):
        return batch.to_pydict()
    return {name: list(batch[name]) for name in batch.columns}


KINDS = [
    *("dict of a matrix", "dict of an array of arrays", "dict of a list", "pandas", "polars list", "polars array"),
    *("arrow list", "arrow fixed", "arrow chunks", "arrow half", "record batch"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_batch_gets_the_same_codes_and_keeps_its_columns(model: Path, kind: str) -> None:
    batch = frames()[kind]
    made = sent(BatchEncoder(model, column="x")).on_batch(batch)
    want = [code.tobytes() for code in HASHER.encode(X.astype(np.float16))] if kind == "arrow half" else BYTES
    assert type(made) is type(batch)
    assert columns(made) == {"id": IDS.tolist(), "code": want}
    if kind == "pandas":
        assert list(made.index) == list(batch.index)
    whole = BatchEncoder(model, column="x", code="bits", keep_vectors=True).on_batch(batch)
    assert list(columns(whole)) == ["id", "x", "bits"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_batch_gives_an_empty_batch(model: Path, kind: str) -> None:
    batch = frames()[kind]
    empty = {name: values[:0] for name, values in batch.items()} if isinstance(batch, dict) else batch[:0]
    made = BatchEncoder(model, column="x").on_batch(empty)
    assert columns(made) == {"id": [], "code": []}
    assert BatchEncoder(model).encode(columns(empty)["x"]).shape == (0, 2)
    if kind.startswith("polars"):
        assert str(made.schema["code"]) == "Binary"


def test_arrays_and_sparse_rows_are_encoded_as_the_hasher_does(model: Path) -> None:
    from scipy.sparse import csr_array

    made = BatchEncoder(model)
    np.testing.assert_array_equal(made.encode(X), CODES, strict=True)
    np.testing.assert_array_equal(made.encode(csr_array(X)), CODES, strict=True)
    assert made.encode(X[:0]).shape == (0, 2)
    assert made.encode(X[:0]).dtype == np.uint8


def test_batches_come_one_by_one(model: Path) -> None:
    taken: list[int] = []

    def batches() -> Any:
        for first in range(0, 40, 10):
            taken.append(first)
            yield {"x": X[first : first + 10]}

    made = BatchEncoder(model, column="x").on_batches(batches())
    assert list(next(made)["code"]) == BYTES[:10]
    assert taken == [0]
    assert [code for batch in made for code in batch["code"]] == BYTES[10:]


def test_zeros_at_the_end_of_a_code_are_kept(model: Path) -> None:
    made = BatchEncoder(model, column="x")
    made.encode = lambda vectors: np.zeros((2, 3), np.uint8)  # type: ignore[method-assign]
    assert list(made.on_batch({"x": X[:2]})["code"]) == [bytes(3), bytes(3)]


def test_a_pickle_is_small_and_a_portable_one_needs_no_file(model: Path) -> None:
    light, whole = BatchEncoder(model, column="x"), BatchEncoder(model, column="x", portable=True)
    assert len(pickle.dumps(light)) < 1000
    assert 0 < len(pickle.dumps(whole)) - model.stat().st_size < 1000
    light.encode(X)
    assert len(pickle.dumps(light)) < 1000  # also after it has loaded
    batch_encoder._loaded.clear()
    model.unlink()
    np.testing.assert_array_equal(sent(whole).encode(X), CODES)
    batch_encoder._loaded.clear()
    with pytest.raises(FileNotFoundError):
        sent(light).encode(X)


def test_a_hasher_without_a_file_can_be_sent(model: Path) -> None:
    made = BatchEncoder.from_hasher(HASHER, column="x")
    assert made.digest == fingerprint(HASHER) == BatchEncoder(model).digest
    assert list(sent(made).on_batch({"x": X})["code"]) == BYTES
    assert "n_bits=12" in repr(made)


def test_a_file_with_another_model_is_refused_with_both_digests(model: Path) -> None:
    made, other = BatchEncoder(model), LSH(n_bits=12, random_state=1).fit(X)
    other.save(model)
    with pytest.raises(PersistenceError, match=rf"model {fingerprint(other)[:12]} now, .* for {made.digest[:12]}"):
        made.encode(X)
    HASHER.save(model, notes="saved again")
    np.testing.assert_array_equal(made.encode(X), CODES)  # the same model in another file
    other.save(model)
    np.testing.assert_array_equal(sent(made).encode(X), CODES)  # already loaded
    np.testing.assert_array_equal(BatchEncoder(model).encode(X), other.encode(X))


def test_a_process_loads_a_model_once_for_all_threads_and_copies(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    read = batch_encoder.load

    def counted(path: Any) -> Any:
        loads.append(str(path))
        return read(path)

    monkeypatch.setattr(batch_encoder, "load", counted)
    made, results = BatchEncoder(model), []
    threads = [threading.Thread(target=lambda: results.append(sent(made).encode(X))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(results) == 8
    assert all(np.array_equal(codes, CODES) for codes in results)


def test_a_process_keeps_the_models_used_last(model: Path, tmp_path: Path) -> None:
    made = []
    for seed in range(batch_encoder.MOST_LOADED + 1):
        LSH(n_bits=8, random_state=seed).fit(X).save(tmp_path / f"{seed}.hashlearn")
        made.append(BatchEncoder(tmp_path / f"{seed}.hashlearn"))
        made[0].encode(X)
        made[-1].encode(X)
    assert len(batch_encoder._loaded) == batch_encoder.MOST_LOADED
    assert made[0].digest in batch_encoder._loaded
    assert made[1].digest not in batch_encoder._loaded


def test_another_process_loads_it_by_itself(model: Path, tmp_path: Path) -> None:
    (tmp_path / "encoder.pickle").write_bytes(pickle.dumps(BatchEncoder(model)))
    np.save(tmp_path / "rows.npy", X)
    code = (
        "import pickle, sys, numpy as np\n"
        "encoder = pickle.load(open('encoder.pickle', 'rb'))\n"
        "sys.stdout.buffer.write(encoder.encode(np.load('rows.npy')).tobytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    assert done.stdout == CODES.tobytes()


def test_arrow_codes_carry_the_model_and_are_read_back(model: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = BatchEncoder(model, column="x")
    table = frames()["arrow list"].replace_schema_metadata({"mine": "kept"})
    parquet.write_table(made.on_batch(table), tmp_path / "codes.parquet")
    metadata = parquet.read_schema(tmp_path / "codes.parquet").metadata
    about = {b"n_bits": b"12", b"bit_order": b"big", b"model": made.digest.encode()}
    assert metadata == {b"mine": b"kept", **{b"hashlearn." + key: value for key, value in about.items()}}
    np.testing.assert_array_equal(read_codes(tmp_path / "codes.parquet", 12)[0], CODES)


def test_wrong_columns_are_named(model: Path) -> None:
    with pytest.raises(ValueError, match=r"column must name .* the batch has 'id', 'x'"):
        BatchEncoder(model).on_batch({"id": IDS, "x": X})
    with pytest.raises(ValueError, match="column is 'y', and the batch has 'id', 'x'"):
        BatchEncoder(model, column="y").on_batch({"id": IDS, "x": X})
    with pytest.raises(ValueError, match="code is 'id', and the batch has that column already"):
        BatchEncoder(model, column="x", code="id").on_batch({"id": IDS, "x": X})
    assert list(BatchEncoder(model, column="x", code="x").on_batch({"x": X})["x"]) == BYTES
    with pytest.raises(TypeError, match=r"batch must be a dict of arrays, .* got ndarray"):
        BatchEncoder(model, column="x").on_batch(X)


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "arrow"])
def test_wrong_vectors_are_named_by_their_row(model: Path, kind: str) -> None:
    made = BatchEncoder(model, column="x")
    row = X[0].tolist()

    def column(vectors: list[Any]) -> Any:
        if kind == "pandas":
            return pytest.importorskip("pandas").Series(vectors)
        if kind == "polars":
            return pytest.importorskip("polars").Series(vectors)
        return pytest.importorskip("pyarrow").array(vectors) if kind == "arrow" else vectors

    with pytest.raises(ValueError, match="column 'x' has no vector at row 2"):
        made.on_column(column([row, row, None]))
    with pytest.raises(ValueError, match=r"column 'x' has 5 number\(s\) at row 1"):
        made.on_column(column([row, row[:5], row]))
    if kind in ("polars", "arrow"):
        with pytest.raises(ValueError, match="at row 1, column 5"):
            made.on_column(column([row, [*row[:5], None]]))
        with pytest.raises((TypeError, ValueError), match=r"lists of numbers|2D"):
            made.on_column(column([1.0, 2.0]))


def test_a_fixed_width_of_another_model_and_other_objects_are_refused(model: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"X has 5 (number\(s\) at row 0|features)"):
        BatchEncoder(model).encode(arrow.array(X[:, :5].tolist(), arrow.list_(arrow.float32(), 5)))
    with pytest.raises(ValueError, match="X has 5 features, but LSH is expecting 6"):
        BatchEncoder(model).encode(X[:, :5])
    with pytest.raises((TypeError, ValueError)):
        BatchEncoder(model).encode("rows")


def test_a_path_without_a_model_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        BatchEncoder(tmp_path / "none.hashlearn")
    (tmp_path / "other.hashlearn").write_bytes(b"PK not a model")
    with pytest.raises(PersistenceError, match=r"other\.hashlearn"):
        BatchEncoder(tmp_path / "other.hashlearn")
