"""``verbose=True``: a bar with the time left for every long fit."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import numpy as np
import pytest
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
    """A standard error that is a terminal."""
    monkeypatch.setattr(progress_bar, "SECONDS_BETWEEN_DRAWS", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr  # type: ignore[return-value]


def test_a_bar_shows_stage_and_time_left_and_tells_the_callback_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    told: list[Any] = []
    with watched(told.append, True) as progress:
        tell(progress, "inference", 1, 8)
        time.sleep(0.01)
        tell(progress, "inference", 2, 8)
        assert "inference" in terminal.getvalue()
        assert "2/8, 00:00 left" in terminal.getvalue()
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
    RankingHasher(4, n_steps=2, hidden=8, random_state=0, verbose=True).fit(X[:200])
    assert "ranking" in terminal.getvalue()


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
        assert file.getvalue() == ""
        monkeypatch.setattr(progress_bar, "SECONDS_BETWEEN_LINES", 0.0)
        tell(progress, "inference", 2, 8)
        assert "inference" in file.getvalue()


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
