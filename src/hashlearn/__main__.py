"""The ``hashlearn`` command, and ``python -m hashlearn``. After Ctrl-C the exit code of both is 130."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command."""
    try:
        from hashlearn.cli import main as command

        command(prog_name="hashlearn")
    except KeyboardInterrupt:  # while modules are imported
        sys.stderr.write("Interrupted before there was an answer.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
