"""``python -m hashlearn``: the same as the ``hashlearn`` command."""

from __future__ import annotations

from hashlearn.cli import main

if __name__ == "__main__":
    main(prog_name="hashlearn")
