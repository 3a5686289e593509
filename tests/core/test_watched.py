"""``verbose=True``: a bar with the time left for every long fit, and a word when kernels are compiled."""

from __future__ import annotations

import io
import logging
import sys
import time
from typing import Any

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone

import hashlearn
from hashlearn import RankingHasher, TwoStepHasher, compress
from hashlearn.core import progress_bar
from hashlearn.core.progress import tell
from hashlearn.core.progress_bar import watched
from hashlearn.hashers import HASHERS
from tests.hashers.supervised_laws import X, Y


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def new_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A standard error that is a terminal, whose bars appear at once."""
    monkeypatch.setattr(progress_bar, "SECONDS_BEFORE", 0.0)
    monkeypatch.setattr(progress_bar, "SECONDS_BETWEEN_DRAWS", 0.001)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr  # type: ignore[return-value]


def drawn(terminal: io.StringIO, what: str) -> bool:
    """Whether the bar's thread draws this within some seconds."""
    end = time.monotonic() + 10.0
    while what not in terminal.getvalue():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def test_a_bar_shows_stage_and_time_left_and_tells_the_callback_too(monkeypatch: Any) -> None:
    terminal = new_terminal(monkeypatch)
    told: list[Any] = []
    with watched(told.append, True) as progress:
        tell(progress, "inference", 1, 8)
        time.sleep(0.01)
        tell(progress, "inference", 2, 8)
        assert drawn(terminal, "2/8")
        assert drawn(terminal, "left")
        assert "inference" in terminal.getvalue()
    assert [step.done for step in told] == [1, 2]


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", [name for name, kind in HASHERS.items() if "progress" in kind().get_params()])
def test_every_hasher_with_progress_is_verbose_if_asked(name: str, verbose: bool, monkeypatch: Any) -> None:
    asked: list[Any] = []

    def noted(progress: Any, verbose: Any) -> Any:
        asked.append(verbose)
        return watched(progress, False)

    kind = HASHERS[name]
    module = sys.modules[(TwoStepHasher if issubclass(kind, TwoStepHasher) else kind).__module__]
    monkeypatch.setattr(module, "watched", noted)
    quick: dict[str, Any] = {"ranking": {"n_steps": 1, "hidden": 8}, "fasthash": {"n_trees": 1}}.get(name, {})
    kind(2, verbose=verbose, random_state=0, **quick).fit(X[:100], Y[:100])
    assert asked == [verbose]


def test_nothing_is_drawn_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    RankingHasher(4, n_steps=2, hidden=8, random_state=0).fit(X[:200])
    assert terminal.getvalue() == ""
    RankingHasher(4, n_steps=200, hidden=64, random_state=0, verbose=True).fit(X[:400])
    assert "ranking" in terminal.getvalue() or "neighbors" in terminal.getvalue()


def test_compress_is_verbose_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    quick: dict[str, Any] = {"recall": 0.8, "confidence": 0.9, "families": ["pca_sign"]}
    assert compress(X, verbose=True, **quick).certificate == compress(X, **quick).certificate
    assert "finding the true neighbors" in terminal.getvalue()


def test_in_a_file_the_bar_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with watched(None, True) as progress:
        tell(progress, "inference", 1, 8)
        time.sleep(0.02)
        assert file.getvalue() == ""
    monkeypatch.setattr(progress_bar, "SECONDS_BETWEEN_LINES", 0.001)
    with watched(None, True) as progress:
        tell(progress, "inference", 1, 8)
        assert drawn(file, "inference")


def test_a_word_when_kernels_are_compiled(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    terminal = new_terminal(monkeypatch)
    progress_bar._log_compilation.cache_clear()

    @njit
    def doubled(x: Any) -> Any:
        return x + x

    with caplog.at_level(logging.INFO, "hashlearn"):
        with watched(None, False):
            doubled(1)
        assert caplog.text.count("compiling kernels, once on this machine") == 1
        with watched(None, True):
            doubled(np.ones((2, 2, 2)))  # takes long enough for the bar
            assert drawn(terminal, "compiling kernels, once on this machine")
        with watched(None, True):
            doubled(1)  # known already
        assert caplog.text.count("compiling kernels") == 1  # once in a process


def test_a_model_file_does_not_hold_it(tmp_path: Any) -> None:
    hasher = TwoStepHasher(4, verbose=True, random_state=0).fit(X[:100], Y[:100])
    assert clone(hasher).verbose is True
    hasher.save(tmp_path / "model")
    again = hashlearn.load(tmp_path / "model")
    assert again.verbose is False
    assert b"verbose" not in (tmp_path / "model").read_bytes()
    np.testing.assert_array_equal(again.encode(X), hasher.encode(X))


def test_a_wrong_value_is_named() -> None:
    with pytest.raises(ValueError, match="verbose must be True or False, got 'yes'"):
        TwoStepHasher(4, verbose="yes").fit(X[:100])  # type: ignore[arg-type]
