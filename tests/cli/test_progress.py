"""The progress bar: what it draws, and when it draws nothing."""

from __future__ import annotations

import io
import math
import sys
from typing import Any

import pytest

from hashlearn import bqp
from hashlearn.core import progress_bar as module
from hashlearn.core.progress import Progress
from hashlearn.core.progress_bar import ProgressBar


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def new_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The terminal that bars draw on, without waiting."""
    monkeypatch.setattr(module, "SECONDS_BETWEEN_DRAWS", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr  # type: ignore[return-value]


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

    bar = ProgressBar(False, prefix="ring: ", extra=cut)
    first = line(bar, terminal, solving("rounding", 0.5, -20.0, -math.inf))
    assert first.startswith("ring: rounding ")
    assert " 50%, ? left, 00:00" in first
    assert first.endswith("value 5, bound inf")
    assert line(bar, terminal, solving("polishing", None, -24.0, -28.0)) == "ring: polishing 00:00, value 6, bound 7"


def test_the_time_left_comes_from_the_speed_since_the_stage_began(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = new_terminal(monkeypatch)
    bar, times = ProgressBar(False), [1000.0]
    monkeypatch.setattr("tqdm.std.time", lambda: times[-1])
    monkeypatch.setattr(module.time, "time", lambda: times[-1])
    bar._bar._time = module.time.time
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
