"""How a command ends: exit codes, and the error that ends it with a message instead of a traceback."""

from __future__ import annotations

import click

BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT: an interrupted answer must not look like a finished one to a script


class InputError(click.ClickException):
    """The user's input cannot be worked with: the message on standard error, exit code 2."""

    exit_code = BAD_INPUT
