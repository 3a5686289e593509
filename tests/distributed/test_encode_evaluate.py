"""Files of codes and merged counts are those of one process."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn import distributed, metrics
from hashlearn.hashers import LSH
from hashlearn.streams import read_codes
from tests.distributed.data import clustered, write_files


@pytest.fixture(scope="module")
def fitted():
    X, y = clustered(900, 6)
    return X, y, LSH(n_bits=12, random_state=0).fit(X)


def test_encoding_gives_a_file_for_a_file_and_goes_on_after_a_stop(fitted, tmp_path):
    X, _, hasher = fitted
    files = write_files(tmp_path / "rows", X)
    first = distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    assert (first.rows, first.resumed_files) == (900, 0)
    parts = [read_codes(file, 12) for file in first.files]
    np.testing.assert_array_equal(np.concatenate([codes for codes, _ in parts]), hasher.encode(X))
    np.testing.assert_array_equal(np.concatenate([ids for _, ids in parts]), np.arange(900))
    first.files[1].unlink()
    again = distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    assert again.resumed_files == 2
    assert again.sha256 == first.sha256


def test_another_model_is_not_taken_for_this_one(fitted, tmp_path):
    X, _, hasher = fitted
    files = write_files(tmp_path / "rows", X)
    distributed.encode(hasher, files, tmp_path / "codes", n_workers=0)
    other = LSH(n_bits=12, random_state=1).fit(X)
    other.save(tmp_path / "model.hashlearn")
    found = distributed.encode(tmp_path / "model.hashlearn", files, tmp_path / "codes", n_workers=0)
    assert found.resumed_files == 0
    codes = np.concatenate([read_codes(file, 12)[0] for file in found.files])
    np.testing.assert_array_equal(codes, other.encode(X))


@pytest.mark.parametrize("ties", ["expected", "optimistic", "pessimistic"])
def test_merged_counts_give_the_metrics_of_all_codes(fitted, ties):
    X, y, hasher = fitted
    codes = hasher.encode(X)
    blocks = [(codes[a : a + 200], y[a : a + 200]) for a in range(0, 900, 200)]
    found = distributed.evaluate(codes[:40], y[:40], blocks, ties=ties, n_workers=0)
    wanted = metrics.mean_average_precision(codes[:40], codes, y[:40], y, ties=ties)
    assert found.mean_average_precision == pytest.approx(wanted, rel=1e-12)
    assert found.precision_within_radius == metrics.precision_within_radius(codes[:40], codes, y[:40], y)
    assert found.n_database == 900


def test_evaluation_of_files_on_workers(fitted, tmp_path):
    pytest.importorskip("distributed")
    from distributed import Client, LocalCluster

    X, y, hasher = fitted
    files = write_files(tmp_path / "rows", X, y)
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
        rows = write_files(tmp_path / "only_rows", X)
        encoded = distributed.encode(hasher, rows, tmp_path / "codes", client=client)
        labels = [f"{file}::label" for file in sorted(files.glob("*.parquet"))]
        found = distributed.evaluate(
            hasher.encode(X[:30]), y[:30], encoded.files, database_labels=labels, n_bits=12, client=client
        )
    codes = hasher.encode(X)
    wanted = metrics.mean_average_precision(codes[:30], codes, y[:30], y)
    assert found.mean_average_precision == pytest.approx(wanted, rel=1e-12)


def test_order_among_ties_needs_all_blocks():
    with pytest.raises(ValueError, match="ties must be one of"):
        distributed.evaluate(np.zeros((1, 1), np.uint8), [0], [], ties="stable", n_workers=0)
