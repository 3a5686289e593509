"""``verbose=True``: a bar with the time left for every long fit."""

from __future__ import annotations

import io
import math
import sys
import time
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import hashlearn
from hashlearn import RankingHasher, TwoStepHasher, bqp, compress
from hashlearn.core import progress as progress_module
from hashlearn.core.progress import Progress, ProgressBar, tell, watched
from hashlearn.hashers import HASHERS
from tests.hashers.supervised_laws import X, Y


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def new_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A standard error that is a terminal."""
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_DRAWS", 0.0)
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
        monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.0)
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


def line(bar: ProgressBar, terminal: Terminal, progress: Progress) -> str:
    terminal.truncate(0)
    terminal.seek(0)
    bar(progress)
    return terminal.getvalue().replace("\r", "").replace("\x1b[A", "").strip()  # bars of other tests


def solving(stage: str, fraction: float | None, value: float, bound: float) -> bqp.SolverProgress:
    total = None if fraction is None else 1.0
    return bqp.SolverProgress(stage, fraction or 0.0, total, "sdr", 0.1, value, bound)


def test_a_solve_shows_stage_value_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)

    def cut(progress: Any) -> str:
        return f"value {-progress.value / 4.0:.6g}, bound {-progress.bound / 4.0:.6g}"

    bar = ProgressBar(False, extra=cut)
    first = line(bar, terminal, solving("rounding", 0.5, -20.0, -math.inf))
    assert first.startswith("rounding ")
    assert " 50%, ? left, 00:00" in first
    assert first.endswith("value 5, bound inf")
    assert line(bar, terminal, solving("polishing", None, -24.0, -28.0)) == "polishing 00:00, value 6, bound 7"


def test_the_time_left_comes_from_the_speed_since_the_stage_began(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    bar, times = ProgressBar(False), [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: times[-1])
    monkeypatch.setattr(progress_module.time, "time", lambda: times[-1])
    bar._bar._time = progress_module.time.time
    assert "1,000/9,000, ? left, 00:00" in line(bar, terminal, Progress("encoding", 1_000, 9_000))
    times.append(1010.0)
    assert "3,000/9,000, 00:30 left, 00:10" in line(bar, terminal, Progress("encoding", 3_000, 9_000))
    assert "0/4, ? left, 00:00" in line(bar, terminal, Progress("searching", 0, 4))
    times.append(1015.0)
    assert "1/4, 00:15 left, 00:05" in line(bar, terminal, Progress("searching", 1, 4))


def test_nothing_is_drawn_without_a_terminal_or_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, quiet in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressBar(quiet) as bar:
            bar(Progress("encoding", 1, 2))
            bar.begin("searching")
        assert stream.getvalue() == ""
