"""Saving is all or nothing: after kills, on a full disk, and while others read, there is the old file or the new."""

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hashlearn.core.atomic_files import write_atomically
from hashlearn.persistence import PersistenceError, load
from tests.persistence.models import TEST, X, fitted, unfitted


@pytest.fixture
def two_models(tmp_path):
    """Path of a file, and two hashers with other codes."""
    one, other = fitted("lsh"), unfitted("lsh", random_state=1).fit(X[:100])
    assert (one.encode(X[TEST]) != other.encode(X[TEST])).any()
    return tmp_path / "model", one, other


def test_a_full_disk_keeps_the_old_model(two_models):
    path, one, _ = two_models
    one.save(path)
    code = (
        "import resource, signal, sys\n"
        "from hashlearn import load\n"
        "hasher = load(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))\n"
        "try:\n    hasher.save(sys.argv[1])\nexcept OSError as error:\n    print(type(error).__name__)\n"
    )
    before, files = path.read_bytes(), sorted(os.listdir(path.parent))
    size = str(len(before) // 2)
    done = subprocess.run([sys.executable, "-c", code, str(path), size], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("OSError", "")
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == files


def test_a_write_that_fails_halfway_leaves_nothing_behind(two_models, monkeypatch):
    path, one, other = two_models
    one.save(path)
    for target, error in (("os.fsync", OSError(28, "No space left on device")), ("os.replace", KeyboardInterrupt())):

        def fail(*_, error=error):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(target, fail)
            with pytest.raises(type(error)):
                other.save(path)
        assert os.listdir(path.parent) == ["model"]
        np.testing.assert_array_equal(load(path).encode(X[TEST]), one.encode(X[TEST]))


def test_bytes_are_on_disk_before_the_file_takes_its_place_and_its_name_after(tmp_path, monkeypatch):
    """A power cut leaves what was flushed: the bytes first, then the new name, which is the folder's."""
    done, fsync, replace = [], os.fsync, os.replace

    def flushed(handle):
        done.append("folder flushed" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file flushed")
        fsync(handle)

    def renamed(*paths):
        done.append("renamed")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    write_atomically(tmp_path / "file", [b"whole"])
    assert done == ["file flushed", "renamed", "folder flushed"]


def test_what_was_written_is_read_back_before_it_takes_its_place(two_models, monkeypatch):
    path, one, other = two_models
    one.save(path)
    monkeypatch.setattr("hashlearn.core.container.digests", lambda arrays: dict.fromkeys(arrays, "0" * 64))
    with pytest.raises(PersistenceError, match="damaged"):
        other.save(path)
    np.testing.assert_array_equal(load(path).encode(X[TEST]), one.encode(X[TEST]))


def test_readers_meanwhile_see_one_model_or_the_other(two_models):
    path, one, other = two_models
    one.save(path)
    codes = {hasher.encode(X[TEST]).tobytes() for hasher in (one, other)}
    seen, errors, stop = set(), [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                seen.add(load(path).encode(X[TEST]).tobytes())
            except Exception as error:
                errors.append(error)

    def write(hasher):
        while not stop.is_set():
            hasher.save(path)

    threads = [threading.Thread(target=read) for _ in range(2)]
    threads += [threading.Thread(target=write, args=(hasher,)) for hasher in (one, other)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert seen == codes
    assert os.listdir(path.parent) == ["model"]


def test_permissions_and_links_stay(two_models, tmp_path):
    path, one, other = two_models
    one.save(path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    other.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    np.testing.assert_array_equal(load(path).encode(X[TEST]), other.encode(X[TEST]))


def special_files(folder):
    """Paths that no file may take the place of, each with a word of the error."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "to_null").symlink_to("/dev/null")
    (folder / "to_pipe").symlink_to(folder / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(folder / "socket"))
    server.close()
    names = ("pipe", "loop", "to_null", "to_pipe", "socket")
    return [(folder / name, "not a regular file") for name in names] + [
        (folder / "folder", "is a folder"),
        (Path("/dev/null"), "not a regular file"),
        (Path("/dev/stdout"), "not a regular file"),
        (folder / "none" / "model", "folder does not exist"),
        (folder / ("m" * 250), "too long"),
    ]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_only_regular_files_are_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's name must be short
    for path, word in special_files(Path()):
        before = sorted(os.listdir())
        kind = stat.S_IFMT(path.lstat().st_mode) if os.path.lexists(path) else None
        with pytest.raises((OSError, ValueError), match=word) as found:
            write_atomically(path, [b"new"])
        assert path.name in str(found.value)
        assert sorted(os.listdir()) == before
        assert kind == (stat.S_IFMT(path.lstat().st_mode) if os.path.lexists(path) else None)
    Path("to_new").symlink_to("new")
    write_atomically(Path("to_new"), [b"new"])
    assert Path("new").read_bytes() == b"new"
    assert Path("to_new").is_symlink()
