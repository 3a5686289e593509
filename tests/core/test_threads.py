"""The limit on BLAS threads belongs to the whole process: several users, and a fork while one of them computes."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from hashlearn.core import threads
from hashlearn.core.threads import all_blas_threads, one_blas_thread


def blas_threads() -> set[int]:
    """Of the libraries that NumPy and SciPy use; other tests may have loaded FAISS, which brings another."""
    return {library["num_threads"] for library in threads._controller().info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_blas_threads() -> Iterator[None]:
    with threads._controller().limit(limits=2, user_api="blas"):
        yield


class Other(threading.Thread):
    """Another thread that is inside `one_blas_thread` until it is told to leave."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.inside, self.leaves = threading.Event(), threading.Event()

    def run(self) -> None:
        with one_blas_thread():
            self.inside.set()
            self.leaves.wait(60)

    def leave(self) -> None:
        self.leaves.set()
        self.join(60)


def test_the_limit_lasts_until_the_last_user_leaves() -> None:
    other = Other()
    with one_blas_thread():
        other.start()
        assert other.inside.wait(60)
    assert blas_threads() == {1}
    other.leave()
    assert blas_threads() == {2}


def test_an_error_inside_restores_too() -> None:
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        1 / 0  # noqa: B018
    assert blas_threads() == {2}


def test_all_threads_are_for_a_thread_that_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "n_threads", lambda: 2)
    with one_blas_thread():
        with all_blas_threads():
            assert blas_threads() == {2}
            other = Other()
            other.start()
            assert other.inside.wait(60)
            assert blas_threads() == {1}
            other.leave()
            assert blas_threads() == {2}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def status_of_child(seconds: int = 30) -> int:
    """Fork; the child enters and leaves once and computes. Returns its exit status; a hanging child is killed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns about forks of processes with threads
        child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        with one_blas_thread():
            ones = np.ones((200, 200)) @ np.ones((200, 200))
            right = blas_threads() == {1} and ones[0, 0] == 200.0
        os._exit(0 if right and blas_threads() == {2} else 3)
    return os.waitpid(child, 0)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_counts_only_the_thread_that_forked() -> None:
    other = Other()
    other.start()
    assert other.inside.wait(60)
    assert status_of_child() == 0
    other.leave()
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_multiplies_does_not_hang() -> None:
    done, A = threading.Event(), np.random.default_rng(0).standard_normal((400, 400))

    def multiply() -> None:
        while not done.is_set():
            with one_blas_thread():
                A @ A

    workers = [threading.Thread(target=multiply, daemon=True) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        assert [status_of_child() for _ in range(5)] == [0] * 5
    finally:
        done.set()
        for worker in workers:
            worker.join(60)
    assert blas_threads() == {2}


def test_the_blas_of_faiss_is_left_alone() -> None:
    pytest.importorskip("faiss")
    known = [library["filepath"] for library in threads._controller.__wrapped__().info()]
    assert any("openblas" in path or "mkl" in path for path in known) or not known
    assert not any("faiss" in path for path in known)
