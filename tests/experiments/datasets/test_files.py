"""Published files: verified always, downloaded whole or not at all, and errors that say what to put where."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hashlearn.experiments.datasets import DataError, MissingDataError, data_folder
from hashlearn.experiments.datasets.files import PublishedFile, obtain, user_cache
from tests.experiments.datasets.written import canonical

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def wanted(*urls: str) -> PublishedFile:
    return PublishedFile("sub/file.bin", f"sha256:{SHA256}", urls)


class Handler(BaseHTTPRequestHandler):
    """Serves /good whole, /half half of it, /wrong other bytes of the same length, nothing else."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.path not in ("/good", "/half", "/wrong"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        body = CONTENT[::-1] if self.path == "/wrong" else CONTENT
        self.wfile.write(body[: len(body) // 2] if self.path == "/half" else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    pytest.importorskip("pooch", reason="downloads need pooch")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: ThreadingHTTPServer, path: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{path}"


def everything_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("content", [CONTENT[:-1], b"", CONTENT[:-1] + b"x"])
def test_wrong_file_is_refused_and_left_alone(folder: Path, content: bytes) -> None:
    canonical(folder, "sub/file.bin", content)
    with pytest.raises(DataError, match=f"wrong checksum: sha256:[0-9a-f]+, expected sha256:{SHA256}") as caught:
        obtain("test", [wanted()], folder)
    assert str(folder / "sub" / "file.bin") in str(caught.value)
    assert (folder / "sub" / "file.bin").read_bytes() == content


def test_download_verifies_and_reports(folder: Path, server: ThreadingHTTPServer) -> None:
    heard: list[str] = []
    files = obtain("test", [wanted(address(server, "good"))], folder, lambda p: heard.append(p.stage))
    assert (folder / "sub" / "file.bin").read_bytes() == CONTENT
    assert [file.sha256 for file in files] == [SHA256]
    assert heard == ["downloading file.bin"]
    assert everything_in(folder) == ["file.bin"]
    obtain("test", [wanted(address(server, "good"))], folder)
    assert server.asked == ["/good"]  # type: ignore[attr-defined]


def test_download_is_silent(
    folder: Path, server: ThreadingHTTPServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    obtain("test", [wanted(address(server, "good"))], folder)
    assert not caplog.records
    assert capsys.readouterr() == ("", "")


def test_next_mirror_is_tried(folder: Path, server: ThreadingHTTPServer) -> None:
    urls = [address(server, path) for path in ("gone", "wrong", "half", "good")]
    obtain("test", [wanted(*urls)], folder)
    assert server.asked == ["/gone", "/wrong", "/half", "/good"]  # type: ignore[attr-defined]
    assert (folder / "sub" / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["gone", "wrong", "half"])
def test_failed_download_leaves_nothing(folder: Path, server: ThreadingHTTPServer, path: str) -> None:
    with pytest.raises(MissingDataError) as caught:
        obtain("test", [wanted(address(server, path))], folder)
    assert everything_in(folder) == []
    assert f"{address(server, path)}: " in str(caught.value)


def test_error_says_which_file_to_put_where(folder: Path) -> None:
    pytest.importorskip("pooch", reason="downloads need pooch")
    with pytest.raises(MissingDataError) as caught:
        obtain("test", [wanted("http://127.0.0.1:9/x")], folder)
    message = str(caught.value)
    assert message.startswith(f"test: {folder / 'sub' / 'file.bin'} is missing or differs, and no download succeeded:")
    assert "http://127.0.0.1:9/x: " in message
    assert f"sha256:{SHA256}" in message
    assert "$HASHLEARN_DATA" in message


def test_without_pooch_the_error_says_how_to_install_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDataError, match=r"pip install 'pooch>=") as caught:
        obtain("test", [wanted("http://127.0.0.1:9/x")], folder)
    assert SHA256 in str(caught.value)


def test_data_folder_is_the_variable_or_the_user_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_folder() == folder
    monkeypatch.setenv("HASHLEARN_DATA", "~/somewhere")
    assert data_folder() == Path.home() / "somewhere"
    for unset in ("", None):
        monkeypatch.setenv("HASHLEARN_DATA", "") if unset is not None else monkeypatch.delenv("HASHLEARN_DATA")
        assert data_folder() == user_cache()
    assert user_cache().name == "hashlearn"
