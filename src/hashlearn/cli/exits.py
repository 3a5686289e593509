"""How a command ends: exit codes, and the errors that end it with a message instead of a traceback.

`refusals` wraps calls of the library, whose ValueError, TypeError and KeyError are about the user's input. `end_with`
shows these, and errors of the system, such as files and memory, anywhere in a command. Any other exception is a bug of
ours, and its traceback is shown.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, NoReturn

import click

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130  # 128 + SIGINT: an interrupted answer must not look like a finished one to a script

# Arguments of the library whose options have other names.
ARGUMENTS = {"X": "features", "y": "labels", "n_queries": "queries", "random_state": "seed"}
USERS_FAULT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, FileExistsError)
WRONG_NAMES = {errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}  # Python has no exceptions of their own for these


class InputError(click.ClickException):
    """The user's input is wrong: the message goes to standard error, exit code 2."""

    exit_code = BAD_INPUT


class Failure(click.ClickException):
    """The input is right, but it cannot be done here (no space, no memory, a package missing): exit code 1."""

    exit_code = FAILED


class Interrupted(click.ClickException):
    """Ctrl-C: the message goes to standard error, exit code 130."""

    exit_code = INTERRUPTED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message alone."""
        click.echo(self.message, err=True)


@contextmanager
def refusals(about: str = "") -> Iterator[None]:
    """Turn errors of the library into one line that begins with an option or a file.

    An error that begins with the name of an argument is about the option that sets it, any other about ``about``.
    """
    before = f"{about}: " if about else ""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        text = one_line(error)
        argument = re.match(r"(\w+)[ =\[]", text)
        option = argument and _option_of(argument[1])
        raise InputError(f"{option}: {text}" if option else before + text) from None
    except ImportError as error:
        raise Failure(before + one_line(error)) from None
    except (MemoryError, OSError) as error:
        raise refusal(error, about) from None


def refuse(*cases: tuple[Any, str]) -> None:
    """Refuse with the message of the first case that holds."""
    for holds, message in cases:
        if holds:
            raise InputError(message)


def _option_of(argument: str) -> str | None:
    """The option of the running command that sets an argument of the library, such as --bits for n_bits."""
    context = click.get_current_context(silent=True)
    name = ARGUMENTS.get(argument, argument)
    for parameter in context.command.params if context else ():
        if parameter.name == name:
            return parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
    return None


def refusal(error: MemoryError | OSError, about: str = "") -> click.ClickException:
    """An error of the system as one line: exit code 2 for a wrong file name, else 1."""
    before = f"{about}: " if about else ""
    if isinstance(error, MemoryError):
        return Failure(f"{before}not enough memory{_detail(error)}{_memory_advice()}")
    text = error.strerror or one_line(error)
    if error.filename:
        text = f"{os.fsdecode(error.filename)}: {text}"
    users = isinstance(error, USERS_FAULT) or error.errno in WRONG_NAMES
    return (InputError if users else Failure)(before + text)


def end_with(error: click.ClickException | MemoryError | OSError) -> NoReturn:
    """End the process with one line about an error."""
    ending = error if isinstance(error, click.ClickException) else refusal(error)
    with suppress(OSError):  # standard error may be full as well
        ending.show()
    sys.exit(ending.exit_code)


def _memory_advice() -> str:
    """What the user of this command can do; a command that takes no batches has no such option."""
    context = click.get_current_context(silent=True)
    has_batches = context is not None and any(option.name == "batch_rows" for option in context.command.params)
    return "; give fewer rows, or a smaller --batch-rows" if has_batches else ""


def one_line(error: BaseException | str) -> str:
    """The first paragraph of an error's message, as one line.

    >>> one_line(ValueError("X contains NaN.\\nYou might want\\n\\nto know more"))
    'X contains NaN. You might want'
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return " ".join(text.partition("\n\n")[0].split()) or type(error).__name__


def _detail(error: BaseException) -> str:
    return f" ({one_line(error)})" if str(error) else ""
