"""Whatever is wrong with files or options: one line that names it, exit code 2 or 1, nothing written, no traceback."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.files import N, X, invoke, refused, write_parquet

ran: list[str] = []


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return ran.append, ("boom",)


def odd_files() -> None:
    """Features and labels that cannot be worked with."""
    rows = X[:N].copy()
    for name, value in (("nan", np.nan), ("infinite", -np.inf), ("huge", 1e200)):
        changed = rows.copy()
        changed[17, 5] = value
        np.save(f"{name}.npy", changed)
    np.save("flat.npy", rows[0])
    np.save("cube.npy", rows.reshape(N, 8, 8))
    np.save("narrow.npy", rows[:, :63])
    np.save("none.npy", rows[:0])
    np.save("text.npy", rows.astype(str))
    np.save("complex.npy", rows + 1j)
    np.save("objects.npy", np.array([[Bomb()]]), allow_pickle=True)
    np.save("short.npy", np.zeros(7, int))
    np.save("one_class.npy", np.zeros(N, int))
    np.save("missing.npy", np.full(N, np.nan))
    whole = Path("X.npy").read_bytes()
    Path("cut.npy").write_bytes(whole[:5000])
    Path("lie.npy").write_bytes(whole.replace(f"({N}, 64)".encode(), f"({2**60}, 64)".encode().ljust(9))[:5000])
    Path("pickle.npy").write_bytes(pickle.dumps(Bomb()))
    Path("words.npy").write_text("1,2,3\n")
    Path("cut.npz").write_bytes(Path("both.npz").read_bytes()[:9000])
    Path("words.parquet").write_text("1,2,3\n")
    Path("words.csv").write_text("1,2,3\n")
    Path("words.txt").write_text("1,2,3\n")


ROWS = [
    ("missing_file.npy", "missing_file.npy: there is no such file"),
    ("words.txt", "words.txt: files of rows are .npy, .npz, .parquet, .csv, got '.txt'"),
    ("words.csv", "words.csv: its first line must name the columns, got numbers: 1, 2, 3"),
    ("nan.npy", "nan.npy: contains NaN at row 17, column 5; features must be finite numbers"),
    ("infinite.npy", "infinite.npy: contains -infinity at row 17, column 5"),
    ("huge.npy", "whose square overflows"),
    ("flat.npy", "flat.npy: has shape (64,); features must have 2 dimensions"),
    ("cube.npy", "cube.npy: has shape (300, 8, 8); features must have 2 dimensions"),
    ("none.npy", "none.npy: has shape (0, 64); at least one row"),
    ("text.npy", "text.npy: holds text; features must be numbers"),
    ("complex.npy", "complex.npy: holds complex numbers"),
    ("objects.npy", "objects.npy: cannot be read; it is damaged, or holds Python objects"),
    ("pickle.npy", "pickle.npy: cannot be read"),
    ("words.npy", "words.npy: cannot be read"),
    ("cut.npy", "cut.npy: cannot be read; it is damaged"),
    ("lie.npy", "lie.npy: cannot be read; it is damaged"),
    ("cut.npz", "cut.npz: cannot be read; it is damaged"),
    ("both.npz", "both.npz: has 2 arrays (X, y); say which one, as both.npz::NAME"),
    ("both.npz::Z", "both.npz: has no array 'Z'; it has X, y"),
    ("both.npz::y", "both.npz::y: has shape (300,)"),
    ("X.npy::a", "X.npy: has no parts"),
    (".", "files of rows are"),
]


@pytest.mark.parametrize(("name", "words"), ROWS)
def test_features(folder: Path, name: str, words: str) -> None:
    odd_files()
    before = sorted(path.name for path in folder.iterdir())
    refused("encode", "model", name, "-o", "codes.npy", words=words)
    refused("fit", name, "-o", "new", "--bits", 8, words=words)
    refused("search", "model", "--database", "X.npy", "--queries", name, words=words)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert ran == []


def test_a_width_that_is_not_the_model_s(folder: Path) -> None:
    odd_files()
    words = "narrow.npy: has 63 feature(s) a row, the model takes 64"
    refused("encode", "model", "narrow.npy", "-o", "codes.npy", words=words)
    refused("search", "model", "--database", "narrow.npy", "--queries", "Q.npy", words=f"--database: {words}")
    refused("search", "model", "--database", "X.npy", "--queries", "narrow.npy", words=f"--queries: {words}")


def test_parquet_files(folder: Path) -> None:
    write_parquet(folder)
    odd_files()
    encode = ["encode", "model", "-o", "codes.npy"]
    refused(*encode, "words.parquet", words="words.parquet: cannot be read as Parquet")
    refused(*encode, "ragged.parquet", words="the model takes 64")
    refused("fit", "ragged.parquet", "-o", "new", words="has a list of length 1 at row 1, and of 2 at row 0")
    refused(*encode, "lists.parquet::name", words="name is neither")
    refused(*encode, "lists.parquet::nobody", words="has no column 'nobody'; it has name, row")
    refused(*encode, "columns.parquet::pixel 1,pixel 2", words="has 2 feature(s) a row")
    refused(
        "fit", "X.npy", "--labels", "columns.parquet", "-o", "new", words="--labels: columns.parquet: has 64 columns"
    )


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("nowhere.npy", "--labels: nowhere.npy: there is no such file"),
        ("short.npy", "--labels: short.npy: has 7 label(s), X.npy has 300 row(s)"),
        ("one_class.npy", "y holds only one class"),
        ("missing.npy", "y contains NaN"),
        ("cube.npy", "--labels: cube.npy: has shape (300, 8, 8)"),
        ("objects.npy", "--labels: objects.npy: cannot be read; it is damaged, or holds Python objects"),
    ],
)
def test_labels(folder: Path, labels: str, words: str) -> None:
    odd_files()
    refused("fit", "X.npy", "--labels", labels, "-o", "new", "--bits", 8, words=words)
    assert not (folder / "new").exists()
    assert ran == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "itqq"], "--method must be one of 'two_step'"),
        (["--method", "itqq"], "did you mean 'itq'?"),
        (["--method", "ksh"], "KSH requires y to be passed"),
        (["--method", "itq", "--solver", "sdr"], "--solver: method 'itq' has no solver; it has n_bits"),
        (["--method", "itq", "--time-limit", "2"], "--time-limit: method 'itq' has no time_limit"),
        (["--set", "n_sweeps"], "--set: must be NAME=VALUE, got 'n_sweeps'"),
        (["--set", "n_sweeps=0"], "n_sweeps must be an integer of at least 1, got 0"),
        (["--bits", "0"], "n_bits must be an integer from 1 to 4096, got 0"),
        (["--bits", "301"], "n_bits=301 needs at least as many samples"),
        (["--bits", "many"], "'many' is not a valid integer"),
        (["--solver", "sdrr"], "did you mean 'sdr'?"),
        (["--target", "label"], "did you mean 'labels'?"),
        (["--hash-function", "rbf"], "did you mean 'rbf_svm'?"),
        (["--target", "labels"], "target 'labels' needs labels"),
        (["--seed", "-1"], "--seed"),
        (["--time-limit", "0"], "--time-limit"),
        (["--output", "nowhere/new"], "--output nowhere/new: its folder does not exist"),
        (["--output", "."], "is a folder; name a file in it"),
        (["--output", "/dev/null"], "--output /dev/null: is not a regular file"),
        (["--output", "/dev/stdout"], "--output /dev/stdout: is not a regular file"),
        (["--output", "X.npy"], "--output X.npy: is an input of this command"),
    ],
)
def test_options_of_fit(folder: Path, options: list[str], words: str) -> None:
    output = [] if "--output" in options else ["-o", "new"]
    refused("fit", "X.npy", "--bits", 8, *output, *options, words=words)
    assert not (folder / "new").exists()


def test_models_and_outputs(folder: Path) -> None:
    Path("pickle").write_bytes(pickle.dumps(Bomb()))
    whole = Path("model").read_bytes()
    Path("cut").write_bytes(whole[:300])
    for model, words in (
        ("nowhere", "nowhere: there is no such model file"),
        ("pickle", "this is a pickle, no file of hashlearn"),
        ("cut", "truncated"),
        ("X.npy", "neither a model nor an index"),
        (".", "is a folder, not a model file"),
    ):
        refused("encode", model, "X.npy", "-o", "codes.npy", words=words)
        refused("search", model, "--database", "X.npy", "--queries", "Q.npy", words=words)
        refused("onnx", model, "-o", "model.onnx", words=words)
    assert ran == []
    refused("encode", "model", "X.npy", "-o", "codes.csv", words="codes.csv: codes are written as .npy or .parquet")
    refused("encode", "model", "X.npy", "-o", "X.npy", words="is an input of this command")
    refused("encode", "model", "X.npy", "-o", "model", words="is an input of this command")
    refused("encode", "model", "X.npy", "-o", "a/codes.npy", words="its folder does not exist")
    refused("onnx", "model", "-o", "model.pb", words="a graph is written as .onnx")
    assert Path("model").read_bytes() == whole


def test_searches(folder: Path) -> None:
    files = ["--database", "X.npy", "--queries", "Q.npy"]
    for k in (0, -1, N + 1):
        refused(
            "search",
            "model",
            *files,
            "-k",
            k,
            words=f"k must be an integer from 1 to the 300 item(s) that there are to find, got {k}",
        )
    refused("search", "model", *files, "--radius", -1, words="radius must be an integer of at least 0, got -1")
    refused("search", "model", "--queries", "Q.npy", words="--database: give either --database or --database-codes")
    for given, words in (
        (["--radius", 2, "--asymmetric"], "--radius: is a distance in bits"),
        (["--radius", 2, "--rescore", "X.npy"], "--radius: is a distance in bits"),
        (["--depth", 20], "give --rescore too"),
        (["--depth", 5, "--rescore", "X.npy"], "--depth: must be at least k = 10, got 5"),
        (["--depth", N + 1, "--rescore", "X.npy"], "from 1 to the 300 item(s)"),
        (["--rescore", "Q.npy"], "--rescore: Q.npy has 40 row(s), and the database has 300"),
        (["--rescore", "X.npy", "--metric", "cosin"], "--metric: metric must be one of"),
    ):
        refused("search", "model", *files, *given, words=words)
    np.save("wide.npy", np.zeros((5, 3), np.uint8))
    np.save("signed.npy", np.zeros((5, 2), np.int8))
    np.save("padded.npy", np.full((5, 2), 255, np.uint8))
    for codes, words in (
        ("wide.npy", "--database-codes: wide.npy: codes must have 2 byte(s) in a row for n_bits=12"),
        ("signed.npy", "must be packed codes of dtype uint8, got int8"),
        ("padded.npy", "codes must be zero past bit 12"),
        ("nowhere.npy", "there is no such file"),
    ):
        refused("search", "model", "--database-codes", codes, "--queries", "Q.npy", words=words)
    labels = ["--database-labels", "y.npy", "--query-labels", "yq.npy"]
    refused("evaluate", "model", *files, *labels, "--ties", "expectd", words="did you mean 'expected'?")
    refused("evaluate", "model", *files, *labels, "-k", 301, words="k must be an integer from 1 to the 300 item(s)")
    swapped = ["--database-labels", "yq.npy", "--query-labels", "y.npy"]
    refused(
        "evaluate", "model", *files, *swapped, words="query_codes and query_labels have inconsistent numbers of samples"
    )


def test_what_cannot_be_done_here_is_exit_code_1(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(error: BaseException) -> Any:
        def raise_it(*_: Any, **__: Any) -> None:
            raise error

        return raise_it

    encode = ["encode", "model", "X.npy", "-o", "codes.npy"]
    for error, words in (
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "not enough memory; give fewer rows, or a smaller --batch-rows"),
        (ImportError("reading needs pyarrow: pip install 'hashlearn[parquet]'"), "pip install 'hashlearn[parquet]'"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr("hashlearn.files.encode_file", fail(error))
            refused(*encode, words=words, code=1)
    assert invoke(*encode).exit_code == 0
    with monkeypatch.context() as patch:  # a command without the option does not name it
        patch.setattr("hashlearn.near_duplicates", fail(MemoryError()), raising=False)
        assert invoke("duplicates", "X.npy", "-o", "p.csv").stderr == "Error: not enough memory\n"
