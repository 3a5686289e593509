"""The progress bar of every command: the library's own, on standard error if it is a terminal."""

from __future__ import annotations

from hashlearn.core.progress_bar import ProgressBar, duration

__all__ = ["ProgressBar", "duration"]
