"""The ``hashlearn`` command, and ``python -m hashlearn``. After Ctrl-C the exit code of both is 130."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Run the command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it may be ignored, as after nohup
        signal.signal(signal.SIGINT, _interrupt)
    from hashlearn.cli import main as command

    try:
        command(prog_name="hashlearn")
    finally:
        # If Ctrl-C came inside of exec(), ``python -m`` would end by a signal, unless another exec() has ended well.
        exec("")


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt. While a module is imported, end at once: some packages swallow or replace exceptions."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            try:
                os.write(2, b"Interrupted before there was an answer.\n")
            finally:
                os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
