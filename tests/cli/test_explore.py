"""``hashlearn explore``: the page of `write_page`, and errors that name the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import load
from hashlearn.explorer import write_page
from tests.cli.files import N, X, Y, answer, invoke, refused, write_parquet
from tests.explorer.pages import data_of

IMAGES = np.rint(X[:N].reshape(-1, 8, 8) * 15.9).astype(np.uint8)
TEXTS = np.array([f"digit {label}" for label in Y[:N]])


@pytest.fixture
def given(folder: Path) -> Path:
    """Texts and images beside the files of digits."""
    np.save("texts.npy", TEXTS)
    np.save("images.npy", IMAGES)
    np.savez("things.npz", images=IMAGES, short=IMAGES[:3], floats=IMAGES / 2.0, wide=np.eye(N, dtype=int))
    return folder


def test_the_page_is_that_of_the_library(given: Path) -> None:
    options = ["--texts", "texts.npy", "--images", "things.npz::images", "--labels", "y.npy", "--title", "Digits"]
    report = answer("explore", "model", "X.npy", *options, "-o", "page.html")
    write_page(load("model"), X[:N], "other.html", texts=TEXTS, images=IMAGES, labels=Y[:N], title="Digits")
    assert Path("page.html").read_bytes() == Path("other.html").read_bytes()
    assert report.pop("seconds") > 0.0
    size = Path("page.html").stat().st_size
    expected = {"n_rows": N, "n_bits": 12, "n_texts": N, "n_images": N, "bytes": size}
    assert report == {"model": "model", "page": "page.html", **expected, "notes": []}


def test_text_says_how_much_is_in_the_page(given: Path) -> None:
    whole = answer("explore", "model", "both.npz::X", "--images", "images.npy")["bytes"]
    said = invoke("explore", "model", "both.npz::X", "--images", "images.npy", "--max-bytes", whole - 1000).stdout
    held = data_of(Path("explore.html"))["images"]["count"]
    assert 0 < held < N
    assert f"of {held:,} rows; a larger --max-bytes allows more" in said
    assert f"{N}, 12 bits each" in said


def test_sparse_rows_and_columns_of_parquet(given: Path) -> None:
    write_parquet(given)
    answer("explore", "model", "sparse.npz", "-o", "a.html")
    answer("explore", "model", "lists.parquet::row", "--texts", "lists.parquet::name", "-o", "b.html")
    first, second = data_of(Path("a.html")), data_of(Path("b.html"))
    assert first["codes"] == second["codes"]
    assert second["texts"] == TEXTS.tolist()


def test_ids_of_a_file_are_shown(given: Path) -> None:
    write_parquet(given)
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    ids = [f"doc-{row}" for row in range(N)]
    table = parquet.read_table("lists.parquet").append_column("id", arrow.array(ids))
    parquet.write_table(table, "with ids.parquet")
    answer("explore", "model", "with ids.parquet", "-o", "page.html")
    assert data_of(Path("page.html"))["ids"] == ids
    answer("explore", "model", "lists.parquet::row", "-o", "page.html")
    assert data_of(Path("page.html"))["ids"] is None


def test_a_model_with_named_columns_is_not_warned_about(given: Path) -> None:
    write_parquet(given)
    assert invoke("fit", "columns.parquet", "--method", "lsh", "--bits", 8, "-o", "named").exit_code == 0
    answer("explore", "named", "columns.parquet", "-o", "page.html")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["model", "nowhere.npy"], "nowhere.npy: there is no such file"),
        (["nowhere", "X.npy"], "nowhere: there is no such model file; hashlearn fit makes one"),
        (["model", "narrow.npy"], "narrow.npy: has 63 feature(s) a row, the model takes 64"),
        (["model", "X.npy", "-o", "X.npy"], "--output X.npy: is an input of this command"),
        (["model", "X.npy", "-o", "model"], "--output model: is an input of this command"),
        (["model", "X.npy", "--texts", "texts.npy", "-o", "texts.npy"], "--output texts.npy: is an input"),
        (["model", "X.npy", "--texts", "yq.npy"], "--texts: yq.npy: has shape (40,)"),
        (["model", "X.npy", "--texts", "nowhere.npy"], "--texts: nowhere.npy: there is no such file"),
        (["model", "X.npy", "--labels", "yq.npy"], "--labels: yq.npy: has 40 label(s), X.npy has 300 row(s)"),
        (["model", "X.npy", "--labels", "things.npz::wide"], "--labels: labels must be one class for each row"),
        (["model", "X.npy", "--images", "things.npz::short"], "--images: images must have 300 entries"),
        (["model", "X.npy", "--images", "things.npz::floats"], "--images: images must be uint8"),
        (["model", "X.npy", "--images", "X.npy"], "--images: images must have shape (n, h, w)"),
        (["model", "X.npy", "--images", "things.npz"], "--images: things.npz: has 4 arrays"),
        (["model", "X.npy", "--images", "images.parquet"], "--images: images.parquet: images are read from npy or npz"),
        (["model", "X.npy", "--max-bytes", 1000], "--max-bytes: max_bytes must be at least"),
        (["model", "X.npy", "--thumbnail", 1], "--thumbnail: thumbnail must be an integer from 4 to 256, got 1"),
    ],
)
def test_bad_input(given: Path, options: list[Any], words: str) -> None:
    np.save("narrow.npy", X[:N, 1:])
    Path("images.parquet").write_text("no images")
    before = {path.name: path.read_bytes() for path in given.iterdir()}
    refused("explore", *options, words=words)
    assert {path.name: path.read_bytes() for path in given.iterdir()} == before
