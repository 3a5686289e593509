"""Every command with what users get wrong: exit code 1 or 2, one line that begins with "Error:", never a traceback."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import Result

from hashlearn import bqp, compress
from hashlearn.cli import main
from hashlearn.cli.exits import BAD_INPUT, FAILED, refusal
from hashlearn.hashers import LSH
from tests.cli.files import invoke

# Calls to which one option is appended. They work, except where work takes long: five rows are too few to tune or
# to compress.
WORKING: dict[str, list[str]] = {
    "fit": ["X.npy", "-o", "new", "--bits", "4", "--method", "lsh"],
    "tune": ["Q.npy", "-o", "new", "--bits", "4", "--seconds", "0.001"],
    "encode": ["model", "X.npy", "-o", "codes.npy"],
    "search": ["model", "--database", "X.npy", "--queries", "Q.npy"],
    "evaluate": [
        "model", "--database", "X.npy", "--queries", "Q.npy", "--database-labels", "y.npy", "--query-labels", "yq.npy",
    ],
    "export": ["codes.parquet", "--to", "usearch", "--path", "store"],
    "onnx": ["model", "-o", "model.onnx"],
    "describe": ["model"],
    "duplicates": ["X.npy", "-o", "pairs.csv"],
    "compress": ["Q.npy", "-o", "new", "--page", "page.html"],
    "verify": ["promise", "--database", "X.npy", "--queries", "Q.npy"],
    "explore": ["model", "X.npy", "-o", "explore.html"],
    "bench": ["supervised", "--dataset", "small.npz", "--methods", "SDH", "--bits", "8", "--draws", "1"],
    "report": ["no results here"],
    "datasets": [],
    "bqp": ["graph.txt"],
    "bqp-verify": ["graph.txt", "proof.json"],
    "demo": [],
}  # fmt: skip

# Every place where a command reads a file.
READERS: dict[str, list[str]] = {
    "features of fit": ["fit", "FILE", "-o", "new", "--bits", "4"],
    "queries of fit": ["fit", "X.npy", "--queries", "FILE", "-o", "new", "--bits", "4"],
    "labels of fit": ["fit", "X.npy", "--labels", "FILE", "-o", "new", "--bits", "4"],
    "features of tune": ["tune", "FILE", "-o", "new", "--bits", "4", "--seconds", "0.001"],
    "labels of tune": ["tune", "X.npy", "--labels", "FILE", "-o", "new", "--bits", "4", "--seconds", "0.001"],
    "model of encode": ["encode", "FILE", "X.npy", "-o", "codes.npy"],
    "features of encode": ["encode", "model", "FILE", "-o", "codes.npy"],
    "model of search": ["search", "FILE", "--database", "X.npy", "--queries", "Q.npy"],
    "database of search": ["search", "model", "--database", "FILE", "--queries", "Q.npy"],
    "codes of search": ["search", "model", "--database-codes", "FILE", "--queries", "Q.npy"],
    "rescoring of search": ["search", *WORKING["search"], "--rescore", "FILE"],
    "queries of search": ["search", "model", "--database", "X.npy", "--queries", "FILE"],
    "labels of evaluate": ["evaluate", *WORKING["evaluate"], "--query-labels", "FILE"],
    "database labels of evaluate": ["evaluate", *WORKING["evaluate"], "--database-labels", "FILE"],
    "model of onnx": ["onnx", "FILE", "-o", "model.onnx"],
    "sample of onnx": ["onnx", "model", "--sample", "FILE", "-o", "model.onnx"],
    "codes of export": ["export", "FILE", "--to", "usearch", "--path", "store"],
    "file of describe": ["describe", "FILE"],
    "features of duplicates": ["duplicates", "FILE", "-o", "pairs.csv"],
    "features of compress": ["compress", "FILE", "-o", "new"],
    "queries of compress": ["compress", "X.npy", "--queries", "FILE", "-o", "new"],
    "labels of compress": ["compress", "X.npy", "--labels", "FILE", "-o", "new"],
    "texts of compress": ["compress", "X.npy", "--texts", "FILE", "-o", "new", "--page", "page.html"],
    "model of explore": ["explore", "FILE", "X.npy", "-o", "explore.html"],
    "features of explore": ["explore", "model", "FILE", "-o", "explore.html"],
    "labels of explore": ["explore", "model", "X.npy", "--labels", "FILE", "-o", "explore.html"],
    "texts of explore": ["explore", "model", "X.npy", "--texts", "FILE", "-o", "explore.html"],
    "images of explore": ["explore", "model", "X.npy", "--images", "FILE", "-o", "explore.html"],
    "model of verify": ["verify", "FILE", "--database", "X.npy", "--queries", "Q.npy"],
    "database of verify": ["verify", "promise", "--database", "FILE", "--queries", "Q.npy"],
    "queries of verify": ["verify", "promise", "--database", "X.npy", "--queries", "FILE"],
    "data set of bench": ["bench", "supervised", "--dataset", "FILE", "--methods", "SDH", "--bits", "8"],
    "folder of report": ["report", "FILE", "-o", "page.html"],
    "problem of bqp": ["bqp", "FILE"],
    "problem of bqp-verify": ["bqp-verify", "FILE", "proof.json"],
    "proof of bqp-verify": ["bqp-verify", "graph.txt", "FILE"],
}

WRONG_FILES = [
    "", "missing.npy", "missing.npz", "missing.parquet", "no/such/X.npy", "X.npy/X.npy", "X", ".", "/",
    "folder.npy", "folder.npz", "folder.parquet", "empty.npy", "empty.npz", "empty.parquet", "empty",
    "missing.csv", "folder.csv", "empty.csv", "words.csv", "pipe.csv",
    "words.npy", "words.npz", "words.parquet", "words.txt", "cut.npy", "cut.npz", "objects.npy", "objects.npz",
    "loop.npy", "loop.npz", "loop", "dangling.npy", "pipe.npy", "pipe.npz", "pipe.parquet", "pipe",
    "/dev/null", "/dev/zero", "zero.npy", "zero.npz", "deflated.npz", "encrypted.npz",
    "deflated.npz::X", "deflated.npz::y", "encrypted.npz::X", "nothing.npz", "nan.npy", "nan.npz::X", "nan.npz::y",
    "small.npz::", "::X", "::", "small.npz::nothing", "X.npy::X", "small.npz::X::y", "complex.npy", "dates.npy",
    "records.npy", "no rows.npy", "no columns.npy", "number.npy", "cube.npy", "deep.json",
    "a" * 300 + ".npy", "a" * 300 + ".npz", "\udcff.npy", "~nobody/X.npz", "unreadable.npy",
]  # fmt: skip

# Values that some option may take and others must refuse: here only that none ends in a traceback.
ODD_VALUES = [
    "", "x", "-1", "0", "1.5", "nan", "inf", "-inf", "1e400", "1e-320", str(2**31), str(2**63), str(2**64),
    str(10**30), "9" * 5000, "no/such/x", "~nobody/x", "[]", "{}", "::", "X.npy::", "a=b",
    "\udcff", "a" * 300,
]  # fmt: skip


def damaged_archives() -> None:
    """Archives with zeros in the middle of their arrays, and with arrays that are marked as encrypted."""
    raw = bytearray(Path("small.npz").read_bytes())
    for place in (120, 1500, len(raw) // 2):
        raw[place : place + 30] = bytes(30)
    last = raw.rfind(b"PK\3\4")
    raw[last + 60 : last + 80] = bytes(20)
    Path("deflated.npz").write_bytes(raw)
    raw = bytearray(Path("small.npz").read_bytes())
    for start, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        place = -1
        while (place := raw.find(start, place + 1)) >= 0:
            raw[place + offset] = 1
    Path("encrypted.npz").write_bytes(raw)


@pytest.fixture(scope="module")
def _written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mistakes")
    before = Path.cwd()
    os.chdir(folder)
    try:
        rows = np.random.default_rng(0).standard_normal((120, 6))
        np.save("X.npy", rows)
        np.save("y.npy", np.arange(120) % 4)
        np.save("Q.npy", rows[:5])
        np.save("yq.npy", np.arange(5) % 4)
        LSH(n_bits=8, random_state=0).fit(rows).save("model")
        invoke("encode", "model", "X.npy", "-o", "codes.parquet")
        many = np.random.default_rng(1).standard_normal((300, 6))
        compress(many, recall=0.3, families=["ranking_linear"], keep_floats=False).save("promise")
        np.savez_compressed("small.npz", X=many, y=np.arange(300) % 4)
        Path("graph.txt").write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
        graph = bqp.read_problem("graph.txt").operator
        bqp.solve(graph, "branch_and_bound", random_state=0).details["proof"].save("proof.json")
        for suffix in ("", ".npy", ".npz", ".parquet", ".csv"):
            Path(f"empty{suffix}").touch()
            Path(f"words{suffix or '.txt'}").write_text("these are words\n")
            os.mkfifo(f"pipe{suffix}")
            if suffix:
                Path(f"folder{suffix}").mkdir()
        for name in ("loop.npy", "loop.npz", "loop"):
            os.symlink(name, name)
        os.symlink("nowhere.npy", "dangling.npy")
        os.symlink("/dev/zero", "zero.npy")
        os.symlink("/dev/zero", "zero.npz")
        Path("cut.npy").write_bytes(Path("X.npy").read_bytes()[:500])
        Path("cut.npz").write_bytes(Path("small.npz").read_bytes()[:500])
        np.save("objects.npy", np.array([[{}]]), allow_pickle=True)
        np.savez("objects.npz", X=np.array([[{}]]), y=np.array([{}]), allow_pickle=True)
        np.savez("nothing.npz")
        np.save("nan.npy", np.full((120, 6), np.nan))
        np.savez("nan.npz", X=np.full((120, 6), np.nan), y=np.full(120, np.nan))
        np.save("complex.npy", rows + 1j)
        np.save("dates.npy", np.zeros((120, 6), "M8[s]"))
        np.save("records.npy", np.zeros(120, [("a", float)]))
        np.save("no rows.npy", rows[:0])
        np.save("no columns.npy", rows[:, :0])
        np.save("number.npy", np.float64(3.0))
        np.save("cube.npy", rows[None])
        Path("deep.json").write_text("[" * 100_000)
        damaged_archives()
        np.save("unreadable.npy", np.full((120, 6), np.nan))  # wrong in any case: root may read it
        Path("unreadable.npy").chmod(0)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(_written_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, features, and files that cannot be used."""
    monkeypatch.chdir(_written_once)
    monkeypatch.setenv("HASHLEARN_DATA", str(_written_once / "no data"))
    return _written_once


def complaint(result: Result) -> str:
    """The one line of a refusal."""
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (FAILED, BAD_INPUT), result.output
    lines = [line for line in result.stderr.splitlines() if line and not line.startswith(("Usage:", "Try "))]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: "), result.stderr
    assert len(lines[0]) > len("Error: ") + 5
    return lines[0]


@pytest.mark.parametrize("reader", READERS)
def test_files_that_cannot_be_read(folder: Path, reader: str) -> None:
    before = sorted(os.listdir(folder))
    for name in WRONG_FILES:
        with_file = [name if word == "FILE" else word for word in READERS[reader]]
        result = invoke(*with_file)
        if reader.startswith(("labels", "database labels", "texts")) and result.exit_code == 0:
            (folder / "explore.html").unlink(missing_ok=True)
            continue  # dates may be classes or texts
        complaint(result)
    assert set(os.listdir(folder)) - {"results"} == set(before) - {"results"}


def valued(command: click.Command) -> list[str]:
    return [p.opts[0] for p in command.params if isinstance(p, click.Option) and not p.is_flag and p.opts]


@pytest.mark.parametrize("name", [name for name in main.commands if name != "demo"])
def test_odd_values_of_every_option(folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ("X.npy", "Q.npy", "y.npy", "yq.npy", "model", "small.npz", "graph.txt", "proof.json", "codes.parquet"):
        os.symlink(folder / file, tmp_path / file)
    monkeypatch.chdir(tmp_path)
    for option in valued(main.commands[name]):
        for value in ODD_VALUES:
            result = invoke(name, *WORKING[name], option, value)
            assert result.exception is None or isinstance(result.exception, SystemExit), (option, value[:50])
            if result.exit_code != 0:
                complaint(result)


def test_a_pipe_in_the_data_folder_is_no_data_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASHLEARN_DATA", str(folder))
    result = invoke("datasets", "--json")
    assert result.exit_code == 0
    names = {one["name"] for one in json.loads(result.stdout)["datasets"]}
    assert "small" in names
    assert "pipe" not in names


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "a"), BAD_INPUT, "a: No such file or directory"),
        (PermissionError(errno.EACCES, "Permission denied", b"a"), BAD_INPUT, "a: Permission denied"),
        (OSError(errno.ELOOP, "Too many levels of symbolic links", "a"), BAD_INPUT, "a: Too many levels"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "a"), BAD_INPUT, "a: File name too long"),
        (OSError(errno.ENOSPC, "No space left on device"), FAILED, "No space left on device"),
        (OSError(errno.EROFS, "Read-only file system", "a"), FAILED, "a: Read-only file system"),
        (OSError(errno.EIO, "Input/output error"), FAILED, "Input/output error"),
        (MemoryError(), FAILED, "not enough memory"),
    ],
)
def test_whose_fault_it_is(error: Any, code: int, text: str) -> None:
    found = refusal(error)
    assert found.exit_code == code
    assert found.message.startswith(text)


def test_a_mistake_of_ours_is_not_hidden(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise AttributeError("ours")

    monkeypatch.setattr("hashlearn.files.encode_file", broken)
    assert isinstance(invoke("encode", *WORKING["encode"]).exception, AttributeError)


def hashlearn(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hashlearn", *arguments]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120, **settings)


def test_standard_output_that_is_full() -> None:
    for arguments in (["--help"], ["datasets"]):
        with open("/dev/full", "w") as full:
            done = hashlearn(*arguments, stdout=full)
        assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")


def test_a_current_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    remove_and_run = (
        f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
        "from hashlearn.cli import main; main(['fit', 'X.npy', '-o', 'model'])"
    )
    done = subprocess.run([sys.executable, "-c", remove_and_run], capture_output=True, text=True, timeout=120)
    words = "Error: the current folder does not exist any more; change to another one\n"
    assert (done.returncode, done.stderr) == (1, words)
