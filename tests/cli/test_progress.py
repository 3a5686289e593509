"""The progress bar: what it draws, how it estimates the time left, and when it draws nothing."""

from __future__ import annotations

import io
import math
import sys
from typing import Any

import pytest

from hashlearn import bqp
from hashlearn.cli.text_tables import value_and_bound
from hashlearn.core import progress_bar as module
from hashlearn.core.progress import Progress
from hashlearn.core.progress_bar import ProgressBar
from hashlearn.experiments.bench.run import RunProgress


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def new_bar(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[ProgressBar, Terminal]:
    """A bar that is not quiet, and the terminal that it draws on."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return ProgressBar(False, **options), terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the bar sees; append to it to let time pass."""
    times = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: times[-1])
    return times


def line(bar: ProgressBar, terminal: Terminal, progress: Progress) -> str:
    bar(progress)
    terminal.truncate(0)
    terminal.seek(0)
    bar.draw()
    return terminal.getvalue().replace("\r", "").replace("\x1b[A", "").strip()  # bars of other tests


def solving(stage: str, fraction: float | None, seconds: float, value: float, bound: float) -> bqp.SolverProgress:
    total = None if fraction is None else 1.0
    return bqp.SolverProgress(stage, fraction or 0.0, total, "sdr", seconds, value, bound)


def test_a_solve_shows_stage_value_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(progress: Any) -> str:
        return value_and_bound(-progress.value / 4.0, -progress.bound / 4.0)

    bar, terminal = new_bar(monkeypatch, prefix="ring: ", extra=cut)
    first = line(bar, terminal, solving("rounding", 0.5, 0.1, -20.0, -math.inf))
    assert first.startswith("ring: rounding ")
    assert " 50%, 00:00" in first
    assert first.endswith("value 5, bound –")
    assert line(bar, terminal, solving("polishing", None, 0.1, -24.0, -28.0)) == (
        "ring: polishing 00:00, value 6, bound 7"
    )


def test_the_time_left_comes_from_the_speed_so_far(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    bar, terminal = new_bar(monkeypatch)
    assert "left" not in line(bar, terminal, Progress("encoding", 1_000, 9_000))
    clock.append(110.0)
    assert "3,000/9,000, 00:00, about 30 s left" in line(bar, terminal, Progress("encoding", 3_000, 9_000))
    clock.append(115.0)
    assert "left" not in line(bar, terminal, Progress("searching", 0, 4))  # another total: nothing is known yet
    clock.append(120.0)
    assert "1/4, 00:00, about 15 s left" in line(bar, terminal, Progress("searching", 1, 4))
    clock.append(126.0)
    bar.draw()
    assert "about 9 s left" in terminal.getvalue()


def test_no_more_time_is_left_than_the_limit_allows(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    bar, terminal = new_bar(monkeypatch)
    bar.time_limit = 25.0
    assert line(bar, terminal, Progress("learning", 0, None)) == "learning 00:00"
    bar(Progress("ranking", 1_000, 9_000))
    clock.append(110.0)
    assert "3,000/9,000, 00:00, about 15 s left" in line(bar, terminal, Progress("ranking", 3_000, 9_000))
    clock.append(130.0)
    assert "about 0 s left" in line(bar, terminal, Progress("ranking", 4_000, 9_000))


def test_an_estimate_of_the_caller_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    bar, terminal = new_bar(monkeypatch)
    assert line(bar, terminal, RunProgress("SDR, 8 bits", 3, 40, 400.0)).endswith("3/40, 00:00, about 7 min left")
    assert "left" not in line(bar, terminal, RunProgress("SDR, 8 bits", 4, 40, None))


def test_nothing_is_drawn_without_a_terminal_or_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS_BEFORE", 0.0)
    for stream, quiet in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressBar(quiet) as bar:
            bar(Progress("encoding", 1, 2))
            bar.draw()
        assert stream.getvalue() == ""
