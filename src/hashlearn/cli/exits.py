"""How a command ends: exit codes, and the errors that end it with a message instead of a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT: an interrupted answer must not look like a finished one to a script

USERS_FAULT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)


class InputError(click.ClickException):
    """The user's input cannot be worked with: the message on standard error, exit code 2."""

    exit_code = BAD_INPUT


class Failure(click.ClickException):
    """The input is right, and it cannot be done here (no space, no memory, a package missing): exit code 1."""

    exit_code = FAILED


@contextmanager
def refusals(about: str = "") -> Iterator[None]:
    """Turn errors of the library into one line; ``about`` names the option or file in front of it."""
    before = f"{about}: " if about else ""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(before + one_line(error)) from None
    except ImportError as error:
        raise Failure(before + one_line(error)) from None
    except MemoryError as error:
        raise Failure(
            f"{before}not enough memory{_detail(error)}; give fewer rows, or a smaller --batch-rows"
        ) from None
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else one_line(error)
        raise (InputError if isinstance(error, USERS_FAULT) else Failure)(before + text) from None


def one_line(error: BaseException | str) -> str:
    """The first paragraph of an error's message, as one line.

    >>> one_line(ValueError("X contains NaN.\\nYou might want\\n\\nto know more"))
    'X contains NaN. You might want'
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.partition("\n\n")[0].split()) or type(error).__name__


def _detail(error: BaseException) -> str:
    return f" ({one_line(error)})" if str(error) else ""
