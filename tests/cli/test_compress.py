"""``hashlearn compress`` and ``hashlearn verify`` on the digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hashlearn import load
from hashlearn.cli.compress import _row
from hashlearn.compression import Compression, FrontierRow
from hashlearn.persistence import model_file
from tests.cli.files import X, answer, invoke, refused

QUICK = ["--family", "pca_sign", "--recall", "0.9"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("D.npy", X[:1400])
    np.save("Q.npy", X[1400:])
    return tmp_path


def test_model_page_and_answer(files: Path) -> None:
    found = answer("compress", "D.npy", "-o", "m.hashlearn", "--page", "page.html", *QUICK)
    assert found["kept"]
    assert found["certificate"]["promised"] == 0.9
    assert [row["chosen"] for row in found["frontier"]].count(True) == 1
    plan = Compression.load("m.hashlearn")
    assert plan.depth == found["certificate"]["depth"]
    assert load("m.hashlearn").n_bits == 8 * found["bytes_per_row"]
    text = Path("page.html").read_text("utf-8")
    assert "Will binary codes hurt my search?" in text
    assert invoke("encode", "m.hashlearn", "Q.npy", "-o", "codes.npy").exit_code == 0


def test_text_says_the_verdict(files: Path) -> None:
    result = invoke("compress", "D.npy", "-o", "m.hashlearn", *QUICK)
    assert result.exit_code == 0, result.output
    assert "keep at least 90 % of the 10 nearest neighbors at 99 % confidence" in result.stdout
    assert "chosen" in result.stdout


def test_what_cannot_be_promised(files: Path) -> None:
    found = answer("compress", "D.npy", "-o", "m.hashlearn", "--family", "pca_sign", "--codes-only", "--max-bytes", 4)
    assert not found["kept"]
    assert 0.0 < found["certificate"]["promised"] < 0.95


def test_bounds_in_the_table_are_rounded_down() -> None:
    row = FrontierRow(8, "itq", "hamming", None, 0.9699, 0.9496, 0.5, 0.4499, 1.0, 1.0)
    assert _row(row)[4:8] == ("50 %", "44.9 %", "97 %", "94.9 %")


def test_texts_on_the_page(files: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = [f"image <{row}>" for row in range(1400)]
    table = pyarrow.table({"name": names, "vector": list(X[:1400])})
    parquet.write_table(table, "D.parquet")
    options = ["-o", "m.hashlearn", "--page", "page.html", "--texts", "D.parquet::name", *QUICK]
    assert answer("compress", "D.parquet", *options)["kept"]
    text = Path("page.html").read_text("utf-8")
    assert "image &lt;" in text
    assert "image <" not in text
    np.save("names.npy", np.array(names[:3]))
    refused("compress", "D.npy", *options[:4], "--texts", "names.npy", words="--texts: names.npy: has shape (3,)")
    refused("compress", "D.parquet", *options[:4], "--texts", "D.parquet::nme", words="has no column 'nme'")


class TestVerify:
    @pytest.fixture(autouse=True)
    def _model(self, files: Path) -> None:
        assert invoke("compress", "D.npy", "-o", "m.hashlearn", *QUICK).exit_code == 0

    def test_kept(self) -> None:
        result = invoke("verify", "m.hashlearn", "--database", "D.npy", "--queries", "Q.npy")
        assert result.exit_code == 0, result.output
        assert "The promise of recall@10 of at least 90 %" in result.stdout

    @pytest.mark.parametrize("command", ["describe m.hashlearn", "verify m.hashlearn --database D.npy --queries Q.npy"])
    def test_the_model_is_read_and_built_once(self, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file that is replaced between two reads would mix two models."""
        steps: list[str] = []
        for step in ("read_container", "_built"):
            real = getattr(model_file, step)
            monkeypatch.setattr(model_file, step, lambda *a, step=step, real=real: steps.append(step) or real(*a))
        assert invoke(*command.split()).exit_code == 0
        assert steps == ["read_container", "_built"]

    def test_broken_exits_1(self) -> None:
        np.save("other.npy", np.random.default_rng(0).permuted(X[1400:], axis=1))
        result = invoke("verify", "m.hashlearn", "--database", "D.npy", "--queries", "other.npy")
        assert result.exit_code == 1
        assert "is broken" in result.stdout

    def test_bad_input(self) -> None:
        np.save("narrow.npy", X[:50, :10])
        invoke("fit", "D.npy", "-o", "plain.hashlearn", "--method", "lsh")
        command = ["verify", "m.hashlearn", "--database", "D.npy"]
        refused(*command, "--queries", "narrow.npy", words="--queries: narrow.npy: has 10 feature(s) a row")
        refused(*command, "--queries", "none.npy", words="there is no such file")
        refused("verify", "none", "--database", "D.npy", "--queries", "Q.npy", words="there is no such model file")
        for file, names in (("D", range(64)), ("Q", reversed(range(64)))):
            header = ",".join(f"x{name}" for name in names)
            np.savetxt(f"{file}.csv", np.load(f"{file}.npy"), "%g", ",", header=header, comments="")
        words = "--queries: Q.csv: its rows must have the columns of D.csv in the same order, got 'x63' as column 0"
        refused(*command[:3], "D.csv", "--queries", "Q.csv", words=words)
        without = ["verify", "plain.hashlearn", "--database", "D.npy", "--queries", "Q.npy"]
        refused(*without, words="is a model without a promise; `hashlearn compress` makes one")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--recall", "1"], "--recall: recall must be below 1"),
        (["--recall", "0.999"], "queries, even if all neighbors are found"),
        (["--confidence", "2"], "--confidence: confidence must be"),
        (["-k", "0"], "-k: k must be"),
        (["--family", "pca"], "--family: families must be one of 'pca_sign'"),
        (["--metric", "dot"], "--metric: metric must be one of 'cosine'"),
        (["--mode", "fast"], "--mode: mode must be one of 'auto', 'hamming'"),
        (["--max-depth", "3"], "--max-depth: max_depth must be an integer of at least 10"),
        (["--max-bytes", "2"], "--max-bytes: max_bytes=2 leaves nothing to try"),
        (["--queries", "D.npy"], "there are 0"),
        (["--labels", "none.npy"], "--labels: none.npy: there is no such file"),
        (["--page", "D.npy"], "--page D.npy: is an input of this command"),
        (["--texts", "t.npy", "--page", "t.npy"], "--page t.npy: is an input of this command"),
        (["--page", "m.hashlearn"], "--page: is the same file as --output"),
        (["--page", "no/folder/page.html"], "--page"),
        (["--texts", "name"], "--page: is missing"),
    ],
)
def test_bad_input(files: Path, options: list[str], words: str) -> None:
    refused("compress", "D.npy", "-o", "m.hashlearn", "--family", "pca_sign", *options, words=words)
    assert not Path("m.hashlearn").exists()
